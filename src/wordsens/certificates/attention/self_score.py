"""The word's own row where scores are not divided, its score with itself followed by branch and bound.

That score is a quadratic form in the perturbation, and its weight multiplies the moved word: a cubic term, most of the
row's change. On an interval of the score it is bilinear (docs/theory/certificates-attention.md).
"""

import heapq
import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.attention.rounding import RoundingErrors
from wordsens.certificates.attention.self_score_dual import Interval, Multipliers, Problem, QuadraticScoreRow
from wordsens.certificates.attention.text import AttentionText
from wordsens.certificates.verified import UNIT_ROUNDOFF, rounding

_SPLITS = 24
"""Intervals at most that are split. The bound falls by what the weight's range over an interval allows it."""
_FINE = 0.01
"""The share of a bound that an interval's width may be."""
_SMALLEST = 1e-60
"""Smaller radii leave nothing of what this bound is about, and squares may underflow."""


def self_score_bound(
    text: AttentionText,
    errors: RoundingErrors,
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
) -> Float[Tensor, " w"]:
    """Of the change of the words' own rows over all heads, in units of the radius.

    Infinite for divided scores, heads with a value matrix, and numbers that are extreme. O(heads d³) once, and for
    each word O(n² d + n³) some 20 times an interval, of which there are 10 to 40.
    """
    bounds = torch.full_like(radius, torch.inf)
    if text.score.normalized or text.lift is not None or not math.isfinite(text.score.lipschitz):
        return bounds
    heads = [_Head(text, errors, head) for head in range(text.heads)]
    for place, (word, reach) in enumerate(zip(words.tolist(), radius.tolist(), strict=True)):
        if reach > _SMALLEST:
            bounds[place] = math.hypot(*(_Row(head, word, reach).bound() for head in heads)) / reach
    return torch.where(bounds.isnan(), torch.inf, bounds) * (1 + 1e-12)


class _Head:
    """One head in the eigenvectors of S = (W + W^T) / (2 scale), and how far rounding has put its numbers off."""

    def __init__(self, text: AttentionText, errors: RoundingErrors, head: int) -> None:
        self.text, self.head = text, head
        n, d = text.rows.shape
        S = 0.5 * text.weights[head].symmetric
        finite = bool(S.isfinite().all())
        curvatures, U = torch.linalg.eigh(S if finite else torch.zeros_like(S))
        gamma = rounding(4 * d + 64)
        turned = float(torch.linalg.matrix_norm(U.T @ U - torch.eye(d, dtype=U.dtype, device=U.device))) + gamma * d
        size = float(torch.linalg.matrix_norm(S))
        form = float(torch.linalg.matrix_norm(U.T @ (S @ U) - torch.diag(curvatures))) + 4 * (turned + gamma * d) * size
        norms = text.weights[head].norms
        self.curvatures = curvatures
        self.form_error = form + rounding(norms.terms + 8) * norms.matrix / text.weights[head].scale
        self.keys, self.queries = (part[head * n : (head + 1) * n] @ U for part in (text.keys, text.queries))
        self.rows = text.rows @ U
        off = 2 * turned + gamma * math.sqrt(d)
        mine = slice(head * n, (head + 1) * n)
        lengths = (
            torch.linalg.vector_norm(self.keys, dim=1).amax() + torch.linalg.vector_norm(self.queries, dim=1).amax()
        )
        self.key_error = float(errors.key[mine].amax() + off * lengths)
        self.tilt_error = float(errors.key[mine].amax() + errors.speed[mine].amax() + off * lengths)
        self.row_error = off * text.longest
        self.score_error = float(errors.score[mine].amax())
        self.usable = finite and math.isfinite(self.form_error + self.key_error + self.tilt_error + self.score_error)


