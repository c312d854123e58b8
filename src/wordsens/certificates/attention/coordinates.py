"""A text's vectors in an orthonormal basis of the space that perturbations are seen through."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.certificates.attention.text import AttentionText
from wordsens.certificates.verified import rounding


@dataclass(frozen=True)
class Coordinates:
    """Rows, queries u_j, keys W x_l and outputs; `error` bounds how far each is off, relative to its length."""

    rows: Float[Tensor, "n m"]
    queries: Float[Tensor, "heads n m"]
    keys: Float[Tensor, "heads n m"]
    outputs: Float[Tensor, "heads n m"]
    error: float


def coordinates_of(text: AttentionText) -> Coordinates:
    """By Householder's QR factorisation where the vectors are fewer than their coordinates; else as they are.

    The factor R holds, column by column, the coordinates in an exactly orthonormal basis of vectors that differ from
    those given by at most gamma_(8 d m) of their lengths (Higham 2002, theorem 19.4, its constant taken as 8).
    """
    n, d = text.rows.shape
    stacked = torch.cat([text.rows, text.geometry.queries * text.geometry.speed, text.keys])
    error = 0.0
    if len(stacked) < d:
        stacked = torch.linalg.qr(stacked.T, mode="r").R.T
        error = rounding(8 * d * len(stacked))
    rows, queries, keys = stacked.split([n, n * text.heads, n * text.heads])
    outputs = text.score.attention(text.scores) @ rows
    shape = (text.heads, n, -1)
    return Coordinates(rows, queries.reshape(shape), keys.reshape(shape), outputs.reshape(shape), error)
