"""The contract of a feature map phi, and the change that moved words make to phi(X).

A map must offer `features`, differentiable and batched. It may offer a `WordChange` of its own,
where it can evaluate the change of many perturbed words faster than by mapping each perturbed text;
a search uses nothing else.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError
from wordsens.maps.mapping import (
    TextMap,
    checked_features,
    feature_norm,
    features_by_text,
    perturbed_texts,
    require_equal_answers,
    require_repeatable,
)
from wordsens.search.objective import Deltas, Evaluated, Objective, Words
from wordsens.search.plan import Stages
from wordsens.text.matrix import TextMatrix

DEFAULT_MEMORY_BUDGET = 1 << 30
"""Bytes that one evaluation may use for intermediate results by default: 1 GiB."""

_SMALL_TEXT = 1024
"""Coordinates of a text up to which a map of which nothing is known is searched widely."""

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
        continuous: whether phi is known to have no jumps; at the edge of one a last digit of Delta
            may decide a value.
    """

    name: str
    dtype: torch.dtype = torch.float64
    device: torch.device = torch.device("cpu")
    text_shape: tuple[int | None, int | None] = (None, None)
    notes: tuple[str, ...] = ()
    continuous: bool = False

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
        """The rows in the map's dtype and on its device; InputError when their shape is not one phi
        takes."""
        shape = tuple(rows.shape[-2:])
        if rows.ndim < 2 or any(
            want is not None and want != have
            for want, have in zip(self.text_shape, shape, strict=True)
        ):
            wanted = tuple("any" if size is None else size for size in self.text_shape)
            raise InputError(
                f"`X` (shape {tuple(rows.shape)}) does not fit {self.name}, which takes (*batch, "
                "n, d) with "
                f"(n, d) = ({wanted[0]}, {wanted[1]}); build the map for this size or truncate the "
                "text"
            )
        return rows.to(dtype=self.dtype, device=self.device)

    def default_radius(self, rows: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """The radius of each word's ball where the caller names none: sqrt(d) (paper, eq. 1)."""
        return torch.full(
            (rows.shape[0],), math.sqrt(rows.shape[1]), dtype=torch.float64, device=self.device
        )

    def perturbed_features(
        self,
        rows: Float[Tensor, "n d"],
        words: Int[Tensor, "b g"],
        perturbations: Float[Tensor, "b g d"],
        *,
        at_once: int,
    ) -> Iterator[Float[Tensor, "c features"]]:
        """phi of b perturbed texts, flattened, so many at once: row words[p, k] of X moved by
        perturbations[p, k].

        By default each text is built and mapped. A map may spare what the texts share with X, but
        computes the features themselves: this is what reported values are recomputed with.
        """
        for some, delta in zip(words.split(at_once), perturbations.split(at_once), strict=True):
            yield features_by_text(self, perturbed_texts(rows, some, delta))

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
            signs = torch.tensor(
                [[1.0], [-1.0], [1.0]], dtype=text.dtype, device=text.device
            ).repeat(1, text.numel())
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

    def word_change(
        self, rows: Float[Tensor, "n d"], *, memory_budget: int = DEFAULT_MEMORY_BUDGET
    ) -> "WordChange":
        """The objective ‖phi(X^i(Delta)) - phi(X)‖², for many (i, Delta) at once."""
        return PlainWordChange(self, rows, memory_budget=memory_budget)

    def group_change(
        self,
        rows: Float[Tensor, "n d"],
        groups: Int[Tensor, "m g"],
        *,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> "WordChange":
        """The same when g words move together: the pairs are (group, Delta), Delta of shape (g,
        d)."""
        return PlainGroupChange(self, rows, groups, memory_budget=memory_budget)


class WordChange(Objective):
    """‖phi(X^i(Delta)) - phi(X)‖², or another function of Deltas that move rows of a text, for
    pairs (word or group i, Delta).

    Attributes:
        rows: X, (n, d), in the map's dtype.
    """

    def __init__(
        self, rows: Float[Tensor, "n d"], memory_budget: int, shape: tuple[int, ...] | None = None
    ):
        super().__init__(
            tuple(rows.shape[1:] if shape is None else shape),
            dtype=rows.dtype,
            device=rows.device,
            typical_length=float(torch.linalg.vector_norm(rows, dim=1).median()),
            memory_budget=memory_budget,
        )
        self.rows = rows

    def coarse(self) -> "WordChange":
        return self


def replacements(
    rows: Float[Tensor, "n d"], members: Int[Tensor, "w g"], radius: Float[Tensor, " w"]
) -> Float[Tensor, "2 w g d"]:
    """-x_i, and the mean of the other rows less x_i, for the members i of each group, in units of
    the group's radius.

    Points to start a search from: a word that is gone, and a word like the others.
    """
    moved = rows[members]
    others = (rows.sum(dim=0) - moved) / max(1, len(rows) - 1)
    return torch.stack([-moved, others - moved]) / radius.to(rows).view(-1, 1, 1)


def plain_stages(rows: Float[Tensor, "n d"]) -> Stages:
    """The stages of a search of this text under a map of which nothing is known."""
    return _SMALL_STAGES if rows.numel() <= _SMALL_TEXT else _STAGES


class PlainGroupChange(WordChange):
    """The change by definition: build the perturbed text, map it, differentiate with autograd.
    O(cost of phi) a pair.

    `groups` (m, g) are the words that move together in each of m groups; Delta has shape (g, d).
    """

    def __init__(
        self,
        phi: TextMap,
        rows: Float[Tensor, "n d"],
        groups: Int[Tensor, "m g"],
        *,
        memory_budget: int,
    ):
        rows = phi.accept(rows)
        self._phi, self._groups = phi, groups.to(rows.device)
        self._base = self._base_features(rows)
        feature_norm(self._base, phi.name)
        super().__init__(rows, memory_budget, (groups.shape[1], rows.shape[1]))
        self.stages = plain_stages(rows)

    def _base_features(self, rows: Float[Tensor, "n d"]) -> Float[Tensor, " features"]:
        """phi(X), flat; of a map of which nothing is known, after it was asked twice."""
        return require_repeatable(self._phi, rows)

    def bytes_per_pair(self) -> int:
        # Autograd keeps the activations of every operation: a rough multiple of the text and the
        # features.
        return (
            8
            * (self.rows.numel() + self._base.numel() + len(self.rows) ** 2)
            * self.rows.element_size()
        )

    def starts(
        self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
    ) -> Float[Tensor, "count w *shape"]:
        return replacements(self.rows, self._groups[words], radius).view(2, len(words), *self.shape)

    def _evaluate(self, perturbations: Deltas, words: Words, *, gradient: bool) -> Evaluated:
        with torch.set_grad_enabled(gradient):
            delta = perturbations.detach().requires_grad_(gradient)
            texts = perturbed_texts(
                self.rows, self._groups[words], delta.view(len(words), *self._groups.shape[1:], -1)
            )
            squared = (features_by_text(self._phi, texts) - self._base).square().sum(dim=1)
        if not gradient:
            return squared, None
        slope = (
            torch.autograd.grad(squared.sum(), delta, allow_unused=True)[0]
            if squared.requires_grad
            else None
        )
        if slope is None:
            if bool((squared != 0).any()):
                raise InputError(
                    f"{self._phi.name} changes with the text, but its features carry no gradient; "
                    "write it with torch operations, without detach or no_grad"
                )
            slope = torch.zeros_like(perturbations)
        return squared.detach(), slope


class PlainWordChange(PlainGroupChange):
    """PlainGroupChange where every word is a group of its own; Delta has shape (d,)."""

    def __init__(self, phi: TextMap, rows: Float[Tensor, "n d"], *, memory_budget: int):
        super().__init__(
            phi, rows, torch.arange(rows.shape[0]).unsqueeze(1), memory_budget=memory_budget
        )
        self.shape = self.rows.shape[1:]
