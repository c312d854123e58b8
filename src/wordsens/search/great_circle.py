"""Conjugate gradients on the sphere, with exact line searches along great circles."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wordsens.search.linear_entry import LinearEntryObjective

TURNS = 5
"""Angles that a line search tries at most."""

_MOST_KEPT = 1e6
"""Times the direction before that a step keeps; where it would keep more it starts anew, along the slope."""

PATIENCE = 3
"""A run stops after this many steps in a row that gained less than the tolerance."""


@dataclass(frozen=True)
class LinearEntry:
    """The products with A, through which points enter, and with its transpose."""

    forward: Callable[[Float[Tensor, "b m"]], Float[Tensor, "b k"]]
    transposed: Callable[[Float[Tensor, "b k"]], Float[Tensor, "b m"]]


@dataclass(frozen=True)
class CircleLimits:
    """The end of a climb.

    Attributes:
        steps: at most.
        tolerance: a run counts as converged after PATIENCE steps in a row with a smaller relative gain in the square.
        turns: angles that a line search tries at most.
    """

    steps: int
    tolerance: float
    turns: int = TURNS


@dataclass(frozen=True)
class CirclePoints:
    """b points a of the unit sphere, with what enters the layer from them.

    Attributes:
        point: (b, m).
        entered: (b, k), A a.
        squared: (b,), the objective there.
        converged: (b,), whether the run stopped gaining.
        steps: how many steps were taken.
    """

    point: Float[Tensor, "b m"]
    entered: Float[Tensor, "b k"]
    squared: Float[Tensor, " b"]
    converged: Bool[Tensor, " b"]
    steps: int


def climb_great_circles(
    objective: LinearEntryObjective,
    entry: LinearEntry,
    point: Float[Tensor, "b m"],
    entered: Float[Tensor, "b k"],
    limits: CircleLimits,
    *,
    tick: Callable[[], None] = lambda: None,
) -> CirclePoints:
    """Maximise ‖psi(A a)‖² over unit vectors a, from b points at once: one product with A and one with A^T a step.

    Polak-Ribiere directions. A direction p = g + beta p_before enters as A p = A g + beta A p_before, so only the
    gradient g is multiplied; the line search needs no product at all. The value never falls.

    Args:
        objective: gives psi.
        entry: products with A and its transpose.
        point, entered: where to start, unit vectors (a zero vector stays where it is), and A of them.
        limits: when it ends.
        tick: called after every step.
    """
    zero = torch.zeros_like(point[:, 0])
    entered = entered.clone()
    squared = objective.along(entered, entered, zero)[0]
    idle = torch.zeros_like(zero, dtype=torch.long)
    before = direction = across = None
    taken = 0
    # The vectors that enter are long, so they are updated in place.
    while taken < limits.steps and bool((idle < PATIENCE).any()):
        slope = entry.transposed(objective.slope(entered))
        slope = slope - _dot(slope, point) * point
        image = entry.forward(slope)
        if before is None or direction is None or across is None:
            direction, across, terms = slope, image.clone(), _length(slope)
        else:
            size = _dot(before, before)
            kept = before - _dot(before, point) * point
            share = (_dot(slope, slope - kept) / torch.where(size > 0, size, torch.ones_like(size))).clamp(min=0)
            downhill = _dot(slope, slope + share * direction) <= 0
            # A slope whose square underflows has no direction to go on in: its quotients are infinite or no numbers.
            anew = downhill | ~(share < _MOST_KEPT)
            share = torch.where(anew, torch.zeros_like(share), share)
            terms = _length(slope) + share * _length(direction)
            direction, across = slope + share * direction, across.mul_(share).add_(image)
        outward = _dot(direction, point)
        direction, across = direction - outward * point, across.addcmul_(outward, entered, value=-1)
        length = _length(direction)
        # Where the direction is what rounding left of its terms, its image is not A times it.
        lost = length <= torch.finfo(length.dtype).eps ** 0.5 * terms
        length = torch.where(lost, torch.zeros_like(length), length)
        direction, across = direction.masked_fill(lost, 0.0), across.masked_fill_(lost, 0.0)
        safe = torch.where(length > 0, length, torch.ones_like(length))
        direction, across = direction / safe, across.div_(safe)
        angle, best = _best_angle(objective, entered, across, squared, limits)
        stays = lost.squeeze(1)
        angle, best = torch.where(stays, torch.zeros_like(angle), angle), torch.where(stays, squared, best)
        cosine, sine = angle.cos().unsqueeze(1), angle.sin().unsqueeze(1)
        turned = (cosine * length) * across
        turned.addcmul_(sine * length, entered, value=-1)
        entered.mul_(cosine).addcmul_(sine, across)
        point, direction = cosine * point + sine * direction, length * (cosine * direction - sine * point)
        across, before = turned, slope
        idle = torch.where(best > squared * (1 + limits.tolerance), 0, idle + 1)
        squared = best
        taken += 1
        tick()
    return CirclePoints(point, entered, squared, idle >= PATIENCE, taken)


def _best_angle(
    objective: LinearEntryObjective,
    entered: Float[Tensor, "b k"],
    across: Float[Tensor, "b k"],
    squared: Float[Tensor, " b"],
    limits: CircleLimits,
) -> tuple[Float[Tensor, " b"], Float[Tensor, " b"]]:
    """The angle with the largest value among those tried, 0 included, and that value.

    For a psi that is linear, f(t) = alpha + beta cos 2t + gamma sin 2t with f'(0)/2 = gamma and f''(0)/2 = -2 beta,
    largest at t = atan2(gamma, beta) / 2. For others the same correction is repeated from the angle reached until f'
    has changed sign, and then false position closes in on its root. Kinks of act bend f more than f'' knows. It stops
    where a Newton step would gain less than a tenth of the tolerance, about f'^2 / (2 |f''|), on every circle. The
    objective's far angles are tried last.
    """
    zero = torch.zeros_like(squared)
    best_angle, best = zero, squared
    low, high, rise, fall = zero, torch.full_like(zero, torch.inf), zero, zero
    angle = zero
    for turn in range(limits.turns + 1):
        value, first, second = objective.along(entered, across, angle)
        better = value > best
        best_angle, best = torch.where(better, angle, best_angle), torch.where(better, value, best)
        if turn > 0 and bool((first.square() <= 0.1 * limits.tolerance * second.abs() * value).all()):
            break
        rising = (first > 0) | (turn == 0)
        low, rise = torch.where(rising, angle, low), torch.where(rising, first, rise)
        high, fall = torch.where(rising, high, angle), torch.where(rising, fall, first)
        onward = angle + 0.5 * torch.atan2(2 * first, -second)
        share = (rise / (rise - fall).clamp(min=torch.finfo(rise.dtype).tiny)).clamp(0.1, 0.9)
        angle = torch.where(high.isinf(), onward, torch.lerp(low, high.nan_to_num(posinf=0.0), share))
    for far in objective.far_angles:
        value = objective.along(entered, across, torch.full_like(zero, far))[0]
        best_angle, best = torch.where(value > best, far, best_angle), torch.maximum(value, best)
    return best_angle, best


def _length(vectors: Float[Tensor, "b m"]) -> Float[Tensor, "b 1"]:
    return torch.linalg.vector_norm(vectors, dim=1, keepdim=True)


def _dot(first: Float[Tensor, "b m"], second: Float[Tensor, "b m"]) -> Float[Tensor, "b 1"]:
    return torch.linalg.vecdot(first, second).unsqueeze(1)
