"""Attention's change for Delta in a subspace of a few coordinates: cheap, for exploring.

Which rows a Delta draws is decided by the n numbers u_j . Delta, and what a drawn row gains by u_j . Delta and by
(x_i - o_j) . Delta. So a search for the best set of rows loses little in the span of the u_j, which has n dimensions
where the text is shorter than d, and along x_i - c, c the mean of the outputs; the word's own row turns to its word
along k_i. Two relatives make use of that: the change itself in these and a few directions more, for short texts, and a
sketch of it in the span alone, for long ones.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from wordsens.maps.attention.head import Head, in_cache
from wordsens.maps.attention.other_rows import Dominant, OtherRows
from wordsens.maps.attention.products import add_and_double
from wordsens.search.objective import ReducedObjective

_NOTHING = 1e-3
"""The share of x_i - c outside the span of the basis up to which its direction is rounding."""


class _SketchedHead(OtherRows):
    """One head's rows in the coordinates of a basis (k, d) with orthonormal rows, in few operations and nearly.

    The other rows gain by (x_i - c) . Delta in place of (x_i - o_j) . Delta, c the mean of the outputs; the word's own
    row changes as if its scores with the other words stayed. `own_axes`: the basis is along the axes of its W + W^T.
    """

    def __init__(self, head: Head, basis: Float[Tensor, "k d"], *, own_axes: bool):
        self.score, self.response = head.score, head.response
        self.lift = None if head.lift is None else basis @ head.lift
        values = head.values - head.outputs.mean(dim=0) if head.score.normalized else head.values
        self.values = values @ basis.T if self.lift is None else values
        self.dominant = head.dominant
        if head.score.normalized:
            self.lengths = head.lengths
        else:
            self.squared_values = head.squared_values
        self._queries, self._keys = head.queries @ basis.T, head.keys @ basis.T
        self._symmetric = basis @ head.symmetric @ basis.T
        self._bends = self._symmetric.diagonal() if own_axes else None

    def evaluate(
        self, delta: Float[Tensor, "b k"], words: Int[Tensor, " b"], gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b k"] | None]:
        pair = torch.arange(len(words), device=words.device)
        moved, key = delta @ self._queries.mT, self._keys.index_select(0, words)
        pushed = delta @ self._symmetric if self._bends is None else delta * self._bends
        moved[pair, words] += torch.linalg.vecdot(torch.add(key, pushed, alpha=0.5), delta)
        squared, result = self.others(self.seen(delta), words, words, moved, None, gradient, own=True)
        if result is None:
            return squared, None
        result = self.lifted(result).addcmul_(moved[pair, words].unsqueeze(1), key.add_(pushed))
        return squared, add_and_double(result, moved, self._queries)


class _WholeHead(OtherRows):
    """One head's rows, the word's own among them, in the coordinates of a basis and of each word's own axes: exactly.

    The last coordinates are along the axes: what a word's pairs multiply by them is kept in tables [axis, word, row].

    The own row changes by sum_l (p_l - a_l) x_l + p_i Delta, a and p its weights before and after. That leaves the
    basis; its square is taken with the inner products of the x_l.
    """

    def __init__(self, head: Head, basis: Float[Tensor, "k d"], axes: Float[Tensor, "a n d"]):
        self.score, self.response = head.score, head.response
        self.lift = None if head.lift is None else basis @ head.lift
        plain = self.lift is None
        words = torch.arange(len(head.rows), device=basis.device)
        self.values = _coordinates(head.values, basis, axes, words) if plain else head.values
        self.dominant = None
        if head.score.normalized:
            self.lengths = head.lengths
            if head.dominant is not None:
                found = head.dominant
                rest = _coordinates(found.rest, basis, axes, found.words) if plain else found.rest
                self.dominant = Dominant(found.words, found.rows, rest)
        else:
            self.squared_values = head.squared_values
        seen = head.values if plain else head.lifted(head.values)
        self.stacked = _in_basis(torch.cat([head.stacked, seen]), basis, len(axes))
        self._along = [axes @ vectors.mT for vectors in (-head.outputs, head.keys, seen)] if len(axes) else [None] * 3
        self._scores, self._attention = head.scores, head.score.attention(head.scores)
        self._symmetric = functional.pad(_in_basis(basis @ head.symmetric, basis, len(axes)), (0, 0, 0, len(axes)))
        self._inner = head.values @ head.values.T
        self._bent = [_coordinates(axis @ head.symmetric, basis, axes, words) for axis in axes]

    def evaluate(
        self, delta: Float[Tensor, "b k"], words: Int[Tensor, " b"], gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b k"] | None]:
        n, pair = len(self.values), torch.arange(len(words), device=words.device)
        products = delta @ self.stacked.mT
        moved, keyed, valued = products[:, :n], products[:, -2 * n : -n], products[:, -n:]
        along = products[:, n : 2 * n] if self.score.normalized else None
        tables = list(zip((along, keyed, valued), self._along, strict=True))
        _add_along(delta, words, tables)
        to_own = moved[pair, words]
        seen = self.seen(delta)
        squared, result = self.others(seen, words, words, moved, along, gradient)

        pushed = self._pushed(delta, words)
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
        _pull_along(result, words, tables)
        return squared, add_and_double(result, products, self.stacked)

    def _pushed(self, delta: Float[Tensor, "b k"], words: Int[Tensor, " b"]) -> Float[Tensor, "b k"]:
        """(W + W^T) Delta / scale."""
        result, first = delta @ self._symmetric, delta.shape[1] - len(self._bent)
        for at, table in enumerate(self._bent, start=first):
            bent = table.index_select(0, words)
            result[:, at] += torch.linalg.vecdot(bent[:, :first], delta[:, :first])
            result.addcmul_(bent, delta[:, at : at + 1])
        return result


Table = tuple[Float[Tensor, "b n"] | None, Float[Tensor, "a n n"] | None]
"""Products of the pairs' Delta with some vectors, a row a pair, and of every word's axes with the same."""


def _add_along(delta: Float[Tensor, "b k"], words: Int[Tensor, " b"], tables: Sequence[Table]) -> None:
    """Add to the products what Delta has along its word's axes."""
    for products, table in tables:
        if products is not None and table is not None:
            for at, each in enumerate(table, start=delta.shape[1] - len(table)):
                products.addcmul_(each.index_select(0, words), delta[:, at : at + 1])


