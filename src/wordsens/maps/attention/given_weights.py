"""Attention with weights of one's own: heads as they are trained, with values, biases, masks and an
output matrix."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, shown
from wordsens.maps.attention.features import AttentionLayer, checked_score
from wordsens.maps.attention.head import HeadWeights, Sizes
from wordsens.maps.attention.scores import Expanded, Score, Softmax, offered

CAUSAL = "causal"


@dataclass(frozen=True, eq=False)
class AttentionBias:
    """Vectors added to a head's queries (m,), keys (m,), values (m_v,); of several heads (heads,
    ...); None: nothing.

    Under softmax scores a key bias changes nothing: it adds one number to all scores of a row.
    """

    query: Tensor | None = None
    key: Tensor | None = None
    value: Tensor | None = None


class AttentionFeatures(AttentionLayer):
    """phi(X) = attention((X W_Q + b_Q)(X W_K + b_K)^T / sqrt(m)) (X W_V + b_V), (n, m_v); m:
    columns of W_Q and W_K.

    With several heads, the matrices have shape (heads, d, m) and phi(X) has shape (heads, n, m_v).
    With `W_O`, phi(X) is the sum over the heads of their outputs times their parts of W_O, (n,
    out).

    Args:
        W_Q, W_K: (d, m); W_Q's dtype and device are the map's.
        W_V: (d, m_v); None: the values are the words.
        W_O: (m_v, out), or (heads, m_v, out) for several heads; None: the outputs of the heads are
            stacked.
        score: as of RandomAttentionFeatures.
        mask: "causal": row j sees the words up to j; or (n, n), of several heads (heads, n, n):
            True where row j sees word l, or numbers that are added to the scores, -inf where it
            does not. A row that sees no word is refused under softmax scores.
        bias: vectors added to the queries, keys and values.

    Raises:
        InputError: matrices that do not fit each other, or that are not finite.

    >>> W = torch.eye(4, dtype=torch.float64)
    >>> AttentionFeatures(W[:, :2], W[:, 2:], W[:, :3], mask="causal")(torch.ones(5, 4)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        W_Q: Tensor,
        W_K: Tensor,
        W_V: Tensor | None = None,
        W_O: Tensor | None = None,
        *,
        score: str | Score = "softmax",
        mask: str | Tensor | None = None,
        bias: AttentionBias | None = None,
    ):
        if not isinstance(W_Q, Tensor) or W_Q.ndim not in (2, 3) or not W_Q.is_floating_point():
            raise InputError(
                f"`W_Q` ({shown(W_Q)}) must be a tensor of floating-point numbers, (d, m) or "
                "(heads, d, m)"
            )
        self._stacked = W_Q.ndim == 3
        self.heads = len(W_Q) if self._stacked else 1
        self.dtype, self.device = W_Q.dtype, W_Q.device
        self.score = checked_score(score)
        self.name = "attention" if type(self.score) is Softmax else f"{self.score.name}-attention"
        d, m = W_Q.shape[-2:]
        bias = AttentionBias() if bias is None else bias
        self._query = self._checked("W_Q", W_Q, (d, m))
        self._key = self._checked("W_K", W_K, (d, m))
        self._value = None if W_V is None else self._checked("W_V", W_V, (d, None))
        values = d if self._value is None else self._value.shape[-1]
        self._output = None if W_O is None else self._checked("W_O", W_O, (values, None))
        self.summed = W_O is not None and self.heads > 1
        names = ("query", m), ("key", m), ("value", values)
        vectors = ((name, getattr(bias, name), size) for name, size in names)
        self._bias = [
            None if vector is None else self._checked(f"bias.{name}", vector, (size,))
            for name, vector, size in vectors
        ]
        self._mask = None if isinstance(mask, str) or mask is None else self._checked_mask(mask)
        self.causal = mask == CAUSAL
        if isinstance(mask, str) and not self.causal:
            raise InputError(f"`mask` (={mask!r}) must be {CAUSAL!r}, a tensor, or None")
        self.text_shape = (None if self._mask is None else self._mask.shape[-1], d)

    def __repr__(self) -> str:
        d, m = self._query.shape[-2:]
        return f"AttentionFeatures(d={d}, m={m}, score={self.score.name!r}, heads={self.heads})"

    def head_weights(
        self, n: int, dtype: torch.dtype, *, isometric: bool = False
    ) -> list[HeadWeights]:
        return [
            self._head(head, n, dtype, isometric=isometric and not self.summed)
            for head in range(self.heads)
        ]

    def _head(self, head: int, n: int, dtype: torch.dtype, *, isometric: bool) -> HeadWeights:
        query, key, plain, output, added, on_keys, value_bias = (
            None if stacked is None else stacked[head].to(dtype)
            for stacked in (self._query, self._key, self._value, self._output, *self._bias)
        )
        assert query is not None and key is not None
        expanded = offered(self.score, Expanded)
        if expanded is not None and expanded.shift_invariant:
            on_keys = None
        (d, m), terms = query.shape, query.shape[1] + 8
        value = plain
        if output is not None:
            terms += len(output) + 8
            if isometric and output.shape[1] > len(output):
                terms += 8 * output.numel()
                output = torch.linalg.qr(output.mT, mode="r").R.mT
            value = output if plain is None else plain @ output
            value_bias = None if value_bias is None else value_bias @ output
        span = None if plain is None else torch.cat([query, key, plain], dim=1)
        # Of orthonormal coordinates in place of the output matrix the lengths are the same.
        through = 1.0 if output is None else _norm(output)
        return HeadWeights(
            matrix=query @ key.mT,
            scale=math.sqrt(m),
            query_offset=None if added is None else key @ added,
            key_offset=None if on_keys is None else query @ on_keys,
            constant=0.0 if added is None or on_keys is None else float(added @ on_keys),
            bias=self._place_bias(head, n, dtype, math.sqrt(m)),
            value=value,
            value_bias=value_bias,
            span=span if span is not None and span.shape[1] < d else None,
            sizes=Sizes(
                matrix=_norm(query) * _norm(key),
                query_offset=_norm(key) * _norm(added),
                key_offset=_norm(query) * _norm(on_keys),
                constant=_norm(added) * _norm(on_keys),
                value=through * (1.0 if plain is None else _norm(plain)),
                value_bias=through * _norm(self._bias[2]),
                terms=terms,
            ),
        )

    def _place_bias(
        self, head: int, n: int, dtype: torch.dtype, scale: float
    ) -> Float[Tensor, "n n"] | None:
        if self.causal:
            hidden = torch.ones(n, n, dtype=torch.bool, device=self.device).triu(1)
            return torch.zeros(n, n, dtype=dtype, device=self.device).masked_fill(
                hidden, -torch.inf
            )
        if self._mask is None:
            return None
        return self._mask[head if len(self._mask) > 1 else 0].to(dtype) * scale

    def _checked(self, name: str, matrix: Tensor, shape: Sequence[int | None]) -> Tensor:
        """The tensor with an axis for heads, in the map's dtype."""
        wanted = (*((self.heads,) if self._stacked else ()), *shape)
        fits = isinstance(matrix, Tensor) and matrix.ndim == len(wanted)
        fits = fits and all(
            want in (None, have) for want, have in zip(wanted, matrix.shape, strict=True)
        )
        if not fits or not bool(torch.isfinite(matrix).all()):
            shown_shape = ", ".join("any" if size is None else str(size) for size in wanted)
            raise InputError(
                f"`{name}` (shape {tuple(getattr(matrix, 'shape', ()))}) must be a finite tensor "
                "of shape "
                f"({shown_shape}), to fit W_Q"
            )
        own_copy = (
            (matrix.clone() if matrix.is_inference() else matrix)
            .detach()
            .to(self.dtype)
            .to(self.device)
        )
        return own_copy if self._stacked else own_copy.unsqueeze(0)

    def _checked_mask(self, mask: Tensor) -> Float[Tensor, "heads n n"]:
        """The numbers added to the scores, with an axis for heads, 1 where one mask serves all."""
        ends = isinstance(mask, Tensor) and mask.ndim in (2, 3) and mask.shape[-1] == mask.shape[-2]
        if not ends or (mask.ndim == 3 and len(mask) != self.heads):
            raise InputError(
                f"`mask` ({shown(mask)}) must be 'causal', or a tensor of shape (n, n) or (heads, "
                "n, n) of truth "
                "values or of numbers that are added to the scores"
            )
        if mask.dtype == torch.bool:
            mask = torch.zeros(mask.shape, dtype=self.dtype, device=mask.device).masked_fill(
                ~mask, -torch.inf
            )
        hidden = mask == -torch.inf
        if not bool((torch.isfinite(mask) | hidden).all()):
            raise InputError(
                "`mask` has entries that are neither finite nor -inf; use -inf where a word is not "
                "seen"
            )
        if self.score.sums_to_one and bool(hidden.all(dim=-1).any()):
            raise InputError(
                "`mask` leaves a row that sees no word, whose weights cannot sum to one; let it "
                "see itself"
            )
        mask = mask.detach().to(dtype=self.dtype, device=self.device)
        return mask if mask.ndim == 3 else mask.unsqueeze(0)


def _norm(tensor: Tensor | None) -> float:
    return 0.0 if tensor is None else float(torch.linalg.vector_norm(tensor))
