"""Bounds of the Lipschitz constant of softmax attention, of the literature's kinds
(docs/proofs.md#lipschitz-bounds).

For one head O = softmax(X A X^T) X V, A = W / scale, ‖.‖ the spectral norm of a matrix and the
length of a row, and texts X of n words, ‖X' - X‖ the Frobenius norm. They bound what any change of
a text does, not that of one word only.
"""

import math
from collections.abc import Iterable, Sequence
from typing import SupportsIndex

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.maps.arguments import as_text, radii, word_indices
from wordsens.maps.attention.features import AttentionLayer, RandomAttentionFeatures
from wordsens.maps.attention.given_weights import AttentionFeatures
from wordsens.maps.attention.head import HeadWeights
from wordsens.maps.attention.scores import Softmax
from wordsens.maps.base import FeatureMap
from wordsens.text.matrix import TextMatrix


def lipschitz_bounds(
    phi: FeatureMap,
    X: TextMatrix | Tensor | np.ndarray,
    words: Iterable[int] | SupportsIndex | None = None,
    radius: float | Sequence[float] | np.ndarray | Tensor | None = None,
) -> dict[str, float]:
    """Upper bounds of the Lipschitz constant of softmax attention where one of the words moves by
    at most its radius: ‖phi(X') - phi(X)‖ <= constant ‖X' - X‖, by the bound's name.

    "Castin-type" is of the kind of Castin, Ablin and Peyré 2024, "Dasoulas-type" of Dasoulas,
    Scaman and Virmaux 2021; not rounded outward. constant * radius / ‖phi(X)‖ is comparable with
    the word sensitivity. For stacked heads the constant is the root of the sum of their squared
    constants; for heads that are added, the sum of their constants.

    Args:
        phi: RandomAttentionFeatures or AttentionFeatures.
        X: the text, (n, d).
        words, radius: as for word_sensitivity; radius 0: bounds of the Jacobian's norm at X.

    Returns:
        One constant per bound; {} for scores other than softmax, for biases of the queries, and for
            other maps.

    Raises:
        InputError: a bad text, word or radius.

    >>> phi = RandomAttentionFeatures.of_weight(torch.zeros(2, 2))     # the mean of the words, in every row
    >>> {name: round(constant, 3) for name, constant in lipschitz_bounds(phi, torch.eye(2)).items()}
    {'Castin-type': 2.449, 'Dasoulas-type': 1.414}
    """  # noqa: E501
    text = as_text(X)
    # By the exact class: a subclass may change phi.
    known = RandomAttentionFeatures, AttentionFeatures
    if not isinstance(phi, AttentionLayer) or type(phi) not in known:
        return {}
    rows = phi.accept(text.rows).double()
    chosen = word_indices(words, len(rows)).to(rows.device)
    at_text = isinstance(radius, int | float) and radius == 0
    reach = torch.zeros(1).to(rows) if at_text else radii(radius, phi, rows, chosen)
    heads = phi.head_weights(len(rows), torch.float64)
    if type(phi.score) is not Softmax or any(head.query_offset is not None for head in heads):
        return {}
    lengths = torch.linalg.vector_norm(rows, dim=1)
    longest = float(torch.maximum(lengths.max(), (lengths[chosen] + reach).max()))
    castin = [castin_constant(head, len(rows), longest) for head in heads]
    dasoulas = [dasoulas_constant(head, rows, float(reach.max()), longest) for head in heads]
    # The sum, or the root of the sum of squares.
    order = 1 if phi.summed else 2
    constants = {"Castin-type": castin, "Dasoulas-type": dasoulas}
    return {name: float(np.linalg.norm(values, order)) for name, values in constants.items()}


def castin_constant(head: HeadWeights, n: int, longest: float) -> float:
    """sqrt(3) ‖V‖ sqrt(‖A‖² R⁴ (4 n + 1) + n), for all texts of n words whose rows are no longer
    than R (`longest`).

    Of the kind of Castin, Ablin and Peyré 2024 ("How Smooth Is Attention?"): sqrt(n) times a
    constant on a compact set. Proved in docs/proofs.md, from three terms of the
    derivative, also under a mask.

    >>> round(castin_constant(HeadWeights(torch.eye(1)), 2, 1.0) ** 2, 12)       # 3 (9 + 2)
    33.0
    """
    slope, value = _norms(head)
    return math.sqrt(3) * value * math.sqrt(slope**2 * longest**4 * (4 * n + 1) + n)


def dasoulas_constant(
    head: HeadWeights,
    rows: Float[Tensor, "n d"],
    radius: float,
    longest: float,
) -> float:
    """‖V‖ (p + R (‖X A‖_F + max over l of ‖A x_l‖ + 2 ‖A‖ radius)) where one word moves by at most
    the radius.

    p is sqrt(n), or ‖P‖_F for radius 0, P the attention weights; no row is longer than R
    (`longest`). Ours, proved in docs/proofs.md, in the terms of Dasoulas, Scaman and
    Virmaux 2021 ("Lipschitz Normalization for Self-Attention Layers"): the weights' norm, and the
    longest row times the derivative of the scores from the Frobenius norm to the largest entry of
    each row.

    >>> half = HeadWeights(torch.zeros(2, 2))                                  # all weights are 1/2
    >>> round(dasoulas_constant(half, torch.eye(2), 0.0, 1.0), 12)             # ‖P‖_F
    1.0
    """
    slope, value = _norms(head)
    attention = torch.softmax(head.scores(rows), dim=1)
    weights = float(torch.linalg.matrix_norm(attention)) if radius == 0 else math.sqrt(len(rows))
    queries = float(torch.linalg.matrix_norm(head.queries(rows)))
    keys = float(torch.linalg.vector_norm(rows @ head.matrix.mT / head.scale, dim=1).max())
    return value * (weights + longest * (queries + keys + 2 * slope * radius))


def _norms(head: HeadWeights) -> tuple[float, float]:
    """‖A‖ and ‖V‖."""
    value = 1.0 if head.value is None else float(torch.linalg.matrix_norm(head.value, ord=2))
    return float(torch.linalg.matrix_norm(head.matrix, ord=2)) / head.scale, value
