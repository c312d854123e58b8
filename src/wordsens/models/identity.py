"""What decides a model's numbers, as a digest: of a loaded model, or of its files."""

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.errors import InputError

UNKNOWN = "unknown"
"""The identity of a model of which nothing can be hashed."""

_KNOWN = ("torch", "transformers", "sentence_transformers")
_METHODS = {"forward", "encode", "preprocess", "tokenize"}
# Written or left out according to where a model comes from.
_SILENT = ("transformers_version", "architectures", "dtype", "torch_dtype")

_FILES = (".json", ".safetensors", ".txt", ".model", ".spm", ".bpe", ".tiktoken")
"""Files that a model and its tokenizer are read from: configurations, weights and vocabularies.
Read-me files, pickled weights of the transformer, optimizer states and other formats' weights
decide nothing."""

_MODULE_FILES = (*_FILES, ".bin")
"""Those in a folder of a sentence-transformers module, whose weights are often pickled."""


def content_digest(*parts: nn.Module) -> str | None:
    """SHA-256 over the weights, configurations and tokenizers of modules, and those inside them.

    None where a module may hold what is none of these: a class or a hook that is not of torch,
    transformers or sentence-transformers, weights that another runtime holds (ONNX), a method that
    was replaced.
    """
    inner = [module for part in parts for module in part.modules()]
    if not all(map(_shows_all, inner)):
        return None
    described: list[Any] = [weights_digest(part) for part in parts]
    for module in inner:
        described += [type(module).__name__, module.extra_repr()]
        try:
            if hasattr(module, "get_config_dict"):
                settings: Any = module
                described += [settings.get_config_dict()]
                described += [tokenizer_settings(getattr(module, "tokenizer", None))]
        except (AttributeError, NotImplementedError, TypeError):
            return None
        config: Any = getattr(module, "config", None)
        if hasattr(config, "to_dict"):
            described += [_settings(config)]
    return joined_digest(*described)


def _shows_all(module: nn.Module) -> bool:
    """True where state and configuration of a module decide what it computes."""
    hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    origins = [getattr(each, "__module__", "") or "" for each in (type(module), *hooks)]
    known = all(origin.partition(".")[0] in _KNOWN for origin in origins)
    replaced = _METHODS & vars(module).keys()
    return known and not replaced and isinstance(getattr(module, "auto_model", module), nn.Module)


def weights_digest(module: nn.Module) -> str:
    """SHA-256 over the names, types, shapes and bytes of a module's tensors."""
    digest = hashlib.sha256()
    for name, value in sorted(module.state_dict().items()):
        # Quantised layers keep tuples of a weight and a bias.
        for each in value if isinstance(value, tuple) else (value,):
            if not isinstance(each, Tensor):
                digest.update(f"{name}\0{each!r}\0".encode())
                continue
            tensor = (each.dequantize() if each.is_quantized else each).detach().cpu()
            digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
            digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def answers_digest(answers: Float[Tensor, "m d"]) -> str:
    """SHA-256 over vectors, to four digits of the largest number."""
    rounded = (answers / answers.abs().max().clamp_min(1e-300) * 1e4).round()
    # Adding zero makes one zero of two: -0.0 and 0.0.
    return joined_digest(tuple(answers.shape), (rounded + 0.0).tolist())


def joined_digest(*parts: Any) -> str:
    """SHA-256 over values that JSON can hold."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _settings(config: Any) -> dict[str, Any]:
    """A transformers configuration without what decides no number, or is in the weights' digest."""
    return {
        key: value
        for key, value in config.to_dict().items()
        if key not in _SILENT and not key.startswith("_")
    }


def tokenizer_settings(tokenizer: Any) -> list[Any]:
    """A tokenizer's settings: of a fast one all without the truncation and padding of its last
    call, of another its words."""
    inner = getattr(tokenizer, "backend_tokenizer", tokenizer)
    side = getattr(tokenizer, "truncation_side", None)
    if hasattr(inner, "to_str"):
        whole = json.loads(inner.to_str())
        return [{**whole, "truncation": None, "padding": None}, side]
    words = getattr(tokenizer, "get_vocab", lambda: type(tokenizer).__name__)
    return [words(), side]


def files_digest(folder: Path) -> str:
    """SHA-256 over the names and contents of the files of a folder, and of those of its modules,
    that decide what a model computes.

    A file is read again only when its size, times or place on the disk have changed.

    Raises:
        InputError: a file cannot be read.
    """
    # sentence-transformers keeps a module in a folder of its own, a Router's one deeper.
    modules = folder / "modules.json"
    paths = [path for path in folder.iterdir() if path.suffix.lower() in _FILES]
    if modules.is_file():
        deeper = (*folder.glob("*/*"), *folder.glob("*/*/*"))
        paths += [path for path in deeper if path.suffix.lower() in _MODULE_FILES]
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
