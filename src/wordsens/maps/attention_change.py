"""The change of an attention layer when one word moves, for every word at the price of one plain evaluation.

Changing word i moves one column of the scores and row i. With u_j = W^T x_j / scale, the score that row j gives word i
becomes s_ji + u_j . Delta, so for j != i (derivation: docs/theory/attention.md)

    change of row j = p_ji Delta + (p_ji - a_ji) r_ji,    r_ji = x_i - m_ji = (x_i - o_j)/(1 - a_ji),

a_ji and p_ji being the attention of row j to word i before and after, o_j the output of row j and m_ji its output
without word i (zero for scores that are not divided by their sum). Squared norms expand into inner products of Delta
with the rows of three fixed matrices, so a batch of (word, Delta) pairs costs a few matrix products. Row i itself is
evaluated plainly.

Arrays indexed [word, row] are stored word first: a batch gathers whole rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.feature_map import WordChange
from wordsens.maps.attention_products import Counts, add_and_double, times
from wordsens.maps.scores import Response, Score, row_blocks
from wordsens.search_plan import SearchPlan

_CACHED_NUMBERS = 1 << 19
"""How many numbers one intermediate array may have on a CPU: a few of them fit in its cache."""

_OWN_DIRECTIONS = 6
"""Eigenvectors of W + W^T that starts are made of: 6 found more than 1 or 3, and as much as 12 (n = 250, d = 768)."""

_LEAST_PAIRS = 64
"""Fewer pairs at a time would make the matrix products slow."""


class _Head:
    """One attention head on one text: everything that does not depend on Delta. O(n² d + n d²) once, n² memory.

    `joined` heads serve several texts of n words: word i of text t is word t n + i, rows are counted within a text.
    """

    def __init__(self, rows: Float[Tensor, "n d"], matrix: Float[Tensor, "d d"], scale: float, score: Score):
        self.rows = rows
        self.score = score
        self.queries = rows @ matrix / scale  # row j is u_j
        self.keys = rows @ matrix.T / scale  # row l is W x_l / scale
        self.symmetric = (matrix + matrix.T) / scale
        self.scores = self.queries @ rows.T
        # Differences of rows are what matters where weights sum to one: taking the mean away first keeps them exact
        # when rows are nearly parallel.
        centre = rows.mean(dim=0) if score.sums_to_one else torch.zeros_like(rows[0])
        self.values = rows - centre
        self.response: Response = score.response(self.scores)
        self.outputs = torch.empty_like(rows)
        if score.normalized:
            self._attend_divided()
            self.stacked = torch.cat([self.queries, self.keys, -self.outputs])
        else:
            self.dominant = None
            self.squared_values = torch.linalg.vecdot(rows, rows)
            self.outputs = score.attention(self.scores) @ self.values
            self.stacked = torch.cat([self.queries, self.keys])

    @classmethod
    def joined(cls, heads: "Sequence[_Head]") -> "_Head":
        """One W on several texts of equal length, at once."""
        result = object.__new__(cls)
        result.score, result.symmetric = heads[0].score, heads[0].symmetric
        kept = "lengths" if result.score.normalized else "squared_values"
        for name in ("scores", "values", "outputs", kept):
            setattr(result, name, torch.cat([getattr(head, name) for head in heads]))
        result.stacked = torch.stack([head.stacked for head in heads])
        result.response = Response.joined([head.response for head in heads])
        result.dominant = _Dominant.joined([head.dominant for head in heads], heads[0].scores.shape[0])
        return result

    def top_directions(self) -> Float[Tensor, "m d"]:
        """The top eigenvectors of W + W^T: along them the changed word's score with itself rises fastest."""
        return torch.linalg.eigh(self.symmetric)[1].T.flip(0)[:_OWN_DIRECTIONS]

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
        self.dominant = _Dominant(words, rows, rest) if len(words) else None

    def evaluate(
        self, delta: Float[Tensor, "b d"], words: Int[Tensor, " b"], gradient: bool, counts: Counts = None
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b d"] | None]:
        """The squared changes and gradients; of several texts, with the pairs sorted by text, `counts` of each."""
        n = self.scores.shape[1]
        pair = torch.arange(len(words), device=words.device)
        row_of_word = words if counts is None else words % n
        values = self.values if counts is None else self.values.unflatten(0, (-1, n))
        products = times(delta, self.stacked.mT, counts)
        moved, keyed = products[:, :n], products[:, n : 2 * n]
        to_own = moved[pair, row_of_word]
        answer = self.response.move(moved, words)
        p, gain = answer.p, answer.gain
        own = self.values.index_select(0, words)
        along = torch.linalg.vecdot(own, delta).unsqueeze(1)
        dominated = None
        if self.score.normalized:
            along = products[:, 2 * n :].add_(along)
            length = self.lengths.index_select(0, words)
            if self.dominant is not None:
                dominated = self.dominant.pairs(words)
                which, row, rest = dominated
                gain[which, row] = self.response.dominant_gain(moved[which, row], words[which], row)
                answer.gain_slope[which, row] = answer.p_slope[which, row]
                along[which, row] = torch.linalg.vecdot(rest, delta[which])
        else:
            length = self.squared_values.index_select(0, words).unsqueeze(1)
        # Row i is not of this form: it is taken out here and evaluated plainly below.
        p[pair, row_of_word] = 0
        gain[pair, row_of_word] = 0
        on_delta = torch.addcmul(p * torch.linalg.vecdot(delta, delta).unsqueeze(1), gain, along)
        on_rest = torch.addcmul(p * along, gain, length)
        squared = torch.linalg.vecdot(p, on_delta) + torch.linalg.vecdot(gain, on_rest)

        # Row i, whose query, key and value all move.
        pushed = delta @ self.symmetric
        new_scores = self.scores.index_select(0, words).add_(keyed)
        new_scores[pair, row_of_word] += to_own + 0.5 * torch.linalg.vecdot(pushed, delta)
        attention = self.score.attention(new_scores)
        to_itself = attention[pair, row_of_word].unsqueeze(1)
        change = times(attention, values, counts).sub_(self.outputs.index_select(0, words)).addcmul_(to_itself, delta)
        squared += torch.linalg.vecdot(change, change)
        if not gradient:
            return squared, None

        # Half of the gradient. What it takes from each stacked row is written where the products were.
        on_weights = times(change, values.mT, counts)
        on_weights[pair, row_of_word] += torch.linalg.vecdot(change, delta)
        own_slope = self.score.pull_back(new_scores, attention, on_weights)
        own_self = own_slope[pair, row_of_word]
        torch.mul(answer.p_slope, on_delta, out=moved).addcmul_(answer.gain_slope, on_rest)
        moved[pair, row_of_word] = own_self
        keyed.copy_(own_slope)
        result = torch.linalg.vecdot(p, p).unsqueeze(1) * delta
        result.addcmul_(to_itself, change).addcmul_(own_self.unsqueeze(1), pushed)
        if self.score.normalized:
            pull = torch.mul(p, gain, out=products[:, 2 * n :])
            if dominated is not None:
                which, row, rest = dominated
                result.index_add_(0, which, pull[which, row].unsqueeze(1) * rest)
                pull[which, row] = 0
            pulled = pull.sum(dim=1, keepdim=True)
        else:
            pulled = torch.linalg.vecdot(p, gain).unsqueeze(1)
        result.addcmul_(pulled, own)
        return squared, add_and_double(result, products, self.stacked, counts)


@dataclass(frozen=True)
class _Dominant:
    """The rows of which one word takes over half: there (x_i - o_j)/(1 - a_ji) would cancel, so r_ji is kept.

    Attributes:
        words, rows: (m,), the word i and the row j.
        rest: (m, d), r_ji.
    """

    words: Int[Tensor, " m"]
    rows: Int[Tensor, " m"]
    rest: Float[Tensor, "m d"]

    def pairs(self, words: Int[Tensor, " b"]) -> tuple[Int[Tensor, " c"], Int[Tensor, " c"], Float[Tensor, "c d"]]:
        """Which pairs of a batch meet dominated rows: the pair, the row and its r_ji."""
        which, at = (words.unsqueeze(1) == self.words).nonzero(as_tuple=True)
        return which, self.rows[at], self.rest[at]

    @staticmethod
    def joined(parts: "Sequence[_Dominant | None]", n: int) -> "_Dominant | None":
        """Those of several texts of n words; None where none has any."""
        some = [(part.words + text * n, part.rows, part.rest) for text, part in enumerate(parts) if part is not None]
        return _Dominant(*(torch.cat(arrays) for arrays in zip(*some, strict=True))) if some else None


class AttentionWordChange(WordChange):
    """‖phi(X^i(Delta)) - phi(X)‖² and its gradient for random attention, by the closed form of the module's docstring.

    Exact: it agrees with mapping X^i(Delta) to rounding, for every score. A batch of b pairs costs
    O(b (n d + d²)) and b n numbers of memory; b = n is all words at the price of one plain evaluation.
    """

    def __init__(
        self,
        rows: Float[Tensor, "n d"],
        matrices: Float[Tensor, "heads d d"],
        scale: float,
        score: Score,
        base_norm: float,
        memory_budget: int,
    ):
        super().__init__(rows, base_norm, memory_budget)
        self._matrices, self._scale, self._score = matrices, scale, score
        self.heads = [_Head(rows, matrix, scale, score) for matrix in matrices]
        self.plan = _plan(len(rows), score)

    def coarse(self) -> "AttentionWordChange":
        # A float32 copy keeps three n x n arrays; a long text cannot spare them, and its precision is not the limit.
        if self.rows.dtype == torch.float32 or 3 * 4 * len(self.rows) ** 2 > self.memory_budget // 2:
            return self
        return AttentionWordChange(
            self.rows.float(), self._matrices.float(), self._scale, self._score, self.base_norm, self.memory_budget
        )

    def bytes_per_pair(self) -> int:
        n, d = self.rows.shape
        return (20 * n + 8 * d) * self.rows.element_size()

    def starting_directions(self, words: Int[Tensor, " w"]) -> Float[Tensor, "starts w d"]:
        """sum_j u_j, along which Theorem 3's witness lies, mixed with ± the top eigenvectors of W + W^T; both alone.

        The eigenvectors raise the changed word's score with itself fastest, which is what moves row i.
        """
        return self.directions([head.top_directions() for head in self.heads]).unsqueeze(1).expand(-1, len(words), -1)

    def directions(self, top: list[Float[Tensor, "m d"]]) -> Float[Tensor, "starts d"]:
        """The starting directions, the same for every word, from the top eigenvectors of every head."""
        per_head = []
        for head, own in zip(self.heads, top, strict=True):
            drawn = torch.nn.functional.normalize(head.queries.sum(dim=0), dim=0)
            away = torch.nn.functional.normalize(-head.keys.sum(dim=0), dim=0)
            mixed = torch.stack([drawn + own, drawn - own], dim=1).flatten(end_dim=1)
            per_head.append(torch.cat([mixed, torch.stack([drawn, -drawn, own[0] + away, away - own[0]])]))
        # Every head's first direction, then every head's second: few starts serve all heads.
        return torch.stack(per_head, dim=1).flatten(end_dim=1)

    def kicking_directions(self) -> Float[Tensor, "m d"]:
        """The rows u_j: along u_j the score of row j with the changed word moves, and with it whether j is drawn."""
        return torch.cat([head.queries for head in self.heads])

    def _evaluate(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b d"] | None]:
        if perturbations.device.type == "cpu":
            # Pieces that stay in the processor's cache: past it, memory traffic costs more than the products.
            size = max(_LEAST_PAIRS, _CACHED_NUMBERS // max(self.rows.shape))
            pieces = list(zip(perturbations.split(size), words.split(size), strict=True))
        else:
            pieces = [(perturbations, words)]
        squared = torch.zeros_like(perturbations[:, 0])
        slope = torch.zeros_like(perturbations) if gradient else None
        start = 0
        for delta, word in pieces:
            piece = slice(start, start + len(word))
            start = piece.stop
            for head in self.heads:
                value, uphill = head.evaluate(delta, word, gradient)
                squared[piece] += value
                if slope is not None and uphill is not None:
                    slope[piece] += uphill
        return squared, slope


def _plan(words: int, score: Score) -> SearchPlan:
    """What a search of this text spends: fewer generations for longer texts, whose words share what is found."""
    return SearchPlan(
        starts=24,
        climb_steps=10,
        population=8,
        generations=min(12, max(2, 800 // words)),
        children=8,
        kick_steps=0 if score.kinked else 25,
        relays=64,
        finalists=4,
        steps=200,
        tolerance=1e-12,
        rule="momentum" if score.kinked else "quasi-newton",
    )
