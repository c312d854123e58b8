"""The change of any map by definition: build the perturbed text, map it, differentiate with autograd."""

import math
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError
from wordsens.gaussian.lanczos import lanczos
from wordsens.maps.mapping import TextMap, feature_norm, features_by_text, perturbed_texts
from wordsens.maps.normal_product import normal_product
from wordsens.maps.repeatable import require_repeatable
from wordsens.maps.word_change import WordChange
from wordsens.search.plan import Stages
from wordsens.seeds import gaussian_on, generator

_MOST_SMALL = 1024
"""Coordinates of a text up to which a map of which nothing is known is searched widely."""

_SMALL_PLAN = Stages(
    starts=24, inner=4, population=8, generations=4, children=16, kick_steps=8, relays=32, finalists=4, steps=150
)


class PlainGroupChange(WordChange):
    """The change by definition: build the perturbed text, map it, differentiate with autograd. O(cost of phi) a pair.

    Args:
        phi: the map.
        rows: X, (n, d).
        groups: (m, g), the words that move together in each of m groups; Delta has shape (g, d).
        memory_budget: bytes for intermediate results.
    """

    plan = Stages(starts=12, inner=4, generations=3, relays=16, steps=150)

    _LANCZOS_STEPS: ClassVar[int] = 8

    # Autograd keeps the activations of every operation: a rough multiple of the text and the features.
    _KEPT_COPIES: ClassVar[int] = 8

    def __init__(self, phi: TextMap, rows: Float[Tensor, "n d"], groups: Int[Tensor, "m g"], *, memory_budget: int):
        rows = phi.accept(rows)
        self._phi, self._groups = phi, groups
        self._base = require_repeatable(phi, rows)
        shape = (groups.shape[1], rows.shape[1])
        super().__init__(rows, feature_norm(self._base, phi.name), memory_budget, shape)
        if rows.numel() <= _MOST_SMALL:
            self.plan = _SMALL_PLAN

    def bytes_per_pair(self) -> int:
        n = self.rows.shape[0]
        numbers = self.rows.numel() + self._base.numel() + n * n
        return self._KEPT_COPIES * numbers * self.rows.element_size()

    def starting_directions(
        self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
    ) -> Float[Tensor, "starts w *shape"]:
        """Both signs of the two leading singular vectors of each Jacobian at X, nearly: Lanczos by autograd.

        None for a map that autograd cannot differentiate twice.
        """
        found = []
        size = max(1, self.memory_budget // max(1, 3 * self.bytes_per_pair()))
        for some in words.split(size):
            start = gaussian_on(
                len(some),
                math.prod(self.shape),
                generator=generator(0, "lanczos", int(some[0])),
                dtype=self.rows.dtype,
                device=self.rows.device,
            )

            def features(delta: Tensor, at: Tensor = self._groups[some]) -> Tensor:
                texts = perturbed_texts(self.rows, at, delta.view(*at.shape, -1))
                return features_by_text(self._phi, texts)

            try:
                basis, rotation, _ = lanczos(normal_product(features, self._phi.name), start, self._LANCZOS_STEPS)
            except RuntimeError:
                return super().starting_directions(words, radius)
            leading = rotation[:, :2] @ basis
            found.append(torch.stack([leading, -leading], dim=2).flatten(1, 2).transpose(0, 1))
        return torch.cat(found, dim=1).unflatten(2, self.shape)

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
