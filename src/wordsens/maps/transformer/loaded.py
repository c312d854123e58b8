"""The parts of a model: loaded by its name, or taken from a pair, a pipeline or a SentenceTransformer."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from wordsens.errors import InputError, require_choice
from wordsens.maps.transformer.settings import MODULES_FILE, SentenceSettings, folder_settings, object_settings
from wordsens.text.encoders import require_device
from wordsens.text.loaded_models import is_sentence_transformer, model_parts
from wordsens.text.pretrained import ATTENTIONS, USUAL_ACCESS, Access, load_model

_DTYPES = (torch.float32, torch.bfloat16, torch.float64)
OwnWay = Callable[[], SentenceSettings]


@dataclass(frozen=True)
class LoadedModel:
    """A running model and what reads texts for it.

    Attributes:
        model: of the transformers library.
        tokenizer: a fast one.
        name: for messages and records.
        own: gives the model's own way of reading and pooling, or an InputError; None where it has none.
    """

    model: Any
    tokenizer: Any
    name: str
    own: OwnWay | None = None


def load_parts(
    given: Any,
    *,
    task: str = "base",
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    attention: str = "eager",
    access: Access = USUAL_ACCESS,
) -> LoadedModel:
    """The parts of a model by its name, or those of a loaded one. See `TransformerFeatures.from_pretrained`."""
    require_choice("attention", attention, ATTENTIONS)
    if dtype not in _DTYPES:
        raise InputError(f"`dtype` (={dtype}) must be torch.float32, torch.bfloat16 or torch.float64")
    if not isinstance(given, str | Path):
        return _loaded(given)
    name = str(given)
    tokenizer, model, folder = load_model(name, task=task, dtype=dtype, attention=attention, access=access)
    return LoadedModel(model.to(require_device(device)), tokenizer, name, own_way(folder, name))


def _loaded(given: Any) -> LoadedModel:
    parts = model_parts(given)
    own = partial(object_settings, given, parts.name) if is_sentence_transformer(given) else None
    return LoadedModel(parts.model, parts.tokenizer, parts.name, own)


def own_way(folder: Path | None, name: str) -> OwnWay | None:
    """The way of a model whose files lie in the folder; None where no sentence-transformers files do."""
    if folder is None or not (folder / MODULES_FILE).is_file():
        return None
    return partial(folder_settings, folder, name)
