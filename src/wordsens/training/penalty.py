"""The sensitivity penalty: a differentiable term for anyone's training loop."""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, ZeroFeaturesError, require_choice, require_positive
from wordsens.seeds import Seed, generator
from wordsens.training.short_search import Ascent, MovedTexts, ShortSearch, projected, value_and_slope

OVER = ("mean", "max")
WAYS = ("lower", "raise", "hold")


class SensitivityPenalty:
    """A differentiable term that lowers, raises or holds word sensitivity: `loss = loss + weight * penalty(X)`.

    For some texts X of a batch and some words i of each, a short search (projected ascent) finds a Delta_i in the ball
    ‖Delta‖ <= radius, and with it

        s_i = ‖phi(X^i(Delta_i)) - phi(X)‖ / ‖phi(X)‖,    S(X) = the mean or the largest of the s_i of the chosen words,

    attained: a lower bound of the sup (paper, eq. 1). The term is the mean over the chosen texts of

        S        to lower it,       -ln S    to raise it,       (ln S/target)²    to hold it at a target.

    **Gradient.** By the envelope theorem: Delta_i is held fixed where the search left it. For the sup itself this is
    exact where phi and its gradient in the parameters are continuous on the ball and the maximiser is unique, or the
    maximisers agree in that gradient (Danskin; docs/theory/control). A search that stops early gives the gradient of
    the value that it attained with that Delta. With over="max" the same holds for the word.

    **Warm start.** Half of the searches start from the last call's perturbations, the others at random: directions that
    move one text often move others.

    Args:
        phi: differentiable, from (b, n, d) to (b, ...), the same each time it is asked: no dropout inside. Of a network
            of one's own, the module or the method that gives its features.
        target: the S to hold; None where it is lowered or raised.
        way: "lower", "raise" or "hold"; None for "hold" with a target, else "lower".
        over: "mean" or "max" over the words that were searched.
        radius: of the balls; None for sqrt(d).
        search: the spending of the search; ShortSearch().
        seed: of the choice of texts and words, and of the random starts.

    Raises:
        InputError: a target that is not positive, or without its way; from a call, texts that are no batch.
        ZeroFeaturesError: from a call: phi(X) = 0 for every text that it chose (single ones: `left_out`).

    >>> network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12, 8), torch.nn.Tanh())
    >>> penalty = SensitivityPenalty(network, target=0.5)
    >>> X, _ = torch.ones(4, 3, 4), network.requires_grad_(True)
    >>> penalty(X).backward()
    >>> network[1].weight.grad.shape, penalty.last.shape
    (torch.Size([8, 12]), torch.Size([4]))
    """

    def __init__(
        self,
        phi: Callable[[Tensor], Tensor],
        target: float | None = None,
        *,
        way: str | None = None,
        over: str = "mean",
        radius: float | None = None,
        search: ShortSearch = ShortSearch(),  # noqa: B008 - frozen
        seed: Seed = 0,
    ):
        if target is not None:
            require_positive("target", target)
        self.way = require_choice("way", way or ("lower" if target is None else "hold"), WAYS)
        if (self.way == "hold") != (target is not None):
            raise InputError(
                f"`target` (={target!r}) goes with way='hold', and `way` is {self.way!r}; give both or none"
            )
        self.over = require_choice("over", over, OVER)
        self.last: Tensor = torch.empty(0)
        """S of each text of the last call, attained by its short search."""
        self.left_out = 0
        """Texts of all calls that had phi(X) = 0, whose S is not defined: they are left out of the mean."""
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
        # A phi that does not change at all has S = 0: the smallest number keeps its logarithm finite.
        logarithm = sensitivity.clamp(min=torch.finfo(sensitivity.dtype).tiny).log()
        if self._target is None:
            return -logarithm.mean()
        return (logarithm - math.log(self._target)).square().mean()

    def sensitivity(self, texts: Float[Tensor, "b n d"]) -> Float[Tensor, " m"]:
        """S of the texts that this call chooses, attained, differentiable."""
        if texts.ndim != 3 or not len(texts):
            raise InputError(f"`texts` (shape {tuple(texts.shape)}) must be a batch of texts, (b, n, d)")
        stream = generator(self._seed, "sensitivity penalty", self._calls)
        self._calls += 1
        chosen = torch.randperm(len(texts), generator=stream)[: self._search.texts]
        some = texts[chosen.to(texts.device)]
        words = self._words(len(some), texts.shape[1], stream).to(texts.device)
        radius = math.sqrt(texts.shape[2]) if self._radius is None else self._radius
        start = self._start(words.numel(), texts, stream) * radius
        both = MovedTexts(some, words, beside=True)
        base, value, slope = self._begin(both, len(some), start)
        defined = (base != 0).any(dim=1)
        if not bool(defined.all()):
            self.left_out += int((~defined).sum())
            if not bool(defined.any()):
                raise ZeroFeaturesError(
                    f"phi(X) = 0 for all {len(some)} texts that were chosen, and their sensitivity is not defined; "
                    "lower the learning rate or the penalty's weight"
                )
            pairs = defined.repeat_interleave(words.shape[1])
            some, words, base = some[defined], words[defined], base[defined]
            start, value, slope = start[pairs], value[pairs], slope[pairs]
            both = MovedTexts(some, words, beside=True)
        ascent, moved = Ascent(projected(start, radius), value, slope, radius), MovedTexts(some.detach(), words)
        copies = _copies(base, words.shape[1])

        def change(texts: Tensor) -> Tensor:
            return torch.linalg.vector_norm(self._phi(texts).flatten(1) - copies, dim=1)

        for _ in range(self._search.steps - 1):
            trial = ascent.trial()
            ascent.take(trial, *value_and_slope(change, moved, trial))
        delta = ascent.trial()
        # One evaluation carries the gradient: of the texts as they are and as they were moved. It judges the last step
        # as well, and is done again only where that did not gain for every pair.
        before, changes = self._evaluated(both(delta), len(some))
        if not bool((changes.detach() > ascent.value).all()):
            delta = ascent.last(delta, changes.detach())
            before, changes = self._evaluated(both(delta), len(some))
        self._found = delta / radius
        relative = changes.unflatten(0, words.shape) / torch.linalg.vector_norm(before, dim=1).unsqueeze(1)
        return relative.mean(dim=1) if self.over == "mean" else relative.amax(dim=1)

    def _begin(
        self, both: MovedTexts, texts: int, start: Float[Tensor, "p d"]
    ) -> tuple[Float[Tensor, "b h"], Float[Tensor, " p"], Float[Tensor, "p d"]]:
        """phi(X), and the change at the start with its gradient, all in one evaluation of phi."""
        base = torch.empty(0)

        def change(moved: Tensor) -> Tensor:
            nonlocal base
            base, changes = self._evaluated(moved, texts)
            return changes

        value, slope = value_and_slope(change, both, start)
        return base.detach(), value, slope

    def _evaluated(self, both: Float[Tensor, "m n d"], texts: int) -> tuple[Float[Tensor, "b h"], Float[Tensor, " p"]]:
        """phi(X), and ‖phi(X^i(Delta)) - phi(X)‖ of every pair, differentiable in phi's parameters and in the texts."""
        features = self._phi(both).flatten(1)
        before, after = features[:texts], features[texts:]
        return before, torch.linalg.vector_norm(after - _copies(before, len(after) // texts), dim=1)

    def _words(self, texts: int, n: int, stream: torch.Generator) -> Int[Tensor, "b w"]:
        if self._search.words is None or self._search.words >= n:
            return torch.arange(n).expand(texts, n)
        return torch.rand(texts, n, generator=stream).argsort(dim=1)[:, : self._search.words]

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
