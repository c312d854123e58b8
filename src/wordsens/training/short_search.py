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
        steps: of projected ascent. The usual numbers keep a training step of 32 texts below 3 plain ones.
    """

    texts: int = 8
    words: int | None = 1
    steps: int = 2

    def __post_init__(self) -> None:
        require_count("texts", self.texts)
        require_count("steps", self.steps)
        if self.words is not None:
            require_count("words", self.words)


class MovedTexts:
    """Each of b texts w times, in each copy another of its words moved; p = b w pairs of a text and a word.

    Args:
        texts: as they are.
        words: of each text.
        beside: the b texts as they are come first, then the p that are moved.
    """

    def __init__(self, texts: Float[Tensor, "b n d"], words: Int[Tensor, "b w"], *, beside: bool = False):
        copies = texts if words.shape[1] == 1 else texts.repeat_interleave(words.shape[1], dim=0)
        first = len(texts) if beside else 0
        self._copies = torch.cat([texts, copies]) if beside else copies
        self._at = torch.arange(first, first + words.numel(), device=texts.device), words.flatten()

    def __call__(self, perturbations: Float[Tensor, "p d"]) -> Float[Tensor, "m n d"]:
        """The texts with Delta added to the word of each pair."""
        return self._copies.index_put(self._at, perturbations, accumulate=True)

    def words_of(self, texts: Float[Tensor, "m n d"]) -> Float[Tensor, "p d"]:
        """The row of each pair's word in texts of this shape."""
        return texts[self._at]


Change = Callable[[Float[Tensor, "m n d"]], Float[Tensor, " p"]]
"""From moved texts to what each pair changes."""


class Ascent:
    """Projected ascent of p pairs in step, each up its own change along the unit gradient; a step is taken if it gains.

    At a point of the sphere whose gradient points straight outward the ascent stays: those, and points where the
    gradient is zero, are the stationary points of the ball.

    Args:
        start: where the ascent begins, in the ball.
        value, slope: the change there, and its gradient.
        radius: of the ball.
    """

    def __init__(
        self, start: Float[Tensor, "p d"], value: Float[Tensor, " p"], slope: Float[Tensor, "p d"], radius: float
    ):
        self.best, self.value, self._slope, self._radius = start, value, slope, radius
        self._length = torch.full_like(value, FIRST * radius)

    def trial(self) -> Float[Tensor, "p d"]:
        """The end of every pair's next step."""
        uphill = torch.nn.functional.normalize(self._slope, dim=1)
        return projected(self.best + self._length.unsqueeze(1) * uphill, self._radius)

    def take(self, trial: Float[Tensor, "p d"], reached: Float[Tensor, " p"], uphill: Float[Tensor, "p d"]) -> None:
        """Take the steps that gained; `reached` and `uphill` are the change at the trial and its gradient."""
        better = reached > self.value
        self.best = torch.where(better.unsqueeze(1), trial, self.best)
        self._slope = torch.where(better.unsqueeze(1), uphill, self._slope)
        self.value = torch.where(better, reached, self.value)
        longer = (GROW * self._length).clamp(max=LONGEST * self._radius)
        self._length = torch.where(better, longer, SHRINK * self._length)

    def last(self, trial: Float[Tensor, "p d"], reached: Float[Tensor, " p"]) -> Float[Tensor, "p d"]:
        """Delta after the last step, of which no gradient is wanted."""
        return torch.where((reached > self.value).unsqueeze(1), trial, self.best)


def ascend(
    change: Change, moved: MovedTexts, start: Float[Tensor, "p d"], radius: float, steps: int
) -> Float[Tensor, "p d"]:
    """Delta in the ball for each of p pairs, after so many steps up its own change.

    Args:
        change: what rises.
        moved: the texts from a Delta for each pair.
        start: where the ascent begins; it is projected into the ball.
        radius: of the ball.
        steps: at most; each costs an evaluation and, but for the last, a gradient.
    """
    start = projected(start, radius)
    ascent = Ascent(start, *value_and_slope(change, moved, start), radius)
    for _ in range(steps - 1):
        trial = ascent.trial()
        ascent.take(trial, *value_and_slope(change, moved, trial))
    trial = ascent.trial()
    with torch.no_grad():
        return ascent.last(trial, change(moved(trial)))


def projected(perturbations: Float[Tensor, "p d"], radius: float) -> Float[Tensor, "p d"]:
    """Every Delta, or the point of the sphere on its way where it lies outside of the ball."""
    length = torch.linalg.vector_norm(perturbations, dim=1, keepdim=True)
    return perturbations * (radius / length.clamp(min=radius))


def value_and_slope(
    change: Change, moved: MovedTexts, at: Float[Tensor, "p d"]
) -> tuple[Float[Tensor, " p"], Float[Tensor, "p d"]]:
    """The change at p perturbations, and its gradient there."""
    with torch.enable_grad():
        texts = moved(at).detach().requires_grad_(True)
        value = change(texts)
        (slope,) = torch.autograd.grad(value.sum(), texts)
    return value.detach(), moved.words_of(slope)
