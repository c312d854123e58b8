"""Geometry shared by all words' certificates: the directions that move scores and outputs, and by how much at once."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.certificates.verified import gram_norm_bound

# Shares of the two families of directions in the joint constraint; the bound hardly depends on them.
_SCORE_SHARE, _OUTPUT_SHARE = 0.85, 0.15
LARGEST_WEIGHT = 1e24
_LEAST_UNIT = 1e-30


@dataclass(frozen=True)
class Geometry:
    """N rows (n for each head) with u_j, along which row j's score moves, and v_j = centre - o_j.

    score_weight sum_j (u_j . y)² + output_weight sum_j (v_j . y)² <= ‖y‖² for every y: verified, rounding included.

    Attributes:
        speed: (N,), the units of the W^T x_j / scale: scores move by t_j times radius times these. One weight for all
            rows is then one for each, less where many of the others go the same way.
        fastest: at least the operator norm of all W^T x_j / scale together.
        queries: (N, d), u_j = W^T x_j / (scale speed_j).
        offsets: (N, d), v_j, times V where there is one; zeros for unnormalized scores.
        centre: (p,), the mean output; zero for unnormalized scores.
        query_gram, cross_gram, offset_gram: (N, N), u_j . u_l, u_j . v_l, v_j . v_l.
    """

    speed: Float[Tensor, " N"]
    fastest: float
    queries: Float[Tensor, "N d"]
    offsets: Float[Tensor, "N d"]
    centre: Float[Tensor, " p"]
    query_gram: Float[Tensor, "N N"]
    cross_gram: Float[Tensor, "N N"]
    offset_gram: Float[Tensor, "N N"]
    score_weight: float
    output_weight: float


def geometry_of(
    queries: Float[Tensor, "N d"], outputs: Float[Tensor, "N p"], lift: Float[Tensor, "d p"] | None, *, divided: bool
) -> Geometry:
    """The geometry of N rows with these u_j; the outputs enter where weights are normalized (`divided`)."""
    longest = float(torch.linalg.vector_norm(queries, dim=1).amax()) or 1.0
    queries = queries / longest
    # diag(1 / row sums of |U U^T|) <= (U U^T)^-1: Gershgorin. No unit is so small that a square underflows.
    gram = queries @ queries.mT
    fastest = longest * gram_norm_bound(gram, inner=max(queries.shape)) ** 0.5 * (1 + 1e-12)
    units = gram.abs().sum(dim=1).sqrt().clamp(min=_LEAST_UNIT)
    speed, queries = longest * units, queries / units.unsqueeze(1)
    if not divided:
        centre, offsets = torch.zeros_like(outputs[0]), torch.zeros_like(queries)
    else:
        centre = outputs.mean(dim=0)
        offsets = centre - outputs if lift is None else (centre - outputs) @ lift.mT
    query_gram, cross_gram, offset_gram = queries @ queries.T, queries @ offsets.T, offsets @ offsets.T
    score_weight = _weight(query_gram, _SCORE_SHARE if divided else 1.0)
    output_weight = _weight(offset_gram, _OUTPUT_SHARE)
    scaled = torch.cat([queries * score_weight**0.5, offsets * output_weight**0.5])
    gram = scaled @ scaled.T if len(scaled) <= scaled.shape[1] else scaled.T @ scaled
    joint = gram_norm_bound(gram, inner=max(scaled.shape))
    if joint > 0:
        # The square roots and products of `scaled` are rounded as well.
        score_weight, output_weight = (weight / (joint * (1 + 1e-12)) for weight in (score_weight, output_weight))
    return Geometry(
        speed, fastest, queries, offsets, centre, query_gram, cross_gram, offset_gram, score_weight, output_weight
    )


def _weight(gram: Tensor, share: float) -> float:
    largest = float(torch.linalg.eigvalsh(gram)[-1])
    return share / largest if largest > share / LARGEST_WEIGHT else LARGEST_WEIGHT if largest > 0 else 1.0
