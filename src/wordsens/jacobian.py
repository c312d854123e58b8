"""The small-radius limit of word sensitivity: the largest singular value of the Jacobian in one word."""

from collections.abc import Callable, Iterable
from typing import SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError
from wordsens.feature_map import FeatureMap, feature_norm, features_by_text, perturbed_texts
from wordsens.lanczos import lanczos
from wordsens.maps.attention import RandomAttentionFeatures
from wordsens.maps.attention_jacobian import AttentionJacobian
from wordsens.maps.scores import ClosedForm, offered
from wordsens.seeds import gaussian_on, generator
from wordsens.sensitivity import as_feature_map, as_text, word_indices
from wordsens.text_matrix import TextMatrix

Product = Callable[[Float[Tensor, "b d"]], Float[Tensor, "b d"]]

_KRYLOV_STEPS = 40
_ROUNDS = 25
_TOLERANCE = 1e-12


def jacobian_sensitivity(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    words: Iterable[int] | SupportsIndex | None = None,
    *,
    seed: int = 0,
) -> Float[Tensor, " w"]:
    """lim of S_i(radius) / radius as radius -> 0: the largest singular value of d phi / d x_i, over ‖phi(X)‖.

    S_i(radius) is the sup over ‖Delta‖ <= radius of ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖, for word i (ours). Converged
    by restarted Lanczos on J^T J: structured for attention, all words at once; by autograd, one word at a time, for
    other maps. Where phi has kinks, autograd's derivative is taken.

    Args:
        phi: a feature map, or any differentiable function of (n, d).
        X: the text, (n, d).
        words: the word indices; None for all.
        seed: of Lanczos's starting vectors.

    Raises:
        InputError: a bad text or word; a map whose features carry no gradient; singular values too close to tell apart
            in the steps that are allowed.
        ZeroFeaturesError: phi(X) = 0.

    >>> phi = lambda X: 3 * X
    >>> jacobian_sensitivity(phi, torch.ones(4, 9, dtype=torch.float64))   # 3 / ‖3 X‖ = 1/6
    tensor([0.1667, 0.1667, 0.1667, 0.1667], dtype=torch.float64)
    """
    text, phi = as_text(X), as_feature_map(phi)
    rows = phi.accept(text.rows)
    chosen = word_indices(words, len(text)).to(rows.device)
    with torch.no_grad():
        norm = feature_norm(phi(rows), phi.name)
    start = gaussian_on(
        len(chosen),
        rows.shape[1],
        generator=generator(seed, "jacobian"),
        dtype=rows.dtype,
        device=rows.device,
    )
    if type(phi) is RandomAttentionFeatures and (score := offered(phi.score, ClosedForm)) is not None:
        scale = phi.temperature * rows.shape[1] ** 0.5
        product = AttentionJacobian(rows, phi.matrices, scale, score, chosen).normal_product
        squares = _largest(product, start)
    else:
        squares = torch.cat(
            [_largest(_autograd_product(phi, rows, word), start[at : at + 1]) for at, word in enumerate(chosen)]
        )
    return squares.clamp(min=0).sqrt().double() / norm


def _largest(product: Product, start: Float[Tensor, "b d"]) -> Float[Tensor, " b"]:
    """The largest eigenvalue of each positive semidefinite operator, by Lanczos restarted from its Ritz vector.

    Stops when the Ritz value's error, at most residual² / gap and at most the residual, is below the tolerance.
    """
    tolerance = max(_TOLERANCE, 64 * torch.finfo(start.dtype).eps)
    for _ in range(_ROUNDS):
        basis, rotation, values = lanczos(product, start, _KRYLOV_STEPS)
        start = torch.einsum("bt,btd->bd", rotation[:, 0], basis)
        value = values[:, 0]
        if basis.shape[1] == start.shape[1]:
            return value
        residual = torch.linalg.vector_norm(product(start) - value.unsqueeze(1) * start, dim=1)
        gap = (value - values[:, 1]).clamp(min=torch.finfo(value.dtype).tiny)
        error = torch.minimum(residual, residual.square() / gap)
        if bool((error <= tolerance * value.abs()).all()):
            return value
    raise InputError(
        "the Jacobian's largest singular values are too close to tell apart: Lanczos has not converged after "
        f"{_ROUNDS} rounds of {_KRYLOV_STEPS} steps; use float64"
    )


def _autograd_product(phi: FeatureMap, rows: Float[Tensor, "n d"], word: Int[Tensor, ""]) -> Product:
    """y -> J^T J y: J^T v is a gradient, and J y the gradient in v of (J^T v) . y."""
    where = word.view(1, 1)

    def normal_product(vectors: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        with torch.enable_grad():
            delta = torch.zeros_like(vectors).unsqueeze(1).requires_grad_(True)
            features = features_by_text(phi, perturbed_texts(rows, where, delta))
            if not features.requires_grad:
                if bool((features_by_text(phi, perturbed_texts(rows, where, vectors.unsqueeze(1))) != features).any()):
                    raise InputError(
                        f"{phi.name} changes with the text, but its features carry no gradient; "
                        "write it with torch operations, without detach or no_grad"
                    )
                return torch.zeros_like(vectors)
            probe = torch.zeros_like(features).requires_grad_(True)
            (pulled,) = torch.autograd.grad(features, delta, probe, create_graph=True)
            (pushed,) = torch.autograd.grad(pulled, probe, vectors.unsqueeze(1))
            (result,) = torch.autograd.grad(features, delta, pushed)
        return result.squeeze(1)

    return normal_product
