"""Results as files: one safetensors file, the arrays as they are and all else as JSON. Nothing is
pickled."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from wordsens.errors import InputError

FORMAT = "2"
"""Raised when the way a result is written changes: a file of another format is refused."""

_FORMAT_KEY, _CLASS_KEY, _CONTENT_KEY = "wordsens.format", "wordsens.class", "wordsens.content"

Loaded = TypeVar("Loaded")


def save(result: Any, path: str | Path) -> None:
    """Write a dataclass of arrays, numbers, texts, and tuples, dictionaries and dataclasses of
    them; InputError where `path` cannot be written."""
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    tensors: dict[str, Any] = {}
    content = json.dumps(_packed(result, "", tensors))
    metadata = {_FORMAT_KEY: FORMAT, _CLASS_KEY: type(result).__name__, _CONTENT_KEY: content}
    try:
        save_file(tensors, str(path), metadata=metadata)
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"`path` (={str(path)!r}) must be a file in a folder that can be written: {error}"
        ) from error


def load(kind: type[Loaded], path: str | Path) -> Loaded:
    """Read what `save` wrote of this class; InputError for anything else, and for a file of another
    class or format."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(str(path), framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
        if (written := metadata.get(_FORMAT_KEY)) != FORMAT:
            raise ValueError(
                f"its format is {written or 'another'}, and this version reads {FORMAT}; save it "
                "again"
            )
        if (name := metadata.get(_CLASS_KEY)) != kind.__name__:
            raise ValueError(f"it holds a {name}")
        return _unpacked(json.loads(metadata[_CONTENT_KEY]), tensors, dict(_classes(kind)))
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise InputError(
            f"`path` (={str(path)!r}) is not a file that {kind.__name__}.save wrote: {reason}"
        ) from error


def _packed(value: Any, place: str, tensors: dict[str, Any]) -> Any:
    """The value as JSON has it, its arrays put aside under the names of their places."""
    import numpy as np
    import torch

    if isinstance(value, torch.Tensor):
        tensors[place] = value.detach().cpu().clone().contiguous()
        return {"tensor": place}
    if isinstance(value, np.ndarray):
        tensors[place] = torch.from_numpy(np.ascontiguousarray(value)).clone()
        return {"array": place}
    if is_dataclass(value):
        names = [field.name for field in fields(value)]
        packed = {
            name: _packed(getattr(value, name), f"{place}.{name}" if place else name, tensors)
            for name in names
        }
        return {"class": type(value).__name__, "fields": packed}
    if isinstance(value, (tuple, list)):
        parts = [_packed(part, f"{place}.{index}", tensors) for index, part in enumerate(value)]
        return {"list" if isinstance(value, list) else "tuple": parts}
    if isinstance(value, Mapping):
        return {"keys": list(value), "values": _packed(list(value.values()), place, tensors)}
    return value


def _unpacked(packed: Any, tensors: dict[str, Any], classes: dict[str, type]) -> Any:
    if not isinstance(packed, dict):
        return packed
    if "tensor" in packed:
        return tensors[packed["tensor"]]
    if "array" in packed:
        return tensors[packed["array"]].numpy()
    if "list" in packed:
        return [_unpacked(part, tensors, classes) for part in packed["list"]]
    if "tuple" in packed:
        return tuple(_unpacked(part, tensors, classes) for part in packed["tuple"])
    if "keys" in packed:
        return dict(zip(packed["keys"], _unpacked(packed["values"], tensors, classes), strict=True))
    return classes[packed["class"]](
        **{name: _unpacked(value, tensors, classes) for name, value in packed["fields"].items()}
    )


def _classes(hint: Any) -> Iterator[tuple[str, type]]:
    """The dataclass and those that its fields can hold: no file names any other."""
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint.__name__, hint
        for of_field in get_type_hints(hint).values():
            yield from _classes(of_field)
    for part in get_args(hint):
        yield from _classes(part)
