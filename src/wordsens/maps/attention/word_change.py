"""The change of an attention layer when one word moves, for every word at the price of one plain evaluation."""

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.candidates import candidates, unseen
from wordsens.maps.attention.head import Head, in_cache
from wordsens.maps.attention.own_row_alone import emptied
from wordsens.maps.attention.reduced import ReducedAttentionChange
from wordsens.maps.attention.scores import ClosedForm, Score
from wordsens.maps.attention.spread import OWN_DIRECTIONS, directions, spread
from wordsens.maps.attention.turned import turned
from wordsens.maps.attention.vanishing import vanishing
from wordsens.maps.attention.vertices import vertices
from wordsens.maps.attention.weights import HeadWeights
from wordsens.maps.word_change import WordChange
from wordsens.search.plan import Stages

_SHORTER = 1.5
"""Times as long as the coordinates of their span words are, at least, where a search explores in it: an evaluation at
n = 100 takes 4.3 us there for 30.8 at d = 768, and 4.4 for 12.5 at d = 384."""

_LEAST_REDUCED = 200
"""Words from which on a search explores a sketch of the change: at n = 250 it finds as much in half the time."""


_MOST_SMALL = 8192
"""Coordinates of a text up to which it is searched widely: twice to three times the evaluations."""

_SEVERAL_HEADS = 12
"""Generations on small texts under several heads, in place of 4, at half as many evaluations again: on two problems
that an attack found 4 and 3 % low 9 of 18 words rose by 1 to 5 %; two stayed 4 % low."""


_EMPTIED = 8
"""Points at which a row is left to the word, of which a search of longer texts climbs the best so many."""

_STEEP = 30.0
"""A bound of the scores' reach past which a small text is searched again, on smoother relatives: rows are then drawn or
not, with plateaus between. At temperature .01, 32 words in 64 coordinates, S of six runs differed by 1.5 %; words under
a tanh of one's own at .07 were 1 to 6 % low."""

_FAR = 10.0
"""Times as far as another row's score with the word its own may move, from which on a ball is far: there the own score,
a quadratic form, is a step on relatives that smooth the others, and a climb stays on the side where it began. Words of
a trained head were at .98 in a ball of 1,520 rows' lengths, one of two random ones in 27 coordinates at .94."""

_FARTHEST = 100.0
"""Of the scores' spread: far balls move scores by more, but a word has its row long before."""

LARGEST_COARSE = 1e5
"""Scores past which a search explores in the map's own precision, their unit being what moves weights: in float32 they
are rounded by .006 there. What is best in nearly a step lies at its edge, and past 1e8 points were found on its high
side in float32 and stood on its low side: words at .60 of an attack's value. Below its inverse too: a change may be in
proportion to the scores, and steps divide by fourth powers of it (a tanh of scores of 1e-16: a word at .936)."""

_MOST_UNEVEN = 1e4
"""Times the median score past which the largest one has a search explore in the map's own precision: beside a huge row
others' weights are differences of numbers near 1. A word was at .976 at the wrong one of two hills."""


