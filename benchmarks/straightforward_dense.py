"""The straightforward way to the word sensitivity of random features: dense matrices, autograd through the whole map.

Independent of the library on purpose: torch alone, the map written out as in the paper's eq. 2 (and its deep variant),
power-iteration-like ascent to the ball's linear maximiser. The tests and benchmarks compare the library with it.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Found:
    """The largest relative change seen, its Delta (d,), and the value after every step."""

    value: float
    perturbation: Tensor
    values: tuple[float, ...]


def gaussian_weights(n: int, d: int, depth: int = 1, *, width: int | None = None, seed: int = 0) -> list[Tensor]:
    """V_1, ..., V_L in float64: entries N(0, 1/(n d)), then N(0, 2/width), which suits ReLU. width None: n d."""
    width = n * d if width is None else width
    stream = torch.Generator().manual_seed(seed)
    fan_ins = [n * d] + [width] * (depth - 1)
    return [
        torch.randn(width, fan_in, generator=stream, dtype=torch.float64) * math.sqrt((1 if at == 0 else 2) / fan_in)
        for at, fan_in in enumerate(fan_ins)
    ]


def dense_features(weights: list[Tensor], X: Tensor) -> Tensor:
    """ReLU layers on the flattened text: V_1 flat(X), and so on."""
    hidden = X.flatten()
    for weight in weights:
        hidden = torch.relu(weight @ hidden)
    return hidden


def plain_ascent(
    weights: list[Tensor], X: Tensor, word: int, *, steps: int = 300, tolerance: float = 1e-5, seed: int = 0
) -> Found:
    """One random start; every step goes to sqrt(d) times the gradient's direction, the ball's linear maximiser.

    It stops after four steps in a row that gain less than `tolerance`, relative, or after `steps`.
    """
    d = X.shape[1]
    features = dense_features(weights, X)
    norm = features.norm().item()
    delta = torch.randn(d, generator=torch.Generator().manual_seed(seed), dtype=X.dtype)
    delta = delta * (math.sqrt(d) / delta.norm())
    best, best_delta, values, idle = 0.0, delta, [], 0
    for _ in range(steps):
        point = delta.requires_grad_(True)
        perturbed = X.clone()
        perturbed[word] = X[word] + point
        change = (dense_features(weights, perturbed) - features).norm()
        (gradient,) = torch.autograd.grad(change, point)
        value = change.item() / norm
        idle = 0 if value > best * (1 + tolerance) else idle + 1
        if value > best:
            best, best_delta = value, point.detach()
        values.append(best)
        if idle == 4:
            break
        delta = gradient * (math.sqrt(d) * (1 - 1e-15) / gradient.norm())
    return Found(best, best_delta, tuple(values))
