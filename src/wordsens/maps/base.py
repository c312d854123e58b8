"""The contract of a feature map phi, and the change that moved words make to phi(X).

A map must offer `features`, differentiable and batched. It may offer a `Change` of its own, where
it can evaluate the change of many perturbed words faster than by mapping each perturbed text; a
search uses nothing else. One word is a group of one.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import copy
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, argument
from wordsens.maps.mapping import (
    checked_features,
    feature_norm,
    features_by_text,
    perturbed_texts,
    require_equal_answers,
    require_repeatable,
)
from wordsens.search.objective import Deltas, Evaluated, Objective, Places
from wordsens.search.plan import Stages
from wordsens.text.matrix import TextMatrix

# Bytes that one evaluation may use for intermediate results by default: 1 GiB.
DEFAULT_MEMORY_BUDGET = 1 << 30

# Coordinates of a text up to which a map of which nothing is known is searched widely.
_SMALL_TEXT = 1024

_STAGES = Stages(
    starts=12, halvings=(7, 15), generations=2, population=6, children=4, child_steps=12, finish=60
)
_SMALL_STAGES = Stages(starts=24, generations=4, population=8, children=12, child_steps=16)


class FeatureMap(ABC):
    """A differentiable map phi from texts (*batch, n, d) to features (*batch, ...).

    Attributes:
        name: what tables and records call the map; the name of its class unless it says otherwise.
        dtype, device: where phi computes; texts are converted to them.
        text_shape: the (n, d) that phi accepts; None where any size will do.
        notes: what a reader of a result has to know of the map; results carry them.
        continuous: whether phi is known to have no jumps; at a jump the last digit of Delta can
            decide the value.
        repeatable: whether phi is known to give a text the same features in every batch.
        affordable_words: the number of words that a command searches in a text if the user
            names none (`sampled_words`); None for all.
    """

    name: str
    dtype: torch.dtype = torch.float64
    device: torch.device = torch.device("cpu")
    text_shape: tuple[int | None, int | None] = (None, None)
    notes: tuple[str, ...] = ()
    continuous: bool = False
    repeatable: bool = False
    affordable_words: int | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not hasattr(cls, "name"):
            cls.name = cls.__name__

    @abstractmethod
    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "..."]:
        """phi(X) for every text of the batch; the axes behind *batch are the features'."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def __call__(self, texts: TextMatrix | Tensor) -> Float[Tensor, "..."]:
        """phi(X), after the shape is checked and the texts are converted to the map's dtype and
        device."""
        rows = texts.rows if isinstance(texts, TextMatrix) else texts
        return checked_features(self.features(self.accept(rows)), self.name)

    def accept(self, rows: Tensor) -> Float[Tensor, "*batch n d"]:
        """The rows in the map's dtype and on its device; InputError if phi does not accept their
        shape."""
        shape = tuple(rows.shape[-2:])
        if rows.ndim < 2 or any(
            want is not None and want != have
            for want, have in zip(self.text_shape, shape, strict=True)
        ):
            wanted = tuple("any" if size is None else size for size in self.text_shape)
            raise InputError(
                f"{argument('X')} (shape {tuple(rows.shape)}) does not fit {self.name}, which "
                f"takes (*batch, n, d) with (n, d) = ({wanted[0]}, {wanted[1]}); build the map for "
                "this size or truncate the text"
            )
        return rows.to(dtype=self.dtype, device=self.device)

    def default_radius(self, rows: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """The radius of each word's ball where the caller names none: sqrt(d) (paper, eq. 1)."""
        return torch.full(
            (rows.shape[0],), math.sqrt(rows.shape[1]), dtype=torch.float64, device=self.device
        )

    def perturbed(
        self, rows: Float[Tensor, "n d"]
    ) -> Callable[[Int[Tensor, "b g"], Float[Tensor, "b g d"]], Float[Tensor, "b features"]]:
        """The features of perturbed copies of X, flattened, as a differentiable function of
        (members, Delta): of copy p, row members[p, k] is moved by Delta[p, k].

        By default each text is built and mapped. A map may skip work that the texts share with X,
        but it computes the features themselves: reported values are recomputed with this method.
        """

        def features(members: Int[Tensor, "b g"], delta: Float[Tensor, "b g d"]) -> Tensor:
            return features_by_text(self, perturbed_texts(rows, members, delta))

        return features

    def relative_rounding(self, text: Float[Tensor, "n d"]) -> float:
        """An estimate of ‖computed phi(X) - phi(X)‖ / ‖phi(X)‖, from what the last digit of X does
        to the features.

        max over three sign patterns s of ‖phi((1 + eps s) X) - phi(X)‖ / ‖phi(X)‖, times 2 + sqrt(n
        d) / 8 for sums of up to n d terms: at least three times the error against long doubles
        (tests/sensitivity/test_rounding.py).

        Raises:
            InputError: a map that gives the text other features the second time.
        """
        with torch.no_grad():
            signs = torch.tensor([[1.0], [-1.0], [1.0]]).to(text).repeat(1, text.numel())
            signs[1, ::2] *= -1
            signs[2, ::3] *= -1
            moved = text * (1 + torch.finfo(text.dtype).eps * signs.view(3, *text.shape))
            once, again = self(text).flatten(), self(text).flatten()
            require_equal_answers(self.name, once, again)
            # Alone and in a batch: at a jump of phi even another order of summation may be a long
            # way off.
            others = features_by_text(self, torch.cat([text.unsqueeze(0), moved]))
        apart = torch.linalg.vector_norm(others - once, dim=1, dtype=torch.float64)
        largest = float(apart.max()) / feature_norm(once, self.name)
        return (2 + math.sqrt(text.numel()) / 8) * max(largest, torch.finfo(text.dtype).eps)

    def change(
        self,
        rows: Float[Tensor, "n d"],
        groups: Int[Tensor, "m g"],
        *,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> "Change":
        """The objective ‖phi(X^G(Delta)) - phi(X)‖² for m groups G of g words that move together
        (g = 1 for a word), for many pairs (group, Delta) at once."""
        return AutogradChange(self, rows, groups, memory_budget=memory_budget)


# From the values (b, m) of functionals to the weights (b, m) with which their gradients are summed.
Pull = Callable[[Tensor], Tensor]


class Change(Objective):
    """‖phi(X^G(Delta)) - phi(X)‖², or another function of Deltas that move the rows of a group.

    Pairs are (place in `groups`, Delta of shape (g, d)).

    Attributes:
        rows: X, (n, d), in the map's dtype.
        groups: (m, g), the rows that move together.
    """

    def __init__(self, rows: Float[Tensor, "n d"], groups: Int[Tensor, "m g"], memory_budget: int):
        super().__init__(
            (groups.shape[1], rows.shape[1]),
            dtype=rows.dtype,
            device=rows.device,
            typical_length=float(torch.linalg.vector_norm(rows, dim=1).median()),
            memory_budget=memory_budget,
        )
        self.rows, self.groups = rows, groups.to(rows.device)

    def coarse(self) -> "Change":
        return self

    @property
    def directions(self) -> Float[Tensor, "count d"]:
        """Directions in which one word moves the features far; none by default."""
        return self.rows[:0]

    def functionals(
        self, perturbations: Deltas, places: Places, thetas: Float[Tensor, "m p"], pull: Pull | None
    ) -> tuple[Float[Tensor, "b m"], Deltas | None]:
        """(phi(X^G(Delta)) - phi(X)) . theta for each theta, and with `pull` the gradient of their
        sum with the weights that it makes of them; for regression on shipped maps. As many pairs as
        `bytes_per_pair` allows."""
        raise NotImplementedError(f"{type(self).__name__} does not give functionals")

    def starts(
        self, places: Int[Tensor, " w"], radius: Float[Tensor, "w r"]
    ) -> Float[Tensor, "count w g d"]:
        return replacements(self.rows, self.groups[places], radius)


def replacements(
    rows: Float[Tensor, "n d"], members: Int[Tensor, "w g"], radius: Float[Tensor, "w r"]
) -> Float[Tensor, "2 w g d"]:
    """-x_i, and the mean of the other rows less x_i, for the members i of each group, in units of
    the radii: a word that is gone, and a word like the others."""
    moved = rows[members]
    others = (rows.sum(dim=0) - moved) / max(1, len(rows) - 1)
    return torch.stack([-moved, others - moved]) / radius.to(rows).unsqueeze(-1)


MoreStarts = Callable[[Int[Tensor, " w"], Float[Tensor, "w r"]], Float[Tensor, "count w g d"]]


class AutogradChange(Change):
    """The change by definition: the perturbed texts are mapped and differentiated with autograd.
    O(cost of phi) a pair.

    Args:
        stages, kinked: of the search; None for those of any map.
        more_starts: points to start from besides those of every change, in units of the radii.
        in_float32: whether `phi.perturbed` explores in float32 where rows are given in it.
    """

    def __init__(
        self,
        phi: FeatureMap,
        rows: Float[Tensor, "n d"],
        groups: Int[Tensor, "m g"],
        *,
        memory_budget: int,
        stages: Stages | None = None,
        kinked: bool = False,
        more_starts: MoreStarts | None = None,
        in_float32: bool = False,
    ):
        super().__init__(phi.accept(rows), groups, memory_budget)
        usual = _SMALL_STAGES if rows.numel() <= _SMALL_TEXT else _STAGES
        self.stages = usual if stages is None else stages
        self.kinked, self._more_starts, self._in_float32 = kinked, more_starts, in_float32
        self._phi, self._perturbed = phi, phi.perturbed(self.rows)
        self._base = features_of(phi, self.rows)

    def bytes_per_pair(self) -> int:
        if (of_text := getattr(self._phi, "bytes_per_text", None)) is not None:
            return of_text(len(self.rows))
        # Autograd keeps what every operation gives: a rough multiple of the text and the features.
        numbers = self.rows.numel() + self._base.numel() + len(self.rows) ** 2
        return 8 * numbers * self.rows.element_size()

    def coarse(self) -> "AutogradChange":
        if not self._in_float32 or self.dtype == torch.float32:
            return self
        coarse = copy(self)
        coarse.rows, coarse.dtype = self.rows.float(), torch.float32
        coarse._perturbed = self._phi.perturbed(coarse.rows)
        coarse._base = coarse._perturbed(self.groups[:1], coarse.rows.new_zeros(1, *self.shape))[0]
        return coarse if coarse._base.dtype == torch.float32 else self

    def starts(
        self, places: Int[Tensor, " w"], radius: Float[Tensor, "w r"]
    ) -> Float[Tensor, "count w g d"]:
        points = super().starts(places, radius)
        if self._more_starts is None:
            return points
        return torch.cat([points, self._more_starts(places, radius).to(points)])

    def functionals(
        self, perturbations: Deltas, places: Places, thetas: Float[Tensor, "m p"], pull: Pull | None
    ) -> tuple[Float[Tensor, "b m"], Deltas | None]:
        delta, change = self._differentiable(perturbations, places, pull is not None)
        values = change.detach() @ thetas.T
        if pull is None:
            return values, None
        return values, torch.autograd.grad(change, delta, pull(values) @ thetas)[0]

    def _differentiable(
        self, perturbations: Deltas, places: Places, gradient: bool
    ) -> tuple[Deltas, Float[Tensor, "b features"]]:
        """Delta, and phi(X^G(Delta)) - phi(X) as a function of it for autograd."""
        with torch.set_grad_enabled(gradient):
            delta = perturbations.detach().requires_grad_(gradient)
            return delta, self._perturbed(self.groups[places], delta) - self._base

    def _evaluate(self, perturbations: Deltas, places: Places, *, gradient: bool) -> Evaluated:
        delta, change = self._differentiable(perturbations, places, gradient)
        constant = change.detach()
        squared, slope = constant.square().sum(dim=1), None
        if not gradient:
            return squared, None
        if change.requires_grad:
            (slope,) = torch.autograd.grad(change, delta, 2 * constant, allow_unused=True)
        if slope is None and bool((squared != 0).any()):
            raise InputError(
                f"{self._phi.name} changes with the text, but its features carry no gradient; "
                "write it with torch operations, without detach or no_grad"
            )
        return squared, torch.zeros_like(perturbations) if slope is None else slope


def features_of(phi: FeatureMap, rows: Float[Tensor, "n d"]) -> Float[Tensor, " features"]:
    """phi(X), flat and not zero; a map that is not known to repeat itself is checked first."""
    if not phi.repeatable:
        return require_repeatable(phi, rows)
    with torch.no_grad():
        features = phi(rows).flatten()
    feature_norm(features, phi.name)
    return features


def gradient_starts(
    phi: FeatureMap, rows: Float[Tensor, "n d"], members: Int[Tensor, "w g"]
) -> Float[Tensor, "2 w g d"]:
    """J_i^T u for two random u, all words from one backward pass each: large singular directions
    weigh most in it."""
    stream = torch.Generator().manual_seed(0)
    with torch.enable_grad():
        rows = rows.detach().requires_grad_()
        features = phi(rows).flatten()
        along = torch.randn(2, len(features), generator=stream, dtype=torch.float64).to(features)
        slopes = [torch.autograd.grad(features, rows, u, retain_graph=True)[0] for u in along]
    # A row that cannot move these features has no direction; take any.
    slope = torch.stack(slopes)
    slope = torch.where(slope.abs().amax(dim=2, keepdim=True) > 0, slope, rows.detach())[:, members]
    return torch.nn.functional.normalize(slope.flatten(start_dim=2), dim=2).view_as(slope)
