"""The straightforward way to the word sensitivity of random attention: autograd through the whole map, one word.

Independent of the library on purpose: torch alone, the map written out as in the paper's eq. 3, and plain gradient
ascent with projection. The tests and benchmarks compare the library with it.
"""

import math

import torch
from torch import Tensor


def attention_features(weight: Tensor, X: Tensor) -> Tensor:
    """softmax_rows(X W X^T / sqrt(d)) X for a text X (n, d) and a weight W (d, d): (n, d)."""
    return torch.softmax(X @ weight @ X.T / math.sqrt(X.shape[1]), dim=1) @ X


def plain_ascent(
    weight: Tensor, X: Tensor, word: int, *, steps: int | None = None, step: float = 10.0, seed: int = 0
) -> tuple[float, Tensor]:
    """One random start, `steps` steps of gradient ascent on the root-mean-square change of the features.

    Delta <- projection of Delta + step * gradient onto ‖Delta‖ <= sqrt(d). Computes in float64. O(n d² + n² d) a step.

    Args:
        weight: W, (d, d).
        X: the text, (n, d).
        word: the row that is perturbed.
        steps: None for 50 n.
        step: what the raw gradient is multiplied by.
        seed: of the start, a standard Gaussian vector projected onto the ball.

    Returns:
        The largest ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖ seen, and its Delta (d,).
    """
    weight, X = weight.double(), X.double()
    n, d = X.shape
    radius = math.sqrt(d)
    features = attention_features(weight, X)
    to_relative = math.sqrt(features.numel()) / features.norm().item()

    delta = torch.randn(d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(X.device)
    delta = _into_ball(delta, radius)
    best, best_delta = 0.0, delta
    for _ in range(1 + (50 * n if steps is None else steps)):
        point = delta.requires_grad_(True)
        perturbed = X.clone()
        perturbed[word] = X[word] + point
        change = (attention_features(weight, perturbed) - features).square().mean().sqrt()
        (gradient,) = torch.autograd.grad(change, point)
        if change.item() > best:
            best, best_delta = change.item(), point.detach()
        delta = _into_ball(point.detach() + step * gradient, radius)
    return best * to_relative, best_delta


def _into_ball(delta: Tensor, radius: float) -> Tensor:
    norm = delta.norm()
    # A few units of the last place inside, so that the norm recomputed is not above the radius.
    return delta * (radius * (1 - 1e-15) / norm) if norm > radius else delta
