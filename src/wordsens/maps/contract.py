"""The contract of a feature map phi, and of the change that one perturbed word makes to phi(X).

A map must offer `features`, differentiable and batched. It may offer a `WordChange` of its own, when it can evaluate
the change of many perturbed words faster than by mapping each perturbed text; a search uses nothing else.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError
from wordsens.maps.mapping import checked_features, feature_norm, features_by_text, perturbed_texts
from wordsens.maps.plain_change import PlainGroupChange, PlainWordChange
from wordsens.maps.repeatable import require_equal_answers
from wordsens.maps.word_change import WordChange
from wordsens.text.matrix import TextMatrix

Row = TypeVar("Row")

DEFAULT_MEMORY_BUDGET = 1 << 30
"""Bytes that one evaluation may use for intermediate results, unless told otherwise: 1 GiB."""


class FeatureMap(ABC):
    """A differentiable map phi from texts (*batch, n, d) to features (*batch, ...).

    Attributes:
        name: what tables and records call the map.
        dtype, device: where phi computes; texts are converted to them.
        text_shape: the (n, d) that phi accepts; None where any size will do.
        notes: what a reader of a result has to know of the map; results carry them.
        continuous: whether phi is known to have no jumps; at the edge of one a last digit of Delta may decide a value.
    """

    name: str
    dtype: torch.dtype = torch.float64
    device: torch.device = torch.device("cpu")
    text_shape: tuple[int | None, int | None] = (None, None)
    notes: tuple[str, ...] = ()
    continuous: bool = False

    @abstractmethod
    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "..."]:
        """phi(X) for every text of the batch; the axes behind *batch are the features'."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    def __call__(self, texts: TextMatrix | Tensor) -> Float[Tensor, "..."]:
        """phi(X), after the shape is checked and the texts are converted to the map's dtype and device."""
        rows = texts.rows if isinstance(texts, TextMatrix) else texts
        return checked_features(self.features(self.accept(rows)), self.name)

    def accept(self, rows: Tensor) -> Float[Tensor, "*batch n d"]:
        """The rows in the map's dtype and on its device; InputError when their shape is not one phi takes."""
        shape = tuple(rows.shape[-2:])
        if rows.ndim < 2 or any(
            want is not None and want != have for want, have in zip(self.text_shape, shape, strict=True)
        ):
            wanted = tuple("any" if size is None else size for size in self.text_shape)
            raise InputError(
                f"`X` (shape {tuple(rows.shape)}) does not fit {self.name}, which takes (*batch, n, d) with "
                f"(n, d) = ({wanted[0]}, {wanted[1]}); build the map for this size or truncate the text"
            )
        return rows.to(dtype=self.dtype, device=self.device)

    def default_radius(self, rows: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """The radius of each word's ball where the caller names none: sqrt(d) (paper, eq. 1)."""
        return torch.full((rows.shape[0],), math.sqrt(rows.shape[1]), dtype=torch.float64, device=self.device)

    def perturbed_features(
        self,
        rows: Float[Tensor, "n d"],
        words: Int[Tensor, "b g"],
        perturbations: Float[Tensor, "b g d"],
        *,
        at_once: int,
    ) -> Iterator[Float[Tensor, "c features"]]:
        """phi of b perturbed texts, flattened, so many at once: row words[p, k] of X moved by perturbations[p, k].

        By default each text is built and mapped. A map may spare what the texts share with X, but computes the features
        themselves: this is what reported values are recomputed with.
        """
        for some, delta in zip(words.split(at_once), perturbations.split(at_once), strict=True):
            yield features_by_text(self, perturbed_texts(rows, some, delta))

    def relative_rounding(self, text: Float[Tensor, "n d"]) -> float:
        """An estimate of ‖computed phi(X) - phi(X)‖ / ‖phi(X)‖, from what the last digit of X does to the features.

        max over three sign patterns s of ‖phi((1 + eps s) X) - phi(X)‖ / ‖phi(X)‖, times 2 + sqrt(n d) / 8 for sums of
        up to n d terms: three times and more what long doubles show (tests/sensitivity/test_rounding.py). InputError
        for a map that gives the text other features when it is asked again.
        """
        with torch.no_grad():
            signs = torch.tensor([[1.0], [-1.0], [1.0]], dtype=text.dtype, device=text.device).repeat(1, text.numel())
            signs[1, ::2] *= -1
            signs[2, ::3] *= -1
            moved = text * (1 + torch.finfo(text.dtype).eps * signs.view(3, *text.shape))
            once, again = self(text).flatten(), self(text).flatten()
            require_equal_answers(self.name, once, again)
            # Alone and in a batch: at a jump of phi even another order of summation may be a long way off.
            others = features_by_text(self, torch.cat([text.unsqueeze(0), moved]))
        apart = torch.linalg.vector_norm(others - once, dim=1, dtype=torch.float64)
        largest = float(apart.max()) / feature_norm(once, self.name)
        return (2 + math.sqrt(text.numel()) / 8) * max(largest, torch.finfo(text.dtype).eps)

    def word_change(self, rows: Float[Tensor, "n d"], *, memory_budget: int = DEFAULT_MEMORY_BUDGET) -> WordChange:
        """The objective ‖phi(X^i(Delta)) - phi(X)‖², for many (i, Delta) at once."""
        return PlainWordChange(self, rows, memory_budget=memory_budget)

    def group_change(
        self, rows: Float[Tensor, "n d"], groups: Int[Tensor, "m g"], *, memory_budget: int = DEFAULT_MEMORY_BUDGET
    ) -> WordChange:
        """The same when g words move together: the pairs are (group, Delta), Delta of shape (g, d)."""
        return PlainGroupChange(self, rows, groups, memory_budget=memory_budget)


def map_row(table: Mapping[type[FeatureMap], Row], phi: FeatureMap) -> Row | None:
    """The row of the map's class, or of the nearest class that it derives from; None where there is none.

    >>> from wordsens.maps.dense.features import DeepRandomFeatures, RandomFeatures
    >>> map_row({DeepRandomFeatures: "dense"}, RandomFeatures(2, 2))
    'dense'
    """
    return next((table[kind] for kind in type(phi).__mro__ if kind in table), None)
