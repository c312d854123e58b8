"""The change that one moved word, or a group of words, makes to dense random features, forward and backward by hand."""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.activations import Activation
from wordsens.gaussian import DenseGaussian, GaussianMatrix, OnDemandGaussian
from wordsens.gaussian.lanczos import lanczos
from wordsens.maps.mapping import feature_norm
from wordsens.maps.word_change import WordChange
from wordsens.search.ball import unit
from wordsens.search.plan import Stages
from wordsens.seeds import gaussian_on, generator

_LANCZOS_STEPS, _FRUGAL_LANCZOS_STEPS = 16, 18
"""Of the starting directions; the second where matrices are sampled on demand and steps are few. Eight layers, 80 words
in 768 coordinates, 46 steps in all, means of 12 texts: .14864 with 8 Lanczos steps, .14893 with 10, .14915 with 14,
.14934 with 18, .14936 with 22, .14893 with 26."""

_QUANTILES = 16
"""Of a Gaussian change, over which the slope of a unit is averaged."""

_FAR_ANGLES = (0.1, 0.25, 0.5, 0.9, 1.5, -0.1, -0.25, -0.5)
_MOST_SMALL = 1 << 18
"""Entries of V_1^(i), V_2, ..., V_L up to which a text is searched widely: six times the evaluations, which cost less
than the calls that make them."""

NARROW = 64
"""Features of one layer up to which crossing finds hills that the Krylov search misses (8 features of 52 coordinates: a
word was 8 % low), and of several up to which every word is searched twice, from four times as many starts (6 features,
4 layers: a word was 2 to 7 % low in two runs of four; 28 features, 4 layers: one of six was 2 % low, from 192 starts
none)."""

_STRETCHED = 0.03
"""The share of what a ball does to the first layer by which a saturating activation is stretched while it is explored.
An erf layer of 135 features at 209 sqrt(d): the lowest of six words was at .959 of an attack's value without it, .993
with it and .959 at .1."""

_CORNERS, _ALL_SIGNS = 32, 7
"""Corners from which a search of few units climbs, and units up to which every pattern of signs is tried. Of ten words
under two layers of 6 units one to three were at .94 to .97 of the best without them, none with them."""

_PUSHED = 32
"""Units that candidates push back, at most, where an activation saturates: far in its tail the largest change is of the
one unit that comes out of it farthest. Words under 76 and 12 such units were at .93 and .46 of an attack's value."""

_DRAWN, _MOST_SPANNED = 256, 16
"""Points of the span of what few units see, where they are at most so many and fewer than coordinates; twice as many
candidates are then searched from. Under four layers of 4 units a word in 41 coordinates was at .79 of an
attack's value without them, the text at .991."""

_KEPT_BLOCKS = 4
"""One of so many bytes of the memory budget, at most, holds blocks V_1^(i) apart from their matrix."""


