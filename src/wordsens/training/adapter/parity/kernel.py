"""A narrow Gaussian kernel between vectors that takes two texts for one where they differ by a change of meaning alone.

k(u, v) = exp(-sharpness |A u - A v|^2), where A is Fisher's linear discriminant: the directions in which texts differ
most for the differences that changes of meaning make. |A u - A v|^2 has median 1 between unrelated texts.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

_RIDGE = 0.1
"""Added to the changes' covariance, in units of its mean eigenvalue: unseen changes differ from those measured."""

_KEPT = 2 / 3
"""The share of directions that A keeps."""


@dataclass(frozen=True)
class Waves:
    """Random Fourier features of the kernel (Rahimi and Recht 2007), cosine and sine of every frequency.

    Attributes:
        frequencies: one a row.
        centre: a vector from which phases are counted.
        spread: the median standard deviation of a phase over the vectors.
    """

    frequencies: Float[Tensor, "m d"]
    centre: Float[Tensor, " d"]
    spread: float


def discriminant(vectors: Float[Tensor, "n d"], changes: Float[Tensor, "m d"]) -> Float[Tensor, "r d"]:
    """The matrix A.

    The rows solve C a = lambda (W + ridge) a with the largest lambda, C the covariance of the vectors, W the mean of
    the changes' outer products; all rows are scaled so that the median of |A u - A v|^2 between vectors is 1.
    """
    d = vectors.shape[1]
    within = (changes.T @ changes / len(changes)).double()
    within += _RIDGE * within.trace() / d * torch.eye(d, dtype=torch.double)
    whitening = torch.linalg.inv(torch.linalg.cholesky(within))
    _, found = torch.linalg.eigh(whitening @ torch.cov(vectors.T.double()) @ whitening.T)
    rows = (found[:, -math.ceil(_KEPT * d) :].T @ whitening).float()
    half = len(vectors) // 2
    return rows / ((vectors[:half] - vectors[half : 2 * half]) @ rows.T).square().sum(dim=1).median().sqrt()


def waves(
    vectors: Float[Tensor, "n d"], matrix: Float[Tensor, "r d"], sharpness: float, count: int, seed: int
) -> Waves:
    """Frequencies in blocks of orthogonal ones (Yu and others 2016), which spreads less than independent ones do."""
    generator = torch.Generator().manual_seed(seed)
    r = len(matrix)
    blocks = [
        torch.linalg.qr(torch.randn(r, r, generator=generator))[0]
        * torch.randn(r, r, generator=generator).norm(dim=1, keepdim=True)
        for _ in range(math.ceil(count / r))
    ]
    frequencies = math.sqrt(2 * sharpness) * torch.cat(blocks)[:count] @ matrix
    centre = vectors.mean(dim=0)
    return Waves(frequencies, centre, float(((vectors - centre) @ frequencies.T).std(dim=0).median()))
