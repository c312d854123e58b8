"""Texts to features: perturbed copies of a text, the features of each, and what a map may return.

A map may have a state of its own: what a call leaves behind is put back, and answers that change
are refused.
"""

import functools
import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, ParamSpec, Protocol, TypeVar, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from wordsens.errors import InputError, ZeroFeaturesError


@runtime_checkable
class TextMap(Protocol):
    """A map phi: its name for messages, the conversion of texts, and their features."""

    name: str

    def accept(self, rows: Tensor) -> Tensor: ...

    def __call__(self, texts: Tensor) -> Tensor: ...


def perturbed_texts(
    rows: Float[Tensor, "n d"], words: Int[Tensor, "b g"], perturbations: Float[Tensor, "b g d"]
) -> Float[Tensor, "b n d"]:
    """b copies of X, in which row words[p, k] is moved by perturbations[p, k]; differentiable in
    the perturbations."""
    texts = rows.unsqueeze(0).repeat(len(words), 1, 1)
    where = words.to(rows.device).unsqueeze(-1).expand_as(perturbations)
    return texts.scatter_add(1, where, perturbations)


def features_by_text(phi: TextMap, texts: Float[Tensor, "b n d"]) -> Float[Tensor, "b features"]:
    """The features of each of b texts in one row. InputError when phi does not keep the batch
    axis."""
    features = phi(texts)
    if features.shape[:1] != texts.shape[:1]:
        raise InputError(
            f"{phi.name} maps a batch of shape {tuple(texts.shape)} to features of shape "
            f"{tuple(features.shape)}; "
            "their first axis must be the batch's; a FunctionFeatures with batched=False maps one "
            "text at a time"
        )
    return features.reshape(len(texts), -1)


def feature_norm(features: Tensor, name: str) -> float:
    """‖phi(X)‖ over all features; ZeroFeaturesError when it is zero, InputError when it is not
    finite."""
    norm = torch.linalg.vector_norm(features, dtype=torch.float64).item()
    if not math.isfinite(norm):
        raise InputError(
            f"{name} gives features with norm {norm} on this text; use float64 or rescale the rows"
        )
    if norm == 0:
        raise ZeroFeaturesError(
            f"{name} maps this text to zero, so the relative change of its features is not "
            "defined; "
            "use another text, seed or map"
        )
    return norm


def checked_features(features: Any, name: str) -> Tensor:
    """The features, when they are one tensor of real floating-point numbers; InputError
    otherwise."""
    if isinstance(features, Tensor) and features.is_floating_point():
        return features
    if isinstance(features, Tensor):
        kind = f"a tensor of {str(features.dtype).removeprefix('torch.')}"
        remedy = (
            "return its real and imaginary parts, torch.view_as_real(...)"
            if features.is_complex()
            else ""
        )
        remedy = remedy or "return scores or probabilities, not classes"
    elif isinstance(features, (tuple, list, dict)):
        kind = f"a {type(features).__name__} of {len(features)}"
        remedy = "return one of its tensors, such as lambda X: phi(X)[0]"
    else:
        kind = f"a {type(features).__name__}"
        remedy = "write it with torch operations from end to end, so that gradients pass"
        if getattr(features, "last_hidden_state", None) is not None:
            remedy = "return one of its tensors, such as lambda X: phi(X).last_hidden_state"
    raise InputError(
        f"`phi` ({name}) must return one tensor of real floating-point numbers; it gave {kind}; "
        f"{remedy}"
    )


_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def restores_state(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """The function, whose first argument is a map, with torch's random state and the map's buffers
    put back after it.

    Buffers of modules in training mode (batch norm's running statistics); also when the function
    raises. It runs outside inference mode, so that it can differentiate whatever mode its caller is
    in.
    """

    @functools.wraps(function)
    def wrapped(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        phi = args[0] if args else kwargs.get("phi")
        device = getattr(phi, "device", None)
        devices = [device] if isinstance(device, torch.device) and device.type == "cuda" else []
        with (
            torch.inference_mode(False),
            _buffers_restored(phi),
            torch.random.fork_rng(devices=devices),
        ):
            return function(*args, **kwargs)

    return wrapped


def require_equal_answers(name: str, once: Tensor, again: Tensor) -> None:
    """InputError where features of one text, alone and in a batch, differ by more than a batch's
    rounding."""
    size = torch.linalg.vector_norm(once.double())
    apart = torch.linalg.vector_norm(again.double().flatten() - once.double().flatten())
    if bool(apart > torch.finfo(once.dtype).eps ** 0.5 * size):
        raise InputError(
            f"{name} answers differently each time it maps one text (by {float(apart / size):.1g}, "
            "relative), "
            "as dropout, batch norm in training mode and random numbers do, so no value could be "
            "measured again; call .eval() on the module"
        )


def require_repeatable(phi: TextMap, rows: Float[Tensor, "n d"]) -> Float[Tensor, " features"]:
    """phi(X), flat; InputError when phi gives X other features beside 2 X than beside itself, in
    batches of four.

    Batches of one size: sums are taken in the same order, so that a map with a jump at X is not
    taken for one of these.
    """
    with torch.no_grad():
        once = phi(rows).flatten()
        feature_norm(once, phi.name)
        alike, mixed = (
            features_by_text(phi, torch.stack([rows, part, rows, rows]))
            for part in (rows, 2 * rows)
        )
        for place in (0, 2, 3):
            require_equal_answers(phi.name, alike[place], mixed[place])
    return once


@contextmanager
def _buffers_restored(phi: Any) -> Iterator[None]:
    modules = {part for root in _modules(phi) for part in root.modules() if part.training}
    states = [
        (module, name, buffer, buffer.detach().clone())
        for module in modules
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    try:
        yield
    finally:
        for module, name, buffer, value in states:
            buffer.data.copy_(value)
            module._buffers[name] = buffer


def _modules(thing: Any, depth: int = 3) -> Iterator[nn.Module]:
    """The torch modules that a map is, holds, or as a function refers to: closures, globals,
    partials."""
    if isinstance(thing, nn.Module):
        yield thing
    elif depth and callable(thing) and not isinstance(thing, Tensor):
        parts = [getattr(thing, "__self__", None), getattr(thing, "func", None)]
        parts += getattr(thing, "__dict__", {}).values()
        with suppress(TypeError, ValueError):  # of no function, or with a variable not set yet
            known = inspect.getclosurevars(thing)
            parts += [*known.nonlocals.values(), *known.globals.values()]
        for part in parts:
            yield from _modules(part, depth - 1)