class DenseChange(WordChange):
    """The change of RF and DRF: only the blocks V_1^(i) of the changed words are multiplied, V_1 flat(X) is kept.

    One Delta costs one product with each matrix forward and one with each transpose backward.

    Args:
        layers: V_1, ..., V_L.
        activation: act.
        rows: X.
        groups: (m, g), the words that move together in each of m groups; one word each for word sensitivity.
        name: of the map, for errors.
        memory_budget: bytes for intermediate results.
        together: whether Delta has shape (g, d), rather than (d,) for one word.
    """

    plan = Stages(starts=8, climb_steps=8, finalists=2, steps=60, tolerance=1e-7)
    _FRUGAL_PLAN = Stages(starts=2, climb_steps=3, finalists=1, steps=14, tolerance=1e-5)
    _SATURATING_PLAN = Stages(starts=24, climb_steps=20, finalists=5, steps=60, tolerance=1e-7)
    _SMALL_PLAN = Stages(
        starts=48,
        inner=4,
        climb_steps=12,
        population=8,
        generations=3,
        children=12,
        kick_steps=10,
        relays=16,
        finalists=4,
        steps=120,
        noisy=32,
        tolerance=1e-9,
    )

    def __init__(
        self,
        layers: list[GaussianMatrix],
        activation: Activation,
        rows: Float[Tensor, "n d"],
        groups: Int[Tensor, "m g"],
        name: str,
        *,
        memory_budget: int,
        together: bool = False,
    ):
        self._layers, self._activation, self._groups = layers, activation, groups
        self._blocks: dict[int, Tensor] = {}
        self._first = activation
        self._steps = self._forward(layers[0].multiply(rows.flatten()))
        self._base = self._steps.pop()
        shape = (groups.shape[1], rows.shape[1]) if together else rows.shape[1:]
        super().__init__(rows, feature_norm(self._base, name), memory_budget, shape)
        self._lanczos_steps = _LANCZOS_STEPS
        if any(isinstance(layer, OnDemandGaussian) for layer in layers):
            # Every product with an on-demand matrix costs as much as all that is remembered of it.
            self.plan, self._lanczos_steps = self._FRUGAL_PLAN, _FRUGAL_LANCZOS_STEPS
            return
        if activation.saturates:
            self.plan, self.far_angles = self._SATURATING_PLAN, _FAR_ANGLES
        width, entered = layers[0].rows, groups.shape[1] * rows.shape[1]
        if width * (entered + (len(layers) - 1) * width) <= _MOST_SMALL:
            wide = replace(self._SMALL_PLAN, rule="momentum" if activation.kinked else "quasi-newton")
            if width <= NARROW:
                # In one layer circles find the turns of units.
                corners = 2 * _CORNERS if self._spanned else _CORNERS
                chosen = corners if len(layers) > 1 else 0
                wide = replace(wide, starts=4 * wide.starts, again=len(groups), chosen=chosen)
            if activation.saturates:
                wide = replace(
                    wide, chosen=_PUSHED // 2, climb_steps=20, children=24, soft_steps=8, explored_share=_STRETCHED
                )
            self._search_widely(wide)

    def _search_widely(self, plan: Stages) -> None:
        self.plan = plan

    def bytes_per_pair(self) -> int:
        return (3 * len(self._layers) + 3) * len(self._base) * self.rows.element_size()

    def starting_directions(
        self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
    ) -> Float[Tensor, "starts w *shape"]:
        """Both signs of the two leading singular vectors of a linear map near the change, by Lanczos steps.

        It is the Jacobian at X with act'(z) of every unit replaced by E[act'(z + s g)], g ~ N(0, 1), where s is how far
        a random Delta of the ball's radius moves the units of that layer: by Stein's lemma the best slope for a
        Gaussian change of variance s². At 8 ReLU layers, n = 80, d = 768, r = sqrt(d), the leading vector attained
        .1425 for the Jacobian's .1393, and 34 steps in all as much as 64.
        """
        streams = [generator(0, "lanczos", int(word)) for word in words]
        kind = {"dtype": self.dtype, "device": self.device}
        start = torch.cat([gaussian_on(1, self.coordinates, generator=stream, **kind) for stream in streams])
        found = []
        size = max(1, self.memory_budget // self.bytes_per_pair())
        for some, reach, first in zip(words.split(size), radius.split(size), start.split(size), strict=True):
            slopes = self._mean_slopes(unit(first) * reach.to(first).unsqueeze(1), some)
            basis, rotation, _ = lanczos(partial(self._gram, words=some, slopes=slopes), first, self._lanczos_steps)
            leading = rotation[:, :2] @ basis
            found.append(torch.stack([leading, -leading], dim=2).flatten(1, 2))
        return torch.cat(found).transpose(0, 1).unflatten(2, self.shape)

    @property
    def _spanned(self) -> bool:
        """Whether the first layer sees few directions of a word."""
        return self._layers[0].rows <= min(_MOST_SPANNED, self.coordinates - 1)

    def candidates(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Float[Tensor, "count w *shape"]:
        """Corners: the least Delta, and the steepest, that moves the first layer's units by chosen signs, all alike.

        Every pattern of signs where units are few, else as many random ones. A hill is a pattern of active units, and
        random points meet few of those that a word's block has. Where units are fewer than coordinates, also random
        points of the span of what they see: of others most of Delta moves nothing. Where units saturate, `_pushed`.
        """
        width = self._layers[0].rows
        few = min(width, _ALL_SIGNS)
        on = torch.arange(1 << few).unsqueeze(1) >> torch.arange(few) & 1
        if width > few:
            on = torch.randint(2, (len(on), width), generator=generator(0, "corners"))
        signs = (2 * on - 1).to(dtype=self.dtype, device=self.device)
        stream = generator(0, "spanned", width)
        drawn = torch.randn(_DRAWN, width, generator=stream, dtype=torch.float64).to(signs)
        found = []
        for at, word in enumerate(words.tolist()):
            block = self._entering(word)
            if self._activation.saturates:
                found.append(self._pushed(block, radius[at]))
                continue
            ends = torch.cat([signs @ torch.linalg.pinv(block), signs @ block.T])
            if self._spanned:
                ends = torch.cat([ends, drawn @ torch.linalg.qr(block).Q.T])
            found.append(unit(ends))
        return torch.stack(found, dim=1).unflatten(2, self.shape)

    def _pushed(self, block: Float[Tensor, "m width"], radius: Float[Tensor, ""]) -> Float[Tensor, "c m"]:
        """The directions that move one unit of the first layer most, away from where it saturates: the units that then
        change most."""
        before, reach = self._steps[0], radius.to(block) * torch.linalg.vector_norm(block, dim=0)
        sides = -before.sign()
        change = (self._activation(before + sides * reach) - self._activation(before)).abs()
        most = change.topk(min(_PUSHED, len(change))).indices
        return unit(sides[most, None] * block.T[most])

    def softened(self, radius: Float[Tensor, " w"], shares: Sequence[float]) -> "list[DenseChange]":
        """With the first layer's activation stretched to act(z / f), f a share of how far the ball moves z.

        The features before the change stay those of the map: the pattern of signs to reach is theirs.
        """
        if not self._activation.saturates:
            return []
        reach = float(torch.linalg.vector_norm(self._entering(0), dim=0).median() * radius.max())
        result = []
        for share in shares:
            if share * reach > 1:
                relative = copy(self)
                relative._first = _stretched(self._activation, share * reach)
                result.append(relative)
        return result

    def _entering(self, group: int) -> Float[Tensor, "m width"]:
        """V_1^(i)^T of the group's words i, one below the other: how each coordinate enters the first layer."""
        blocks = [self._block(word) for word in self._groups[group].tolist()]
        kept = [block.T for block in blocks if block is not None]
        if len(kept) == len(blocks) and len(kept[0]) * len(kept) == self.coordinates:
            return torch.cat(kept)
        each = torch.eye(self.coordinates, dtype=self.dtype, device=self.device).unflatten(1, self.shape)
        return self.enter(each, torch.full((len(each),), group, device=self.device))

    def enter(self, perturbations: Float[Tensor, "b *shape"], words: Int[Tensor, " b"]) -> Float[Tensor, "b width"]:
        """The change of V_1 flat(X): the sum over the group's words i of V_1^(i) Delta_i."""
        d = self.rows.shape[1]
        parts = perturbations.reshape(len(words), -1, d)
        entered = perturbations.new_zeros(len(words), self._layers[0].rows)
        for group in words.unique().tolist():
            members = (words == group).nonzero().squeeze(1)
            for place, word in enumerate(self._groups[group].tolist()):
                block, some = self._block(word), parts[members, place]
                entered[members] += self._layers[0].multiply_block(some, word * d) if block is None else some @ block.T
        return entered

    def enter_transposed(self, slopes: Float[Tensor, "b width"], words: Int[Tensor, " b"]) -> Float[Tensor, "b *shape"]:
        """V_1^(i)^T u for the group's words i."""
        d = self.rows.shape[1]
        parts = slopes.new_empty(len(words), self._groups.shape[1], d)
        for group in words.unique().tolist():
            members = (words == group).nonzero().squeeze(1)
            for place, word in enumerate(self._groups[group].tolist()):
                block, some, at = self._block(word), slopes[members], (word * d, (word + 1) * d)
                whole = self._layers[0]
                parts[members, place] = whole.multiply_block_transposed(some, *at) if block is None else some @ block
        return parts.reshape(len(words), *self.shape)

    def _block(self, word: int) -> Float[Tensor, "width d"] | None:
        """V_1^(i) apart, where V_1 is a matrix in a CPU's memory and the budget has room; None elsewhere.

        Within V_1 the block's rows lie n d numbers apart: at n = 160, d = 48 a product there and one with the transpose
        take 520 us, with the block apart 90 us.
        """
        matrix, d = self._layers[0], self.rows.shape[1]
        if word not in self._blocks and isinstance(matrix, DenseGaussian) and matrix.matrix.device.type == "cpu":
            block = matrix.matrix[:, word * d : (word + 1) * d]
            if _KEPT_BLOCKS * (len(self._blocks) + 1) * block.numel() * block.element_size() <= self.memory_budget:
                self._blocks[word] = block.contiguous()
        return self._blocks.get(word)

    def _forward(self, preactivation: Float[Tensor, "*batch width"]) -> list[Float[Tensor, "*batch width"]]:
        """The pre-activations of every layer, then the features."""
        steps, act = [preactivation], self._first
        for layer in self._layers[1:]:
            steps.append(layer.multiply(act(steps[-1])))
            act = self._activation
        return [*steps, act(steps[-1])]

    def _backward(
        self, slope: Float[Tensor, "*batch width"], steps: list[Float[Tensor, "*steps width"]]
    ) -> Float[Tensor, "*batch width"]:
        """The gradient in V_1 flat(X) from that in the features."""
        for layer, step in zip(reversed(self._layers[1:]), reversed(steps[1:]), strict=True):
            slope = layer.multiply_transposed(slope * self._activation.derivative(step))
        return slope * self._first.derivative(steps[0])

    def _mean_slopes(self, point: Float[Tensor, "b m"], words: Int[Tensor, " b"]) -> list[Float[Tensor, "b width"]]:
        """E[act'(z + s g)] of the units of every layer, s² the mean square of what each point changes of them.

        The mean is over _QUANTILES quantiles of g, and act'(z) itself where it is not a number.
        """
        entered = self.enter(point.unflatten(1, self.shape), words) + self._steps[0]
        kind = {"dtype": self.dtype, "device": self.device}
        nodes = torch.special.ndtri((torch.arange(_QUANTILES, **kind) + 0.5) / _QUANTILES)
        slopes, act = [], self._first
        for step, moved in zip(self._steps, self._forward(entered)[:-1], strict=True):
            spread = (moved - step).square().mean(dim=1, keepdim=True).sqrt()
            mean = torch.zeros_like(moved)
            for node in nodes:
                mean += act.derivative(step + spread * node)
            mean /= _QUANTILES
            slopes.append(torch.where(mean.isfinite(), mean, act.derivative(step)))
            act = self._activation
        return slopes

    def _gram(
        self, point: Float[Tensor, "b m"], words: Int[Tensor, " b"], slopes: list[Float[Tensor, "b width"]]
    ) -> Float[Tensor, "b m"]:
        """J^T J times a point, J the change linearised in Delta with these slopes of the units of every layer."""
        change = self.enter(point.unflatten(1, self.shape), words) * slopes[0]
        for layer, slope in zip(self._layers[1:], slopes[1:], strict=True):
            change = layer.multiply(change) * slope
        for layer, slope in zip(reversed(self._layers[1:]), reversed(slopes[1:]), strict=True):
            change = layer.multiply_transposed(change * slope)
        return self.enter_transposed(change * slopes[0], words).flatten(start_dim=1)

    def _evaluate(
        self, perturbations: Float[Tensor, "b *shape"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b *shape"] | None]:
        *steps, features = self._forward(self.enter(perturbations, words) + self._steps[0])
        change = features - self._base
        squared = change.square().sum(dim=1)
        if not gradient:
            return squared, None
        return squared, self.enter_transposed(self._backward(2 * change, steps), words)


def _stretched(activation: Activation, factor: float) -> Activation:
    """act(z / factor)."""
    return replace(
        activation,
        function=lambda z: activation.function(z / factor),
        derivative=lambda z: activation.derivative(z / factor) / factor,
    )
