"""The change of any map by definition: build the perturbed text, map it, differentiate with autograd."""

from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError
from wordsens.maps.mapping import TextMap, feature_norm, features_by_text, perturbed_texts
from wordsens.maps.repeatable import require_repeatable
from wordsens.maps.word_change import WordChange, replacements
from wordsens.search.plan import Stages

_MOST_SMALL = 1024
"""Coordinates of a text up to which a map of which nothing is known is searched widely."""

_STAGES = Stages(starts=12, halvings=(7, 15), generations=2, population=6, children=4, child_steps=12, finish=60)
_SMALL_STAGES = Stages(starts=24, generations=4, population=8, children=12, child_steps=16)


class PlainGroupChange(WordChange):
    """The change by definition: build the perturbed text, map it, differentiate with autograd. O(cost of phi) a pair.

    Args:
        phi: the map.
        rows: X, (n, d).
        groups: (m, g), the words that move together in each of m groups; Delta has shape (g, d).
        memory_budget: bytes for intermediate results.
    """

    # Autograd keeps the activations of every operation: a rough multiple of the text and the features.
    _KEPT_COPIES: ClassVar[int] = 8

    def __init__(self, phi: TextMap, rows: Float[Tensor, "n d"], groups: Int[Tensor, "m g"], *, memory_budget: int):
        rows = phi.accept(rows)
        self._phi, self._groups = phi, groups
        self._base = require_repeatable(phi, rows)
        shape = (groups.shape[1], rows.shape[1])
        super().__init__(rows, feature_norm(self._base, phi.name), memory_budget, shape)
        self.stages = _SMALL_STAGES if rows.numel() <= _MOST_SMALL else _STAGES

    def bytes_per_pair(self) -> int:
        n = self.rows.shape[0]
        numbers = self.rows.numel() + self._base.numel() + n * n
        return self._KEPT_COPIES * numbers * self.rows.element_size()

    def starts(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Float[Tensor, "count w *shape"]:
        return replacements(self.rows, self._groups[words], radius).view(2, len(words), *self.shape)

    def _evaluate(
        self, perturbations: Float[Tensor, "b *shape"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b *shape"] | None]:
        with torch.set_grad_enabled(gradient):
            delta = perturbations.detach().requires_grad_(gradient)
            texts = perturbed_texts(self.rows, self._groups[words], delta.view(len(words), *self._groups.shape[1:], -1))
            squared = (features_by_text(self._phi, texts) - self._base).square().sum(dim=1)
        if not gradient:
            return squared, None
        slope = torch.autograd.grad(squared.sum(), delta, allow_unused=True)[0] if squared.requires_grad else None
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
        super().__init__(phi, rows, torch.arange(rows.shape[0]).unsqueeze(1), memory_budget=memory_budget)
        self.shape = self.rows.shape[1:]
