"""The average case of word sensitivity over the layers of a random transformer, as d grows
(docs/theory/depth.md)."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import require_count
from wordsens.maps.arguments import as_text, radii, word_indices
from wordsens.maps.random_transformer import RandomTransformer
from wordsens.seeds import Seed, generator
from wordsens.text.matrix import TextMatrix
from wordsens.theory.random_features import arc_cosine


def average_by_layer(
    phi: RandomTransformer,
    X: TextMatrix | Tensor,
    word: int,
    radius: float | None = None,
    seed: Seed = 0,
    *,
    paths: int = 32,
) -> tuple[Float[Tensor, " depth"], Float[Tensor, " depth"]]:
    """Predicts the average case behind every layer: E ‖phi_l(X^i(Delta)) - phi_l(X)‖ / ‖phi_l(X)‖
    for a Delta that is uniform on the sphere of that radius and knows nothing of the weights.

    As d grows with n fixed, the inner products of all rows of both texts, K (2 n, 2 n), are known
    behind every layer once the scores are, and the scores are Gaussian given K. With K = L L^T, S =
    L G L^T, G of iid N(0, 1) entries, and B = blockdiag(weights of S on X, weights of S on X'), one
    layer takes K to

        K + (1/heads) sum over heads of B K B^T,            attention with values and a residual,
        K_jk / sqrt(K_jj K_kk),                             LayerNorm,
        K + sqrt(K_jj K_kk) kappa(K_jk / sqrt(K_jj K_kk)),  a wide MLP and a residual,

    kappa(c) = (sqrt(1 - c²) + c (pi - arccos c)) / pi, and so on for the other forms (ours;
    derivation in docs/proofs.md). The mean over `paths` independent sequences of G.

    LayerNorm is taken as division by the length: rows whose mean coordinate is not small are not
    covered.

    Args:
        phi: its layers, heads, score and options are read, its weights are not.
        X: the text.
        word: i.
        radius: of the sphere; None for sqrt(d).
        seed: of the G.
        paths: the number of sequences; the standard error falls as 1/sqrt(paths).

    Returns:
        (depth,), a prediction for each layer, an average over weights and no bound; and (depth,),
        its standard error over paths, NaN for one path.

    >>> phi = RandomTransformer(64, 3)
    >>> mean, error = average_by_layer(phi, torch.eye(4, 64) * 8, 0)
    >>> mean.shape, bool((error < mean / 10).all())
    (torch.Size([3]), True)
    """
    require_count("paths", paths)
    rows = phi.accept(as_text(X).rows).double().cpu()
    n, d = rows.shape
    (index,) = word_indices(word, n).tolist()
    (reach,) = radii(radius, phi, rows, torch.tensor([index])).tolist()
    start = (rows @ rows.T / d).repeat(2, 2)
    start[n + index, n + index] += reach**2 / d
    stream = generator(seed, "paths")
    changes = torch.empty(paths, phi.depth, dtype=torch.float64)
    for path in range(paths):
        kernel = start
        for layer in range(phi.depth):
            kernel = _through_layer(kernel, phi, stream)
            diagonal = kernel.diagonal()
            moved = diagonal.sum() - 2 * kernel.diagonal(n).sum()
            changes[path, layer] = (moved / diagonal[:n].sum()).clamp(min=0).sqrt()
    mean = changes.mean(dim=0)
    variance = (changes - mean).square().sum(dim=0) / (paths - 1)
    return mean, (variance / paths).sqrt()


def _through_layer(
    kernel: Float[Tensor, "m m"],
    phi: RandomTransformer,
    stream: torch.Generator,
) -> Float[Tensor, "m m"]:
    updates = [_attention_update, _mlp_update] if phi.mlp else [_attention_update]
    for update in updates:
        scale = _inverse_lengths(kernel) if phi.norm == "pre" else torch.ones_like(kernel[0])
        added, mixing = update(scale.unsqueeze(1) * kernel * scale, phi, stream)
        if mixing is not None:  # without values the update is a mixture of the rows that entered it
            mixing = mixing * scale + phi.residual * torch.eye(len(kernel), dtype=kernel.dtype)
            kernel = mixing @ kernel @ mixing.T
        else:
            kernel = phi.residual * kernel + added
        if phi.norm == "post":
            scale = _inverse_lengths(kernel)
            kernel = scale.unsqueeze(1) * kernel * scale
    return kernel


def _attention_update(
    kernel: Float[Tensor, "m m"],
    phi: RandomTransformer,
    stream: torch.Generator,
) -> tuple[Float[Tensor, "m m"], Float[Tensor, "m m"] | None]:
    """What attention adds to the kernel; without values the weights that mix the rows too."""
    n = len(kernel) // 2
    values, vectors = torch.linalg.eigh(kernel)
    root = vectors * values.clamp(min=0).sqrt()
    total, weights = torch.zeros_like(kernel), kernel
    for _ in range(phi.heads):
        scores = (
            root @ _score_matrix(len(kernel), phi.head_dimension, stream) @ root.T / phi.temperature
        )
        blocks = (
            phi.score.attention(phi.masked(scores[half, half]))
            for half in (slice(n), slice(n, None))
        )
        weights = torch.block_diag(*blocks)
        total += weights @ kernel @ weights.T / phi.heads
    return total, None if phi.has_values else weights


def _score_matrix(size: int, rank: int | None, stream: torch.Generator) -> Float[Tensor, "m m"]:
    if rank is None:
        return torch.randn(size, size, generator=stream, dtype=torch.float64)
    queries, keys = torch.randn(2, size, rank, generator=stream, dtype=torch.float64)
    return queries @ keys.T / math.sqrt(rank)


def _mlp_update(
    kernel: Float[Tensor, "m m"],
    phi: RandomTransformer,
    stream: torch.Generator,
) -> tuple[Float[Tensor, "m m"], None]:
    lengths, scale = kernel.diagonal().clamp(min=0).sqrt(), _inverse_lengths(kernel)
    cosine = scale.unsqueeze(1) * kernel * scale
    return lengths.unsqueeze(1) * lengths * arc_cosine(cosine), None


def _inverse_lengths(kernel: Float[Tensor, "m m"]) -> Float[Tensor, " m"]:
    return kernel.diagonal().clamp(min=torch.finfo(kernel.dtype).tiny).rsqrt()
