"""Random texts with a known law: Gaussian rows, orthogonal rows, rows with a chosen mean cosine,
rows that repeat.

Every row has length sqrt(d), the paper's normalisation.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_count
from wordsens.seeds import Seed, gaussian_on, generator
from wordsens.text.matrix import TextMatrix, rescale_rows


def gaussian_text(
    n: int, d: int, seed: Seed = 0, *, dtype: torch.dtype = torch.float64
) -> TextMatrix:
    """n independent rows, each uniform on the sphere of radius sqrt(d): standard Gaussian rows,
    rescaled.

    >>> gaussian_text(3, 5).rows.square().sum(dim=1)
    tensor([5.0..., 5.0..., 5.0...], dtype=torch.float64)
    """
    rows = rescale_rows(_gaussian(n, d, seed, "gaussian text"))
    return TextMatrix(rows.to(dtype), source=f"gaussian(seed={seed})")


def orthogonal_text(
    n: int, d: int, seed: Seed = 0, *, dtype: torch.dtype = torch.float64
) -> TextMatrix:
    """n rows that are orthogonal to each other, in a uniformly random (Haar) position: X X^T = d I.

    Raises InputError when n > d: no more than d rows can be orthogonal.

    >>> X = orthogonal_text(2, 4).rows
    >>> (X @ X.T).round(decimals=9)
    tensor([[4., 0.],
            [0., 4.]], dtype=torch.float64)
    """
    if n > d:
        raise InputError(
            f"`n` (={n}) must be at most `d` (={d}), since no more than d rows of d coordinates "
            "are orthogonal; lower n or raise d"
        )
    frame = _orthonormal(_gaussian(n, d, seed, "orthogonal text"))
    return TextMatrix(rescale_rows(frame).to(dtype), source=f"orthogonal(seed={seed})")


def correlated_text(
    n: int, d: int, mean_cosine: float, seed: Seed = 0, *, dtype: torch.dtype = torch.float64
) -> TextMatrix:
    """n rows whose pairwise cosines are, or scatter around, `mean_cosine`.

    x_i = sqrt(d) (sqrt(c) u + sqrt(1 - c) e_i), c = `mean_cosine`, u a random unit vector, e_i unit
    vectors orthogonal to u (ours).

    - n < d: the e_i are orthogonal to each other, so every pair of rows has cosine c exactly.
    - n >= d, where that is impossible: the e_i are independent and uniform, so a pair's cosine has
      mean c and standard deviation (1 - c) / sqrt(d - 1).

    Args:
        mean_cosine: c, in [0, 1).

    Raises InputError when `mean_cosine` is outside [0, 1) or d < 2.

    >>> X = correlated_text(2, 4, mean_cosine=0.5).rows
    >>> (X @ X.T / 4).round(decimals=9)
    tensor([[1.0000, 0.5000],
            [0.5000, 1.0000]], dtype=torch.float64)
    """
    if not 0 <= mean_cosine < 1:
        raise InputError(
            f"`mean_cosine` (={mean_cosine!r}) must be at least 0 and less than 1; at 1 all rows "
            "are the same"
        )
    require_count("d", d, least=2, remedy="in one dimension every cosine is +1 or -1")
    common = rescale_rows(_gaussian(1, d, seed, "correlated text", "common"))[0] / math.sqrt(d)
    apart = _gaussian(n, d, seed, "correlated text", "own")
    apart = apart - (apart @ common).unsqueeze(1) * common
    # `common` comes first: all other vectors are made orthogonal to it.
    apart = (
        _orthonormal(torch.cat([common.unsqueeze(0), apart]))[1:]
        if n < d
        else rescale_rows(apart) / math.sqrt(d)
    )
    rows = rescale_rows(math.sqrt(mean_cosine) * common + math.sqrt(1 - mean_cosine) * apart)
    return TextMatrix(
        rows.to(dtype), source=f"correlated(mean_cosine={mean_cosine:g}, seed={seed})"
    )


def repeated_text(
    n: int, d: int, distinct: int, seed: Seed = 0, *, dtype: torch.dtype = torch.float64
) -> TextMatrix:
    """n rows of which `distinct` are different: Gaussian rows that repeat in turn (ours).

    Two rows drawn at random are equal with probability about 1 / distinct, which is the mean
    cosine.

    Raises InputError when `distinct` is more than n.

    >>> X = repeated_text(4, 9, distinct=2).rows
    >>> torch.equal(X[0], X[2]), torch.equal(X[0], X[1])
    (True, False)
    """
    if require_count("distinct", distinct) > n:
        raise InputError(
            f"`distinct` (={distinct}) must be at most `n` (={n}), the number of words; lower it"
        )
    words = rescale_rows(_gaussian(distinct, d, seed, "repeated text"))
    rows = words[torch.arange(n) % distinct]
    return TextMatrix(rows.to(dtype), source=f"repeated(distinct={distinct}, seed={seed})")


def _gaussian(n: int, d: int, seed: Seed, *purpose: str) -> Float[Tensor, "n d"]:
    require_count("n", n)
    require_count("d", d)
    return gaussian_on(n, d, generator=generator(seed, *purpose), dtype=torch.float64, device="cpu")


def _orthonormal(rows: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """Gram-Schmidt of the rows, by QR with R's diagonal made positive: Haar when the rows are
    Gaussian."""
    q, r = torch.linalg.qr(rows.T)
    return (q * r.diagonal().sign()).T
