"""The parts of a model: loaded by its name, or taken from a pair, a pipeline or a SentenceTransformer."""

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from wordsens.errors import InputError, require_choice
from wordsens.maps.transformer.settings import MODULES_FILE, SentenceSettings, folder_settings, object_settings
from wordsens.text.encoders import require_device
from wordsens.text.pretrained import ATTENTIONS, load_model, require_usable_tokenizer

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
    revision: str | None = None,
    **loading: bool,
) -> LoadedModel:
    """The parts of a model by its name, or those of a loaded one. See `TransformerFeatures.from_pretrained`."""
    require_choice("attention", attention, ATTENTIONS)
    if dtype not in _DTYPES:
        raise InputError(f"`dtype` (={dtype}) must be torch.float32, torch.bfloat16 or torch.float64")
    if not isinstance(given, str | Path):
        return _parts_of(given)
    name = str(given)
    tokenizer, model, folder = load_model(
        name, task=task, dtype=dtype, attention=attention, revision=revision, **loading
    )
    return LoadedModel(model.to(require_device(device)), tokenizer, name, own_way(folder, name))


def _parts_of(given: Any) -> LoadedModel:
    """The parts of a (model, tokenizer) pair, a transformers pipeline or a SentenceTransformer.

    The model is a frozen view: the weights are shared, and the given model keeps its mode and its gradients.

    Raises:
        InputError: anything else, or a tokenizer that is not fast or knows no word.
    """
    own: OwnWay | None = None
    if is_instance(given, "sentence_transformers", "SentenceTransformer"):
        model, tokenizer = getattr(given[0], "auto_model", None), getattr(given[0], "tokenizer", None)
        name = _name_of(model) if isinstance(model, nn.Module) else "SentenceTransformer"
        own = partial(object_settings, given, name)
    elif is_instance(given, "transformers", "Pipeline"):
        model, tokenizer = given.model, given.tokenizer
        name = _name_of(model)
    elif isinstance(given, tuple) and len(given) == 2 and hasattr(given[0], "config"):
        model, tokenizer = given
        name = _name_of(model)
    else:
        raise InputError(
            f"a transformer cannot be made of a {type(given).__name__}; pass a name, a folder, a pair (model, "
            "tokenizer), a transformers pipeline or a SentenceTransformer"
        )
    if not isinstance(model, nn.Module) or not hasattr(tokenizer, "get_vocab"):
        raise InputError(f"{name} does not run a transformer with a tokenizer, so that it has no rows to move")
    require_usable_tokenizer(tokenizer, name)
    return LoadedModel(frozen_view(model), tokenizer, name, own)


def own_way(folder: Path | None, name: str) -> OwnWay | None:
    """The way of a model whose files lie in the folder; None where no sentence-transformers files do."""
    if folder is None or not (folder / MODULES_FILE).is_file():
        return None
    return partial(folder_settings, folder, name)


def is_instance(given: Any, package: str, name: str) -> bool:
    """Whether it is an object of that class of the package, which is not imported for the question."""
    return any(kind.__name__ == name and kind.__module__.partition(".")[0] == package for kind in type(given).__mro__)


def frozen_view(model: nn.Module) -> nn.Module:
    """The model again, with the same storage for its weights but modules, mode and gradient flags of its own."""
    shared: dict[int, Any] = {
        id(weight): nn.Parameter(weight.detach(), requires_grad=False) for weight in model.parameters()
    }
    shared |= {id(buffer): buffer for buffer in model.buffers()}
    return copy.deepcopy(model, shared).eval()


def _name_of(model: Any) -> str:
    path = str(getattr(model.config, "_name_or_path", "") or "")
    return Path(path).name if Path(path).is_absolute() else path or type(model).__name__
