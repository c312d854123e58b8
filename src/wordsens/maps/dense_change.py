"""The change that moved words make to dense random features, forward and backward by hand.

Of one layer and single words a search follows it along great circles (`search.krylov`).
"""

from typing import Any

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

# Lanczos steps that give the starting directions.
_LANCZOS_STEPS = 16

# Quantiles of a Gaussian change, over which the slope of a unit is averaged.
_QUANTILES = 16

# Entries of V_1^(i), V_2, ..., V_L up to which a text is searched widely: evaluations cost less
# than the calls that make them.
_MOST_SMALL = 1 << 20

# Numbers that a CPU handles at once in entrywise passes: 256 KiB in float64, so that temporaries
# stay in its cache.
_CACHED = 1 << 15


class DenseChange(Change):
    """The change of RF and DRF: only the blocks V_1^(i) of the moved words are multiplied, V_1
    flat(X) is kept.

    One Delta costs one product with each matrix forward and one with each transpose backward.
    `small` says whether the text is searched widely. Every product with a matrix on demand costs as
    much as all that is remembered of it: `_FRUGAL_STAGES` ask few.
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
        super().__init__(rows, groups, memory_budget)
        self._layers, self._activation = layers, activation
        *self._steps, self._base = self._forward(layers[0].multiply(rows.flatten()))
        feature_norm(self._base, name)
        width = layers[0].rows
        on_demand = any(isinstance(layer, OnDemandGaussian) for layer in layers)
        entries = width * (self.coordinates + (len(layers) - 1) * width)
        self.small = entries <= _MOST_SMALL and not on_demand
        if on_demand:
            self.stages = self._FRUGAL_STAGES
        elif self.small:
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
        size = max(1, self.pairs_at_once())
        parts = zip(places.split(size), radius.split(size), strict=True)
        return torch.cat([self._singular(some, reach) for some, reach in parts], dim=1)

    def _singular(
        self, places: Int[Tensor, " w"], radius: Float[Tensor, "w r"]
    ) -> Float[Tensor, "4 w g d"]:
        streams = [generator(0, "lanczos", *group) for group in self.groups[places].tolist()]
        kind = {"dtype": self.dtype, "device": self.device}
        first = torch.stack([gaussian_on(*self.shape, generator=s, **kind) for s in streams])
        points = unit(first.flatten(start_dim=1)).view_as(first) * radius.to(first).unsqueeze(-1)
        slopes = self._mean_slopes(points, places)

        def gram(point: Float[Tensor, "w m"]) -> Float[Tensor, "w m"]:
            change = self.enter(point.view_as(first), places) * slopes[0]
            for layer, slope in zip(self._layers[1:], slopes[1:], strict=True):
                change = layer.multiply(change) * slope
            return self._back(change, slopes, places).flatten(start_dim=1)

        basis, rotation, _ = lanczos(gram, first.flatten(start_dim=1), _LANCZOS_STEPS)
        leading = (rotation[:, :2] @ basis).transpose(0, 1).unflatten(2, self.shape)
        return torch.cat([leading, -leading])

    def _mean_slopes(
        self, points: Float[Tensor, "w g d"], places: Int[Tensor, " w"]
    ) -> list[Float[Tensor, "w width"]]:
        """E[act'(z + s g)] of the units of every layer, s² the mean square of what each point
        changes of them; act'(z) itself where it is not a number."""
        slope = self._activation.derivative
        levels = torch.arange(_QUANTILES, dtype=self.dtype, device=self.device) + 0.5
        quantiles = torch.special.ndtri(levels / _QUANTILES)
        *moved, _ = self._forward(self.enter(points, places) + self._steps[0])
        slopes = []
        for step, there in zip(self._steps, moved, strict=True):
            spread = (there - step).square().mean(dim=1, keepdim=True).sqrt()
            mean = torch.stack([slope(step + spread * g) for g in quantiles]).mean(dim=0)
            slopes.append(torch.where(mean.isfinite(), mean, slope(step)))
        return slopes

    def enter(
        self, perturbations: Float[Tensor, "b *shape"], places: Int[Tensor, " b"]
    ) -> Float[Tensor, "b width"]:
        """The change of V_1 flat(X): the sum over the group's words i of V_1^(i) Delta_i."""
        first, d = self._layers[0], self.shape[1]
        deltas = perturbations.reshape(len(places), *self.shape)
        entered = deltas.new_zeros(len(places), first.rows)
        for pairs, words in self._by_place(places):
            for delta, word in zip(deltas[pairs].unbind(1), words, strict=True):
                entered[pairs] += first.multiply_block(delta, word * d)
        return entered

    def enter_transposed(
        self, slopes: Float[Tensor, "b width"], places: Int[Tensor, " b"]
    ) -> Float[Tensor, "b g d"]:
        """V_1^(i)^T u for the group's words i."""
        first, d = self._layers[0], self.shape[1]
        entered = slopes.new_empty(len(places), *self.shape)
        for pairs, words in self._by_place(places):
            for row, word in enumerate(words):
                start, stop = word * d, (word + 1) * d
                entered[pairs, row] = first.multiply_block_transposed(slopes[pairs], start, stop)
        return entered

    def _by_place(self, places: Int[Tensor, " b"]) -> list[tuple[Int[Tensor, " c"], list[int]]]:
        """The pairs of every place, and the words of its group."""
        different, sizes = places.unique(return_counts=True)
        pairs = places.argsort(stable=True).split(sizes.tolist())
        return list(zip(pairs, self.groups[different].tolist(), strict=True))

    def _forward(
        self, preactivation: Float[Tensor, "*batch width"]
    ) -> list[Float[Tensor, "*batch width"]]:
        """The pre-activations of every layer, then the features."""
        steps = [preactivation]
        for layer in self._layers[1:]:
            steps.append(layer.multiply(self._activation(steps[-1])))
        return [*steps, self._activation(steps[-1])]

    def change(
        self, perturbations: Float[Tensor, "b *shape"], places: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b width"], list[Float[Tensor, "b width"]]]:
        """phi(X^G(Delta)) - phi(X), and the pre-activations of every layer."""
        *steps, features = self._forward(self.enter(perturbations, places) + self._steps[0])
        return features - self._base, steps

    def pull_back(
        self,
        slope: Float[Tensor, "b width"],
        steps: list[Float[Tensor, "b width"]],
        places: Int[Tensor, " b"],
    ) -> Float[Tensor, "b g d"]:
        """The gradient in Delta from that in the features, at these pre-activations."""
        return self._back(slope, [self._activation.derivative(step) for step in steps], places)

    def _back(
        self,
        vectors: Float[Tensor, "b width"],
        slopes: list[Float[Tensor, "b width"]],
        places: Int[Tensor, " b"],
    ) -> Float[Tensor, "b g d"]:
        """The transpose of the change linearised with these slopes of the units of every layer."""
        for layer, slope in zip(reversed(self._layers[1:]), reversed(slopes[1:]), strict=True):
            vectors = layer.multiply_transposed(vectors * slope)
        return self.enter_transposed(vectors * slopes[0], places)

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
    """Of a matrix sampled on demand the whole block of a word is asked first, d queries: for a
    search that asks for more than d products."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self._asked = set[int]()

    def enter(
        self, perturbations: Float[Tensor, "b *shape"], places: Int[Tensor, " b"]
    ) -> Float[Tensor, "b width"]:
        d = self.shape[1]
        for word in set(self.groups[places].flatten().tolist()) - self._asked:
            self._layers[0].multiply_block(torch.eye(d).to(self.rows), word * d)
            self._asked.add(word)
        return super().enter(perturbations, places)


class OneLayerChange(DenseChange, LinearEntryObjective):
    """The change of RF, through which the Delta of one word enters linearly: psi(e) = act(V flat(X)
    + e) - act(V flat(X))."""

    stages = _SMALL_STAGES = Stages(starts=24, steps=12, finalists=3, finish=40, tolerance=1e-7)
    _FRUGAL_STAGES = Stages(starts=8, steps=5, finalists=1, finish=40, tolerance=5e-5)

    @property
    def width(self) -> int:
        return len(self._base)

    def entry(self, places: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> LinearEntry:
        first, (n, d) = self._layers[0], self.rows.shape
        words, scale = self.groups[places, 0], radius.to(self.dtype).view(-1, 1, 1)
        if isinstance(first, DenseGaussian):
            blocks = first.matrix.view(self.width, n, d).permute(1, 2, 0)
            return LinearEntry.of(blocks.index_select(0, words).mul_(scale))
        starts = (words * d).tolist()

        def forward(points: Float[Tensor, "w r d"]) -> Float[Tensor, "w r width"]:
            each = zip(scale * points, starts, strict=True)
            return torch.stack([first.multiply_block(some, start) for some, start in each])

        def transposed(slopes: Float[Tensor, "w r width"]) -> Float[Tensor, "w r d"]:
            each = zip(slopes, starts, strict=True)
            return scale * torch.stack(
                [first.multiply_block_transposed(some, start, start + d) for some, start in each]
            )

        return LinearEntry(
            forward, transposed, lambda chosen: self.entry(places[chosen], radius[chosen])
        )

    def linearized(self, entered: Float[Tensor, "*b width"]) -> Float[Tensor, "*b width"]:
        return entered * self._activation.derivative(self._steps[0]).square()

    def slope(self, entered: Float[Tensor, "*b width"]) -> Float[Tensor, "*b width"]:
        slopes = torch.empty_like(entered)
        for units in self._pieces(entered):
            moved = self._steps[0][units] + entered[..., units]
            slope = self._activation.derivative(moved)
            slopes[..., units] = (self._activation(moved) - self._base[units]) * slope
        return slopes

    def along(
        self,
        entered: Float[Tensor, "*b width"],
        across: Float[Tensor, "*b width"],
        angle: Float[Tensor, "*b"],
    ) -> tuple[Float[Tensor, "*b"], Float[Tensor, "*b"], Float[Tensor, "*b"]]:
        cosine, sine = angle.cos().unsqueeze(-1), angle.sin().unsqueeze(-1)
        value, first, second = torch.zeros(3, *angle.shape, dtype=self.dtype, device=self.device)
        for units in self._pieces(entered):
            here = (entered[..., units] * cosine).addcmul_(across[..., units], sine)
            turn = (across[..., units] * cosine).addcmul_(entered[..., units], sine, value=-1)
            moved = self._steps[0][units] + here
            slope = self._activation.derivative(moved)
            change = self._activation(moved).sub_(self._base[units])
            turn *= slope
            value += torch.linalg.vecdot(change, change)
            first += torch.linalg.vecdot(change, turn)
            bend = torch.linalg.vecdot(change.mul_(slope), here)
            second += torch.linalg.vecdot(turn, turn) - bend
        return value, first, second

    def _pieces(self, entered: Float[Tensor, "*b width"]) -> list[slice]:
        """The units, so many at once that their numbers fit the cache."""
        size = self.width
        if self.device.type == "cpu":
            size = max(1, _CACHED * self.width // max(1, entered.numel()))
        return [slice(start, start + size) for start in range(0, self.width, size)]
