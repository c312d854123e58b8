"""The closed form of attention's change: one head on one text, one word moved, for a batch of words
and perturbations.

With u_j = W^T x_j / scale, the score that row j gives word i becomes s_ji + u_j . Delta, so for j
!= i (derivation: docs/theory/attention.md)

    change of row j = p_ji Delta + (p_ji - a_ji) r_ji,    r_ji = x_i - m_ji = (x_i - o_j)/(1 - a_ji),

a_ji and p_ji being the attention of row j to word i before and after, o_j the output of row j and
m_ji its output without word i (zero for scores that are not divided by their sum). Squared norms
expand into inner products of Delta with the u_j, the o_j and x_i. Row i, whose query, key and value
all move, is evaluated plainly. With a value matrix V, read V^T Delta for Delta and V^T x_i for x_i,
but in u_j . Delta.

A batch of (word, Delta) pairs costs a few matrix products: all n words the price of one plain
evaluation. Arrays indexed [word, row] are stored word first: a batch gathers whole rows.
"""  # noqa: E501

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.maps.attention.head import HeadWeights, ScoredHead, starting_points
from wordsens.maps.attention.scores import ClosedForm, Response
from wordsens.maps.attention.scores.base import row_blocks
from wordsens.maps.base import WordChange
from wordsens.search.objective import Deltas, Evaluated, Objective, Words, in_chunks
from wordsens.search.plan import Stages

_CACHED_NUMBERS = 1 << 19
"""The most numbers that one intermediate array may have on a CPU: a few of them fit in its
cache."""

_LEAST_PAIRS = 64
"""Fewer pairs at a time would make the matrix products slow."""


@dataclass(frozen=True)
class Dominant:
    """The rows of which one word takes over half: there (x_i - o_j)/(1 - a_ji) would cancel, so
    r_ji is stored.

    Attributes:
        words, rows: (m,), the word i and the row j.
        rest: (m, d), r_ji.
    """

    words: Int[Tensor, " m"]
    rows: Int[Tensor, " m"]
    rest: Float[Tensor, "m d"]

    def pairs(
        self, words: Int[Tensor, " b"]
    ) -> tuple[Int[Tensor, " c"], Int[Tensor, " c"], Float[Tensor, "c d"]]:
        """The pairs of a batch that meet dominated rows: the pair, the row and its r_ji."""
        which, dominated = (words.unsqueeze(1) == self.words).nonzero(as_tuple=True)
        return which, self.rows[dominated], self.rest[dominated]


class Head(ScoredHead):
    """One attention head on one text: everything that does not depend on Delta. O(n² d + n d²)
    once, n² memory.

    Attributes:
        score, response: what the weights are made with, and how they answer to one moved score.
        lift: (d, m), V with V^T Delta what the value of the moved word changes by; None: the
            identity.
        values: (n, m), the values, without their mean where weights sum to one: x_i without a value
            matrix.
        lengths: [word, row], (n, n), ‖r_ji‖² where weights are divided by their sum.
        squared_values: (n,), their squared lengths where weights are not divided: there r_ji is the
            value.
        dominant: the rows of which one word takes over half.
    """

    def __init__(self, rows: Float[Tensor, "n d"], weights: HeadWeights, score: ClosedForm):
        self.rows, self.score = rows, score
        self.queries, self.keys = weights.queries(rows), weights.keys(rows)
        self.symmetric, self.lift = weights.symmetric, weights.value
        self.scores = weights.scores(rows)
        values = weights.values(rows)
        # Differences of rows are what matters where weights sum to one: taking the mean away first
        # leaves them exact when rows are nearly parallel.
        self.values = values - values.mean(dim=0) if score.sums_to_one else values
        self.response: Response = score.response(self.scores)
        self.dominant: Dominant | None = None
        if score.normalized:
            self._attend_divided()
            self.stacked = torch.cat([self.queries, -self.lifted(self.outputs), self.keys])
        else:
            self.squared_values = torch.linalg.vecdot(values, values)
            self.outputs = score.attention(self.scores) @ self.values
            self.stacked = torch.cat([self.queries, self.keys])

    def _attend_divided(self) -> None:
        """The outputs, the squared lengths ‖r_ji‖² (word first), and the rows that one word
        dominates."""
        n = self.rows.shape[0]
        self.outputs, self.lengths = torch.empty_like(self.values), self.scores.new_empty(n, n)
        parts = []
        for block in row_blocks(n, n):
            attention = self.score.attention(self.scores[block])
            self.outputs[block] = attention @ self.values
            # Differences are formed before they are squared, so close rows keep their digits.
            distances = torch.cdist(
                self.values, self.outputs[block], compute_mode="donot_use_mm_for_euclid_dist"
            )
            self.lengths[:, block] = distances.square_()
            largest, word = attention.max(dim=1)
            dominated = (largest > 0.5).nonzero().squeeze(1)
            without = self.score.attention_without(self.scores[block][dominated], word[dominated])
            parts.append(
                (
                    word[dominated],
                    dominated + block.start,
                    self.values[word[dominated]] - without @ self.values,
                )
            )
        words, rows, rest = (torch.cat(part) for part in zip(*parts, strict=True))
        self.lengths[words, rows] = rest.square().sum(dim=1)
        self.dominant = Dominant(words, rows, rest) if len(words) else None

    def lifted(self, vectors: Float[Tensor, "b m"]) -> Float[Tensor, "b d"]:
        """V r: what is multiplied with V^T Delta by r is multiplied with Delta by it."""
        return vectors if self.lift is None else vectors @ self.lift.mT


