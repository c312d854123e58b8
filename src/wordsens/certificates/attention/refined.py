"""The thorough bound: the Lagrangian with optimal multipliers and one weight a row, where it is largest.

The bound over all z is the largest of those on intervals between neighbouring places. Multipliers are optimised at one
place of each word, then outward from it as far as the normal bound might still be the largest, and last, with more
steps, where it is.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.attention.interior_point import InteriorPoint, Point, halfway, joined
from wordsens.certificates.attention.multipliers import PLACES, End, IntervalBounds, Intervals, MultiplierSearch
from wordsens.certificates.attention.relaxation import Pairs, centre_of
from wordsens.certificates.attention.text import AttentionText, SelfRow

FINENESS = 2
"""Cells of a curve for each cell of the normal bound."""

_TEMPERATURES = [0.5, 0.4, 0.3, 0.2, 0.2, 0.2, 0.15, 0.15]
"""Of the normal multipliers that the method starts from."""

_CAREFUL, _BRIEF = range(24), range(0, 24, 2)
"""Newton steps of a full solution, and of one that starts from another place."""

_INWARD = 0.8
"""A factor of the weights of another place, so that a brief search starts well inside."""

_MIDDLE = 6
"""The place that is tried first where the worst interval is beside it."""

_ROUNDS = 4
_CLOSE = 2e-3
"""A word is done where its largest interval is at most this share above what no interval can be below."""

_MOST_BYTES = 1 << 23
"""Of the Hessians of words that are refined together."""


def words_at_once(rows: int) -> int:
    """How many words to refine at a time, of a text of so many rows under all heads."""
    return max(1, _MOST_BYTES // (8 * (3 * rows + 2) ** 2))


@dataclass(frozen=True)
class _Known:
    """The multipliers of one word at one place."""

    point: Point
    careful: bool


class Refinement:
    """The squared bounds of some words; `run` makes them smaller."""

    def __init__(
        self,
        text: AttentionText,
        search: MultiplierSearch,
        pairs: Pairs,
        row: SelfRow,
        intervals: Intervals,
        limit: Float[Tensor, " w"],
    ):
        self._text, self._search, self._pairs, self._limit = text, search, pairs, limit
        self._bounds, self._method = IntervalBounds(text, pairs, row), InteriorPoint(text.geometry, pairs)
        middles = [0.5 * (left + right) for left, right in pairwise(PLACES)]
        self._places = intervals.rounded.new_tensor(sorted([*PLACES, *middles]))
        self._plain, self._rounded = (part.repeat_interleave(2, dim=0) for part in (intervals.plain, intervals.rounded))
        self._known: dict[tuple[int, int], _Known] = {}
        """By word and place."""

    def run(self) -> Intervals:
        """The bounds on intervals that cover all z."""
        everyone = torch.arange(self._rounded.shape[1], device=self._rounded.device)
        words = everyone[self._rounded.amax(dim=0) > self._limit]
        if len(words):
            floor = self._outward(words)
            for _ in range(_ROUNDS):
                top, at = self._rounded.max(dim=0)
                words = everyone[(top > (1 + _CLOSE) * floor) & (top > self._limit)]
                if not len(words):
                    break
                self._with_care(words, at[words], floor)
        return Intervals(self._plain, self._rounded, self._rounded.amax(dim=0))

    def _outward(self, words: Int[Tensor, " c"]) -> Float[Tensor, " w"]:
        """From one place of each word to both sides; returns the bound at that place, a lower limit of the result."""
        worst = self._rounded[:, words].argmax(dim=0)
        # Of a coarse interval the end that is nearer to where bounds are largest as a rule.
        first = worst - worst % 2
        first = torch.where(first < 2 * _MIDDLE, first + 2, first).clamp(2, len(self._places) - 3)
        self._solve(words, first)
        floor = torch.full_like(self._rounded[0], torch.inf)
        floor[words] = self._values(words, first)
        last = len(self._places) - 1
        for side in (1, -1):
            pending, at = words, first
            while len(pending):
                # From the place of the sweep before the last one it is a single step to the middle, and one to the end.
                before, at = at, at + torch.where((at + 2 * side > 0) & (at + 2 * side < last), 2 * side, side)
                self._solve(pending, at, before)
                self._join(pending, torch.minimum(before, at), torch.maximum(before, at))
                more = self._beyond(pending, at, side) > floor[pending]
                pending, at = pending[more], at[more]
        return floor

    def _beyond(self, words: Int[Tensor, " c"], place: Int[Tensor, " c"], side: int) -> Float[Tensor, " c"]:
        """The largest bound known on the intervals on that side of a place; 0 where there are none."""
        at = torch.arange(len(self._rounded), device=words.device).unsqueeze(1)
        beyond = at >= place if side > 0 else at < place
        return torch.where(beyond, self._rounded[:, words], 0.0).amax(dim=0)

    def _with_care(self, words: Int[Tensor, " c"], at: Int[Tensor, " c"], floor: Float[Tensor, " w"]) -> None:
        """Search the ends of an interval of each word, and the middle of the coarse one that it is half of, again."""
        left = at - at % 2
        for place in (left + 1, left, left + 2):
            known = [self._known.get(key) for key in _keys(words, place)]
            again = torch.tensor([one is None or not one.careful for one in known], device=words.device)
            if bool(again.any()):
                self._solve(words[again], place[again])
        for start, width in ((0, 1), (1, 1), (-1, 1), (-2, 2), (2, 1), (2, 2)):
            first, second = left + start, left + start + width
            both = [
                one in self._known and two in self._known
                for one, two in zip(_keys(words, first), _keys(words, second), strict=True)
            ]
            chosen = torch.tensor(both, device=words.device)
            if bool(chosen.any()):
                self._join(words[chosen], first[chosen], second[chosen])
        floor[words] = torch.maximum(floor[words], self._values(words, left + 1))

    def _solve(
        self, words: Int[Tensor, " c"], place: Int[Tensor, " c"], before: Int[Tensor, " c"] | None = None
    ) -> None:
        """Optimise the multipliers at a place of each word: from the plain ones, or briefly from those of another."""
        end = (place == 0) | (place == len(self._places) - 1)
        if bool(end.any()):
            # Where z is 1 or -1 nothing else can move: the multipliers of the place beside it do.
            beside = torch.where(place == 0, 1, place - 1)
            for word, where, near in zip(words[end].tolist(), place[end].tolist(), beside[end].tolist(), strict=True):
                self._known[word, where] = self._known[word, near]
            words, place, before = words[~end], place[~end], None if before is None else before[~end]
            if not len(words):
                return
        method, z = self._method.of(words), self._places[place]
        if before is None:
            pairs = self._pairs.of(words)
            state = self._search.improve(pairs, self._search.start(pairs), z, _TEMPERATURES)
            by = self._search.multipliers(pairs, state, z)
            point = method.improved(method.point(by, centre_of(self._text.geometry, pairs, by)), z, _CAREFUL)
        else:
            start = self._points(words, before)
            point = method.improved(replace(start, hold=_INWARD * start.hold), z, _BRIEF)
        for at, (word, where) in enumerate(zip(words.tolist(), place.tolist(), strict=True)):
            self._known[word, where] = _Known(point.of(torch.tensor([at], device=words.device)), before is None)

    def _points(self, words: Int[Tensor, " c"], place: Int[Tensor, " c"]) -> Point:
        return joined([self._known[key].point for key in _keys(words, place)])

    def _end(self, words: Int[Tensor, " c"], point: Point, z: Float[Tensor, " c"], nearest: Float[Tensor, " c"]) -> End:
        return self._bounds.of(words).end(self._method.of(words).ray(point).place(z), z, nearest)

    def _values(self, words: Int[Tensor, " c"], place: Int[Tensor, " c"]) -> Float[Tensor, " c"]:
        """The bound at one z of each word."""
        z = self._places[place]
        end = self._end(words, self._points(words, place), z, z.abs())
        return self._bounds.of(words).joined(end, end)[0]

    def _join(self, words: Int[Tensor, " c"], left: Int[Tensor, " c"], right: Int[Tensor, " c"]) -> None:
        """The bound between two places of each word, on the one or two intervals there."""
        low, high = self._places[left], self._places[right]
        nearest = torch.where(low * high <= 0, 0.0, torch.minimum(low.abs(), high.abs()))
        first, last = self._points(words, left), self._points(words, right)
        ends = [
            self._end(words, point, z, nearest)
            for point, z in ((first, low), (halfway(first, last), 0.5 * (low + high)), (last, high))
        ]
        halves = [self._bounds.of(words).joined(*two) for two in pairwise(ends)]
        plain, rounded = (torch.maximum(*two) for two in zip(*halves, strict=True))
        for at in (left, right - 1):
            known = self._rounded[at, words]
            better = rounded < known
            self._plain[at, words] = torch.where(better, plain, self._plain[at, words])
            self._rounded[at, words] = torch.where(better, rounded, known)


def _keys(words: Int[Tensor, " c"], place: Int[Tensor, " c"]) -> list[tuple[int, int]]:
    return list(zip(words.tolist(), place.tolist(), strict=True))
