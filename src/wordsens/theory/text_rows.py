"""What the comparison needs of one text: its Gram matrix, as loadings, a spread, and what a softmax keeps."""

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.seeds import generator
from wordsens.theory.rows import Rows

_LOADINGS, _WORDS = 4, 5
"""Kinds of rows by their loading, and kinds of words by how near they are to what a softmax keeps."""

_ALIKE = 0.05
"""Loadings that scatter by less are one kind."""

_DRAWS = 2000


def text_rows(gram: Float[Tensor, "n n"], d: int) -> tuple[Rows, ...]:
    """The rows of a text with this Gram matrix X X^T / d: first for a typical word, then for words of every kind.

    e is the Gram matrix's leading eigenvector, f_j = sqrt(its eigenvalue) e_j. What a softmax keeps of a row and how
    far that leans towards each word are means over 2,000 Gaussian rows of scores with covariance G, drawn with a fixed
    seed: exact in law.
    """
    n = len(gram)
    values, vectors = torch.linalg.eigh(gram)
    loadings = values[-1].clamp(min=0).sqrt() * vectors[:, -1]
    loadings = (loadings * (1 if float(loadings.sum()) >= 0 else -1)).clamp(-0.999, 0.999)
    alone = 1 - loadings**2
    apart = gram - torch.outer(loadings, loadings)
    squares = (apart**2).sum() - apart.diagonal().square().sum()
    products = alone.sum() ** 2 - (alone**2).sum()
    spread = float(d * squares / products)
    root = vectors * values.clamp(min=0).sqrt()
    draws = torch.randn(_DRAWS, n, generator=generator(0, "scores of a text"), dtype=torch.float64)
    weights = torch.softmax(draws @ root.T, dim=1)
    kept, cross = float(((weights @ gram) * weights).sum() / _DRAWS), (weights @ gram).mean(dim=0)
    groups = torch.stack([part.mean() for part in loadings.sort().values.tensor_split(min(_LOADINGS, n))])
    if float(groups.std()) < _ALIKE:
        groups = (1 - alone.mean()).sqrt().reshape(1)
    order = cross.argsort()
    shares = [0.5, *((2 * k + 1) / (2 * _WORDS) for k in range(_WORDS))]
    picked = [int(order[min(n - 1, int(share * n))]) for share in shares]
    return tuple(Rows(n, d, tuple(groups.tolist()), spread, kept, float(loadings[i]), float(cross[i])) for i in picked)


def gram_moments(gram: Float[Tensor, "n n"], d: int) -> tuple[float, float]:
    """The mean cosine q of a text's rows and their spread, each taken as what it is nearly.

    q is at least 0, less than 1, and 0 where it is mere noise; the spread is d times the mean over pairs of ((cosine -
    q) / (1 - q))², and 1 where independent rows scatter so.
    """
    n = len(gram)
    pairs = n * (n - 1)
    away = gram - torch.diag(gram.diagonal())
    cosine = float(away.sum()) / pairs
    # Of iid Gaussian rows the mean cosine scatters by sqrt(2 / (pairs d)), the spread by sqrt(4 / pairs).
    shared = 0.0 if cosine < 3 * (2 / (pairs * d)) ** 0.5 else min(cosine, 1 - 1e-3)
    squares = float(away.sub(shared).square().sum()) - n * shared**2
    spread = d * max(0.0, squares) / pairs / (1 - shared) ** 2
    if spread < 1e-9:
        return shared, 0.0
    return shared, 1.0 if abs(spread - 1) < 3 * (4 / pairs) ** 0.5 else spread