class HeadChange:
    """The squared change of one head on T texts of n words: words numbered through them, pairs text
    by text, as many of each (`Objective.alone`).

    What is read by word has T n rows; what multiplies the pairs of a text has T as its first axis.
    """

    def __init__(self, heads: Sequence[Head]):
        first = heads[0]
        self.score, self.n, self.texts = first.score, len(first.rows), len(heads)
        self.response = type(first.response).together([head.response for head in heads])
        self.scores, self.values, self.outputs = (
            _by_word([getattr(head, name) for head in heads])
            for name in ("scores", "values", "outputs")
        )
        self.lengths = _by_word(
            [
                head.lengths if head.score.normalized else head.squared_values.unsqueeze(1)
                for head in heads
            ]
        )
        self.stacked, self.symmetric = (
            torch.stack([getattr(head, name) for head in heads])
            for name in ("stacked", "symmetric")
        )
        self.lift = (
            None
            if first.lift is None
            else torch.stack([head.lift for head in heads if head.lift is not None])
        )
        self.dominant = _DominantRows.of(heads)

    def times(
        self, vectors: Float[Tensor, "b k"], matrices: Float[Tensor, "T k m"]
    ) -> Float[Tensor, "b m"]:
        """Of every pair its vector times the matrix of its text."""
        return torch.bmm(vectors.unflatten(0, (self.texts, -1)), matrices).flatten(end_dim=1)

    def evaluate(
        self, delta: Float[Tensor, "b d"], words: Int[Tensor, " b"], gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b d"] | None]:
        """The squared change of every pair, and its gradient in Delta where asked for."""
        n, column = self.n, (words if self.texts == 1 else words % self.n).unsqueeze(1)
        values = self.values.unflatten(0, (self.texts, -1))
        products = self.times(delta, self.stacked.mT)
        moved, keyed = products[:, :n], products[:, -n:]
        along = products[:, n : 2 * n] if self.score.normalized else None
        to_self, value_delta = (
            moved.gather(1, column),
            delta if self.lift is None else self.times(delta, self.lift),
        )
        squared, half_gradient = self._others(value_delta, words, column, moved, along, gradient)

        # Row i, whose query, key and value all move.
        pushed = self.times(delta, self.symmetric)
        new_scores = self.scores.index_select(0, words).add_(keyed)
        new_scores.scatter_add_(
            1, column, to_self + 0.5 * torch.linalg.vecdot(pushed, delta).unsqueeze(1)
        )
        attention = self.score.attention(new_scores)
        to_itself = attention.gather(1, column)
        change = self.times(attention, values).sub_(self.outputs.index_select(0, words))
        change.addcmul_(to_itself, value_delta)
        squared += torch.linalg.vecdot(change, change)
        if half_gradient is None:
            return squared, None

        # What the gradient takes from each stacked row is written where the products were.
        on_weights = self.times(change, values.mT)
        on_weights.scatter_add_(1, column, torch.linalg.vecdot(change, value_delta).unsqueeze(1))
        row_slope = self.score.pull_back(new_scores, attention, on_weights)
        row_slope_self = row_slope.gather(1, column)
        moved.scatter_(1, column, row_slope_self)
        keyed.copy_(row_slope)
        half_gradient.addcmul_(to_itself, change)
        if self.lift is not None:
            half_gradient = self.times(half_gradient, self.lift.mT)
        half_gradient.addcmul_(row_slope_self, pushed)
        by_text = [part.unflatten(0, (self.texts, -1)) for part in (half_gradient, products)]
        by_text[0].baddbmm_(by_text[1], self.stacked, beta=2, alpha=2)
        return squared, half_gradient

    def _others(
        self,
        value_delta: Float[Tensor, "b m"],
        words: Int[Tensor, " b"],
        column: Int[Tensor, "b 1"],
        moved: Float[Tensor, "b n"],
        along: Float[Tensor, "b n"] | None,
        gradient: bool,
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b m"] | None]:
        """The squared change of all rows but the word's own; half the gradient in V^T Delta,
        without the terms along u_j and o_j: their coefficients are left in `moved` and `along`, and
        `evaluate` adds them in one product.

        Args:
            column: each word's place in its text.
            moved: u_j . Delta; where the gradient is asked for, overwritten by what it takes from
                each u_j.
            along: -o_j . V^T Delta, for weights that are divided by their sum; likewise
                overwritten. None for others.
        """
        answer = self.response.move(moved, words)
        p, gain = answer.p, answer.gain
        value = self.values.index_select(0, words)
        with_value = torch.linalg.vecdot(value, value_delta).unsqueeze(1)
        on_rest_of_word = with_value if along is None else along.add_(with_value)
        length = self.lengths.index_select(0, words)
        dominant = None if along is None else self.dominant
        rows = meets = place = None
        if dominant is not None and along is not None:
            rows, meets, place = (part.index_select(0, words) for part in dominant.of_words)
            with_rest = self.times(value_delta, dominant.rest.mT).gather(1, place)
            dominant_gain = self.response.dominant_gain(
                moved.gather(1, rows), words.unsqueeze(1), rows
            )
            for array, there in (
                (gain, dominant_gain),
                (answer.gain_slope, answer.p_slope.gather(1, rows)),
                (along, with_rest),
            ):
                array.scatter_(1, rows, torch.where(meets, there, array.gather(1, rows)))
        p.scatter_(1, column, 0.0)
        gain.scatter_(1, column, 0.0)
        on_delta = torch.addcmul(
            p * torch.linalg.vecdot(value_delta, value_delta).unsqueeze(1), gain, on_rest_of_word
        )
        on_rest = torch.addcmul(p * on_rest_of_word, gain, length)
        squared = torch.linalg.vecdot(p, on_delta) + torch.linalg.vecdot(gain, on_rest)
        if not gradient:
            return squared, None

        torch.mul(answer.p_slope, on_delta, out=moved).addcmul_(answer.gain_slope, on_rest)
        moved.scatter_(1, column, 0.0)
        half_gradient = torch.linalg.vecdot(p, p).unsqueeze(1) * value_delta
        if along is None:
            pulled = torch.linalg.vecdot(p, gain).unsqueeze(1)
        else:
            torch.mul(p, gain, out=along)
            if (
                dominant is not None
                and rows is not None
                and meets is not None
                and place is not None
            ):
                there = along.gather(1, rows)
                along.scatter_(1, rows, there.masked_fill(meets, 0.0))
                taken = along.new_zeros(len(words), dominant.rest.shape[1])
                taken.scatter_add_(1, place, there.masked_fill_(~meets, 0.0))
                half_gradient += self.times(taken, dominant.rest)
            pulled = along.sum(dim=1, keepdim=True)
        return squared, half_gradient.addcmul_(pulled, value)


def _by_word(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts))


@dataclass(frozen=True)
class _DominantRows:
    """`Head.dominant` of T texts in arrays of fixed shape, so that no pair has to be looked up.

    Attributes:
        of_words: three (T n, K) arrays, K the most rows that one word dominates: rows, all
            different; whether the word dominates them; and their places in `rest`.
        rest: (T, D, m), the r_ji, D the most of one text; zero past the last.
    """

    of_words: tuple[Int[Tensor, "w K"], Bool[Tensor, "w K"], Int[Tensor, "w K"]]
    rest: Float[Tensor, "T D m"]

    @classmethod
    def of(cls, heads: Sequence[Head]) -> "_DominantRows | None":
        """None where no word dominates a row."""
        dominants = [head.dominant for head in heads]
        if all(dominant is None for dominant in dominants):
            return None
        n, like = len(heads[0].rows), heads[0].values
        meets = torch.zeros(len(heads), n, n, dtype=torch.bool, device=like.device)
        place = torch.zeros(len(heads), n, n, dtype=torch.long, device=like.device)
        rest = like.new_zeros(
            len(heads), max(len(each.rows) for each in dominants if each is not None), like.shape[1]
        )
        for text, each in enumerate(dominants):
            if each is not None:
                meets[text, each.words, each.rows] = True
                place[text, each.words, each.rows] = torch.arange(
                    len(each.rows), device=like.device
                )
                rest[text, : len(each.rows)] = each.rest
        meets, place = meets.flatten(end_dim=1), place.flatten(end_dim=1)
        rows = meets.to(torch.int8).argsort(dim=1, descending=True, stable=True)[
            :, : int(meets.sum(dim=1).amax())
        ]
        return cls((rows, meets.gather(1, rows), place.gather(1, rows)), rest)


def sum_over_heads(
    heads: Sequence[HeadChange],
    perturbations: Float[Tensor, "b d"],
    words: Int[Tensor, " b"],
    gradient: bool,
    numbers: int,
) -> tuple[Float[Tensor, " b"], Float[Tensor, "b d"] | None]:
    """Value and gradient summed over the heads, in pieces small enough for the cache; a pair has
    `numbers` entries."""

    def evaluate(delta: Tensor, word: Tensor) -> tuple[Tensor, Tensor | None]:
        values, slopes = zip(*(head.evaluate(delta, word, gradient) for head in heads), strict=True)
        return reduce(torch.add, values), reduce(torch.add, slopes) if gradient else None

    if perturbations.device.type != "cpu":
        return evaluate(perturbations, words)
    # Pieces that stay in the processor's cache: past it, memory traffic costs more than the
    # products.
    size = max(_LEAST_PAIRS, _CACHED_NUMBERS // numbers)
    return in_chunks(evaluate, perturbations, words, size=size, texts=heads[0].texts)


_SMALL_TEXT = 8192
"""Coordinates of a text up to which all starts climb to their end: its own evaluations are
cheap."""

_LARGEST_COARSE = 1e5
"""Scores past which a search explores in the map's own precision, and below whose inverse: float32
rounds them by .006 there, and steps divide by fourth powers of small ones."""

_MAX_UNEVENNESS = 1e4
"""Times the median score past which the largest one has a search explore in the map's own
precision: beside a huge row others' weights are differences of numbers near 1."""


class AttentionWordChange(WordChange):
    """‖phi(X^i(Delta)) - phi(X)‖² and its gradient for attention, by the closed form of `Head`.

    Exact: it agrees with mapping X^i(Delta) to rounding, for every score. A batch of b pairs costs
    O(b (n d + d²)) and b n numbers of memory; b = n is all words at the price of one plain
    evaluation.
    """

    def __init__(
        self,
        rows: Float[Tensor, "n d"],
        weights: Sequence[HeadWeights],
        score: ClosedForm,
        memory_budget: int,
    ):
        super().__init__(rows, memory_budget)
        self._weights, self._score = weights, score
        self.heads = [Head(rows, head, score) for head in weights]
        self._changes = [HeadChange([head]) for head in self.heads]
        self._coarse: AttentionWordChange | None = None
        self.stages, self.kinked = attention_stages(*rows.shape), score.kinked

    def coarse(self) -> "AttentionWordChange":
        """In float32, unless it loses too much; homogeneous scores in units of the largest: the
        units do not matter."""
        if self._coarse is None:
            self._coarse = self._in_float32() or self
        return self._coarse

    def _in_float32(self) -> "AttentionWordChange | None":
        # A float32 copy holds three n x n arrays a head; a long text cannot spare them.
        copies = len(self.heads) * 3 * 4 * len(self.rows) ** 2
        if self.rows.dtype == torch.float32 or copies > self.memory_budget // 2:
            return None
        sizes = [head.score_sizes for head in self.heads]
        largest, median = (
            max(float(part.max()) for part in sizes),
            min(float(part.median()) for part in sizes),
        )
        factor = 1.0
        if largest > _MAX_UNEVENNESS * median:
            return None
        if self._score.homogeneous:
            # Dividing by a power of two rounds nothing.
            factor = math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest > 0 else 1.0
        elif not 1 / _LARGEST_COARSE <= largest <= _LARGEST_COARSE:
            return None
        weights = [head.at_scale(factor).to(torch.float32) for head in self._weights]
        return AttentionWordChange(self.rows.float(), weights, self._score, self.memory_budget)

    def narrowed(self) -> "tuple[AttentionWordChange, Float[Tensor, 'k d']] | None":
        """In the span of what W_Q, W_K and V see, where that is smaller: 3 m coordinates for a head
        of size m."""
        spans = [head.span for head in self._weights]
        if any(span is None for span in spans):
            return None
        together = torch.cat([span for span in spans if span is not None], dim=1)
        if together.shape[1] >= len(together):
            return None
        basis = torch.linalg.qr(together.double()).Q.mT.to(self.rows.dtype)
        weights = [head.within(basis) for head in self._weights]
        return AttentionWordChange(
            self.rows @ basis.mT, weights, self._score, self.memory_budget
        ), basis

    def bytes_per_pair(self) -> int:
        n, d = self.rows.shape
        return (20 * n + 8 * d) * self.rows.element_size()

    def starts(
        self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
    ) -> Float[Tensor, "count w d"]:
        emptied = self._score.kinked and self._score.normalized
        return starting_points(self.heads, words.unsqueeze(1), radius, emptied=emptied).squeeze(2)

    def _evaluate(self, perturbations: Deltas, words: Words, *, gradient: bool) -> Evaluated:
        return sum_over_heads(self._changes, perturbations, words, gradient, max(self.rows.shape))

    def alike(self, other: Objective) -> bool:
        """Texts of one shape under heads of one shape, each with weights of its own."""
        return (
            isinstance(other, AttentionWordChange)
            and (self.rows.shape, self.dtype, self.device)
            == (other.rows.shape, other.dtype, other.device)
            and (self.stages, len(self.heads)) == (other.stages, len(other.heads))
            and self._score == other._score
            and all(
                (one.value is None) == (two.value is None)
                for one, two in zip(self._weights, other._weights, strict=True)
            )
            and self.narrowed() is None
            and other.narrowed() is None
            and (self.coarse() is self) == (other.coarse() is other)
        )

    @classmethod
    def together(cls, objectives: "Sequence[Any]") -> "AttentionTextsChange":
        return AttentionTextsChange(objectives)


class AttentionTextsChange(Objective):
    """Several `AttentionWordChange` of one shape as one problem: n words of each of T texts,
    numbered through."""

    def __init__(self, texts: Sequence[AttentionWordChange]):
        first = texts[0]
        super().__init__(
            first.shape,
            dtype=first.dtype,
            device=first.device,
            memory_budget=first.memory_budget,
            typical_length=min(each.typical_length for each in texts),
        )
        self._texts, self.stride = tuple(texts), len(first.rows)
        self.stages, self.kinked = first.stages, first.kinked
        self._changes = [
            HeadChange(heads) for heads in zip(*(each.heads for each in texts), strict=True)
        ]

    @property
    def alone(self) -> Sequence[AttentionWordChange]:
        return self._texts

    def coarse(self) -> Objective:
        """That of every text; all have one, or none has."""
        coarse = [each.coarse() for each in self._texts]
        return self if coarse[0] is self._texts[0] else AttentionTextsChange(coarse)

    def bytes_per_pair(self) -> int:
        return self._texts[0].bytes_per_pair()

    def starts(
        self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
    ) -> Float[Tensor, "count w d"]:
        parts = zip(self._texts, words.chunk(self.texts), radius.chunk(self.texts), strict=True)
        return torch.cat(
            [each.starts(some % self.stride, reach) for each, some, reach in parts], dim=1
        )

    def _evaluate(self, perturbations: Deltas, words: Words, *, gradient: bool) -> Evaluated:
        numbers = max(self._texts[0].rows.shape)
        return sum_over_heads(self._changes, perturbations, words, gradient, numbers)


def attention_stages(words: int, d: int) -> Stages:
    """The stages of a search of this text: less for each word of a longer text, whose words share
    what is attained."""
    if words * d <= _SMALL_TEXT:
        return Stages(starts=64, generations=6, leaders=6, finish=150)
    return Stages(
        starts=32,
        halvings=(4, 8, 12),
        generations=min(6, max(2, 300 // words)),
        children=6,
        leaders=6,
        finish=150,
    )
