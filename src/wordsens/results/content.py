"""Equality by content, and a short repr, of frozen dataclasses that hold tensors."""

import math
import reprlib
from dataclasses import Field, fields
from typing import Any

from torch import Tensor


def same_content(one: Any, other: Any) -> bool:
    """True where both are of one class and compare equal field by field, tensors by their numbers; NaN equals NaN."""
    compared = [field.name for field in _fields(one) if field.compare]
    return all(_same(getattr(one, name), getattr(other, name)) for name in compared)


def short_repr(result: Any) -> str:
    """The fields in one line, tensors by their shape."""
    shown = [(field.name, getattr(result, field.name)) for field in _fields(result) if field.repr]
    parts = [f"{name}={_brief(value)}" for name, value in shown if value is not None]
    return f"{type(result).__name__}({', '.join(parts)})"


def _fields(result: Any) -> tuple[Field[Any], ...]:
    return fields(result)


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor) or isinstance(other, Tensor):
        if not isinstance(one, Tensor) or not isinstance(other, Tensor) or one.dtype != other.dtype:
            return False
        one, other = one.detach().cpu(), other.detach().cpu()
        return one.shape == other.shape and bool(((one == other) | ((one != one) & (other != other))).all())
    if isinstance(one, (tuple, list)) and type(one) is type(other):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other):
        return True
    return bool(one == other)


def _brief(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"tensor{list(value.shape)}" if value.ndim else f"{value.item():.6g}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (tuple, list)) and (
        len(value) > 3 or not all(isinstance(part, (str, int, float)) for part in value)
    ):
        return f"<{len(value)} entries>"
    return reprlib.repr(value)
