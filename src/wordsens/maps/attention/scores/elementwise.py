"""The closed form of a score of the user's own, each of whose weights is a function of its own score."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.maps.attention.scores.contract import Score
from wordsens.maps.attention.scores.undivided import Undivided

_FACTORS = 1.0, -0.5, 3.0
"""Of the scores, at which weights are looked at."""

_EQUAL = 1e-6
"""Relative: what two evaluations of one function may differ by."""


class Elementwise(Undivided):
    """Some w(s_l), its slope by autograd."""

    monotone = False

    def __init__(self, score: Score, *, homogeneous: bool):
        self._score = score
        self.name, self.kinked, self.homogeneous = score.name, score.kinked, homogeneous

    def attention(self, scores: Float[Tensor, "*batch n"]) -> Float[Tensor, "*batch n"]:
        return self._score.attention(scores).to(scores.dtype)

    def pull_back(
        self, scores: Float[Tensor, "b n"], attention: Float[Tensor, "b n"], slopes: Float[Tensor, "b n"]
    ) -> Float[Tensor, "b n"]:
        return slopes * self._with_slope(scores)[1]

    def move_weight(self, score: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        after, slope = self._with_slope(score + moved)
        return after, after - self.attention(score), slope

    def _with_slope(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            scores = scores.detach().requires_grad_()
            weights = self.attention(scores)
            if not weights.requires_grad:
                return weights, torch.zeros_like(weights)
            (slope,) = torch.autograd.grad(weights.sum(), scores, allow_unused=True, materialize_grads=True)
        return weights.detach(), slope


def elementwise(score: Score, scores: Sequence[Float[Tensor, "n n"]]) -> Elementwise | None:
    """The closed form of an undivided score whose weights, at some multiples of these scores, are a function of their
    own score each; None for others.

    That is looked at, not known. What a search finds by the closed form is mapped through the score itself afterwards.
    """
    if score.normalized or any(not bool(part.isfinite().all()) for part in scores):
        return None
    with torch.no_grad():
        for part in scores:
            if not all(_by_themselves(score, factor * part) for factor in _FACTORS):
                return None
        return Elementwise(score, homogeneous=all(_is_homogeneous(score, part) for part in scores))


def _by_themselves(score: Score, scores: Float[Tensor, "n n"]) -> bool:
    """True if no weight answers to another score of its row: all others are replaced by those of the next row."""
    n = scores.shape[1]
    weights = score.attention(scores)
    for every in (2, 3):
        kept = (
            torch.arange(n, device=scores.device) + torch.arange(len(scores), device=scores.device)[:, None]
        ) % every
        mixed = score.attention(torch.where(kept == 0, scores, scores.roll(1, 0)))
        if not _alike(torch.where(kept == 0, mixed, weights), weights):
            return False
    return True


def _is_homogeneous(score: Score, scores: Float[Tensor, "n n"]) -> bool:
    """True if scores of about 1, and of twice that, have the same weights but for a common factor.

    Far from 1 a score that saturates would seem to, and so would any score of a text whose scores are all alike: they
    are stretched by factors from 1/4 to 4.
    """
    unit = scores / scores.abs().median().clamp(min=torch.finfo(scores.dtype).tiny)
    unit = unit * torch.logspace(-2, 2, unit.numel(), base=2, dtype=unit.dtype, device=unit.device).view_as(unit)
    weights, doubled = score.attention(unit), score.attention(2 * unit)
    size = torch.linalg.vector_norm(doubled) / torch.linalg.vector_norm(weights)
    return _alike(doubled, size * weights)


def _alike(weights: Tensor, others: Tensor) -> bool:
    return bool(torch.allclose(weights, others, rtol=_EQUAL, atol=_EQUAL * float(others.abs().max())))
