"""Bounds under a value matrix, interval by interval of how far the moved word's own value goes.

A Delta that draws rows and a Delta that V^T leaves long are seldom the same. Let rho = ‖V^T y‖² be between rho_0 and
rho_1 and 0 <= theta < 1. With T = (I - theta V V^T)^(-1/2) and y = T y~, ‖y~‖² = ‖y‖² - theta rho, at most
1 - theta rho_0: in y~ the problem is the one of `relaxation`, with T u_j and T V r_j in place of u_j and V r_j, a ball
of radius (1 - theta rho_0)^(1/2), and p² rho_1 in place of p² (docs/theory/certificates-attention.md).
"""

import math
from dataclasses import replace
from itertools import pairwise

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.attention.geometry import geometry_of
from wordsens.certificates.attention.multipliers import MultiplierSearch
from wordsens.certificates.attention.own_row import OwnRow
from wordsens.certificates.attention.refined import FINENESS, Refinement
from wordsens.certificates.attention.sweep import swept
from wordsens.certificates.attention.text import AttentionText, pairs_of

_EDGES = (0.0, 0.3, 0.5, 0.7, 0.85, 1.0)
"""Of rho."""

_THETA = 0.8

_OFF = 1e-8
"""T (I - theta V V^T) T is no farther from I, computed or by what rounding did to V: 1e-13 as a rule."""


def tilt_size(text: AttentionText) -> float:
    """At least T's Frobenius norm: what rounding does to T u_j is that much larger than to u_j."""
    return math.sqrt(text.rows.shape[1] / (1 - _THETA)) * (1 + 1e-9)


def by_share(
    text: AttentionText, words: Int[Tensor, " w"], radius: Float[Tensor, " w"], own: OwnRow, *, refined: bool
) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
    """Bounds of the words' changes over the radius, before and after rounding outward; with optimised multipliers."""
    assert text.lift is not None
    tilted = _tilted(text, _THETA)
    found = []
    for low, high in pairwise(_EDGES):
        if low == 0 or tilted is None:
            seen, search, length = text, MultiplierSearch(text.geometry), 1.0
        else:
            seen, search = tilted, MultiplierSearch(tilted.geometry)
            length = math.sqrt((1 - _THETA * low) / (1 - 8 * _OFF))
        reach = length * radius
        size, moved = own.unit * own.fixed.sqrt() / length, high * (1 + 1e-12) / length**2
        pairs = pairs_of(seen, words, reach, size, moved, FINENESS if refined else 1)
        mine = OwnRow(own.unit / length, own.fixed).in_units(pairs.unit)
        intervals = swept(seen, search, pairs, mine)
        if refined:
            intervals = Refinement(seen, search, pairs, mine, intervals, torch.zeros_like(reach)).run()
        squares = intervals.largest
        found.append([square.sqrt() * pairs.unit * length * (1 + 1e-12) for square in squares])
    plain, rounded = (torch.stack(part).amax(dim=0) for part in zip(*found, strict=True))
    return plain, rounded


def _tilted(text: AttentionText, theta: float) -> AttentionText | None:
    """The text as y~ sees it; None where T is not exact enough."""
    lift = text.lift
    assert lift is not None
    identity = torch.eye(len(lift), dtype=lift.dtype, device=lift.device)
    held = identity - theta * lift @ lift.mT
    values, vectors = torch.linalg.eigh(held)
    root = (vectors / values.clamp(min=1e-12).sqrt()) @ vectors.mT
    root = 0.5 * (root + root.mT)
    # ‖y~‖² (1 - off) <= y . (I - theta V V^T) y for y = T y~.
    off = float(torch.linalg.matrix_norm(root @ held @ root - identity))
    if not (off < _OFF and 4 * text.lift_error / (1 - theta) < 6 * _OFF):
        return None
    weights = text.weights[0]
    assert weights.value is not None
    sizes = replace(weights.norms, value=weights.norms.value * float(torch.linalg.matrix_norm(root)))
    turned = replace(weights, value=root @ weights.value, sizes=sizes)
    queries = text.queries @ root
    return replace(
        text,
        weights=[turned],
        queries=queries,
        geometry=geometry_of(queries, text.outputs, turned.value, divided=text.score.normalized),
    )
