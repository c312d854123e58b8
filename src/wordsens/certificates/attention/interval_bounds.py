"""The Lagrangian's bound over all z between two places, from multipliers at both."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.attention.own_row import OwnRow
from wordsens.certificates.attention.relaxation import Bound, Multipliers, Pairs, bound_at, rise_between
from wordsens.certificates.attention.text import AttentionText
from wordsens.certificates.verified import rounding


@dataclass(frozen=True)
class End:
    """One end of an interval: its multipliers, the bound with them at its z, and the own row's."""

    by: Multipliers
    bound: Bound
    z: Float[Tensor, " w"]
    own: Float[Tensor, " w"] | None


class IntervalBounds:
    """Bounds of the squared changes of some words, in units of the squared radius."""

    def __init__(self, text: AttentionText, pairs: Pairs, own: OwnRow):
        self._text, self._pairs, self._own = text, pairs, own
        self._roundings = rounding(4 * sum(text.geometry.queries.shape) + 200)

    def of(self, chosen: Int[Tensor, " c"]) -> "IntervalBounds":
        """The same for some of the words."""
        return IntervalBounds(self._text, self._pairs.of(chosen), self._own.of(chosen))

    def end(self, by: Multipliers, z: Float[Tensor, " w"], nearest: Float[Tensor, " w"]) -> End:
        """The end at z of intervals that come no nearer to 0 than `nearest`."""
        across = (1 - nearest.square()).clamp(min=0).sqrt() * (1 + 1e-15)
        return End(by, bound_at(self._text.geometry, self._pairs, by, z, across), z, self._own.at(z, across))

    def joined(self, left: End, right: End) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
        """The bound over z from one end to the other, before and after rounding outward."""
        rise = rise_between(left.by, left.z, right.by, right.z)
        size = torch.maximum(left.bound.size, right.bound.size)
        if self._text.lift is not None:
            # V (V^T x_i - o_j) as computed, in the terms q r_j . y.
            moved = (self._pairs.most_q * self._pairs.counted).sum(dim=1)
            terms = 1 + self._text.weights[0].norms.terms / sum(self._text.queries.shape)
            size = size + 4 * terms * self._text.lift_size * self._text.longest * moved
        plain = torch.maximum(left.bound.value, right.bound.value) + self._own.fixed
        if left.own is not None and right.own is not None:
            plain = torch.minimum(plain, torch.maximum(left.bound.value + left.own, right.bound.value + right.own))
        plain = (plain + rise).clamp(min=0)
        # Multipliers that went astray give no bound.
        plain = torch.where(
            plain.isfinite() & (left.by.lam > 0) & (right.by.lam > 0), plain, torch.full_like(plain, torch.inf)
        )
        rounded = plain * (1 + 1e-12) + self._roundings * (2 * size + self._own.fixed)
        return plain, torch.where(rounded.isfinite(), rounded, torch.full_like(rounded, torch.inf))
