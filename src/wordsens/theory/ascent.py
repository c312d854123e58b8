"""A quasi-Newton ascent over a few numbers: what the scalar problem's shares are found with."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

_FIRST, _LONGEST, _HALVINGS = 0.1, 0.3, 8
"""The first step's length, the longest, and how often a step that gains too little is halved."""

_SUFFICIENT = 1e-3
"""A step is taken where it gains this share of what the slope promises (Armijo's rule)."""


def ascend(
    function: Callable[[Float[Tensor, " m"]], tuple[float, Float[Tensor, " m"]]],
    start: Float[Tensor, " m"],
    *,
    tolerance: float,
    most: int = 60,
) -> Float[Tensor, " m"]:
    """A local maximum by BFGS with halved steps; where the value is minus infinity no step goes.

    Ends where a fresh step along the slope, or two steps on end, gain less than `tolerance` of the value.

    Args:
        function: its value and gradient, at (m,).
        most: steps at most.
    """
    at, (value, slope) = start, function(start)
    inverse, fresh, idle = _plain(slope), True, 0
    for _ in range(most):
        step = inverse @ slope
        step = step * min(1.0, _LONGEST / max(float(step.norm()), 1e-300))
        promised = float(step @ slope)
        for _ in range(_HALVINGS):
            moved = at + step
            gained, turned = function(moved)
            if gained >= value + _SUFFICIENT * promised:
                break
            step, promised = step / 2, promised / 2
        else:
            if fresh:
                break
            inverse, fresh = _plain(slope), True
            continue
        idle = idle + 1 if gained - value <= tolerance * abs(gained) else 0
        inverse, fresh = _updated(inverse, step, slope - turned), False
        at, value, slope = moved, gained, turned
        if idle == 2:
            break
    return at


def _plain(slope: Float[Tensor, " m"]) -> Float[Tensor, "m m"]:
    return torch.eye(len(slope), dtype=slope.dtype) * (_FIRST / max(float(slope.norm()), 1e-300))


def _updated(
    inverse: Float[Tensor, "m m"], step: Float[Tensor, " m"], fall: Float[Tensor, " m"]
) -> Float[Tensor, "m m"]:
    """BFGS's inverse of minus the Hessian (Nocedal and Wright 2006, 6.17); as it was where the slope did not fall."""
    bend = float(step @ fall)
    if bend <= 1e-10 * float(step.norm() * fall.norm()):
        return inverse
    away = torch.eye(len(step), dtype=step.dtype) - torch.outer(step, fall) / bend
    return away @ inverse @ away.T + torch.outer(step, step) / bend
