"""The change that one moved word, or a group of words, makes to dense random features, forward and
backward by hand.

Of one layer a search follows it along great circles (`search.krylov`).
"""

from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.activations import Activation
from wordsens.gaussian import DenseGaussian, GaussianMatrix, OnDemandGaussian
from wordsens.gaussian.vectors import lanczos
from wordsens.maps.base import Change, Pull
from wordsens.maps.mapping import feature_norm
from wordsens.search.objective import (
    Deltas,
    Evaluated,
    LinearEntry,
    LinearEntryObjective,
    Places,
    unit,
)
from wordsens.search.plan import Stages
from wordsens.seeds import gaussian_on, generator

_LANCZOS_STEPS, _FRUGAL_LANCZOS_STEPS = 16, 18
"""Of the starting directions; the second where matrices are sampled on demand and steps are few."""

_QUANTILES = 16
"""Of a Gaussian change, over which the slope of a unit is averaged."""

_MOST_SMALL = 1 << 20
"""Entries of V_1^(i), V_2, ..., V_L up to which a text is searched widely: evaluations cost less
than the calls that make them."""

NARROW = 64
"""Features of one layer up to which crossing reaches hills that the Krylov search misses."""

_BLOCKS_SHARE = 4
"""One of so many bytes of the memory budget, at most, holds blocks V_1^(i) apart from their
matrix."""


