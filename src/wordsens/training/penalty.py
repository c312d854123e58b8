"""The sensitivity penalty: a differentiable term for anyone's training loop, and the short search
behind it."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import (
    InputError,
    ZeroFeaturesError,
    require_choice,
    require_count,
    require_positive,
)
from wordsens.seeds import Seed, generator

OVER = ("mean", "max")
WAYS = ("lower", "raise", "hold")

# A step that gains is followed by a longer one, a step that loses by a much shorter one, as in
# `search.climb`.
GROW, SHRINK = 1.5, 0.25

# The first and the longest step, in radii: the first crosses the ball, as the maximiser of a linear
# function would.
FIRST, LONGEST = 1.0, 2.0


@dataclass(frozen=True, kw_only=True)
class ShortSearch:
    """The effort of the search inside a training step.

    Attributes:
        texts: the most texts of a batch that are searched, drawn at every step.
        words: the words searched in each of them, drawn at every step; None for all.
        steps: of projected ascent. With the defaults a training step of 32 texts costs less than
            three plain ones.
    """

    texts: int = 8
    words: int | None = 1
    steps: int = 2

    def __post_init__(self) -> None:
        require_count("texts", self.texts)
        require_count("words", 1 if self.words is None else self.words)
        require_count("steps", self.steps)


class SensitivityPenalty:
    """A differentiable term that lowers, raises or holds word sensitivity:
    `loss = loss + weight * penalty(X)`.

    For some texts X of a batch and some words i of each, a short search (projected ascent) finds a
    Delta_i in the ball ‖Delta‖ <= radius. It gives

        s_i = ‖phi(X^i(Delta_i)) - phi(X)‖ / ‖phi(X)‖,    S(X) = the mean or the largest of the s_i of the chosen words,

    a lower bound of the sup (paper, eq. 1). The term is the mean over the chosen texts of

        S        to lower it,       -ln S    to raise it,       (ln S/target)²    to hold it at a target.

    **Gradient.** By the envelope theorem: Delta_i is held fixed where the search left it. For the
    sup itself this is exact where phi and its gradient in the parameters are continuous on the ball
    and the maximiser is unique, or the maximisers agree in that gradient (Danskin;
    docs/theory/search.md#the-gradient-of-s). A search that stops early gives the gradient of the value at its Delta.
    With over="max" the same holds for the word.

    **Warm start.** Half of the searches start from the last call's perturbations, the others at
    random: directions that move one text often move others.

    Args:
        phi: differentiable, from (b, n, d) to (b, ...), and deterministic: no dropout inside. For a
            network, the module or the method that gives its features.
        target: the S to hold; None where it is lowered or raised.
        way: "lower", "raise" or "hold"; None for "hold" with a target, else "lower".
        over: "mean" or "max" over the words that were searched.
        radius: of the balls; None for sqrt(d).
        search: the effort of the search.
        seed: of the choice of texts and words, and of the random starts.

    Attributes:
        last: S of each text of the last call, as its search found it.
        left_out: texts of all calls with phi(X) = 0, whose S is not defined; the mean leaves them
            out.

    Raises:
        InputError: a target that is not positive, or without its way; from a call, texts that are
            no batch.
        ZeroFeaturesError: from a call: phi(X) = 0 for every text that it chose.

    >>> network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 8), torch.nn.Tanh())
    >>> penalty = SensitivityPenalty(network, target=0.5)
    >>> X, _ = torch.ones(4, 3, 4), network.requires_grad_(True)
    >>> penalty(X).backward()
    >>> network[1].weight.grad.shape, penalty.last.shape
    (torch.Size([8, 12]), torch.Size([4]))
    """  # noqa: E501

    def __init__(
        self,
        phi: Callable[[Tensor], Tensor],
        target: float | None = None,
        *,
        way: str | None = None,
        over: str = "mean",
        radius: float | None = None,
        search: ShortSearch = ShortSearch(),
        seed: Seed = 0,
    ):
        if target is not None:
            require_positive("target", target)
        self.way = require_choice("way", way or ("lower" if target is None else "hold"), WAYS)
        if (self.way == "hold") != (target is not None):
            raise InputError(
                f"`target` (={target!r}) goes with way='hold', and `way` is {self.way!r}; give "
                "both or none"
            )
        self.over = require_choice("over", over, OVER)
        self.last, self.left_out = torch.empty(0), 0
        generator(seed)
        self._phi, self._target, self._seed, self._search = phi, target, seed, search
        self._radius = None if radius is None else require_positive("radius", radius)
        self._calls, self._directions = 0, torch.empty(0, 0)

    def __call__(self, texts: Float[Tensor, "b n d"]) -> Float[Tensor, ""]:
        """The term for a batch of texts, differentiable in phi's parameters and in the texts."""
        sensitivity = self.sensitivity(texts)
        self.last = sensitivity.detach()
        if self.way == "lower":
            return sensitivity.mean()
        # A phi that does not change at all has S = 0: the smallest number keeps its logarithm
        # finite.
        logarithm = sensitivity.clamp(min=torch.finfo(sensitivity.dtype).tiny).log()
        if self._target is None:
            return -logarithm.mean()
        return (logarithm - math.log(self._target)).square().mean()

    def sensitivity(self, texts: Float[Tensor, "b n d"]) -> Float[Tensor, " m"]:
        """S of the texts that this call chooses, a lower bound, differentiable."""
        if texts.ndim != 3 or not len(texts):
            raise InputError(
                f"`texts` (shape {tuple(texts.shape)}) must be a batch of texts, (b, n, d)"
            )
        stream = generator(self._seed, "sensitivity penalty", self._calls)
        self._calls += 1
        chosen = torch.randperm(len(texts), generator=stream)[: self._search.texts]
        some = texts[chosen.to(texts.device)]
        # Without gradients: at phi(X) = 0 they may be NaN.
        with torch.no_grad():
            defined = (self._phi(some).flatten(1) != 0).any(dim=1)
        self.left_out += int((~defined).sum())
        some = some[defined]
        if not len(some):
            raise ZeroFeaturesError(
                f"phi(X) = 0 for all {len(chosen)} texts that were chosen, and their sensitivity "
                "is not defined; lower the learning rate or the penalty's weight"
            )
        unchanged = self._phi(some).flatten(1)
        order = torch.rand(len(some), texts.shape[1], generator=stream).argsort(dim=1)
        words = order[:, : self._search.words].to(texts.device)

        def changes(delta: Tensor, before: Tensor) -> Tensor:
            moved = self._phi(move_words(some, words, delta)).flatten(1).unflatten(0, words.shape)
            return torch.linalg.vector_norm(moved - before.unsqueeze(1), dim=2)

        radius = math.sqrt(texts.shape[2]) if self._radius is None else self._radius
        start = radius * self._start(words.numel(), some, stream)
        fixed = unchanged.detach()
        delta = ascend(
            lambda delta: changes(delta, fixed).flatten(), start, radius, self._search.steps
        )
        self._directions = delta / radius
        sizes = torch.linalg.vector_norm(unchanged, dim=1, keepdim=True)
        relative = changes(delta, unchanged) / sizes
        return relative.mean(dim=1) if self.over == "mean" else relative.amax(dim=1)

    def _start(self, count: int, texts: Tensor, stream: torch.Generator) -> Float[Tensor, "p d"]:
        """Directions of length 1: random, every second one of the last call where there are any."""
        drawn = torch.randn(count, texts.shape[2], generator=stream, dtype=torch.float64)
        start = torch.nn.functional.normalize(drawn, dim=1).to(texts)
        if self._directions.shape[1] == texts.shape[2]:
            order = torch.randperm(len(self._directions), generator=stream).to(texts.device)
            warm = self._directions.to(texts)[order][: (count + 1) // 2]
            start[: 2 * len(warm) : 2] = warm
        return start


def move_words(
    texts: Float[Tensor, "b n d"],
    words: Int[Tensor, "b w"],
    perturbations: Float[Tensor, "p d"],
) -> Float[Tensor, "p n d"]:
    """Each of b texts w times, in each copy another of its words moved by its Delta; p = b w."""
    copies = texts.repeat_interleave(words.shape[1], dim=0)
    places = torch.arange(len(copies), device=texts.device), words.flatten()
    return copies.index_put(places, perturbations, accumulate=True)


def ascend(
    change: Callable[[Float[Tensor, "p d"]], Float[Tensor, " p"]],
    start: Float[Tensor, "p d"],
    radius: float,
    steps: int,
) -> Float[Tensor, "p d"]:
    """Projected ascent of p perturbations, each up its own change along the unit gradient; a step
    is taken if it gains.

    At a point of the sphere whose gradient points straight outward the ascent stays: those, and
    points where the gradient is zero, are the stationary points of the ball.

    Args:
        change: what rises, one number per perturbation.
        start: where the ascent begins, in the ball.
        radius: of the ball.
        steps: each costs an evaluation and a gradient, as does the start.
    """
    best = trial = start
    value = torch.full_like(best[:, 0], -math.inf)
    slope = torch.zeros_like(best)
    # The start gains too.
    length = torch.full_like(value, FIRST * radius / GROW)
    for _ in range(steps + 1):
        with torch.enable_grad():
            variable = trial.detach().requires_grad_(True)
            changes = change(variable)
            (gradient,) = torch.autograd.grad(changes.sum(), variable)
        better = changes.detach() > value
        best = torch.where(better.unsqueeze(1), variable.detach(), best)
        slope = torch.where(better.unsqueeze(1), gradient, slope)
        value = torch.where(better, changes.detach(), value)
        longer = (GROW * length).clamp(max=LONGEST * radius)
        length = torch.where(better, longer, SHRINK * length)
        outside = best + length.unsqueeze(1) * torch.nn.functional.normalize(slope, dim=1)
        beyond = torch.linalg.vector_norm(outside, dim=1, keepdim=True).clamp(min=radius)
        trial = outside * (radius / beyond)
    return best
