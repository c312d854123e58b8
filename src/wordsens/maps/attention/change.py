"""The closed form of attention's change: one head on one text, one word moved, for a batch of words
and perturbations.

With u_j = W^T x_j / scale, the score that row j gives word i becomes s_ji + u_j . Delta, so for j
!= i (derivation: docs/proofs.md#the-rows-other-than-i)

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
from collections.abc import Callable, Hashable, Sequence
from functools import reduce
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.head import HeadWeights, ScoredHead, attention_starts
from wordsens.maps.attention.scores import ClosedForm, Moved, Response
from wordsens.maps.attention.scores.base import row_blocks
from wordsens.maps.base import Change, Pull, replacements
from wordsens.search.objective import Deltas, Evaluated, Places
from wordsens.search.plan import Stages

# The most numbers that one intermediate array may have on a CPU: a few of them fit in its cache.
_CACHED_NUMBERS = 1 << 19

# Fewer pairs at a time would make the matrix products slow.
_LEAST_PAIRS = 64


class Head(ScoredHead):
    """One attention head on one text: everything that does not depend on Delta. O(n² d + n d²)
    once, n² memory.

    Where a word takes over half of a row, (x_i - o_j)/(1 - a_ji) would cancel: r_ji is stored.

    Attributes:
        score, response: what the weights are made with, and how they answer to one moved score.
        lift: (d, m), V with V^T Delta what the value of the moved word changes by; None: the
            identity.
        values, outputs: (n, m), of every row; where weights sum to one without the values' mean.
        lengths: [word, row], (n, n), ‖r_ji‖² where weights are divided by their sum; else (n, 1),
            of r_ji = x_i.
        owner: (n,), the word that takes over half of each row; -1 where none does.
        rest: (n, m), r_ji of that word; zero where there is none.
    """

    def __init__(self, rows: Float[Tensor, "n d"], weights: HeadWeights, score: ClosedForm):
        super().__init__(rows, weights)
        self.score, self.lift = score, weights.value
        values = weights.values(rows)
        # Differences of rows are what matters where weights sum to one: taking the mean away first
        # leaves them exact when rows are nearly parallel.
        self.values = values - values.mean(dim=0) if score.sums_to_one else values
        self.response: Response = score.response(self.scores)
        self.outputs, self.rest = torch.empty_like(values), torch.zeros_like(values)
        self.owner = torch.full((len(rows),), -1, device=rows.device)
        if score.normalized:
            self.lengths = self.scores.new_empty(len(rows), len(rows))
            for block in row_blocks(*self.scores.shape):
                self._attend_divided(block)
        else:
            self.lengths = torch.linalg.vecdot(values, values).unsqueeze(1)
            self.outputs = score.attention(self.scores) @ self.values

    def _attend_divided(self, block: slice) -> None:
        """The outputs of these rows, the squared lengths ‖r_ji‖², and the words that own rows."""
        attention = self.score.attention(self.scores[block])
        self.outputs[block] = attention @ self.values
        # Differences are formed before they are squared, so close rows keep their digits.
        distances = torch.cdist(
            self.values, self.outputs[block], compute_mode="donot_use_mm_for_euclid_dist"
        )
        self.lengths[:, block] = distances.square_()
        largest, word = attention.max(dim=1)
        owned = (largest > 0.5).nonzero().squeeze(1)
        word, rows = word[owned], owned + block.start
        without = self.score.attention_without(self.scores[rows], word)
        self.owner[rows] = word
        self.rest[rows] = self.values[word] - without @ self.values
        self.lengths[word, rows] = self.rest[rows].square().sum(dim=1)

    @property
    def stacked(self) -> Float[Tensor, "stacked d"]:
        """The u_j, the -V o_j where weights are divided, and the keys: all that meets Delta."""
        if not self.score.normalized:
            return torch.cat([self.queries, self.keys])
        outputs = self.outputs if self.lift is None else self.outputs @ self.lift.mT
        return torch.cat([self.queries, -outputs, self.keys])


class OwnRow(NamedTuple):
    """The changed word's own row: its change, its attention to itself, (W + W^T) Delta / scale, and
    the gradient in its scores from one in its change."""

    change: Float[Tensor, "b m"]
    to_itself: Float[Tensor, "b 1"]
    pushed: Float[Tensor, "b d"]
    pull_back: Callable[[Tensor], Tensor]


class HeadChange:
    """The squared change of one head on T texts of n words; pairs come text by text, as many of
    each.

    What is read by word has T n rows; what multiplies the pairs of a text has T as its first axis.
    """

    def __init__(self, heads: Sequence[Head]):
        def by_text(parts: list[Tensor]) -> Tensor:
            return torch.stack(parts)

        first = heads[0]
        self.score, self.n, self.texts = first.score, len(first.rows), len(heads)
        self.response = type(first.response).joined([head.response for head in heads])
        self.scores = _by_word([head.scores for head in heads])
        self.values = _by_word([head.values for head in heads])
        self.outputs = _by_word([head.outputs for head in heads])
        self.lengths = _by_word([head.lengths for head in heads])
        self.stacked = by_text([head.stacked for head in heads])
        self.symmetric = by_text([head.symmetric for head in heads])
        lifts = [head.lift for head in heads if head.lift is not None]
        self.lift = by_text(lifts) if lifts else None
        # The rows that a word owns, first of each text: so many as the text with the most has.
        owner = by_text([head.owner for head in heads])
        most = int((owner >= 0).sum(dim=1).amax())
        self.order = (owner < 0).to(torch.int8).argsort(dim=1, stable=True)[:, :most]
        self.owner = owner.gather(1, self.order)
        of_rows = self.order.unsqueeze(2).expand(-1, -1, self.values.shape[1])
        self.rest = by_text([head.rest for head in heads]).gather(1, of_rows)
        # Of each word: whether it owns rows, their places among these, and the rows, all different.
        owns = self.owner.unsqueeze(1) == torch.arange(self.n, device=owner.device).unsqueeze(1)
        most = int(owns.sum(dim=2).amax()) if most else 0
        place = (~owns).to(torch.int8).argsort(dim=2, stable=True)[..., :most]
        rows = self.order.unsqueeze(1).expand_as(owns).gather(2, place)
        parts = owns.gather(2, place), place, rows
        self.owned = tuple(part.flatten(end_dim=1) for part in parts) if most else None

    def evaluate(
        self, delta: Float[Tensor, "b d"], column: Int[Tensor, " b"], gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b d"] | None]:
        """The squared change of every pair of a word of its text and a Delta, and its gradient in
        Delta where requested."""
        n, words = self.n, self._numbered(column)
        column = column.unsqueeze(1)
        products = self._times(delta, self.stacked.mT)
        moved, keyed = products[:, :n], products[:, -n:]
        along = products[:, n : 2 * n] if self.score.normalized else None
        value_delta = delta if self.lift is None else self._times(delta, self.lift)
        own = self._own_row(delta, value_delta, words, column, moved, keyed)
        squared, half_gradient = self._others(value_delta, words, column, moved, along, gradient)
        squared += torch.linalg.vecdot(own.change, own.change)
        if half_gradient is None:
            return squared, None

        # What the gradient takes from each stacked row is written where the products were.
        row_slope = own.pull_back(own.change)
        to_self = row_slope.gather(1, column)
        moved.scatter_(1, column, to_self)
        keyed.copy_(row_slope)
        half_gradient.addcmul_(own.to_itself, own.change)
        if self.lift is not None:
            half_gradient = self._times(half_gradient, self.lift.mT)
        half_gradient.addcmul_(to_self, own.pushed)
        by_text = [part.unflatten(0, (self.texts, -1)) for part in (half_gradient, products)]
        by_text[0].baddbmm_(by_text[1], self.stacked, beta=2, alpha=2)
        return squared, half_gradient

    def _own_row(
        self,
        delta: Float[Tensor, "b d"],
        value_delta: Float[Tensor, "b m"],
        words: Int[Tensor, " b"],
        column: Int[Tensor, "b 1"],
        moved: Float[Tensor, "b n"],
        keyed: Float[Tensor, "b n"],
    ) -> "OwnRow":
        """The change of row i, whose query, key and value all move."""
        pushed = self._times(delta, self.symmetric)
        scores = self.scores.index_select(0, words).add_(keyed)
        to_self = moved.gather(1, column) + 0.5 * torch.linalg.vecdot(pushed, delta).unsqueeze(1)
        scores.scatter_add_(1, column, to_self)
        attention = self.score.attention(scores)
        to_itself = attention.gather(1, column)
        values = self.values.unflatten(0, (self.texts, -1))
        change = self._times(attention, values).sub_(self.outputs.index_select(0, words))
        change.addcmul_(to_itself, value_delta)

        def pull_back(slope: Tensor) -> Tensor:
            on_weights = self._times(slope, values.mT)
            on_weights.scatter_add_(1, column, torch.linalg.vecdot(slope, value_delta).unsqueeze(1))
            return self.score.pull_back(scores, attention, on_weights)

        return OwnRow(change, to_itself, pushed, pull_back)

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
            words, column: each word among those of all texts, and in its text.
            moved: u_j . Delta; where the gradient is requested, overwritten by what it takes from
                each u_j.
            along: -o_j . V^T Delta, for weights that are divided by their sum; likewise
                overwritten. None for others.
        """
        value = self.values.index_select(0, words)
        with_value = torch.linalg.vecdot(value, value_delta).unsqueeze(1)
        on_rest_of_word = with_value if along is None else along.add_(with_value)
        answer = self._answer(moved, words, column)
        p, gain = answer.p, answer.gain
        owned = place = rows = None
        if along is not None and self.owned is not None:
            owned, place, rows = (part.index_select(0, words) for part in self.owned)
            on_rests = self._times(value_delta, self.rest.mT).gather(1, place)
            along.scatter_(1, rows, torch.where(owned, on_rests, along.gather(1, rows)))
        length = self.lengths.index_select(0, words)
        on_delta = torch.addcmul(
            p * torch.linalg.vecdot(value_delta, value_delta).unsqueeze(1), gain, on_rest_of_word
        )
        on_rest = torch.addcmul(p * on_rest_of_word, gain, length)
        squared = torch.linalg.vecdot(p, on_delta) + torch.linalg.vecdot(gain, on_rest)
        if not gradient:
            return squared, None

        torch.mul(answer.p_slope, on_delta, out=moved).addcmul_(answer.gain_slope, on_rest)
        half_gradient = torch.linalg.vecdot(p, p).unsqueeze(1) * value_delta
        if along is None:
            pulled = torch.linalg.vecdot(p, gain).unsqueeze(1)
            return squared, half_gradient.addcmul_(pulled, value)
        torch.mul(p, gain, out=along)
        if owned is not None and place is not None and rows is not None:
            taken = along.gather(1, rows)
            along.scatter_(1, rows, taken.masked_fill(owned, 0.0))
            of_rests = along.new_zeros(len(words), self.rest.shape[1])
            of_rests.scatter_add_(1, place, taken.masked_fill_(~owned, 0.0))
            half_gradient += self._times(of_rests, self.rest)
        return squared, half_gradient.addcmul_(along.sum(dim=1, keepdim=True), value)

    def _answer(
        self, moved: Float[Tensor, "b n"], words: Int[Tensor, " b"], column: Int[Tensor, "b 1"]
    ) -> Moved:
        """The answer of all rows but the word's own, whose p and gain are zero, to these moves."""
        answer = self.response.move(moved, words)
        if self.owned is not None:
            owned, _, rows = (part.index_select(0, words) for part in self.owned)
            gain = self.response.owned_gain(moved.gather(1, rows), words.unsqueeze(1), rows)
            slope = answer.p_slope.gather(1, rows)
            for array, there in ((answer.gain, gain), (answer.gain_slope, slope)):
                array.scatter_(1, rows, torch.where(owned, there, array.gather(1, rows)))
        answer.p.scatter_(1, column, 0.0)
        answer.gain.scatter_(1, column, 0.0)
        return answer

    def functionals(
        self, delta: Float[Tensor, "b d"], column: Int[Tensor, " b"], thetas: Float[Tensor, "f n m"]
    ) -> tuple[Float[Tensor, "b f"], Callable[[Float[Tensor, "b f"]], Float[Tensor, "b d"]]]:
        """c . theta for the change c of one text and several theta, and from weights of each the
        gradient of their weighted sum.

        c . theta = sum over j != i of [p_ji V^T Delta . theta_j + (p_ji - a_ji) r_ji . theta_j] +
        (change of row i) . theta_i, theta_j being row j of theta; r_ji . theta_j does not depend on
        Delta (docs/proofs.md#linear-functionals-of-the-features).
        """
        n, words, flat = self.n, column, thetas.flatten(end_dim=1)
        column = column.unsqueeze(1)
        products = self._times(delta, self.stacked.mT)
        moved, keyed = products[:, :n], products[:, -n:]
        value_delta = delta if self.lift is None else self._times(delta, self.lift)
        own = self._own_row(delta, value_delta, words, column, moved, keyed)
        answer = self._answer(moved, words, column)
        on_delta = (value_delta @ flat.T).unflatten(1, (-1, n))
        different, index = words.unique(return_inverse=True)
        on_rest = self._rest_products(different, thetas)[index]
        values = torch.einsum("bn,bfn->bf", answer.p, on_delta)
        values += torch.einsum("bn,bfn->bf", answer.gain, on_rest)
        values += torch.einsum("bm,fbm->bf", own.change, thetas[:, words])

        def gradient(weights: Tensor) -> Tensor:
            on_change = torch.einsum("bf,fbm->bm", weights, thetas[:, words])
            row_slope = own.pull_back(on_change)
            to_self = row_slope.gather(1, column)
            coefficients = answer.p_slope * torch.einsum("bf,bfn->bn", weights, on_delta)
            coefficients += answer.gain_slope * torch.einsum("bf,bfn->bn", weights, on_rest)
            coefficients.scatter_(1, column, to_self)
            of_p = weights.unsqueeze(2) * answer.p.unsqueeze(1)
            on_value = own.to_itself * on_change + of_p.flatten(start_dim=1) @ flat
            slope = on_value if self.lift is None else self._times(on_value, self.lift.mT)
            slope = slope + to_self * own.pushed
            return slope + coefficients @ self.stacked[0, :n] + row_slope @ self.stacked[0, -n:]

        return values, gradient

    def _rest_products(
        self, words: Int[Tensor, " w"], thetas: Float[Tensor, "f n m"]
    ) -> Float[Tensor, "w f n"]:
        """r_ji . theta_j for each word i, theta and row j."""
        products = torch.einsum("wm,fnm->wfn", self.values[words], thetas)
        if self.score.normalized:
            products -= torch.linalg.vecdot(self.outputs, thetas)
        which, place = (words.unsqueeze(1) == self.owner).nonzero(as_tuple=True)
        rows = self.order[0, place]
        products[which, :, rows] = torch.einsum("km,fkm->kf", self.rest[0, place], thetas[:, rows])
        return products

    def _times(
        self, vectors: Float[Tensor, "b k"], matrices: Float[Tensor, "T k m"]
    ) -> Float[Tensor, "b m"]:
        """Of every pair its vector times the matrix of its text."""
        return torch.bmm(vectors.unflatten(0, (self.texts, -1)), matrices).flatten(end_dim=1)

    def _numbered(self, column: Int[Tensor, " b"]) -> Int[Tensor, " b"]:
        """Words of a text as words of all texts, one text after the other."""
        if self.texts == 1:
            return column
        first = self.n * torch.arange(self.texts, device=column.device)
        return column + first.repeat_interleave(len(column) // self.texts)


def _by_word(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


# Coordinates of a text up to which all starts climb to their end: its own evaluations are cheap.
_SMALL_TEXT = 8192

# Scores past which a search explores in the map's own precision, and below whose inverse: float32
# rounds them by .006 there, and steps divide by fourth powers of small ones.
_LARGEST_COARSE = 1e5

# Times the median score past which the largest one has a search explore in the map's own precision:
# beside a huge row others' weights are differences of numbers near 1.
_MAX_UNEVENNESS = 1e4


class AttentionChange(Change):
    """‖phi(X^i(Delta)) - phi(X)‖² and its gradient for attention and groups of one word, by the
    closed form of `Head`; of one text, or of several of one shape as one problem.

    Exact: it agrees with mapping X^i(Delta) to rounding, for every score. A batch of b pairs costs
    O(b (n d + d²)) and b n numbers of memory; b = n is all words at the price of one plain
    evaluation.

    Args:
        heads: of each text.
        groups: (m, 1), of each text.
    """

    def __init__(
        self, heads: Sequence[Sequence[Head]], groups: Sequence[Tensor], memory_budget: int
    ):
        super().__init__(heads[0][0].rows, groups[0], memory_budget)
        self.texts, self.heads = len(heads), heads
        self._score: ClosedForm = heads[0][0].score
        self._words = torch.cat(list(groups), dim=1).T
        self._changes = [HeadChange(of_texts) for of_texts in zip(*heads, strict=True)]
        self._coarse: AttentionChange | None = None
        self.stages, self.kinked = attention_stages(*self.rows.shape), self._score.kinked

    def coarse(self) -> "AttentionChange":
        """In float32, unless it loses too much."""
        if self._coarse is None:
            in_float32 = [_in_float32(of_text, self.memory_budget) for of_text in self.heads]
            whole = [of_text for of_text in in_float32 if of_text is not None]
            self._coarse = self._of(whole) if len(whole) == self.texts else self
        return self._coarse

    def narrowed(self) -> "tuple[AttentionChange, Float[Tensor, 'k d']] | None":
        """In the span of what W_Q, W_K and V see, where that is smaller: 3 m coordinates for a head
        of size m."""
        spans = [head.weights.span for head in self.heads[0]]
        if self.texts > 1 or any(span is None for span in spans):
            return None
        together = torch.cat([span for span in spans if span is not None], dim=1)
        if together.shape[1] >= len(together):
            return None
        basis = torch.linalg.qr(together.double()).Q.mT.to(self.rows.dtype)
        rows = self.rows @ basis.mT
        weights = [head.weights.within(basis) for head in self.heads[0]]
        return self._of([[Head(rows, head, self._score) for head in weights]]), basis

    def _of(self, heads: Sequence[Sequence[Head]]) -> "AttentionChange":
        return AttentionChange(heads, self._words.T.split(1, dim=1), self.memory_budget)

    def bytes_per_pair(self) -> int:
        n, d = self.rows.shape
        return (20 * n + 8 * d) * self.rows.element_size()

    def pairs_at_once(self) -> int:
        """As many as stay in a processor's cache: past it, memory traffic costs more than the
        products."""
        most = super().pairs_at_once()
        if self.device.type != "cpu":
            return most
        return min(most, max(_LEAST_PAIRS, _CACHED_NUMBERS // max(self.rows.shape)))

    def starts(
        self, places: Int[Tensor, " w"], radius: Float[Tensor, "w 1"]
    ) -> Float[Tensor, "count w 1 d"]:
        words = self._words.gather(1, places.view(self.texts, -1)).unsqueeze(2)
        of_texts = []
        for heads, members, reach in zip(self.heads, words, radius.chunk(self.texts), strict=True):
            points = attention_starts(heads, members, reach, self._score)
            of_texts.append(torch.cat([points, replacements(heads[0].rows, members, reach)]))
        return torch.cat(of_texts, dim=1)

    def _evaluate(self, perturbations: Deltas, places: Places, *, gradient: bool) -> Evaluated:
        words = self._words.gather(1, places.view(self.texts, -1)).flatten()
        delta = perturbations.squeeze(1)
        parts = [head.evaluate(delta, words, gradient) for head in self._changes]
        values, slopes = zip(*parts, strict=True)
        slope = reduce(torch.add, slopes).unsqueeze(1) if gradient else None
        return reduce(torch.add, values), slope

    @property
    def directions(self) -> Float[Tensor, "count d"]:
        """Along these, words draw other rows' attention (`ScoredHead.directions`)."""
        return torch.cat([head.directions for head in self.heads[0]])

    def functionals(
        self, perturbations: Deltas, places: Places, thetas: Float[Tensor, "f p"], pull: Pull | None
    ) -> tuple[Float[Tensor, "b f"], Deltas | None]:
        """Of one text; thetas (f, heads n m), of heads whose values are the features' own."""
        words, delta = self._words[0, places], perturbations.squeeze(1)
        of_heads = thetas.unflatten(1, (len(self._changes), len(self.rows), -1)).unbind(1)
        parts = [
            head.functionals(delta, words, theta)
            for head, theta in zip(self._changes, of_heads, strict=True)
        ]
        values = reduce(torch.add, [value for value, _ in parts])
        if pull is None:
            return values, None
        weights = pull(values)
        slopes = [gradient(weights) for _, gradient in parts]
        return values, reduce(torch.add, slopes).unsqueeze(1)

    @property
    def joins(self) -> Hashable:
        """Texts of one shape under heads of one shape, each with weights of its own."""
        if self.narrowed() is not None:
            return None
        values = tuple((head.lift is None, head.values.shape[1]) for head in self.heads[0])
        text = (self.rows.shape, self.dtype, self.device, self.coarse() is self)
        return text, self.stages, self._score, values

    @classmethod
    def joined(cls, objectives: "Sequence[AttentionChange]") -> "AttentionChange":
        heads = [each.heads[0] for each in objectives]
        whole = cls(heads, [each.groups for each in objectives], objectives[0].memory_budget)
        whole.typical_length = min(each.typical_length for each in objectives)
        return whole


def _in_float32(heads: Sequence[Head], memory_budget: int) -> list[Head] | None:
    """The heads of a text in float32, with homogeneous scores in units of the largest: the units do
    not matter. None where that would lose too much."""
    rows, score = heads[0].rows, heads[0].score
    # A float32 copy holds three n x n arrays a head; a long text cannot spare them.
    copies = len(heads) * 3 * 4 * len(rows) ** 2
    if rows.dtype == torch.float32 or copies > memory_budget // 2:
        return None
    sizes = [head.score_sizes for head in heads]
    largest = max(float(part.max()) for part in sizes)
    median = min(float(part.median()) for part in sizes)
    if largest > _MAX_UNEVENNESS * median:
        return None
    factor = 1.0
    if score.homogeneous:
        # Dividing by a power of two rounds nothing.
        factor = math.ldexp(1.0, math.frexp(largest)[1] - 1) if largest > 0 else 1.0
    elif not 1 / _LARGEST_COARSE <= largest <= _LARGEST_COARSE:
        return None
    weights = [head.weights.at_scale(factor).to(torch.float32) for head in heads]
    return [Head(rows.float(), head, score) for head in weights]


def attention_stages(words: int, d: int) -> Stages:
    """The stages of a search of this text: less per word for a longer text, whose words share good
    directions."""
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
