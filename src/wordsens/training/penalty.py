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

GROW, SHRINK = 1.5, 0.25
"""A step that gains is followed by a longer one, a step that loses by a much shorter one, as in
`search.climb`."""

FIRST, LONGEST = 1.0, 2.0
"""The first and the longest step, in radii: the first crosses the ball, as the maximiser of a
linear function would."""


@dataclass(frozen=True, kw_only=True)
class ShortSearch:
    """The spending of the search inside a training step.

    Attributes:
        texts: at most so many of a batch's texts are searched, drawn anew each time.
        words: so many words of each, drawn anew; None for all.
        steps: of projected ascent. The usual numbers keep a training step of 32 texts below 3 plain
            ones.
    """

    texts: int = 8
    words: int | None = 1
    steps: int = 2

    def __post_init__(self) -> None:
        require_count("texts", self.texts)
        require_count("steps", self.steps)
        if self.words is not None:
            require_count("words", self.words)


class SensitivityPenalty:
    """A differentiable term that lowers, raises or holds word sensitivity:
    `loss = loss + weight * penalty(X)`.

    For some texts X of a batch and some words i of each, a short search (projected ascent) finds a
    Delta_i in the ball ‖Delta‖ <= radius, and with it

        s_i = ‖phi(X^i(Delta_i)) - phi(X)‖ / ‖phi(X)‖,    S(X) = the mean or the largest of the s_i of the chosen words,

    attained: a lower bound of the sup (paper, eq. 1). The term is the mean over the chosen texts of

        S        to lower it,       -ln S    to raise it,       (ln S/target)²    to hold it at a target.

    **Gradient.** By the envelope theorem: Delta_i is held fixed where the search left it. For the
    sup itself this is exact where phi and its gradient in the parameters are continuous on the ball
    and the maximiser is unique, or the maximisers agree in that gradient (Danskin;
    docs/theory/control). A search that stops early gives the gradient of the value that it attained
    with that Delta. With over="max" the same holds for the word.

    **Warm start.** Half of the searches start from the last call's perturbations, the others at
    random: directions that move one text often move others.

    Args:
        phi: differentiable, from (b, n, d) to (b, ...), the same each time it is asked: no dropout
            inside. Of a network of one's own, the module or the method that gives its features.
        target: the S to hold; None where it is lowered or raised.
        way: "lower", "raise" or "hold"; None for "hold" with a target, else "lower".
        over: "mean" or "max" over the words that were searched.
        radius: of the balls; None for sqrt(d).
        search: the spending of the search; ShortSearch().
        seed: of the choice of texts and words, and of the random starts.

    Raises:
        InputError: a target that is not positive, or without its way; from a call, texts that are
            no batch.
        ZeroFeaturesError: from a call: phi(X) = 0 for every text that it chose (single ones:
            `left_out`).

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
        self.last: Tensor = torch.empty(0)
        """S of each text of the last call, attained by its short search."""
        self.left_out = 0
        """Texts of all calls that had phi(X) = 0, whose S is not defined: they are left out of the
        mean."""
        generator(seed)
        self._phi, self._target, self._seed, self._search = phi, target, seed, search
        self._radius = None if radius is None else require_positive("radius", radius)
        self._calls = 0
        self._found: Tensor | None = None

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
        """S of the texts that this call chooses, attained, differentiable."""
        if texts.ndim != 3 or not len(texts):
            raise InputError(
                f"`texts` (shape {tuple(texts.shape)}) must be a batch of texts, (b, n, d)"
            )
        stream = generator(self._seed, "sensitivity penalty", self._calls)
        self._calls += 1
        chosen = torch.randperm(len(texts), generator=stream)[: self._search.texts]
        some = texts[chosen.to(texts.device)]
        n = texts.shape[1]
        words = torch.arange(n).expand(len(some), n)
        if self._search.words is not None and self._search.words < n:
            words = torch.rand(len(some), n, generator=stream).argsort(dim=1)[
                :, : self._search.words
            ]
        words = words.to(texts.device)
        radius = math.sqrt(texts.shape[2]) if self._radius is None else self._radius
        start = self._start(words.numel(), texts, stream) * radius
        both = MovedTexts(some, words, beside=True)
        base = torch.empty(0)

        def change_beside(moved: Tensor) -> Tensor:
            """The change, and into `base` phi(X), in one evaluation of phi."""
            nonlocal base
            base, changes = self._evaluated(moved, len(chosen))
            return changes

        value, slope = _value_and_slope(change_beside, both, start)
        base = base.detach()
        defined = (base != 0).any(dim=1)
        if not bool(defined.all()):
            self.left_out += int((~defined).sum())
            if not bool(defined.any()):
                raise ZeroFeaturesError(
                    f"phi(X) = 0 for all {len(some)} texts that were chosen, and their sensitivity "
                    "is not defined; "
                    "lower the learning rate or the penalty's weight"
                )
            pairs = defined.repeat_interleave(words.shape[1])
            some, words, base = some[defined], words[defined], base[defined]
            start, value, slope = start[pairs], value[pairs], slope[pairs]
            both = MovedTexts(some, words, beside=True)
        ascent, moved = (
            _Ascent(_projected(start, radius), value, slope, radius),
            MovedTexts(some.detach(), words),
        )
        copies = _copies(base, words.shape[1])

        def change(texts: Tensor) -> Tensor:
            return torch.linalg.vector_norm(self._phi(texts).flatten(1) - copies, dim=1)

        for _ in range(self._search.steps - 1):
            trial = ascent.trial()
            ascent.take(trial, *_value_and_slope(change, moved, trial))
        delta = ascent.trial()
        # One evaluation carries the gradient: of the texts as they are and as they were moved. It
        # judges the last step as well, and is done again only where that did not gain for every
        # pair.
        before, changes = self._evaluated(both(delta), len(some))
        if not bool((changes.detach() > ascent.value).all()):
            delta = torch.where((changes.detach() > ascent.value).unsqueeze(1), delta, ascent.best)
            before, changes = self._evaluated(both(delta), len(some))
        self._found = delta / radius
        relative = changes.unflatten(0, words.shape) / torch.linalg.vector_norm(
            before, dim=1
        ).unsqueeze(1)
        return relative.mean(dim=1) if self.over == "mean" else relative.amax(dim=1)

    def _evaluated(
        self, both: Float[Tensor, "m n d"], texts: int
    ) -> tuple[Float[Tensor, "b h"], Float[Tensor, " p"]]:
        """phi(X), and ‖phi(X^i(Delta)) - phi(X)‖ of every pair, differentiable in phi's parameters
        and in the texts."""
        features = self._phi(both).flatten(1)
        before, after = features[:texts], features[texts:]
        return before, torch.linalg.vector_norm(after - _copies(before, len(after) // texts), dim=1)

    def _start(self, count: int, texts: Tensor, stream: torch.Generator) -> Float[Tensor, "p d"]:
        """Directions of length 1: random, every second one of the last call where there are any."""
        drawn = torch.randn(count, texts.shape[2], generator=stream, dtype=torch.float64)
        start = torch.nn.functional.normalize(drawn, dim=1).to(texts)
        if self._found is not None and self._found.shape[1] == texts.shape[2]:
            order = torch.randperm(len(self._found), generator=stream).to(texts.device)
            warm = self._found.to(texts)[order][: (count + 1) // 2]
            start[: 2 * len(warm) : 2] = warm
        return start


def _copies(base: Float[Tensor, "b h"], times: int) -> Float[Tensor, "p h"]:
    return base if times == 1 else base.repeat_interleave(times, dim=0)


class MovedTexts:
    """Each of b texts w times, in each copy another of its words moved; p = b w pairs of a text and
    a word.

    Args:
        texts: as they are.
        words: of each text.
        beside: the b texts as they are come first, then the p that are moved.
    """

    def __init__(
        self, texts: Float[Tensor, "b n d"], words: Int[Tensor, "b w"], *, beside: bool = False
    ):
        copies = texts if words.shape[1] == 1 else texts.repeat_interleave(words.shape[1], dim=0)
        first = len(texts) if beside else 0
        self._copies = torch.cat([texts, copies]) if beside else copies
        self.places = (
            torch.arange(first, first + words.numel(), device=texts.device),
            words.flatten(),
        )

    def __call__(self, perturbations: Float[Tensor, "p d"]) -> Float[Tensor, "m n d"]:
        """The texts with Delta added to the word of each pair."""
        return self._copies.index_put(self.places, perturbations, accumulate=True)


Change = Callable[[Float[Tensor, "m n d"]], Float[Tensor, " p"]]
"""From moved texts to what each pair changes."""


class _Ascent:
    """Projected ascent of p pairs in step, each up its own change along the unit gradient; a step
    is taken if it gains.

    At a point of the sphere whose gradient points straight outward the ascent stays: those, and
    points where the gradient is zero, are the stationary points of the ball.

    Args:
        start: where the ascent begins, in the ball.
        value, slope: the change there, and its gradient.
        radius: of the ball.
    """

    def __init__(
        self,
        start: Float[Tensor, "p d"],
        value: Float[Tensor, " p"],
        slope: Float[Tensor, "p d"],
        radius: float,
    ):
        self.best, self.value, self._slope, self._radius = start, value, slope, radius
        self._length = torch.full_like(value, FIRST * radius)

    def trial(self) -> Float[Tensor, "p d"]:
        """The end of every pair's next step."""
        uphill = torch.nn.functional.normalize(self._slope, dim=1)
        return _projected(self.best + self._length.unsqueeze(1) * uphill, self._radius)

    def take(
        self,
        trial: Float[Tensor, "p d"],
        reached: Float[Tensor, " p"],
        uphill: Float[Tensor, "p d"],
    ) -> None:
        """Take the steps that gained; `reached` and `uphill` are the change at the trial and its
        gradient."""
        better = reached > self.value
        self.best = torch.where(better.unsqueeze(1), trial, self.best)
        self._slope = torch.where(better.unsqueeze(1), uphill, self._slope)
        self.value = torch.where(better, reached, self.value)
        longer = (GROW * self._length).clamp(max=LONGEST * self._radius)
        self._length = torch.where(better, longer, SHRINK * self._length)


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
    start = _projected(start, radius)
    ascent = _Ascent(start, *_value_and_slope(change, moved, start), radius)
    for _ in range(steps - 1):
        trial = ascent.trial()
        ascent.take(trial, *_value_and_slope(change, moved, trial))
    trial = ascent.trial()
    with torch.no_grad():
        return torch.where((change(moved(trial)) > ascent.value).unsqueeze(1), trial, ascent.best)


def _projected(perturbations: Float[Tensor, "p d"], radius: float) -> Float[Tensor, "p d"]:
    """Every Delta, or the point of the sphere on its way where it lies outside of the ball."""
    length = torch.linalg.vector_norm(perturbations, dim=1, keepdim=True)
    return perturbations * (radius / length.clamp(min=radius))


def _value_and_slope(
    change: Change, moved: MovedTexts, at: Float[Tensor, "p d"]
) -> tuple[Float[Tensor, " p"], Float[Tensor, "p d"]]:
    """The change at p perturbations, and its gradient there."""
    with torch.enable_grad():
        texts = moved(at).detach().requires_grad_(True)
        value = change(texts)
        (slope,) = torch.autograd.grad(value.sum(), texts)
    return value.detach(), slope[moved.places]
