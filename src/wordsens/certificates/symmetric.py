"""An upper bound of word sensitivity for symmetric attention, whose columns of weights have length
at most 1 (docs/proofs.md#symmetric-attention)."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.base import Certificate, rounding
from wordsens.maps.attention.scores import Softmax
from wordsens.maps.random_transformer import RandomTransformer

# Queries below 1e-12 are not brought to length 1: their K_jj is less than 1.
_SHORTEST = 1e-11


def is_symmetric(phi: RandomTransformer) -> bool:
    """Whether phi(X) is P(X) X, with or without X added, for weights P = D^-1 K of a positive
    semidefinite kernel K >= 0 with K_jj = 1."""
    alone = phi.depth == 1 and phi.norm is None and not phi.mlp and not phi.has_values
    kernel = phi.tied and phi.attention != "dot" and isinstance(phi.score, Softmax)
    return alone and kernel and not phi.causal


def symmetric_certificate(
    phi: RandomTransformer,
    rows: Float[Tensor, "n d"],
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
) -> Certificate | None:
    """With D_i the largest distance of x_i to another row, D that of any two rows and r the radius,

        ‖phi(X^i(Delta)) - phi(X)‖² <= (r + sqrt(2) D_i)² + (r + max(D, D_i + r))²,

    without the first r of the last term where phi has no residual (ours; docs/proofs.md). For rows
    of length sqrt(d) and r = sqrt(d) this is at most (5.54 sqrt(d))².

    None for other maps than `is_symmetric` ones, and where rounding hides phi(X).
    """
    if not is_symmetric(phi):
        return None
    rows = rows.double()
    norm = _least_norm(phi, rows)
    if not norm > 0:
        return None
    apart = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist")
    from_word = apart.amax(dim=1)[words]
    farthest = apart.max()
    others = radius + math.sqrt(2) * from_word
    own = phi.residual * radius + torch.maximum(farthest, from_word + radius)
    change = torch.hypot(others, own) * (1 + rounding(rows.shape[1] + 16))
    method = "symmetric attention: no column of weights is longer than 1"
    return Certificate(words, change / norm * (1 + 1e-12), method)


def _least_norm(phi: RandomTransformer, rows: Float[Tensor, "n d"]) -> float:
    """A lower bound of ‖phi(X)‖, rounding included; at most 0 where none is known."""
    n, d = rows.shape
    matrix = phi.layers[0].queries
    assert matrix is not None  # the scores are no dot products
    projection = matrix[0].double()
    m = projection.shape[1]
    queries = rows @ projection
    longest = float(torch.linalg.vector_norm(rows, dim=1).max())
    size = longest * float(torch.linalg.matrix_norm(projection))
    if phi.attention == "normalized-dot":
        shortest = float(torch.linalg.vector_norm(queries, dim=1).min())
        if shortest < _SHORTEST:
            return 0.0
        largest = size / shortest * math.sqrt(m) / phi.temperature
    else:
        largest = size**2 / (phi.temperature * math.sqrt(d))
    # Each score is off by at most half of this, each weight by a factor of its exponential.
    score = 16 * rounding(d + m + 16) * largest
    off = math.expm1(min(score, 1.0)) + 3 * rounding(n + 16)
    weights = phi.score.attention(phi.scores_between(queries, queries))
    features = torch.linalg.vector_norm(phi.residual * rows + weights @ rows)
    least = float(features) * (1 - rounding(n * d + 8))
    return least - 2 * math.sqrt(n) * longest * off
