"""The small-radius limit of word sensitivity: the largest singular value of the Jacobian in one
word."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

from wordsens.errors import InputError, first_line
from wordsens.gaussian.vectors import lanczos
from wordsens.maps.arguments import as_feature_map, as_text, word_indices
from wordsens.maps.attention.features import AttentionLayer, RandomAttentionFeatures
from wordsens.maps.attention.given_weights import AttentionFeatures
from wordsens.maps.attention.jacobian import attention_normal_product
from wordsens.maps.attention.scores import ClosedForm, offered
from wordsens.maps.base import FeatureMap
from wordsens.maps.mapping import feature_norm, require_repeatable, restores_state
from wordsens.seeds import Seed, gaussian_on, generator
from wordsens.sensitivity.result import SensitivityResult
from wordsens.text.matrix import TextMatrix

Product = Callable[[Float[Tensor, "b d"]], Float[Tensor, "b d"]]


def normal_product(features: Callable[[Tensor], Tensor], name: str) -> Product:
    """y -> J^T J y, row by row: J^T v is a gradient, and J y the gradient in v of (J^T v) . y.

    The fused kernels of scaled dot product attention cannot be differentiated twice: it runs by
    plain products here.

    `features` gives b rows of features for b perturbations, each of its own; `name` is the map's,
    for errors.

    Raises:
        InputError: from the product, where the features change and carry no gradient, or one that
            has none itself.
    """

    def product(vectors: Float[Tensor, "b d"]) -> Float[Tensor, "b d"]:
        with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH):
            delta = torch.zeros_like(vectors).requires_grad_(True)
            here = features(delta)
            if not here.requires_grad:
                if bool((features(vectors) != here).any()):
                    raise InputError(
                        f"{name} changes with the text, but its features carry no gradient; "
                        "write it with torch operations, without detach or no_grad"
                    )
                return torch.zeros_like(vectors)
            probe = torch.zeros_like(here).requires_grad_(True)
            (pulled,) = torch.autograd.grad(here, delta, probe, create_graph=True)
            try:
                (pushed,) = torch.autograd.grad(pulled, probe, vectors)
            except RuntimeError as error:
                raise InputError(
                    f"the Jacobian of {name} needs derivatives of its gradient "
                    f"({first_line(error)}); write it with "
                    "operations that torch differentiates twice"
                ) from error
            (normal,) = torch.autograd.grad(here, delta, pushed)
        return normal

    return product


_KRYLOV_STEPS = 40
_ROUNDS = 25
_TOLERANCE = 1e-12


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class JacobianSensitivity(SensitivityResult):
    """The small-radius limit of word sensitivity, with the directions that reach it.

    Attributes:
        value: the largest of `per_word`.
        words: (w,), the words.
        per_word: (w,), the limit of S_i(radius) / radius.
        perturbations: (w, d), unit vectors v: Delta = radius v changes phi by per_word * radius, up
            to terms in radius², and so does -v; the sign is such that the coordinate of largest
            size is positive.
    """

    words: Int[Tensor, " w"]
    per_word: Float[Tensor, " w"]
    perturbations: Float[Tensor, "w d"]

    ranked = "sensitivity per radius"

    @property
    def headline(self) -> str:
        """The largest limit."""
        return (
            f"A small step at one word moves the output by at most {self.value:.3g} times its size "
            "per unit of length"
        )

    def columns(self) -> dict[str, Any]:
        """One row per word."""
        return {"word": self.words.tolist(), "sensitivity per radius": self.per_word.tolist()}


@restores_state
def jacobian_sensitivity(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    words: Iterable[int] | Tensor | SupportsIndex | None = None,
    seed: Seed = 0,
) -> JacobianSensitivity:
    """lim of S_i(radius) / radius as radius -> 0: the largest singular value of d phi / d x_i, over
    ‖phi(X)‖.

    S_i(radius) is the sup over ‖Delta‖ <= radius of ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖, for word
    i (ours). Computed to convergence by restarted Lanczos on J^T J. For attention, products with
    J^T J are computed in closed form for all words at once; for other maps by autograd, one word at
    a time. Where phi has kinks, autograd's derivative is taken.

    Args:
        phi: a feature map, or any differentiable function of (n, d).
        X: the text, (n, d).
        words: the word indices; None for all.
        seed: random seed of Lanczos's starting vectors.

    Raises:
        InputError: a bad text or word; a map whose features carry no gradient; singular values too
            close to tell apart in the steps that are allowed.
        ZeroFeaturesError: phi(X) = 0.

    >>> phi = lambda X: 3 * X
    >>> jacobian_sensitivity(phi, torch.ones(4, 9, dtype=torch.float64)).per_word   # 3 / ‖3 X‖ = 1/6
    tensor([0.1667, 0.1667, 0.1667, 0.1667], dtype=torch.float64)
    >>> phi = lambda X: X * torch.tensor([1.0, 5.0], dtype=torch.float64)
    >>> jacobian_sensitivity(phi, torch.ones(2, 2, dtype=torch.float64), 0).perturbations.round().abs()
    tensor([[0., 1.]], dtype=torch.float64)
    """  # noqa: E501
    started = time.perf_counter()
    phi, text = as_feature_map(phi), as_text(X)
    rows = phi.accept(text.rows)
    chosen = word_indices(words, len(text)).to(rows.device)
    with torch.no_grad():
        norm = feature_norm(require_repeatable(phi, rows), phi.name)
    stream = generator(seed, "jacobian")
    start = gaussian_on(
        len(chosen), rows.shape[1], generator=stream, dtype=rows.dtype, device=rows.device
    )
    product = _attention_product(phi, rows, chosen)
    if product is not None:
        squares, vectors = _largest(product, start)
    else:
        perturbed, of_words = phi.perturbed(rows), []
        for word, first in zip(chosen.view(-1, 1, 1), start.split(1), strict=True):

            def moved(delta: Tensor, word: Tensor = word) -> Tensor:
                return perturbed(word, delta.unsqueeze(1))

            of_words.append(_largest(normal_product(moved, phi.name), first))
        squares, vectors = (torch.cat(parts) for parts in zip(*of_words, strict=True))
    per_word = squares.clamp(min=0).sqrt().double() / norm
    largest = vectors.gather(1, vectors.abs().argmax(dim=1, keepdim=True))
    directions = torch.nn.functional.normalize(vectors, dim=1) * torch.where(largest < 0, -1.0, 1.0)
    return JacobianSensitivity(
        value=float(per_word.max()),
        words=chosen,
        per_word=per_word,
        perturbations=directions.double(),
        converged=None,
        seconds=time.perf_counter() - started,
        seed=int(seed),
    )


def _attention_product(
    phi: FeatureMap, rows: Float[Tensor, "n d"], words: Int[Tensor, " w"]
) -> Product | None:
    """J^T J of all words at once, for exactly these classes, since a subclass may change phi; None
    for other maps."""
    if not isinstance(phi, AttentionLayer) or type(phi) not in (
        RandomAttentionFeatures,
        AttentionFeatures,
    ):
        return None
    score = offered(phi.score, ClosedForm)
    if score is None or phi.summed:
        return None
    return attention_normal_product(rows, phi.head_weights(len(rows), phi.dtype), score, words)


def _largest(
    product: Product, start: Float[Tensor, "b d"]
) -> tuple[Float[Tensor, " b"], Float[Tensor, "b d"]]:
    """The largest eigenvalue and its eigenvector of each positive semidefinite operator, by
    restarted Lanczos.

    Stops when the Ritz value's error, at most residual² / gap and at most the residual, is below
    the tolerance.
    """
    tolerance = max(_TOLERANCE, 64 * torch.finfo(start.dtype).eps)
    for _ in range(_ROUNDS):
        basis, rotation, values = lanczos(product, start, _KRYLOV_STEPS)
        start = torch.einsum("bt,btd->bd", rotation[:, 0], basis)
        value = values[:, 0]
        if basis.shape[1] == start.shape[1]:
            return value, start
        residual = torch.linalg.vector_norm(product(start) - value.unsqueeze(1) * start, dim=1)
        gap = (value - values[:, 1]).clamp(min=torch.finfo(value.dtype).tiny)
        error = torch.minimum(residual, residual.square() / gap)
        if bool((error <= tolerance * value.abs()).all()):
            return value, start
    raise InputError(
        "the Jacobian's largest singular values are too close to tell apart: Lanczos has not "
        "converged after "
        f"{_ROUNDS} rounds of {_KRYLOV_STEPS} steps; use float64"
    )