def _pull_along(result: Float[Tensor, "b k"], words: Int[Tensor, " b"], tables: Sequence[Table]) -> None:
    """Add to a gradient's last coordinates what it takes from these products."""
    for slopes, table in tables:
        if slopes is not None and table is not None:
            for at, each in enumerate(table, start=result.shape[1] - len(table)):
                result[:, at] += torch.linalg.vecdot(each.index_select(0, words), slopes)


class ReducedAttentionChange(ReducedObjective):
    """The squared change for Delta in a few dimensions, or a sketch of it, and its gradient.

    Delta = c @ basis + z @ axes[:, i], in the coordinates (c, z). The sketch costs 4 n k operations a pair, in place of
    16 n d + 2 d²: a twentieth at n = 250, d = 768. The change itself costs 16 n k + 4 n² + 2 k².

    Attributes:
        basis: (k, d), orthonormal rows that span the u_j of every head, and for the change itself the directions that
            move row i most; k = d where these are d or more.
        axes: (a, n, d), for the change itself: each word's orthonormal directions outside that span, along x_i - c,
            and along each head's k_i, which turns row i to its own word. None where the basis spans all, or a value
            matrix stands between Delta and what the rows gain.
        exact: whether it is the change itself.
        shape: (k + a,).
    """

    def __init__(
        self,
        rows: Float[Tensor, "n d"],
        heads: Sequence[Head],
        memory_budget: int,
        *,
        exact: bool,
        like: "ReducedAttentionChange | None" = None,
    ):
        queries, top = (torch.cat([getattr(head, name) for head in heads]) for name in ("queries", "top_directions"))
        if like is None:
            self.basis = _basis(torch.cat([queries, top])) if exact else _turned(_basis(queries), heads[0])
            self.axes = _axes(heads, self.basis) if exact else rows.new_empty(0, *rows.shape)
        else:
            self.basis, self.axes = like.basis, like.axes
        size = len(self.basis) + len(self.axes)
        super().__init__((size,), dtype=rows.dtype, device=rows.device, memory_budget=memory_budget)
        self._rows, self.exact = len(rows), exact
        self._queries = _in_basis(queries, self.basis, len(self.axes))
        self._heads = [
            _WholeHead(head, self.basis, self.axes)
            if exact
            else _SketchedHead(head, self.basis, own_axes=head is heads[0])
            for head in heads
        ]

    def raised(self, x: Float[Tensor, "b k"], words: Int[Tensor, " b"]) -> Float[Tensor, "b d"]:
        first = len(self.basis)
        result = x[:, :first] @ self.basis
        for at, axis in enumerate(self.axes, start=first):
            result.addcmul_(axis.index_select(0, words), x[:, at : at + 1])
        return result

    def lowered(self, x: Float[Tensor, "b d"], words: Int[Tensor, " b"]) -> Float[Tensor, "b k"]:
        return _coordinates(x, self.basis, self.axes, words)

    def bytes_per_pair(self) -> int:
        return (30 * self._rows + 8 * len(self.basis)) * self.dtype.itemsize

    def kicking_directions(self) -> Float[Tensor, "m k"]:
        """The u_j, as for attention itself."""
        return self._queries

    def _evaluate(
        self, perturbations: Float[Tensor, "b k"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b k"] | None]:
        return in_cache(self._heads, perturbations, words, gradient, max(self._rows, len(self.basis)))


def _turned(basis: Float[Tensor, "k d"], head: Head) -> Float[Tensor, "k d"]:
    """Rows with the same span, along the axes of the head's W + W^T there: a product with it is then entrywise."""
    wide = basis.double()
    axes = torch.linalg.eigh(wide @ head.symmetric.double() @ wide.mT).eigenvectors
    return (axes.mT @ wide).to(basis.dtype)


def _in_basis(vectors: Float[Tensor, "m d"], basis: Float[Tensor, "k d"], axes: int) -> Float[Tensor, "m c"]:
    """Coordinates in the basis, and zeros for so many axes."""
    return functional.pad(vectors @ basis.T, (0, axes))


def _coordinates(
    vectors: Float[Tensor, "m d"],
    basis: Float[Tensor, "k d"],
    axes: Float[Tensor, "a n d"],
    words: Int[Tensor, " m"],
) -> Float[Tensor, "m c"]:
    """Coordinates in the basis and along the axes of each vector's word."""
    along = [torch.linalg.vecdot(vectors, axis.index_select(0, words)) for axis in axes]
    return torch.cat([vectors @ basis.T, *(part.unsqueeze(1) for part in along)], dim=1)


def _axes(heads: Sequence[Head], basis: Float[Tensor, "k d"]) -> Float[Tensor, "a n d"]:
    """Unit vectors along what of each x_i - c, and of each head's k_i, lies outside the span, made orthogonal."""
    values, span = heads[0].values.double(), basis.double()
    found = values.new_empty(0, *values.shape)
    if any(head.lift is not None for head in heads):
        return found.to(basis.dtype)
    centre = torch.stack([head.outputs.double().mean(dim=0) for head in heads]).mean(dim=0)
    wanted = [values - centre if heads[0].score.normalized else values]
    wanted += [head.keys.double() for head in heads]
    stream = torch.Generator().manual_seed(0)
    for towards in wanted[: basis.shape[1] - len(basis)]:
        # Where nothing of it lies outside, any direction there will do.
        other = torch.randn(towards.shape[1], generator=stream, dtype=torch.double).to(towards.device)
        outside, any_outside = (_outside(part, span, found) for part in (towards, other.expand_as(towards)))
        gone = torch.linalg.vector_norm(outside, dim=1) <= _NOTHING * torch.linalg.vector_norm(towards, dim=1)
        outside = functional.normalize(torch.where(gone.unsqueeze(1), any_outside, outside), dim=1)
        found = torch.cat([found, outside.unsqueeze(0)])
    return found.to(basis.dtype)


def _outside(
    vectors: Float[Tensor, "n d"], basis: Float[Tensor, "k d"], axes: Float[Tensor, "a n d"]
) -> Float[Tensor, "n d"]:
    """What lies outside the span of the basis and each one's axes; taken twice, for rounding."""
    for _ in range(2):
        vectors = vectors - vectors @ basis.T @ basis
        for axis in axes:
            vectors = vectors - torch.linalg.vecdot(vectors, axis).unsqueeze(1) * axis
    return vectors


def _basis(spanned: Float[Tensor, "m d"]) -> Float[Tensor, "k d"]:
    """Orthonormal rows that span the rows."""
    return torch.linalg.qr(spanned.double().T).Q.T.to(spanned.dtype)
