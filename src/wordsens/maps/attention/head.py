"""One attention head on one text: its squared changes when one word moves, for a batch of words and perturbations.

Changing word i moves one column of the scores and row i. What that does to the other rows has a closed form
(attention_rows); row i itself is evaluated plainly. A batch of (word, Delta) pairs costs a few matrix products.
"""

from collections.abc import Sequence
from functools import reduce

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.other_rows import Dominant, OtherRows
from wordsens.maps.attention.products import Counts, add_and_double, times
from wordsens.maps.attention.scores import ClosedForm, Response
from wordsens.maps.attention.scores.closed_form import row_blocks
from wordsens.maps.attention.spread import ScoredHead
from wordsens.maps.attention.weights import HeadWeights

_CACHED_NUMBERS = 1 << 19
"""The most numbers that one intermediate array may have on a CPU: a few of them fit in its cache."""

_LEAST_PAIRS = 64
"""Fewer pairs at a time would make the matrix products slow."""


class Head(OtherRows, ScoredHead):
    """One attention head on one text: everything that does not depend on Delta. O(n² d + n d²) once, n² memory.

    `joined` heads serve several texts of n words: word i of text t is word t n + i, rows are counted within a text.
    Once it has moved, row i's scores are multiplied by `own_share`: below 1 on relatives alone.
    """

    def __init__(self, rows: Float[Tensor, "n d"], weights: HeadWeights, score: ClosedForm, own_share: float = 1.0):
        self.rows = rows
        self.score, self.own_share = score, own_share
        self.queries, self.keys = weights.queries(rows), weights.keys(rows)
        self.symmetric, self.lift = weights.symmetric, weights.value
        self.scores = weights.scores(rows)
        values = weights.values(rows)
        # Differences of rows are what matters where weights sum to one: taking the mean away first keeps them exact
        # when rows are nearly parallel.
        centre = values.mean(dim=0) if score.sums_to_one else torch.zeros_like(values[0])
        self.values = values - centre
        self.response: Response = score.response(self.scores)
        self.outputs = torch.empty_like(values)
        if score.normalized:
            self._attend_divided()
            self.stacked = torch.cat([self.queries, -self.lifted(self.outputs), self.keys])
        else:
            self.dominant = None
            self.squared_values = torch.linalg.vecdot(values, values)
            self.outputs = score.attention(self.scores) @ self.values
            self.stacked = torch.cat([self.queries, self.keys])

    @classmethod
    def joined(cls, heads: "Sequence[Head]") -> "Head":
        """One W on several texts of equal length, at once."""
        result = object.__new__(cls)
        result.score, result.symmetric, result.lift = heads[0].score, heads[0].symmetric, heads[0].lift
        result.own_share = heads[0].own_share
        kept = "lengths" if result.score.normalized else "squared_values"
        for name in ("scores", "values", "outputs", kept):
            setattr(result, name, torch.cat([getattr(head, name) for head in heads]))
        result.stacked = torch.stack([head.stacked for head in heads])
        result.response = Response.joined([head.response for head in heads])
        result.dominant = Dominant.joined([head.dominant for head in heads], heads[0].scores.shape[0])
        return result

    def _attend_divided(self) -> None:
        """The outputs, the squared lengths ‖r_ji‖² (word first), and the rows that one word dominates."""
        n = self.rows.shape[0]
        self.lengths = self.scores.new_empty(n, n)
        found = []
        for block in row_blocks(n, n):
            attention = self.score.attention(self.scores[block])
            self.outputs[block] = attention @ self.values
            # Differences are formed before they are squared, so close rows keep their digits.
            distances = torch.cdist(self.values, self.outputs[block], compute_mode="donot_use_mm_for_euclid_dist")
            self.lengths[:, block] = distances.square_()
            largest, word = attention.max(dim=1)
            dominated = (largest > 0.5).nonzero().squeeze(1)
            without = self.score.attention_without(self.scores[block][dominated], word[dominated])
            rest = self.values[word[dominated]] - without @ self.values
            found.append((word[dominated], dominated + block.start, rest))
        words, rows, rest = (torch.cat(part) for part in zip(*found, strict=True))
        self.lengths[words, rows] = rest.square().sum(dim=1)
        self.dominant = Dominant(words, rows, rest) if len(words) else None

    def evaluate(
        self, delta: Float[Tensor, "b d"], words: Int[Tensor, " b"], gradient: bool, counts: Counts = None
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b d"] | None]:
        """The squared changes and gradients; of several texts, with the pairs sorted by text, `counts` of each."""
        n = self.scores.shape[1]
        row_of_word = words if counts is None else words % n
        at = row_of_word.unsqueeze(1)
        values = self.values if counts is None else self.values.unflatten(0, (-1, n))
        products = times(delta, self.stacked.mT, counts)
        moved, keyed, along = products[:, :n], products[:, -n:], None
        if self.score.normalized:
            along = products[:, n : 2 * n]
        to_own = moved.gather(1, at)
        seen = self.seen(delta)
        squared, result = self.others(seen, words, row_of_word, moved, along, gradient)

        # Row i, whose query, key and value all move.
        pushed = delta @ self.symmetric
        new_scores = self.scores.index_select(0, words).add_(keyed)
        new_scores.scatter_add_(1, at, to_own + 0.5 * torch.linalg.vecdot(pushed, delta).unsqueeze(1))
        if self.own_share != 1.0:
            new_scores *= self.own_share
        attention = self.score.attention(new_scores)
        to_itself = attention.gather(1, at)
        change = times(attention, values, counts).sub_(self.outputs.index_select(0, words)).addcmul_(to_itself, seen)
        squared += torch.linalg.vecdot(change, change)
        if result is None:
            return squared, None

        # What the gradient takes from each stacked row is written where the products were.
        on_weights = times(change, values.mT, counts)
        on_weights.scatter_add_(1, at, torch.linalg.vecdot(change, seen).unsqueeze(1))
        own_slope = self.score.pull_back(new_scores, attention, on_weights)
        if self.own_share != 1.0:
            own_slope = own_slope * self.own_share
        own_self = own_slope.gather(1, at)
        moved.scatter_(1, at, own_self)
        keyed.copy_(own_slope)
        result = self.lifted(result.addcmul_(to_itself, change)).addcmul_(own_self, pushed)
        return squared, add_and_double(result, products, self.stacked, counts)


def in_cache(
    heads: Sequence[OtherRows],
    perturbations: Float[Tensor, "b k"],
    words: Int[Tensor, " b"],
    gradient: bool,
    numbers: int,
) -> tuple[Float[Tensor, " b"], Float[Tensor, "b k"] | None]:
    """The sum over the heads; a pair's arrays have up to `numbers` entries."""
    pieces = [(perturbations, words)]
    # Pieces that stay in the processor's cache: past it, memory traffic costs more than the products.
    size = max(_LEAST_PAIRS, _CACHED_NUMBERS // numbers)
    if perturbations.device.type == "cpu" and len(words) > size:
        pieces = list(zip(perturbations.split(size), words.split(size), strict=True))
    squared, slopes = [], []
    for delta, word in pieces:
        values, uphill = zip(*(head.evaluate(delta, word, gradient) for head in heads), strict=True)
        squared.append(reduce(torch.add, values))
        if gradient:
            slopes.append(reduce(torch.add, uphill))
    return torch.cat(squared), torch.cat(slopes) if gradient else None
