"""The Lagrangian's bound over all z: multipliers at ten places, and what lies between two of them."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.certificates.attention.multipliers import MultiplierSearch, State
from wordsens.certificates.attention.own_row import OwnRow
from wordsens.certificates.attention.relaxation import Pairs, bound_at, rise_between
from wordsens.certificates.attention.text import AttentionText
from wordsens.certificates.verified import rounding

# Places of z = Delta . (x_i - centre)/(‖x_i - centre‖ radius) with multipliers of their own; the bound is interpolated
# between them. The sup lies near .45 as a rule: dense there. A little beyond [-1, 1]: ‖direction‖ is 1 up to rounding.
_PLACES = (-1 - 1e-9, -0.4, 0.0, 0.18, 0.32, 0.42, 0.52, 0.64, 0.8, 1 + 1e-9)
_FIRST = 5
_FIRST_TEMPERATURES = [0.5, 0.4, 0.3, 0.2, 0.2, 0.2, 0.15, 0.15]
_NEXT_TEMPERATURES = [0.2, 0.2, 0.15]
_CAUTIOUS_FIRST_TEMPERATURES = [0.5, 0.5, 0.4, 0.4, 0.3, 0.3, 0.2, 0.2, 0.2, 0.15, 0.15]
_CAUTIOUS_NEXT_TEMPERATURES = [0.3, 0.3, 0.2, 0.2, 0.15]
_DOUBTFUL = 1.06


def swept(
    text: AttentionText, search: MultiplierSearch, pairs: Pairs, own: OwnRow
) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
    """The Lagrangian's bounds of some words' squared changes, before and after rounding outward."""
    plain, rounded = _Sweep(text, search, pairs, own).bounds(_FIRST_TEMPERATURES, _NEXT_TEMPERATURES)
    # Where the search for multipliers went astray on some interval, search again, with more and shorter steps.
    doubtful = (rounded.amax(dim=0) > _DOUBTFUL * rounded[_FIRST]).nonzero().squeeze(1)
    if len(doubtful):
        again = _Sweep(text, search.cautious(), pairs.of(doubtful), own.of(doubtful))
        other_plain, other = again.bounds(_CAUTIOUS_FIRST_TEMPERATURES, _CAUTIOUS_NEXT_TEMPERATURES)
        plain[:, doubtful] = torch.where(other < rounded[:, doubtful], other_plain, plain[:, doubtful])
        rounded[:, doubtful] = torch.minimum(other, rounded[:, doubtful])
    return plain.amax(dim=0), rounded.amax(dim=0)


class _Sweep:
    """Bounds over the intervals of z between neighbouring places, in units of the squared radius."""

    def __init__(self, text: AttentionText, search: MultiplierSearch, pairs: Pairs, own: OwnRow):
        self._text, self._search, self._pairs, self._own = text, search, pairs, own
        self._roundings = rounding(4 * sum(text.geometry.queries.shape) + 200)

    def bounds(
        self, first: list[float], following: list[float]
    ) -> tuple[Float[Tensor, "intervals w"], Float[Tensor, "intervals w"]]:
        """On each interval, before and after rounding outward; the temperatures are those of the Newton steps."""
        search, pairs = self._search, self._pairs
        states = {_FIRST: search.improve(pairs, search.start(pairs), self._z(_FIRST), first)}
        for at in (*range(_FIRST + 1, len(_PLACES)), *range(_FIRST - 1, -1, -1)):
            neighbour = states[at - 1 if at > _FIRST else at + 1]
            # Where z is +-1 nothing else can move: a neighbour's multipliers do, and there are none to improve.
            inside = abs(_PLACES[at]) < 1
            states[at] = search.improve(pairs, neighbour, self._z(at), following) if inside else neighbour
        intervals = [self._between(at, states[at], states[at + 1]) for at in range(len(_PLACES) - 1)]
        return torch.stack([plain for plain, _ in intervals]), torch.stack([rounded for _, rounded in intervals])

    def _z(self, at: int) -> Float[Tensor, " w"]:
        return torch.full_like(self._own.fixed, _PLACES[at])

    def _between(self, at: int, left: State, right: State) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
        """The bound over z from place `at` to the next, the multipliers of both places brought to one lam."""
        lam = (left.lam * right.lam).sqrt()
        nearest = 0.0 if _PLACES[at] * _PLACES[at + 1] <= 0 else min(abs(_PLACES[at]), abs(_PLACES[at + 1]))
        across = torch.full_like(lam, math.sqrt(max(0.0, 1 - nearest**2)) * (1 + 1e-15))
        ends, own_rows = [], []
        for place, state in ((at, left), (at + 1, right)):
            z = self._z(place)
            by = self._search.multipliers(self._pairs, state.with_lam(lam), z)
            ends.append((by, bound_at(self._text.geometry, self._pairs, by, z, across), z))
            own_rows.append(self._own.at(z, across))
        rise = rise_between(self._text.geometry, self._pairs, *ends)
        values = [end[1].value for end in ends]
        size = torch.maximum(ends[0][1].size, ends[1][1].size)
        if self._text.lift is not None:
            # V (V^T x_i - o_j) as computed, in the terms q r_j . y.
            moved = (self._pairs.most_q * self._pairs.counted).sum(dim=1)
            terms = 1 + self._text.weights[0].norms.terms / sum(self._text.queries.shape)
            size = size + 4 * terms * self._text.lift_size * self._text.longest * moved
        plain = torch.maximum(*values) + self._own.fixed
        if own_rows[0] is not None:
            plain = torch.minimum(plain, torch.maximum(values[0] + own_rows[0], values[1] + own_rows[1]))
        plain = (plain + rise).clamp(min=0)
        # Multipliers that went astray give no bound.
        plain = torch.where(plain.isfinite() & (lam > 0), plain, torch.full_like(plain, torch.inf))
        rounded = plain * (1 + 1e-12) + self._roundings * (2 * size + self._own.fixed)
        return plain, torch.where(rounded.isfinite(), rounded, torch.full_like(rounded, torch.inf))
