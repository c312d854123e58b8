"""The Lagrangian's bound over all z: multipliers at ten places, and what lies between two of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.attention.multipliers import MultiplierSearch, State
from wordsens.certificates.attention.own_row import OwnRow
from wordsens.certificates.attention.relaxation import Bound, Multipliers, Pairs, bound_at, rise_between
from wordsens.certificates.attention.text import AttentionText
from wordsens.certificates.verified import rounding

# Places of z = Delta . (x_i - centre)/(‖x_i - centre‖ radius) at which multipliers are optimised; the bound is
# interpolated between them. Dense around .45, where the sup usually lies. A little beyond [-1, 1]: ‖direction‖ is 1 up
# to rounding.
PLACES = (-1 - 1e-9, -0.4, 0.0, 0.18, 0.32, 0.42, 0.52, 0.64, 0.8, 1 + 1e-9)
_FIRST = 5
_FIRST_TEMPERATURES = [0.5, 0.4, 0.3, 0.2, 0.2, 0.2, 0.15, 0.15]
_NEXT_TEMPERATURES = [0.2, 0.2, 0.15]
_CAUTIOUS_FIRST_TEMPERATURES = [0.5, 0.5, 0.4, 0.4, 0.3, 0.3, 0.2, 0.2, 0.2, 0.15, 0.15]
_CAUTIOUS_NEXT_TEMPERATURES = [0.3, 0.3, 0.2, 0.2, 0.15]
_DOUBTFUL = 1.06


def swept(
    text: AttentionText,
    search: MultiplierSearch,
    pairs: Pairs,
    own: OwnRow,
    enough: Float[Tensor, " w"] | float = 0.0,
) -> "Intervals":
    """The Lagrangian's bounds of some words' squared changes on intervals that cover all z.

    A bound that is at most `enough` is not improved again.
    """
    found = Intervals.unknown(pairs.reach[:, 0])
    _Sweep(text, search, pairs, own).lower(found, _FIRST_TEMPERATURES, _NEXT_TEMPERATURES)
    # Where the search for multipliers went astray on some interval, search again, with more and shorter steps.
    astray = found.searched > _DOUBTFUL * found.rounded[_FIRST]
    doubtful = (astray & (found.rounded.amax(dim=0) > enough)).nonzero().squeeze(1)
    if len(doubtful):
        again = _Sweep(text, search.cautious(), pairs.of(doubtful), own.of(doubtful))
        other = found.of(doubtful)
        again.lower(other, _CAUTIOUS_FIRST_TEMPERATURES, _CAUTIOUS_NEXT_TEMPERATURES)
        found.plain[:, doubtful], found.rounded[:, doubtful] = other.plain, other.rounded
    return found


@dataclass(frozen=True)
class Intervals:
    """The least bounds known on each interval between neighbouring places, before and after rounding outward.

    `searched` is the largest bound from multipliers optimised for their interval.
    """

    plain: Float[Tensor, "intervals w"]
    rounded: Float[Tensor, "intervals w"]
    searched: Float[Tensor, " w"]

    @classmethod
    def unknown(cls, like: Float[Tensor, " w"]) -> "Intervals":
        nothing = torch.full((len(PLACES) - 1, len(like)), torch.inf, dtype=like.dtype, device=like.device)
        return cls(nothing, nothing.clone(), torch.zeros_like(like))

    @property
    def largest(self) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
        """The bounds over all z, before and after rounding outward."""
        return self.plain.amax(dim=0), self.rounded.amax(dim=0)

    def of(self, words: Int[Tensor, " c"]) -> "Intervals":
        return Intervals(self.plain[:, words], self.rounded[:, words], self.searched[words])

    def take(self, at: int, words: Int[Tensor, " c"], bounds: tuple[Tensor, Tensor]) -> None:
        """Replace the stored bounds of some words where these are smaller."""
        lower = bounds[1] < self.rounded[at, words]
        for known, new in zip((self.plain, self.rounded), bounds, strict=True):
            known[at, words] = torch.where(lower, new, known[at, words])


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


class _Sweep:
    """Bounds over the intervals of z between neighbouring places, in units of the squared radius."""

    def __init__(self, text: AttentionText, search: MultiplierSearch, pairs: Pairs, own: OwnRow):
        self._text, self._search, self._pairs, self._own = text, search, pairs, own
        self._bounds = IntervalBounds(text, pairs, own)

    def lower(self, found: Intervals, first: list[float], following: list[float]) -> None:
        """Bounds on every interval; the temperatures are those of the Newton steps.

        From the first place outward, to the right and to the left, the multipliers of the last place are improved for
        the next. Only the largest bound of all intervals counts: where the multipliers of a place, as they are, keep
        what is left on its side below the largest so far, nothing is improved there.
        """
        start = self._search.improve(self._pairs, self._search.start(self._pairs), self._z(_FIRST), first)
        everyone = torch.arange(len(self._own.fixed), device=start.lam.device)
        most = torch.zeros_like(self._own.fixed)
        for side in (range(_FIRST, len(PLACES) - 1), range(_FIRST - 1, -1, -1)):
            sweep, state, words = self, start, everyone
            for done, at in enumerate(side):
                left = side[done:]
                if done:
                    sweep._without_search(found, most, left, state, words)
                pending = (found.rounded[left][:, words] > most[words]).any(dim=0)
                if not bool(pending.all()):
                    chosen = pending.nonzero().squeeze(1)
                    sweep, state, words = sweep._of(chosen), state.of(chosen), words[chosen]
                if not len(words):
                    break
                state = sweep._step(found, at, state, words, following, leftward=side.step < 0)
                most[words] = torch.maximum(most[words], found.rounded[at, words])

    def _of(self, chosen: Int[Tensor, " c"]) -> "_Sweep":
        return _Sweep(self._text, self._search, self._pairs.of(chosen), self._own.of(chosen))

    def _step(
        self, found: Intervals, at: int, state: State, words: Tensor, following: list[float], *, leftward: bool
    ) -> State:
        """The bound on interval `at`, from the state at one of its ends and that of the other, which is returned."""
        place = at if leftward else at + 1
        # Where z is +-1 nothing else can move: a neighbour's multipliers do, and there are none to improve.
        inside = abs(PLACES[place]) < 1
        new = self._search.improve(self._pairs, state, self._z(place), following) if inside else state
        nearest = self._nearest(at)
        states = (new, state) if leftward else (state, new)
        ends = [self._end(at + side, states[side], nearest) for side in (0, 1)]
        bounds = self._bounds.joined(*ends)
        found.take(at, words, bounds)
        found.searched[words] = torch.maximum(found.searched[words], bounds[1])
        return new

    def _without_search(
        self, found: Intervals, most: Tensor, intervals: Sequence[int], state: State, words: Tensor
    ) -> None:
        """Bounds on the intervals with one state's multipliers, nearest first, while they serve half of the words."""
        ends, nearest = {}, self._nearest(intervals[0])
        for at in intervals:
            for place in (at, at + 1):
                if place not in ends:
                    ends[place] = self._end(place, state, nearest)
            found.take(at, words, self._bounds.joined(ends[at], ends[at + 1]))
            if 2 * int((found.rounded[at, words] > most[words]).sum()) > len(words):
                return

    @staticmethod
    def _nearest(at: int) -> float:
        """How near interval `at`, and all that are farther out, come to 0."""
        return 0.0 if PLACES[at] * PLACES[at + 1] <= 0 else min(abs(PLACES[at]), abs(PLACES[at + 1]))

    def _end(self, place: int, state: State, nearest: float) -> End:
        by = self._search.multipliers(self._pairs, state, self._z(place))
        z = self._z(place)
        return self._bounds.end(by, z, torch.full_like(z, nearest))

    def _z(self, place: int) -> Float[Tensor, " w"]:
        return torch.full_like(self._own.fixed, PLACES[place])
