"""A text's vectors in an orthonormal basis of the space in which perturbations act."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.certificates.attention.text import AttentionText
from wordsens.certificates.verified import rounding


@dataclass(frozen=True)
class Coordinates:
    """Queries u_j and keys of every head; values and outputs; V^T, `lift`, through which perturbations enter values.

    Without a value matrix `lift` is None, and the values are the rows in the same basis. `error` bounds how far each
    vector is off, relative to its length.
    """

    queries: Float[Tensor, "heads n k"]
    keys: Float[Tensor, "heads n k"]
    values: Float[Tensor, "n p"]
    outputs: Float[Tensor, "heads n p"]
    lift: Float[Tensor, "p k"] | None
    error: float

    def lifted(self, vectors: Float[Tensor, "*batch p"]) -> Float[Tensor, "*batch k"]:
        """V r."""
        return vectors if self.lift is None else vectors @ self.lift

    @property
    def seen(self) -> Float[Tensor, "p k"]:
        """V^T."""
        k = self.queries.shape[-1]
        return torch.eye(k, dtype=self.queries.dtype, device=self.queries.device) if self.lift is None else self.lift


def coordinates_of(text: AttentionText) -> Coordinates:
    """By Householder's QR factorisation where the vectors are fewer than their coordinates; else as they are.

    The factor R holds, column by column, the coordinates in an exactly orthonormal basis of vectors that differ from
    those given by at most gamma_(8 d m) of their lengths (Higham 2002, theorem 19.4, its constant taken as 8).
    """
    n, d = text.rows.shape
    first = text.values if text.lift is None else text.lift.mT
    stacked = torch.cat([first, text.queries, text.keys])
    error = 0.0
    if len(stacked) < d:
        stacked = torch.linalg.qr(stacked.T, mode="r").R.T
        error = rounding(8 * d * len(stacked))
    if text.lift is not None:
        error += rounding(text.weights[0].norms.terms + 16)
    first, queries, keys = stacked.split([len(first), n * text.heads, n * text.heads])
    values = first if text.lift is None else text.values
    outputs = text.score.attention(text.scores) @ values
    shape = (text.heads, n, -1)
    return Coordinates(
        queries=queries.reshape(shape),
        keys=keys.reshape(shape),
        values=values,
        outputs=outputs.reshape(shape),
        lift=None if text.lift is None else first,
        error=error,
    )
