"""The change of an attention layer when one word moves, for every word at the price of one plain evaluation.

Changing word i moves one column of the scores and row i. With u_j = W^T x_j / scale, the score that row j gives word i
becomes s_ji + u_j . Delta, so for j != i (derivation: docs/theory/attention.md)

    change of row j = p_ji Delta + (p_ji - a_ji) r_ji,    r_ji = x_i - m_ji,

a_ji and p_ji being the attention of row j to word i before and after, and m_ji the output of row j without word i
(zero for scores that are not divided by their sum). Squared norms expand into inner products of Delta with the rows of
three fixed matrices, so a batch of (word, Delta) pairs costs a few matrix products. Row i itself is evaluated plainly.

Arrays indexed [word, row] are stored word first: a batch gathers whole rows.
"""

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.feature_map import WordChange
from wordsens.maps.scores import Response, Score
from wordsens.search_plan import SearchPlan

_PLAN = SearchPlan(
    starts=24, climb_steps=10, population=8, generations=6, children=8, finalists=2, steps=100, tolerance=1e-9
)


class _Head:
    """One attention head on one text: everything that does not depend on Delta. O(n² d + n d²) once, n² memory."""

    def __init__(self, rows: Float[Tensor, "n d"], matrix: Float[Tensor, "d d"], scale: float, score: Score):
        n = rows.shape[0]
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
        attention = score.attention(self.scores)
        self.outputs = attention @ self.values
        self.response: Response = score.response(self.scores)
        if score.normalized:
            self._take_out_dominant(attention)
            self.lengths = self._squared_distances(n)
            self.stacked = torch.cat([self.queries, self.keys, self.outputs])
        else:
            self.dominant_word = None
            self.lengths = rows.square().sum(dim=1, keepdim=True).expand(n, n)
            self.stacked = torch.cat([self.queries, self.keys])

    def _take_out_dominant(self, attention: Float[Tensor, "n n"]) -> None:
        """r_ji for the one word i, if any, that takes over half of row j: (x_i - o_j)/(1 - a_ji) would cancel there."""
        largest, word = attention.max(dim=1)
        dominated = (largest > 0.5).nonzero().squeeze(1)
        self.dominant_word: Int[Tensor, " n"] | None = None
        if len(dominated) == 0:
            return
        word = word[dominated]
        without = self.score.attention_without(self.scores[dominated], word)
        self.dominant_word = torch.full_like(largest, -1, dtype=torch.long)
        self.dominant_word[dominated] = word
        self.dominant_rest = torch.zeros_like(self.values)
        self.dominant_rest[dominated] = self.values[word] - without @ self.values

    def _squared_distances(self, n: int) -> Float[Tensor, "n n"]:
        """‖r_ji‖², word first; differences are formed before they are squared, so close rows keep their digits."""
        distances = torch.cdist(self.values, self.outputs, compute_mode="donot_use_mm_for_euclid_dist")
        every = torch.arange(n, device=distances.device)
        lengths = (distances * self.response.weight(every)).square_()
        if self.dominant_word is not None:
            row = (self.dominant_word >= 0).nonzero().squeeze(1)
            lengths[self.dominant_word[row], row] = self.dominant_rest[row].square().sum(dim=1)
        return lengths

    def evaluate(
        self, delta: Float[Tensor, "b d"], words: Int[Tensor, " b"], gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b d"] | None]:
        n = self.rows.shape[0]
        pair = torch.arange(len(words), device=words.device)
        products = delta @ self.stacked.T
        moved, keyed = products[:, :n], products[:, n : 2 * n]
        p, slope, gain = self.response.move(moved, words)
        # Row i is not of this form: it is taken out here and evaluated plainly below.
        p[pair, words] = 0
        gain[pair, words] = 0
        own = self.values[words]
        own_delta = (own * delta).sum(dim=1, keepdim=True)
        if self.score.normalized:
            weight = self.response.weight(words)
            along = (own_delta - products[:, 2 * n :]) * weight
            chosen = self._dominant_pairs(words)
            if chosen is not None:
                which, row = chosen
                along[which, row] = (self.dominant_rest[row] * delta[which]).sum(dim=1)
        else:
            weight, along, chosen = None, own_delta, None
        length = self.lengths[words]
        delta_squared = delta.square().sum(dim=1, keepdim=True)
        p_delta = p * delta_squared
        gain_length = gain * length
        squared = (p * p_delta + gain * (2 * p * along + gain_length)).sum(dim=1)

        # Row i, whose query, key and value all move.
        pushed = delta @ self.symmetric
        new_scores = self.scores[words] + keyed
        new_scores[pair, words] += moved[pair, words] + 0.5 * (pushed * delta).sum(dim=1)
        attention = self.score.attention(new_scores)
        to_itself = attention[pair, words].unsqueeze(1)
        change = attention @ self.values + to_itself * delta - self.outputs[words]
        squared += change.square().sum(dim=1)
        if not gradient:
            return squared, None

        score_slope = 2 * slope * (p_delta + (p + gain) * along + gain_length)
        pull = 2 * p * gain
        slopes_of_weights = 2 * change @ self.values.T
        slopes_of_weights[pair, words] += 2 * (change * delta).sum(dim=1)
        own_slope = self.score.pull_back(new_scores, attention, slopes_of_weights)
        own_self = own_slope[pair, words]
        score_slope[pair, words] = own_self
        result = 2 * p.square().sum(dim=1, keepdim=True) * delta
        result += 2 * to_itself * change + own_self.unsqueeze(1) * pushed
        if weight is not None:
            if chosen is not None:
                which, row = chosen
                result.index_add_(0, which, pull[which, row].unsqueeze(1) * self.dominant_rest[row])
                pull[which, row] = 0
            pull = pull * weight
            coefficients = torch.cat([score_slope, own_slope, -pull], dim=1)
        else:
            coefficients = torch.cat([score_slope, own_slope], dim=1)
        result += pull.sum(dim=1, keepdim=True) * own
        return squared, result.addmm_(coefficients, self.stacked)

    def _dominant_pairs(self, words: Int[Tensor, " b"]) -> tuple[Int[Tensor, " m"], Int[Tensor, " m"]] | None:
        if self.dominant_word is None:
            return None
        which, row = (self.dominant_word.unsqueeze(0) == words.unsqueeze(1)).nonzero(as_tuple=True)
        return which, row


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
        self._heads = [_Head(rows, matrix, scale, score) for matrix in matrices]
        self.plan = replace(_PLAN, rule="momentum" if score.kinked else "quasi-newton")

    def bytes_per_pair(self) -> int:
        n, d = self.rows.shape
        return (20 * n + 8 * d) * self.rows.element_size()

    def starting_directions(self, words: Int[Tensor, " w"]) -> Float[Tensor, "starts w d"]:
        """± sum_j u_j, along which Theorem 3's witness lies; mixed with ± the top eigenvector of W + W^T.

        The eigenvector raises the changed word's score with itself fastest, which is what moves row i.
        """
        directions = []
        for head in self._heads:
            drawn = torch.nn.functional.normalize(head.queries.sum(dim=0), dim=0)
            own = torch.linalg.eigh(head.symmetric)[1][:, -1]
            away = torch.nn.functional.normalize(-head.keys.sum(dim=0), dim=0)
            directions += [drawn, -drawn, drawn + own, drawn - own, own + away, away - own, own, -own]
        return torch.stack(directions).unsqueeze(1).expand(-1, len(words), -1)

    def _evaluate(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b d"] | None]:
        parts = [head.evaluate(perturbations, words, gradient) for head in self._heads]
        squared = torch.stack([part[0] for part in parts]).sum(dim=0)
        if not gradient:
            return squared, None
        return squared, torch.stack([part[1] for part in parts if part[1] is not None]).sum(dim=0)
