"""Results as files: one safetensors file, the arrays as they are and all else as JSON. Nothing is
pickled."""

import json
import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args, get_type_hints

from wordsens.errors import InputError, argument

# Raised when the way a result is written changes: a file of another format is refused.
FORMAT = "2"

_FORMAT_KEY, _CLASS_KEY, _CONTENT_KEY = "wordsens.format", "wordsens.class", "wordsens.content"

Loaded = TypeVar("Loaded")


def save(result: Any, path: str | Path) -> None:
    """Write a dataclass of arrays, numbers, texts, and tuples, dictionaries and dataclasses of
    them; InputError where `path` cannot be written."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    arrays: dict[str, Any] = {}
    content = json.dumps(packed(result, arrays))
    metadata = {_FORMAT_KEY: FORMAT, _CLASS_KEY: type(result).__name__, _CONTENT_KEY: content}
    tensors = {
        place: torch.as_tensor(values).detach().cpu().clone().contiguous()
        for place, values in arrays.items()
    }
    try:
        save_file(tensors, str(path), metadata=metadata)
    except (OSError, SafetensorError) as error:
        raise InputError(
            f"{argument('path')} (={str(path)!r}) must be a file in a folder that can be written: "
            f"{error}"
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
            f"{argument('path')} (={str(path)!r}) is not a file that {kind.__name__}.save wrote: "
            f"{reason}"
        ) from error


def is_array(value: Any) -> bool:
    """True for a tensor of torch or an array of numpy, neither of which is loaded for it."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    is_tensor = torch is not None and isinstance(value, torch.Tensor)
    return is_tensor or (numpy is not None and isinstance(value, numpy.ndarray))


def same_content(first: Any, second: Any) -> bool:
    """True where both are of one class and compare equal field by field, arrays by their numbers;
    NaN equals NaN."""
    arrays, others = {}, {}
    same = packed(first, arrays, whole=False) == packed(second, others, whole=False)
    return same and all(_equal(arrays[place], others[place]) for place in arrays)


def _equal(first: Any, second: Any) -> bool:
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    if hasattr(first, "detach"):
        first, second = first.detach().cpu(), second.detach().cpu()
    return bool(((first == second) | ((first != first) & (second != second))).all())


def packed(value: Any, arrays: dict[str, Any], place: str = "", *, whole: bool = True) -> Any:
    """The value as JSON has it, of dataclasses all fields or those that count for equality; its
    arrays are put aside under the names of their places. NaN is one object, which equals itself in
    a list."""

    def inside(name: Any, part: Any) -> Any:
        return packed(part, arrays, f"{place}.{name}".removeprefix("."), whole=whole)

    if is_array(value):
        arrays[place] = value
        return {"tensor" if hasattr(value, "detach") else "array": place}
    if is_dataclass(value):
        names = [field.name for field in fields(value) if whole or field.compare]
        content = {name: inside(name, getattr(value, name)) for name in names}
        return {"class": type(value).__name__, "fields": content}
    if isinstance(value, (tuple, list)):
        parts = [inside(number, part) for number, part in enumerate(value)]
        return {"list" if isinstance(value, list) else "tuple": parts}
    if isinstance(value, Mapping):
        return {"keys": list(value), "values": inside("values", list(value.values()))}
    return math.nan if isinstance(value, float) and math.isnan(value) else value


def _unpacked(content: Any, tensors: dict[str, Any], classes: dict[str, type]) -> Any:
    def inside(part: Any) -> Any:
        return _unpacked(part, tensors, classes)

    if not isinstance(content, dict):
        return content
    if "tensor" in content:
        return tensors[content["tensor"]]
    if "array" in content:
        return tensors[content["array"]].numpy()
    for kind in (list, tuple):
        if kind.__name__ in content:
            return kind(map(inside, content[kind.__name__]))
    if "keys" in content:
        return dict(zip(content["keys"], inside(content["values"]), strict=True))
    values = {name: inside(value) for name, value in content["fields"].items()}
    return classes[content["class"]](**values)


def _classes(hint: Any) -> Iterator[tuple[str, type]]:
    """The dataclass and those that its fields can hold: no file names any other."""
    if isinstance(hint, type) and is_dataclass(hint):
        yield hint.__name__, hint
        for of_field in get_type_hints(hint).values():
            yield from _classes(of_field)
    for part in get_args(hint):
        yield from _classes(part)