class AttentionWordChange(WordChange):
    """‖phi(X^i(Delta)) - phi(X)‖² and its gradient for random attention, by the closed form of attention_rows.

    Exact: it agrees with mapping X^i(Delta) to rounding, for every score. A batch of b pairs costs
    O(b (n d + d²)) and b n numbers of memory; b = n is all words at the price of one plain evaluation.
    """

    def __init__(
        self,
        rows: Float[Tensor, "n d"],
        weights: Sequence[HeadWeights],
        score: ClosedForm,
        base_norm: float,
        memory_budget: int,
        own_share: float = 1.0,
    ):
        super().__init__(rows, base_norm, memory_budget)
        self._weights, self._score, self._own_softer = weights, score, False
        self.heads = [Head(rows, head, score, own_share) for head in weights]
        self.plan = attention_plan(len(rows), rows.shape[1], score, len(weights))
        if not score.kinked and not score.homogeneous:
            self.plan = again_if_steep(self.plan, len(rows), self._steepest() * rows.shape[1] ** 0.5)

    def coarse(self) -> "AttentionWordChange":
        return self.coarse_at(self.largest_score)

    @property
    def largest_score(self) -> float:
        """The largest |s_jl| of all heads."""
        return max(float(head.score_sizes.max()) for head in self.heads)

    @property
    def _least_median(self) -> float:
        """The least median |s_jl| of a head."""
        return min(float(head.score_sizes.median()) for head in self.heads)

    def coarse_at(self, unit: float) -> "AttentionWordChange":
        """`coarse` in units of that score, where the units do not matter: the same for texts that share one W."""
        # A float32 copy keeps three n x n arrays; a long text cannot spare them, and its precision is not the limit.
        if self.rows.dtype == torch.float32 or 3 * 4 * len(self.rows) ** 2 > self.memory_budget // 2:
            return self
        largest = self.largest_score
        if largest > _MOST_UNEVEN * self._least_median:
            return self
        factor = 1.0
        if self._score.homogeneous:
            # In units of the scores: at temperatures of 1e20 or 1e-20 their squares would leave float32's range.
            factor = _power_of_two(unit)
        elif not 1 / LARGEST_COARSE <= largest <= LARGEST_COARSE:
            return self
        weights = [head.at_scale(factor).to(torch.float32) for head in self._weights]
        coarse = AttentionWordChange(self.rows.float(), weights, self._score, self.base_norm, self.memory_budget)
        coarse._own_softer = self._own_softer
        return coarse

    def narrowed(self) -> "tuple[AttentionWordChange, Float[Tensor, 'k d']] | None":
        """In the span of what W_Q, W_K and V see, where that is smaller: 3 m coordinates for a head of size m."""
        spans = [head.span for head in self._weights]
        if any(span is None for span in spans):
            return None
        together = torch.cat([span for span in spans if span is not None], dim=1)
        if together.shape[1] >= len(together):
            return None
        basis = torch.linalg.qr(together.double()).Q.mT.to(self.rows.dtype)
        weights = [head.within(basis) for head in self._weights]
        change = (self.rows @ basis.mT, weights, self._score, self.base_norm, self.memory_budget)
        return AttentionWordChange(*change), basis

    def reduced(self) -> ReducedAttentionChange | None:
        n, d = self.rows.shape
        if _in_span(n, d, len(self.heads), self._score):
            return _InSpan(self)
        if not _by_sketch(n, self._score):
            return None
        return ReducedAttentionChange(self.rows, self.heads, self.memory_budget, exact=False)

    def softened(self, radius: Float[Tensor, " w"], shares: Sequence[float]) -> "list[AttentionWordChange]":
        """At higher temperatures, or with kinks rounded off, over shares of the spread of the scores within the ball.

        Whether a share would make a difference is told from the ball and W alone: texts searched together agree in it.
        """
        found = spread(self.heads, self._steepest(), radius)
        # Where a row's weights are divided, what the row has already is what one word's part is measured by.
        width = min(found.moved, _FARTHEST * found.now) if self._score.normalized and found.now > 0 else found.moved
        result = []
        for share in shares:
            rounded = self._score.softened(share * width) if width > 0 else None
            if rounded is None and (self._score.kinked or self._score.homogeneous or share * found.largest <= 1):
                continue
            score = self._score if rounded is None else rounded
            factor = max(1.0, share * found.typical) if rounded is None else 1.0
            weights = [head.at_scale(factor) for head in self._weights]
            own_share = self._own_share(radius, found.moved) if self._own_softer and rounded is None else 1.0
            result.append(AttentionWordChange(self.rows, weights, score, self.base_norm, self.memory_budget, own_share))
        return result

    def second_look(self, radius: Float[Tensor, " w"]) -> "AttentionWordChange | None":
        """In a far ball, one whose relatives smooth the own row's scores by what its score with itself moves.

        As for `softened`, the ball and W alone tell: texts searched together agree.
        """
        own = max(0.5 * float(torch.linalg.matrix_norm(head.symmetric, ord=2)) for head in self.heads)
        far = float(radius.max()) * own > _FAR * self._steepest()
        if not (far and self.plan.chosen) or self._score.kinked or self._score.homogeneous:
            return None
        other = copy(self)
        other._own_softer = True
        return other

    def _own_share(self, radius: Float[Tensor, " w"], moved: float) -> float:
        """By what the own row's scores are multiplied for its score with itself to move as far as the others do."""
        own = max(0.5 * float(torch.linalg.matrix_norm(head.symmetric, ord=2)) for head in self.heads)
        return min(1.0, moved / (float(radius.max()) ** 2 * own)) if moved > 0 < own else 1.0

    def rounded(self, radius: Float[Tensor, " w"], shares: Sequence[float]) -> "list[AttentionWordChange]":
        """With kinks rounded off over shares of the scores' own spread, or of what the ball adds where that is less."""
        if self._score.rounded(1.0) is None:
            return []
        found = spread(self.heads, self._steepest(), radius)
        widths = [share * (min(found.now, found.moved) if found.now > 0 else found.moved) for share in shares]
        scores = [self._score.rounded(width) for width in widths if width > 0]
        return [
            AttentionWordChange(self.rows, self._weights, score, self.base_norm, self.memory_budget)
            for score in scores
            if score is not None
        ]

    def _steepest(self) -> float:
        """A bound of how fast a score moves with a word of length 1."""
        return max(head.steepest for head in self._weights)

    def bytes_per_pair(self) -> int:
        n, d = self.rows.shape
        return (20 * n + 8 * d) * self.rows.element_size()

    def starting_directions(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Float[Tensor, "starts w d"]:
        """sum_j u_j, along which Theorem 3's witness lies, mixed with ± the top eigenvectors of W + W^T; both alone.

        The eigenvectors raise the changed word's score with itself fastest, which is what moves row i.
        """
        return self.directions([head.top_directions for head in self.heads]).unsqueeze(1).expand(-1, len(words), -1)

    def candidates(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Float[Tensor, "count w d"]:
        if self.rows.numel() > _MOST_SMALL:
            return emptied(self.heads, words, radius)
        found = candidates(self.rows, self.heads, words, radius, cleared=self._score.kinked)
        if not self._score.monotone:
            found = torch.cat([found, unseen(self.heads, words, radius)])
        if self._score.kinked and self._score.homogeneous and self._score.normalized:
            found = torch.cat([found, vanishing(self, self.rows, self.heads, words, radius)])
        found = torch.cat([found, vertices(self, self.heads, words, radius)])
        if self.plan.again:
            found = torch.cat([found, turned(self.heads, words, radius, largest=self._score.sums_to_one)])
        return found

    def directions(self, top: list[Float[Tensor, "m d"]]) -> Float[Tensor, "starts d"]:
        """The starting directions, the same for every word, from the top eigenvectors of every head."""
        return directions(self.heads, top)

    def kicking_directions(self) -> Float[Tensor, "m d"]:
        """The rows u_j: along u_j the score of row j with the changed word moves, and with it whether j is drawn."""
        return torch.cat([head.queries for head in self.heads])

    def _evaluate(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b d"] | None]:
        return in_cache(self.heads, perturbations, words, gradient, max(self.rows.shape))


class _InSpan(ReducedAttentionChange):
    """A change in few coordinates, row i included, with the smoother relatives of the change itself."""

    def __init__(self, whole: AttentionWordChange, like: "_InSpan | None" = None):
        super().__init__(whole.rows, whole.heads, whole.memory_budget, exact=True, like=like)
        self._whole = whole

    def softened(self, radius: Float[Tensor, " w"], shares: Sequence[float]) -> "list[_InSpan]":
        return [_InSpan(relative, self) for relative in self._whole.softened(radius, shares)]


def _power_of_two(number: float) -> float:
    """The power of two below the number: dividing by it rounds nothing; 1 for zero."""
    return math.ldexp(1.0, math.frexp(number)[1] - 1) if number > 0 else 1.0


def attention_plan(words: int, d: int, score: Score, heads: int = 1) -> Stages:
    """The stages of a search of this text: fewer generations for longer texts, whose words share what is found.

    Where a generation is cheap, since it runs on a sketch, more of them find more than kicks do. On small problems,
    where a step costs little, the search is wider.
    """
    in_span = _in_span(words, d, heads, score)
    reduced = not in_span and _by_sketch(words, score)
    plan = Stages(
        starts=16 if reduced else 48,
        climb_steps=10,
        explored_share=0.0 if reduced else 0.003,
        population=16 if reduced else 12 if in_span else 8,
        generations=min(16, max(3, 3000 // words)) if reduced else min(12, max(2, (700 if in_span else 1000) // words)),
        children=16 if reduced else 12 if in_span else 8,
        kick_steps=0 if score.kinked or reduced else 20 if in_span else 25,
        relays=0 if reduced else 64,
        finalists=2 if reduced else 4,
        steps=200,
        leaders=6 if in_span else 4 if reduced else 0,
        tolerance=1e-9 if in_span or reduced else 1e-12,
        rule="momentum" if score.kinked else "quasi-newton",
    )
    if words * d > _MOST_SMALL:
        # Rounded kinks cost more than kinks do: fewer finalists and generations pay for them.
        few = replace(plan, generations=min(12, max(2, 600 // words)), finalists=2) if score.kinked else plan
        return replace(few, chosen=_EMPTIED) if _ends_at_zero(score) else few
    # Few generations of many children: a step's cost is its calls'. 12 of 24 took 1.6 times as long and found as much.
    return replace(
        plan,
        inner=8,
        chosen=64 if score.kinked else 32,
        chosen_steps=20 if score.kinked else 0,
        soft_steps=8,
        population=16,
        generations=min(_SEVERAL_HEADS if heads > 1 else 4, plan.generations),
        children=48,
        kick_steps=10,
        noisy=48 if score.kinked else 32,
    )


def _ends_at_zero(score: Score) -> bool:
    """True if a row can be left to one word, by scores that give the others no weight at all."""
    return isinstance(score, ClosedForm) and score.kinked and score.normalized


def again_if_steep(plan: Stages, words: int, reach: float) -> Stages:
    """The stages of a text whose scores a default ball moves by up to `reach`."""
    return replace(plan, again=words) if plan.chosen and reach > _STEEP else plan


def _in_span(words: int, d: int, heads: int, score: Score) -> bool:
    """True if a search explores in the span of the u_j of all heads and their own directions: where that is small.

    Not for kinked and homogeneous scores, whose words' own rows may hold most of the change: with the keys in the span
    as well divided ReLU lost 9 % in the mean at n = 100, d = 768; without them linear scores lost 1.4 % at d = 384.
    """
    small = words * d > _MOST_SMALL and _SHORTER * heads * (words + OWN_DIRECTIONS) <= d
    small &= words < _LEAST_REDUCED
    return small and isinstance(score, ClosedForm) and not score.kinked and not score.homogeneous


def _by_sketch(words: int, score: Score) -> bool:
    """True if a search that cannot explore in a small span does with a sketch; not over kinks: there the own row alone
    may hold most of the change."""
    return words >= _LEAST_REDUCED and not score.kinked
