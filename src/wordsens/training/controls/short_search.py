"""A short batched search for the Delta of a training step: a few steps of projected ascent, many texts at once."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import require_count

GROW, SHRINK = 1.5, 0.25
"""A step that gains is followed by a longer one, a step that loses by a much shorter one, as in `search.climb`."""

FIRST, LONGEST = 1.0, 2.0
"""The first and the longest step, in radii: the first crosses the ball, as the maximiser of a linear function would."""


@dataclass(frozen=True, kw_only=True)
class ShortSearch:
    """The spending of the search inside a training step.

    Attributes:
        texts: at most so many of a batch's texts are searched, drawn anew each time.
        words: so many words of each, drawn anew; None for all.
        steps: of projected ascent. The usual numbers keep a training step of 32 texts below 3 plain ones
            (benchmarks.penalty).
    """

    texts: int = 8
    words: int | None = 1
    steps: int = 2

    def __post_init__(self) -> None:
        require_count("texts", self.texts)
        require_count("steps", self.steps)
        if self.words is not None:
            require_count("words", self.words)


def moved_texts(
    texts: Float[Tensor, "b n d"], words: Int[Tensor, "b w"], perturbations: Float[Tensor, "p d"]
) -> Float[Tensor, "p n d"]:
    """Each text w times, in each copy another of its words moved; p = b w."""
    copies = texts.repeat_interleave(words.shape[1], dim=0)
    each = torch.arange(len(copies), device=texts.device)
    return copies.index_put((each, words.flatten()), perturbations, accumulate=True)


Change = Callable[[Float[Tensor, "p d"]], Float[Tensor, " p"]]
"""From the perturbations of p pairs to what each of them changes."""


def ascend(
    change: Change,
    start: Float[Tensor, "p d"],
    radius: float,
    steps: int,
    *,
    known: tuple[Float[Tensor, " p"], Float[Tensor, "p d"]] | None = None,
) -> Float[Tensor, "p d"]:
    """Delta in the ball for each of p pairs, after so many steps up its own change, each along the unit gradient.

    A step is taken where it gains. At a point of the sphere whose gradient points straight outward the ascent stays:
    those, and points where the gradient is zero, are the stationary points of the ball.

    Args:
        change: what rises.
        start: where the ascent begins; it is projected into the ball.
        radius: of the ball.
        steps: at most; each costs an evaluation and, but for the last, a gradient.
        known: value and gradient of the change at a start in the ball, where the caller has them.
    """
    best = _projected(start, radius)
    value, slope = value_and_slope(change, best) if known is None else known
    length = torch.full_like(value, FIRST * radius)
    for step in range(steps):
        trial = _projected(best + length.unsqueeze(1) * torch.nn.functional.normalize(slope, dim=1), radius)
        if step + 1 < steps:
            reached, uphill = value_and_slope(change, trial)
        else:
            with torch.no_grad():
                reached, uphill = change(trial), slope
        better = reached > value
        best = torch.where(better.unsqueeze(1), trial, best)
        slope = torch.where(better.unsqueeze(1), uphill, slope)
        value = torch.where(better, reached, value)
        length = torch.where(better, (GROW * length).clamp(max=LONGEST * radius), SHRINK * length)
    return best


def _projected(perturbations: Float[Tensor, "p d"], radius: float) -> Float[Tensor, "p d"]:
    length = torch.linalg.vector_norm(perturbations, dim=1, keepdim=True)
    return perturbations * (radius / length.clamp(min=radius))


def value_and_slope(change: Change, at: Float[Tensor, "p d"]) -> tuple[Float[Tensor, " p"], Float[Tensor, "p d"]]:
    """The change at p perturbations, and its gradient there."""
    with torch.enable_grad():
        here = at.detach().requires_grad_(True)
        value = change(here)
        (slope,) = torch.autograd.grad(value.sum(), here)
    return value.detach(), slope
