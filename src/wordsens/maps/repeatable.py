"""Maps with a state of their own: what a call leaves behind is put back, and answers that change are refused."""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ParamSpec, TypeVar

import torch
from torch import Tensor, nn

from wordsens.errors import InputError

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def leaves_the_map_as_found(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """The function, whose first argument is a map, with torch's random state and the map's buffers put back after it.

    Buffers of modules in training mode (batch norm's running statistics); also when the function raises.
    """

    @functools.wraps(function)
    def wrapped(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        phi = args[0] if args else kwargs.get("phi")
        with _buffers_kept(phi), torch.random.fork_rng(devices=_cuda_devices(phi)):
            return function(*args, **kwargs)

    return wrapped


def require_equal_answers(name: str, once: Tensor, again: Tensor) -> None:
    """InputError where features of one text, alone and in a batch, differ by more than a batch's rounding."""
    size = torch.linalg.vector_norm(once.double())
    apart = torch.linalg.vector_norm(again.double().flatten() - once.double().flatten())
    if bool(apart > torch.finfo(once.dtype).eps ** 0.5 * size):
        raise InputError(
            f"{name} answers differently each time it maps one text (by {float(apart / size):.1g}, relative), "
            "as dropout, batch norm in training mode and random numbers do, so no witness attains its value; "
            "call .eval() on the module"
        )


def _cuda_devices(phi: Any) -> list[torch.device]:
    device = getattr(phi, "device", None)
    return [device] if isinstance(device, torch.device) and device.type == "cuda" else []


@contextmanager
def _buffers_kept(phi: Any) -> Iterator[None]:
    modules = {part for root in _modules(phi) for part in root.modules() if part.training}
    kept = [
        (module, name, buffer, buffer.detach().clone())
        for module in modules
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    try:
        yield
    finally:
        for module, name, buffer, value in kept:
            buffer.data.copy_(value)
            module._buffers[name] = buffer


def _modules(thing: Any, depth: int = 3) -> Iterator[nn.Module]:
    """The torch modules that a map is, holds, or as a function refers to: closures, globals, partials."""
    if isinstance(thing, nn.Module):
        yield thing
        return
    if depth == 0 or isinstance(thing, Tensor):
        return
    parts: list[Any] = [getattr(thing, "__self__", None), getattr(thing, "func", None)]
    parts += [cell.cell_contents for cell in getattr(thing, "__closure__", None) or () if _filled(cell)]
    code = getattr(thing, "__code__", None)
    if code is not None:
        known = thing.__globals__
        parts += [known[name] for name in code.co_names if isinstance(known.get(name), nn.Module)]
    elif hasattr(thing, "__dict__"):
        parts += vars(thing).values()
    for part in parts:
        if isinstance(part, nn.Module) or callable(part):
            yield from _modules(part, depth - 1)


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