class _Row:
    """The own row of a word under a head: branch and bound over its score with itself."""

    def __init__(self, head: _Head, word: int, radius: float) -> None:
        text, n = head.text, len(head.rows)
        own = head.head * n + word
        self._head, self._score, self._radius = head, text.score, radius
        self._length = float(torch.linalg.vector_norm(head.rows[word])) + head.row_error
        self._score_error = head.score_error + radius * (head.tilt_error + radius * head.form_error)
        seen = (~text.hidden[own]).to(head.rows.dtype).unsqueeze(1)
        seen[word] = 0.0
        keys, rows, start = head.keys * seen, head.rows * seen, float(text.scores[own, word])
        self.numbers = QuadraticScoreRow(
            radius=radius,
            start=start,
            before=self._weight(start),
            tilt=head.queries[word] + head.keys[word],
            curvatures=head.curvatures,
            word=head.rows[word],
            keys=keys,
            rows=rows,
            spread=text.score.lipschitz * radius,
            key_size=float(torch.linalg.matrix_norm(keys)),
            row_size=float(torch.linalg.matrix_norm(rows)),
        )

    def _weight(self, score: float) -> float:
        return float(self._score.attention(self._head.rows.new_tensor([[score]])))

    def bound(self) -> float:
        """Of the row's change: intervals are split until the widest weight of one is little of it."""
        if not (self._head.usable and math.isfinite(self.numbers.start)):
            return math.inf
        low, high = self.numbers.start - self.rise(-1), self.numbers.start + self.rise(1)
        if not math.isfinite(high - low):
            return math.inf
        first = self.interval(low, high)
        found = self._least(first, self._guess(first))
        intervals = [(-found[0], 0, first, found[1])]
        for split in range(1, _SPLITS + 1):
            value, _, interval, by = intervals[0]
            if interval.half * (self._length + self._radius) <= -_FINE * value:
                break
            heapq.heappop(intervals)
            cut = 0.5 * (interval.low + interval.high)
            for number, part in enumerate((self.interval(interval.low, cut), self.interval(cut, interval.high))):
                best, at = self._least(part, by)
                heapq.heappush(intervals, (max(value, -best), 2 * split + number, part, at))
        return -intervals[0][0] + self._errors(max(abs(low), abs(high)))

    def interval(self, low: float, high: float) -> Interval:
        off = self._score_error + 4 * UNIT_ROUNDOFF * (abs(low) + abs(high))
        least, most = self._weight(low - off), self._weight(high + off)
        return Interval(low, high, 0.5 * (least + most), 0.5 * (most - least))

    def _errors(self, furthest: float) -> float:
        """What rounding may have done to the change along any b, for scores of at most `furthest`."""
        head, count = self._head, math.sqrt(len(self.numbers.rows))
        weight = max(abs(self._weight(-furthest)), abs(self._weight(furthest)), abs(self.numbers.before))
        products = head.key_error * self.numbers.row_size + head.row_error * (
            self.numbers.key_size + count * head.key_error
        )
        before = self._score.lipschitz * head.score_error + 8 * UNIT_ROUNDOFF * weight
        return self.numbers.spread * count * products + 2 * weight * head.row_error + before * self._length

    def rise(self, sign: int) -> float:
        """At least what q can rise, or fall: the dual of its maximum over the ball, at the best of some multipliers."""
        curved = sign * self._radius**2 * self._head.curvatures
        pushed = 0.25 * (self._radius * self.numbers.tilt).square()
        least, size = float(curved.amax()), float(curved.abs().amax() + pushed.sum().sqrt())
        lam = max(least, 0.0) + size * torch.logspace(-6, 2, 200, dtype=curved.dtype, device=curved.device)
        values = lam + (pushed / (lam.unsqueeze(1) - curved)).sum(dim=1)
        return float(values.amin()) * (1 + 1e-9)

    def _guess(self, interval: Interval) -> Multipliers:
        lam = max(
            abs(interval.middle) * self._radius, self.numbers.spread * self.numbers.key_size * self.numbers.row_size
        )
        lam = max(lam, 1e-9 * self._radius * self._length)
        return Multipliers(
            lam, lam, 0.0, self.numbers.row_size / self.numbers.key_size if self.numbers.key_size > 0 else 1.0
        )

    def _least(self, interval: Interval, by: Multipliers) -> tuple[float, Multipliers]:
        """A verified bound of the change while q is in the interval, and the multipliers that give it."""
        problem = Problem(self.numbers, interval)
        found = problem.search(by)
        if found is None:
            return math.inf, by
        return problem.verified(found) + interval.half * (self._length + self._radius), found
