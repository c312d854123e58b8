"""The content of a model's files: what two audits of one name must share before they may share
records."""

import hashlib
import json
from functools import lru_cache
from pathlib import Path

from wordsens.errors import InputError
from wordsens.files import named_path
from wordsens.text.pretrained import MINILM, minilm_folder

KINDS = (".json", ".safetensors", ".txt", ".model", ".spm", ".bpe", ".tiktoken")
"""Files that a model and its tokenizer are read from: configurations, weights and vocabularies.
Read-me files, pickled weights of the transformer, optimizer states and other formats' weights
decide nothing."""

_MODULE_KINDS = (*KINDS, ".bin")
"""Those of a sentence-transformers module: a dense layer's weights are often pickled, and
sentence-transformers reads them."""


def model_digest(name: str, revision: str | None = None) -> str:
    """SHA-256 over the names and contents of the files that decide what a model computes.

    A file is read again only when its size, times or place on the disk have changed.

    Args:
        name: MINILM, a folder, or a name on the hub whose files are on this machine.
        revision: branch, tag or commit of a name on the hub.

    Raises:
        InputError: the model is not on this machine, or a file of it cannot be read.
    """
    folder = model_folder(name, revision)
    digest = hashlib.sha256()
    for path in _deciding(folder):
        try:
            file = path.stat()
            content = _content(
                path, file.st_dev, file.st_ino, file.st_size, file.st_mtime_ns, file.st_ctime_ns
            )
        except OSError as error:
            raise InputError(
                f"the model's file {str(path)!r} cannot be read ({error.strerror})"
            ) from error
        digest.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return digest.hexdigest()


def model_folder(name: str, revision: str | None = None) -> Path:
    """The folder of the model's files on this machine: of a name on the hub, the snapshot that is
    loaded."""
    if name == MINILM:
        return minilm_folder()
    folder = named_path("model", name)
    if folder.is_dir():
        return folder
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        config = try_to_load_from_cache(name, "config.json", revision=revision)
    except HFValidationError:
        config = None
    if not isinstance(config, str):
        raise InputError(
            f"the model {name!r} is not on this machine; load it once with TransformerFeatures"
        )
    return Path(config).parent


def _deciding(folder: Path) -> list[Path]:
    """The files of the folder itself, and those in the folders of its sentence-transformers
    modules."""
    places = {folder}
    modules = folder / "modules.json"
    if modules.is_file():
        try:
            listed = json.loads(modules.read_text(encoding="utf-8"))
            places |= {folder / str(module["path"]) for module in listed}
            routers = [path for place in places if (path := place / "router_config.json").is_file()]
            for router in routers:
                places |= {
                    router.parent / part
                    for part in json.loads(router.read_text(encoding="utf-8"))["types"]
                }
        except (ValueError, TypeError, KeyError) as error:
            raise InputError(
                f"the model's file {str(modules)!r} lists no modules; mend or remove it"
            ) from error
    files = {
        path
        for place in places
        if place.is_dir()
        for path in place.iterdir()
        if path.suffix.lower() in (KINDS if place == folder else _MODULE_KINDS)
    }
    return sorted(path for path in files if path.is_file())


@lru_cache(maxsize=1024)
def _content(path: Path, *status: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
