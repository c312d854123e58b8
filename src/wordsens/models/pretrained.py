"""Loading transformers by name or folder, or from an object that is already loaded."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from wordsens.errors import InputError, require_choice, require_device, require_extra
from wordsens.models.hooks import frozen_views
from wordsens.models.model_files import (
    MINILM,
    MODULES_FILE,
    first_architecture,
    library_class,
    model_folder,
    one_line,
)
from wordsens.models.sentence_transformer import SentenceTransformerModel
from wordsens.models.text_model import OWN, POOL_NAMES, TextModel

LIBRARY = "sentence_transformers"

_DTYPES = (None, torch.float32, torch.bfloat16, torch.float64)
_AGAIN = "if its files are damaged, download the model again"
_HEADS = {
    "ForSequenceClassification": "AutoModelForSequenceClassification",
    "ForCausalLM": "AutoModelForCausalLM",
    "LMHeadModel": "AutoModelForCausalLM",
    "ForMaskedLM": "AutoModelForMaskedLM",
}


def load_text_model(
    source: Any,
    *,
    pool: str | None = None,
    vectors: bool = False,
    head: bool = False,
    dtype: torch.dtype | None = None,
    device: str = "cpu",
    attention: str | None = "eager",
    local_files_only: bool = False,
    revision: str | None = None,
    batch_size: int = 32,
) -> TextModel:
    """The TextModel of a name, a folder, a pair (model, tokenizer), a pipeline or a
    SentenceTransformer; an object's weights are shared.

    Args:
        vectors: whether it is a model of one vector per text, which cuts texts that are too long; a
            pool of None then means the model's own, or the usual one.
        head: load the head of the model's task.
        dtype: the dtype of its computation; None: float32, or that of the object.
        attention: of a name or folder: "eager", which gives attention weights, "sdpa", or None for
            the choice of transformers.
        device, local_files_only, revision: of a name or folder.

    Raises what `model_folder` and `load_transformer` raise.
    """
    if pool is not None:
        require_choice("pool", pool, POOL_NAMES)
    if attention is not None:
        require_choice("attention", attention, ("eager", "sdpa"))
    if dtype not in _DTYPES:
        raise InputError(
            f"`dtype` (={dtype}) must be torch.float32, torch.bfloat16 or torch.float64"
        )
    own = pool == OWN or (pool is None and vectors)
    if is_name(source):
        name = str(source)
        folder = model_folder(name, revision, local_files_only=local_files_only)
        options = {"head": head, "dtype": dtype or torch.float32, "attention": attention}
        model, tokenizer = load_transformer(name, folder, **options)
        model = model.to(require_device(device))
        has_own_pooling = not head and (folder / MODULES_FILE).is_file()
        library = _around(name, folder, model, device) if own and has_own_pooling else None
    else:
        model, tokenizer, name = _view_of(source)
        model = model.to(dtype)
        has_own_pooling = is_of(source, LIBRARY, "SentenceTransformer")
        library = source if own and has_own_pooling else None
        if library is not None and dtype is not None:
            raise InputError(
                f"`dtype` (={dtype}) does not apply to the object's own pooling; convert the "
                "SentenceTransformer itself"
            )
    if library is not None:
        return SentenceTransformerModel(library, name=name, batch_size=batch_size)
    pool = _usual_pool(model) if pool is None and vectors else pool
    name = f"{name} ({pool})" if vectors else name
    made = TextModel(model, tokenizer, name, pool=pool, cuts=vectors, batch_size=batch_size)
    made.has_own_pooling = has_own_pooling
    return made


def _around(name: str, folder: Path, model: Any, device: str) -> Any:
    """The SentenceTransformer of a folder, with this model inside, whose weights were checked."""
    library = load_library_model(name, folder, device, checked=True)
    if not is_of(library, LIBRARY, "SentenceTransformer"):
        raise InputError(
            f"the model {name!r} is a {type(library).__name__}: its vectors are not computed from "
            "rows; use as_model or as_pair_model"
        )
    for place, child in list(library[0].named_children()):
        if hasattr(child, "config"):
            setattr(library[0], place, model)
    return library


def _view_of(source: Any) -> tuple[Any, Any, str]:
    """A view of a loaded model, with its own modes and gradients; its tokenizer and its name."""
    if is_of(source, LIBRARY, "SentenceTransformer"):
        model, tokenizer = (getattr(source[0], part, None) for part in ("auto_model", "tokenizer"))
    elif is_of(source, "transformers", "Pipeline"):
        model, tokenizer = source.model, source.tokenizer
    elif is_transformer(source):
        model, tokenizer = source
    else:
        raise InputError(
            f"a {type(source).__name__} is not a transformer; pass a name, a folder, a "
            "pair (model, tokenizer), a transformers pipeline or a SentenceTransformer"
        )
    name = name_of(model if hasattr(model, "config") else source)
    if not isinstance(model, nn.Module) or not hasattr(tokenizer, "get_vocab"):
        raise InputError(
            f"{name} does not run a transformer with a tokenizer, so it has no rows to move"
        )
    if any(weight.is_meta for weight in model.parameters()):
        raise InputError(
            f"the weights of {name} are on the meta device, where they have no numbers; load them"
        )
    require_words(tokenizer, name)
    return frozen_views([model])[0], tokenizer, name


def _usual_pool(model: Any) -> str:
    """The pooling that sentence-transformers uses for a model without its own."""
    named = first_architecture(getattr(model.config, "architectures", None)) or type(model).__name__
    causal = named.endswith("ForCausalLM") and getattr(model.config, "is_causal", True)
    return "last" if causal else "mean"


def load_transformer(
    name: str,
    folder: Path,
    *,
    head: bool | None = False,
    dtype: torch.dtype = torch.float32,
    attention: str | None = None,
) -> tuple[Any, Any]:
    """The transformers model of a folder, and its tokenizer. No code that comes with it is run.

    Args:
        name: for messages.
        head: load the head of the task that its configuration names; None: if it names one.
        attention: "eager" or "sdpa"; None for the choice of transformers.

    Raises:
        MissingExtraError: transformers is not installed.
        InputError: a model that cannot be loaded, a tokenizer without words, incomplete weights, or
            no known kind of head.
    """
    require_extra("minilm" if name == MINILM else "models", f"the model {name!r}", "transformers")
    import transformers

    place = str(folder)
    options: dict[str, Any] = {"dtype": dtype, "output_loading_info": True}
    if attention is not None:
        options["attn_implementation"] = attention
    with quiet_transformers(), one_line(f"no model {name!r}: it cannot be loaded", _AGAIN):
        tokenizer = transformers.AutoTokenizer.from_pretrained(place)
        require_words(tokenizer, name)
        config = transformers.AutoConfig.from_pretrained(place)
        kind = _class_name(config, head)
        model, report = getattr(transformers, kind).from_pretrained(place, **options)
    # Without a head the pooler after the last layer decides nothing; other missing weights would be
    # random.
    headed = kind in _HEADS.values()
    missing = sorted(key for key in report["missing_keys"] if headed or "pooler" not in key)
    if missing:
        raise InputError(
            f"the weights of the model {name!r} are incomplete: {len(missing)} tensors are "
            f"missing, the first is {missing[0]!r}; {_AGAIN}"
        )
    return model, tokenizer


def load_library_model(name: str, folder: Path, device: str, *, checked: bool = False) -> Any:
    """The SentenceTransformer, SparseEncoder, CrossEncoder or MultiVectorEncoder of a folder.

    Args:
        checked: whether the weights are known to be complete; the library would make up others.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        InputError: the library cannot load it.
    """
    require_extra("models", f"the model {name!r}", "sentence_transformers")
    import sentence_transformers

    if not checked and (folder / "config.json").is_file():
        load_transformer(name, folder, head=None)
    kind = library_class(folder)
    failed = f"sentence-transformers cannot load the model {name!r} as a {kind}"
    with quiet_transformers(), one_line(failed, _AGAIN):
        return getattr(sentence_transformers, kind)(str(folder), device=device)


def require_words(tokenizer: Any, name: str) -> None:
    """InputError for a tokenizer without words."""
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
        raise InputError(
            f"the tokenizer of the model {name!r} knows no word: its files (tokenizer.json, or "
            "vocab.txt) are missing, and every word would be read as unknown; put them into the "
            "model's folder"
        )


def _class_name(config: Any, head: bool | None) -> str:
    """The name of the class that loads a model. Without a head: the model's own class if its file
    holds only the encoder (T5EncoderModel), else AutoModel. With a head: the auto class of its
    task."""
    import transformers

    named = first_architecture(config.architectures)
    kind = next((kind for ending, kind in _HEADS.items() if named.endswith(ending)), None)
    if kind is not None and head is not False:
        return kind
    if head:
        raise InputError(
            f"its configuration names no classifier or language model ({named or 'nothing'}); "
            "leave out what needs a head"
        )
    own = named.endswith("EncoderModel") and hasattr(transformers, named)
    return named if own else "AutoModel"


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """No progress bars and notices of transformers inside; its settings are restored afterwards."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def is_of(given: Any, package: str, *names: str) -> bool:
    """True for an object of one of these classes of the package; does not import the package."""
    return any(
        kind.__name__ in names and kind.__module__.partition(".")[0] == package
        for kind in type(given).__mro__
    )


def is_transformer(given: Any) -> bool:
    """True for a pair (model, tokenizer), a transformers pipeline and a SentenceTransformer."""
    pair = isinstance(given, tuple | list) and len(given) == 2 and hasattr(given[0], "config")
    library = is_of(given, LIBRARY, "SentenceTransformer")
    return pair or library or is_of(given, "transformers", "Pipeline")


def name_of(model: Any) -> str:
    """The name of an object: a function's own name, a loaded model's, or its class."""
    inner = getattr(model, "transformers_model", model)
    path = str(getattr(getattr(inner, "config", None), "_name_or_path", "") or "")
    if path:
        return Path(path).name if Path(path).is_absolute() else path
    return str(getattr(model, "__name__", type(model).__name__))


def is_name(given: Any) -> bool:
    return isinstance(given, str | Path)
