"""Attention's change for Delta in a subspace of a few coordinates: cheap, for exploring.

Which rows a Delta draws is decided by the n numbers u_j . Delta. So a search for the best set of rows loses little in
the span of the u_j, which has n dimensions where the text is shorter than d. Two relatives make use of that: the change
itself in that span and a few directions more, for short texts, and the change of the other rows alone, for long ones.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.head import Head, in_cache
from wordsens.maps.attention.other_rows import Dominant, OtherRows
from wordsens.maps.attention.products import add_and_double
from wordsens.search.objective import ReducedObjective


class _ReducedHead(OtherRows):
    """One head's other rows in the coordinates of a basis (k, d) with orthonormal rows."""

    def __init__(self, head: Head, basis: Float[Tensor, "k d"]):
        self.score, self.response = head.score, head.response
        self.lift = None if head.lift is None else basis @ head.lift
        plain = self.lift is None
        self.values = head.values @ basis.T if plain else head.values
        self.dominant = None
        if head.score.normalized:
            self.lengths = head.lengths
            if head.dominant is not None:
                found = head.dominant
                self.dominant = Dominant(found.words, found.rows, found.rest @ basis.T if plain else found.rest)
        else:
            self.squared_values = head.squared_values
        n = len(head.rows)
        self.stacked = (head.stacked[:-n] if head.score.normalized else head.queries) @ basis.T

    def evaluate(
        self, delta: Float[Tensor, "b k"], words: Int[Tensor, " b"], gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b k"] | None]:
        n = len(self.values)
        products = delta @ self.stacked.mT
        along = products[:, n:] if self.score.normalized else None
        squared, result = self.others(self.seen(delta), words, words, products[:, :n], along, gradient)
        return squared, None if result is None else add_and_double(self.lifted(result), products, self.stacked)


class _WholeReducedHead(_ReducedHead):
    """One head's rows, the word's own among them, in the coordinates of a basis.

    The own row changes by sum_l (p_l - a_l) x_l + p_i Delta, a and p its weights before and after. That leaves the
    basis; its square is taken with the inner products of the x_l.
    """

    def __init__(self, head: Head, basis: Float[Tensor, "k d"]):
        super().__init__(head, basis)
        self.stacked = torch.cat([self.stacked, head.keys @ basis.T, self.lifted(self.values)])
        self._scores, self._attention = head.scores, head.score.attention(head.scores)
        self._symmetric = basis @ head.symmetric @ basis.T
        self._inner = head.values @ head.values.T

    def evaluate(
        self, delta: Float[Tensor, "b k"], words: Int[Tensor, " b"], gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b k"] | None]:
        n, pair = len(self.values), torch.arange(len(words), device=words.device)
        products = delta @ self.stacked.mT
        moved, keyed, valued = products[:, :n], products[:, -2 * n : -n], products[:, -n:]
        along = products[:, n : 2 * n] if self.score.normalized else None
        to_own = moved[pair, words]
        seen = self.seen(delta)
        squared, result = self.others(seen, words, words, moved, along, gradient)

        pushed = delta @ self._symmetric
        new_scores = self._scores.index_select(0, words).add_(keyed)
        new_scores[pair, words] += to_own + 0.5 * torch.linalg.vecdot(pushed, delta)
        attention = self.score.attention(new_scores)
        to_itself = attention[pair, words].unsqueeze(1)
        gained = attention - self._attention.index_select(0, words)
        on_weights = gained @ self._inner
        with_delta = torch.linalg.vecdot(gained, valued)
        length, own = torch.linalg.vecdot(seen, seen), to_itself.squeeze(1)
        squared += torch.linalg.vecdot(gained, on_weights) + own * (2 * with_delta + own * length)
        if result is None:
            return squared, None

        on_weights.addcmul_(to_itself, valued)
        on_weights[pair, words] += with_delta + own * length
        own_slope = self.score.pull_back(new_scores, attention, on_weights)
        own_self = own_slope[pair, words]
        moved[pair, words] = own_self
        keyed.copy_(own_slope)
        torch.mul(gained, to_itself, out=valued)
        result = self.lifted(result.addcmul_(to_itself.square(), seen)).addcmul_(own_self.unsqueeze(1), pushed)
        return squared, add_and_double(result, products, self.stacked)


class ReducedAttentionChange(ReducedObjective):
    """sum over rows j != i of ‖change of row j‖² at Delta = c @ basis, or over all rows, and its gradient in c.

    Without row i it is a lower bound of the squared change and costs 8 n k operations a pair, in place of
    16 n d + 2 d²: a tenth at n = 250, d = 768. With it, it is the squared change and costs 16 n k + 4 n² + 2 k².

    Attributes:
        basis: (k, d), orthonormal rows that span the u_j of every head, and with row i the directions that move it
            most; k = d where these are d or more.
        left_out: (m, d), the top eigenvectors of W + W^T, which raise the word's score with itself, where row i, which
            needs them, was left out; else none.
        exact: whether row i is in it.
        shape: (k,).
    """

    def __init__(
        self,
        rows: Float[Tensor, "n d"],
        heads: Sequence[Head],
        memory_budget: int,
        *,
        own_row: bool,
        basis: Float[Tensor, "k d"] | None = None,
    ):
        queries, top = (torch.cat([getattr(head, name) for head in heads]) for name in ("queries", "top_directions"))
        if basis is None:
            basis = _basis(torch.cat([queries, top]) if own_row else queries)
        super().__init__((len(basis),), dtype=rows.dtype, device=rows.device, memory_budget=memory_budget)
        self._rows = len(rows)
        self.basis, self.exact = basis, own_row
        self._queries = queries @ basis.T
        self.left_out = top[:0] if own_row else top
        self._heads = [(_WholeReducedHead if own_row else _ReducedHead)(head, basis) for head in heads]

    def bytes_per_pair(self) -> int:
        return (24 * self._rows + 8 * len(self.basis)) * self.dtype.itemsize

    def kicking_directions(self) -> Float[Tensor, "m k"]:
        """The u_j, as for attention itself."""
        return self._queries

    def _evaluate(
        self, perturbations: Float[Tensor, "b k"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b k"] | None]:
        return in_cache(self._heads, perturbations, words, gradient, max(self._rows, len(self.basis)))


def _basis(spanned: Float[Tensor, "m d"]) -> Float[Tensor, "k d"]:
    """Orthonormal rows that span the rows."""
    return torch.linalg.qr(spanned.double().T).Q.T.to(spanned.dtype)
