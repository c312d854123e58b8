"""The weights of one attention head: how the rows of a text become scores and values."""

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Sizes:
    """Bounds of the norms of a head's weights before they are divided by its scale, for what rounding may do to them.

    A W that was computed as W_Q W_K^T is off by at most gamma_terms ‖W_Q‖ ‖W_K‖: `matrix` is that product, of Frobenius
    norms, and so on.
    """

    matrix: float
    query_offset: float = 0.0
    key_offset: float = 0.0
    constant: float = 0.0
    value: float = 0.0
    value_bias: float = 0.0
    terms: int = 0


@dataclass(frozen=True)
class HeadWeights:
    """Row j scores row l as s_jl = (x_j W x_l + c . x_l + e . x_j + constant + bias_jl) / scale and takes V^T x_l + b.

    With W_Q, W_K and biases b_Q, b_K: W = W_Q W_K^T, c = W_K b_Q, e = W_Q b_K and constant = b_Q . b_K. When word i
    moves by Delta, s_ji moves by u_j . Delta, u_j = (W^T x_j + c) / scale, and its own s_il by k_l . Delta,
    k_l = (W x_l + e) / scale: biases and masks change these vectors and where the scores start, and nothing else.

    Attributes:
        matrix: W.
        scale: what the scores are divided by.
        query_offset, key_offset: c and e; None: zero.
        bias: of each pair of rows; -inf where row j does not see row l, whose weight is then zero; None: zero.
        value: V; None: the identity.
        value_bias: b; None: zero.
        sizes: for rounding; None: those of the weights as they are.
        span: (d, k), vectors that span all that the head sees of a row, where they are fewer than d; else None.
    """

    matrix: Float[Tensor, "d d"]
    scale: float = 1.0
    query_offset: Float[Tensor, " d"] | None = None
    key_offset: Float[Tensor, " d"] | None = None
    constant: float = 0.0
    bias: Float[Tensor, "n n"] | None = None
    value: Float[Tensor, "d m"] | None = None
    value_bias: Float[Tensor, " m"] | None = None
    span: Float[Tensor, "d k"] | None = None
    sizes: Sizes | None = None

    @property
    def symmetric(self) -> Float[Tensor, "d d"]:
        """(W + W^T) / scale."""
        return (self.matrix + self.matrix.mT) / self.scale

    @property
    def norms(self) -> Sizes:
        """The sizes, those that were given or those of the weights as they are."""
        if self.sizes is not None:
            return self.sizes
        parts = self.matrix, self.query_offset, self.key_offset, self.value, self.value_bias
        matrix, query, key, value, bias = (
            0.0 if part is None else float(torch.linalg.vector_norm(part)) for part in parts
        )
        return Sizes(matrix, query, key, abs(self.constant), value, bias)

    def in_units(self, unit: float, of_values: float) -> "HeadWeights":
        """For rows divided by `unit`: the same scores, with scale 1, and values divided by both units."""
        on_rows, per = unit / self.scale, 1 / self.scale
        factors = {
            "matrix": unit * on_rows,
            "query_offset": on_rows,
            "key_offset": on_rows,
            "constant": per,
            "bias": per,
            "value": 1 / of_values,
            "value_bias": 1 / (unit * of_values),
        }

        def times(thing: Any) -> dict[str, Any]:
            parts = {name: getattr(thing, name, None) for name in factors}
            return {name: part * factors[name] for name, part in parts.items() if part is not None}

        return replace(self, scale=1.0, sizes=replace(self.norms, **times(self.norms)), **times(self))

    @property
    def steepest(self) -> float:
        """A bound of how fast a score moves with a word of length 1: W's Frobenius norm over the scale."""
        return float(torch.linalg.matrix_norm(self.matrix)) / self.scale

    def queries(self, rows: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        """The u_j."""
        return _shifted(rows @ self.matrix / self.scale, self.query_offset, self.scale)

    def keys(self, rows: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        """The k_l."""
        return _shifted(rows @ self.matrix.mT / self.scale, self.key_offset, self.scale)

    def scores(self, rows: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n n"]:
        """s_jl of all pairs of rows of a text."""
        return self.biased(self.scores_between(rows, rows))

    def biased(self, scores: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch n n"]:
        """The scores with the bias of their places."""
        return scores if self.bias is None else scores + self.bias / self.scale

    def scores_between(
        self, rows: Float[Tensor, "... m d"], others: Float[Tensor, "... n d"]
    ) -> Float[Tensor, "... m n"]:
        """s_jl of rows j and others l, but for the bias of their places; either may have a batch of its own."""
        scores = self.queries(rows) @ others.mT
        if self.key_offset is not None:
            scores = scores + (rows @ self.key_offset / self.scale).unsqueeze(-1)
        return scores if self.constant == 0 else scores + self.constant / self.scale

    def scores_with(
        self, rows: Float[Tensor, "n d"], others: Float[Tensor, "*batch m d"]
    ) -> Float[Tensor, "*batch m n"]:
        """s_jl of rows j and few others l, the others first: W meets the others alone."""
        scores = (others @ self.matrix.mT / self.scale) @ rows.mT
        if self.query_offset is not None:
            scores = scores + (others @ self.query_offset / self.scale).unsqueeze(-1)
        if self.key_offset is not None:
            scores = scores + rows @ self.key_offset / self.scale
        return scores if self.constant == 0 else scores + self.constant / self.scale

    def values(self, rows: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n m"]:
        """V^T x_l + b."""
        values = rows if self.value is None else rows @ self.value
        return values if self.value_bias is None else values + self.value_bias

    def value_change(self, delta: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch m"]:
        """V^T Delta, by which a value moves."""
        return delta if self.value is None else delta @ self.value

    def at_scale(self, factor: float) -> "HeadWeights":
        """At a temperature that is higher by the factor."""
        return replace(self, scale=self.scale * factor)

    def to(self, dtype: torch.dtype) -> "HeadWeights":
        """In another precision."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(self, **{name: part.to(dtype) for name, part in parts.items() if isinstance(part, Tensor)})

    def within(self, basis: Float[Tensor, "k d"]) -> "HeadWeights":
        """In the coordinates of an orthonormal basis of the span."""
        return replace(
            self,
            matrix=basis @ self.matrix @ basis.mT,
            query_offset=None if self.query_offset is None else basis @ self.query_offset,
            key_offset=None if self.key_offset is None else basis @ self.key_offset,
            value=basis if self.value is None else basis @ self.value,
            span=None,
        )


def _shifted(vectors: Tensor, offset: Tensor | None, scale: float) -> Tensor:
    return vectors if offset is None else vectors + offset / scale