class DenseChange(Change):
    """The change of RF and DRF: only the blocks V_1^(i) of the changed words are multiplied, V_1
    flat(X) is kept.

    One Delta costs one product with each matrix forward and one with each transpose backward.
    `small` says whether the text is searched widely.
    """

    stages = Stages(starts=8, steps=8, finish=60, tolerance=1e-7)
    _FRUGAL_STAGES = Stages(starts=2, steps=3, finalists=1, finish=14, tolerance=1e-5)
    _SMALL_STAGES = Stages(
        starts=32, steps=20, generations=4, population=8, child_steps=12, tolerance=1e-9
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
    ):
        self._layers, self._activation = layers, activation
        self._blocks: dict[int, Tensor] = {}
        self._steps = self._forward(layers[0].multiply(rows.flatten()))
        self._base = self._steps.pop()
        feature_norm(self._base, name)
        super().__init__(rows, groups, memory_budget)
        self._lanczos_steps, self.small = _LANCZOS_STEPS, False
        if any(isinstance(layer, OnDemandGaussian) for layer in layers):
            # Every product with an on-demand matrix costs as much as all that is remembered of it.
            self.stages, self._lanczos_steps = self._FRUGAL_STAGES, _FRUGAL_LANCZOS_STEPS
            return
        width, entered = layers[0].rows, groups.shape[1] * rows.shape[1]
        self.small = width * (entered + (len(layers) - 1) * width) <= _MOST_SMALL
        if self.small:
            self._search_widely(activation)

    def _search_widely(self, activation: Activation) -> None:
        self.stages, self.kinked = self._SMALL_STAGES, activation.kinked

    def bytes_per_pair(self) -> int:
        return (3 * len(self._layers) + 3) * len(self._base) * self.rows.element_size()

    def starts(
        self, places: Int[Tensor, " w"], radius: Float[Tensor, "w r"]
    ) -> Float[Tensor, "count w g d"]:
        """Both signs of the two leading singular vectors of a linear map near the change, by
        Lanczos steps.

        It is the Jacobian at X with act'(z) of every unit replaced by E[act'(z + s g)], g ~ N(0,
        1), where s is how far a random Delta of the ball's radius moves the units of that layer: by
        Stein's lemma the best slope for a Gaussian change of variance s².
        """
        streams = [generator(0, "lanczos", *group) for group in self.groups[places].tolist()]
        kind = {"dtype": self.dtype, "device": self.device}
        start = torch.cat(
            [gaussian_on(1, self.coordinates, generator=stream, **kind) for stream in streams]
        )
        directions = []
        size = max(1, self.memory_budget // self.bytes_per_pair())
        for some, reach, first in zip(
            places.split(size), radius.split(size), start.split(size), strict=True
        ):
            length = reach.to(first).expand(-1, self.groups.shape[1]).square().sum(dim=1).sqrt()
            slopes = self._mean_slopes(unit(first) * length.unsqueeze(1), some)
            basis, rotation, _ = lanczos(
                partial(self._gram, words=some, slopes=slopes), first, self._lanczos_steps
            )
            leading = rotation[:, :2] @ basis
            directions.append(torch.stack([leading, -leading], dim=2).flatten(1, 2))
        return torch.cat(directions).transpose(0, 1).unflatten(2, self.shape)

    def enter(
        self, perturbations: Float[Tensor, "b *shape"], words: Int[Tensor, " b"]
    ) -> Float[Tensor, "b width"]:
        """The change of V_1 flat(X): the sum over the group's words i of V_1^(i) Delta_i."""
        d = self.rows.shape[1]
        parts = perturbations.reshape(len(words), -1, d)
        order, groups, sizes = self._by_group(words)
        entered = perturbations.new_zeros(len(words), self._layers[0].rows)
        for group, members, images in zip(
            groups, parts[order].split(sizes), entered.split(sizes), strict=True
        ):
            for place, word in enumerate(group):
                block, some = self._block(word), members[:, place]
                images += (
                    self._layers[0].multiply_block(some, word * d)
                    if block is None
                    else some @ block.T
                )
        return entered[order.argsort()]

    def enter_transposed(
        self, slopes: Float[Tensor, "b width"], words: Int[Tensor, " b"]
    ) -> Float[Tensor, "b *shape"]:
        """V_1^(i)^T u for the group's words i."""
        d = self.rows.shape[1]
        order, groups, sizes = self._by_group(words)
        parts = slopes.new_empty(len(words), self.groups.shape[1], d)
        for group, some, images in zip(
            groups, slopes[order].split(sizes), parts.split(sizes), strict=True
        ):
            for place, word in enumerate(group):
                block = self._block(word)
                if block is None:
                    images[:, place] = self._layers[0].multiply_block_transposed(
                        some, word * d, (word + 1) * d
                    )
                else:
                    images[:, place] = some @ block
        return parts[order.argsort()].reshape(len(words), *self.shape)

    def _by_group(
        self, words: Int[Tensor, " b"]
    ) -> tuple[Int[Tensor, " b"], list[list[int]], list[int]]:
        """The order that puts pairs of one group beside each other; the words of every group, and
        how many pairs."""
        groups, sizes = words.unique(return_counts=True)
        return words.argsort(stable=True), self.groups[groups].tolist(), sizes.tolist()

    def _block(self, word: int) -> Float[Tensor, "width d"] | None:
        """V_1^(i) apart, where V_1 is a matrix in memory and the budget has room; None elsewhere.

        Within V_1 the block's rows lie n d numbers apart, and a product takes several times as
        long.
        """
        matrix, d = self._layers[0], self.rows.shape[1]
        if word not in self._blocks and isinstance(matrix, DenseGaussian):
            block = matrix.matrix[:, word * d : (word + 1) * d]
            if (
                _BLOCKS_SHARE * (len(self._blocks) + 1) * block.numel() * block.element_size()
                <= self.memory_budget
            ):
                self._blocks[word] = block.contiguous()
        return self._blocks.get(word)

    def _forward(
        self, preactivation: Float[Tensor, "*batch width"]
    ) -> list[Float[Tensor, "*batch width"]]:
        """The pre-activations of every layer, then the features."""
        steps = [preactivation]
        for layer in self._layers[1:]:
            steps.append(layer.multiply(self._activation(steps[-1])))
        return [*steps, self._activation(steps[-1])]

    def change(
        self, perturbations: Float[Tensor, "b *shape"], words: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b width"], list[Float[Tensor, "b width"]]]:
        """phi(X^G(Delta)) - phi(X), and the pre-activations of every layer."""
        *steps, features = self._forward(self.enter(perturbations, words) + self._steps[0])
        return features - self._base, steps

    def pull_back(
        self,
        slope: Float[Tensor, "b width"],
        steps: list[Float[Tensor, "b width"]],
        words: Int[Tensor, " b"],
    ) -> Float[Tensor, "b *shape"]:
        """The gradient in Delta from that in the features, at these pre-activations."""
        for layer, step in zip(reversed(self._layers[1:]), reversed(steps[1:]), strict=True):
            slope = layer.multiply_transposed(slope * self._activation.derivative(step))
        return self.enter_transposed(slope * self._activation.derivative(steps[0]), words)

    def _mean_slopes(
        self, point: Float[Tensor, "b m"], words: Int[Tensor, " b"]
    ) -> list[Float[Tensor, "b width"]]:
        """E[act'(z + s g)] of the units of every layer, s² the mean square of what each point
        changes of them.

        The mean is over _QUANTILES quantiles of g, and act'(z) itself where it is not a number.
        """
        entered = self.enter(point.unflatten(1, self.shape), words) + self._steps[0]
        kind = {"dtype": self.dtype, "device": self.device}
        nodes = torch.special.ndtri((torch.arange(_QUANTILES, **kind) + 0.5) / _QUANTILES)
        slopes, act = [], self._activation
        for step, moved in zip(self._steps, self._forward(entered)[:-1], strict=True):
            spread = (moved - step).square().mean(dim=1, keepdim=True).sqrt()
            mean = torch.zeros_like(moved)
            for node in nodes:
                mean += act.derivative(step + spread * node)
            mean /= _QUANTILES
            slopes.append(torch.where(mean.isfinite(), mean, act.derivative(step)))
        return slopes

    def _gram(
        self,
        point: Float[Tensor, "b m"],
        words: Int[Tensor, " b"],
        slopes: list[Float[Tensor, "b width"]],
    ) -> Float[Tensor, "b m"]:
        """J^T J times a point, J the change linearised in Delta with these slopes of the units of
        every layer."""
        change = self.enter(point.unflatten(1, self.shape), words) * slopes[0]
        for layer, slope in zip(self._layers[1:], slopes[1:], strict=True):
            change = layer.multiply(change) * slope
        for layer, slope in zip(reversed(self._layers[1:]), reversed(slopes[1:]), strict=True):
            change = layer.multiply_transposed(change * slope)
        return self.enter_transposed(change * slopes[0], words).flatten(start_dim=1)

    def functionals(
        self, perturbations: Deltas, places: Places, thetas: Float[Tensor, "m p"], pull: Pull | None
    ) -> tuple[Float[Tensor, "b m"], Deltas | None]:
        change, steps = self.change(perturbations, places)
        values = change @ thetas.T
        if pull is None:
            return values, None
        return values, self.pull_back(pull(values) @ thetas, steps, places)

    def _evaluate(self, perturbations: Deltas, places: Places, *, gradient: bool) -> Evaluated:
        change, steps = self.change(perturbations, places)
        squared = change.square().sum(dim=1)
        return squared, self.pull_back(2 * change, steps, places) if gradient else None


class WholeBlocksChange(DenseChange):
    """Of a matrix sampled on demand the whole block of a word, d queries: for a search that asks
    for more than d products."""

    def _block(self, word: int) -> Float[Tensor, "width d"] | None:
        first, d = self._layers[0], self.rows.shape[1]
        if isinstance(first, DenseGaussian):
            return super()._block(word)
        if word not in self._blocks:
            identity = torch.eye(d, dtype=self.rows.dtype, device=self.rows.device)
            self._blocks = {word: first.multiply_block(identity, word * d).T}
        return self._blocks[word]


_CACHED = 1 << 15
"""Numbers that a CPU handles at once in entrywise passes: 256 KiB in float64, so that temporaries
stay in its cache."""


_FAR_ANGLES = (0.1, 0.25, 0.5, 0.9, 1.5, -0.1, -0.25, -0.5)


class OneLayerChange(DenseChange, LinearEntryObjective):
    """The change of RF, through which Delta enters linearly: psi(e) = act(V flat(X) + e) - act(V
    flat(X))."""

    stages = Stages(starts=24, steps=12, finalists=3, finish=40, tolerance=1e-7)
    _FRUGAL_STAGES = Stages(starts=8, steps=5, finalists=1, finish=40, tolerance=5e-5)

    def _search_widely(self, activation: Activation) -> None:
        """A narrow layer's words are also searched by ascent: crossing then reaches hills that
        restarts do not."""
        if activation.saturates:
            self.far_angles = _FAR_ANGLES
        if self.width <= NARROW:
            self.also_ascend, self.ascent_stages, self.kinked = (
                True,
                self._SMALL_STAGES,
                activation.kinked,
            )

    @property
    def width(self) -> int:
        return len(self._base)

    def entry(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> LinearEntry:
        matrix, (n, d) = self._layers[0], self.rows.shape
        members = self.groups[words, 0]
        scale = radius.to(self.dtype).view(-1, 1, 1)
        if isinstance(matrix, DenseGaussian):
            # A copy: within V_1 the rows of a block lie n d numbers apart, and a product takes
            # several times as long.
            blocks = matrix.matrix.view(self.width, n, d).permute(1, 2, 0)
            return LinearEntry.of(blocks.index_select(0, members).mul_(scale))

        def forward(points: Float[Tensor, "w r d"]) -> Float[Tensor, "w r width"]:
            of_each = words.repeat_interleave(points.shape[1])
            return self.enter((scale * points).view(-1, *self.shape), of_each).unflatten(
                0, points.shape[:2]
            )

        def transposed(slopes: Float[Tensor, "w r width"]) -> Float[Tensor, "w r d"]:
            of_each = words.repeat_interleave(slopes.shape[1])
            return scale * self.enter_transposed(slopes.flatten(end_dim=1), of_each).view(
                *slopes.shape[:2], -1
            )

        return LinearEntry(
            forward, transposed, lambda chosen: self.entry(words[chosen], radius[chosen])
        )

    def linearized(self, entered: Float[Tensor, "*b width"]) -> Float[Tensor, "*b width"]:
        return entered * self._activation.derivative(self._steps[0]).square()

    def slope(self, entered: Float[Tensor, "*b width"]) -> Float[Tensor, "*b width"]:
        slopes = torch.empty_like(entered)
        for units in self._pieces(entered):
            moved = self._steps[0][units] + entered[..., units]
            slopes[..., units] = (
                self._activation(moved) - self._base[units]
            ) * self._activation.derivative(moved)
        return slopes

    def along(
        self,
        entered: Float[Tensor, "*b width"],
        across: Float[Tensor, "*b width"],
        angle: Float[Tensor, "*b"],
    ) -> tuple[Float[Tensor, "*b"], Float[Tensor, "*b"], Float[Tensor, "*b"]]:
        cosine, sine = angle.cos().unsqueeze(-1), angle.sin().unsqueeze(-1)
        value, first, second = (torch.zeros_like(angle) for _ in range(3))
        for units in self._pieces(entered):
            here = (entered[..., units] * cosine).addcmul_(across[..., units], sine)
            turn = (across[..., units] * cosine).addcmul_(entered[..., units], sine, value=-1)
            moved = self._steps[0][units] + here
            slope = self._activation.derivative(moved)
            change = self._activation(moved).sub_(self._base[units])
            turn *= slope
            value += torch.linalg.vecdot(change, change)
            first += torch.linalg.vecdot(change, turn)
            second += torch.linalg.vecdot(turn, turn) - torch.linalg.vecdot(
                change.mul_(slope), here
            )
        return value, first, second

    def _pieces(self, entered: Float[Tensor, "*b width"]) -> list[slice]:
        size = (
            max(1, _CACHED * self.width // max(1, entered.numel()))
            if self.device.type == "cpu"
            else self.width
        )
        return [slice(start, start + size) for start in range(0, self.width, size)]
