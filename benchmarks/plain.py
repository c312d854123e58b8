"""The straightforward way to what the library computes: torch alone, the paper's formulas, gradient
ascent by autograd.

Independent of the library on purpose. Tests and benchmarks compare the library with it.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


def attention_features(weight: Tensor, X: Tensor, score: str = "softmax") -> Tensor:
    """g(X W X^T / sqrt(d)) X for a text X (n, d) and a weight W (d, d): (n, d).

    g is the softmax of a row, or "relu": max(s, 0) over its row's sum, 0 where that is 0.
    """
    scores = X @ weight @ X.T / math.sqrt(X.shape[1])
    if score == "softmax":
        return torch.softmax(scores, dim=1) @ X
    positive = scores.relu()
    total = positive.sum(dim=1, keepdim=True)
    return positive / torch.where(total > 0, total, 1.0) @ X


def plain_ascent(
    weight: Tensor,
    X: Tensor,
    word: int,
    *,
    score: str = "softmax",
    steps: int | None = None,
    step: float = 10.0,
    seed: int = 0,
) -> tuple[float, Tensor]:
    """One random start, `steps` steps of gradient ascent on the root-mean-square change of the
    features.

    Delta <- projection of Delta + step * gradient onto ‖Delta‖ <= sqrt(d). Computes in float64. O(n
    d² + n² d) a step.

    Args:
        weight: W, (d, d).
        X: the text, (n, d).
        word: the row that is perturbed.
        score: as for `attention_features`.
        steps: None for 50 n.
        step: what the raw gradient is multiplied by.
        seed: of the start, a standard Gaussian vector projected onto the ball.

    Returns:
        The largest ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖ seen, and its Delta (d,).
    """
    weight, X = weight.double(), X.double()
    n, d = X.shape
    radius = math.sqrt(d)
    features = attention_features(weight, X, score)
    to_relative = math.sqrt(features.numel()) / features.norm().item()

    delta = torch.randn(d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(
        X.device
    )
    delta = _into_ball(delta, radius)
    best, best_delta = 0.0, delta
    for _ in range(1 + (50 * n if steps is None else steps)):
        point = delta.requires_grad_(True)
        perturbed = X.clone()
        perturbed[word] = X[word] + point
        change = (attention_features(weight, perturbed, score) - features).square().mean().sqrt()
        (gradient,) = torch.autograd.grad(change, point)
        if change.item() > best:
            best, best_delta = change.item(), point.detach()
        delta = _into_ball(point.detach() + step * gradient, radius)
    return best * to_relative, best_delta


def _into_ball(delta: Tensor, radius: float) -> Tensor:
    norm = delta.norm()
    # A few units of the last place inside, so that the norm recomputed is not above the radius.
    return delta * (radius * (1 - 1e-15) / norm) if norm > radius else delta


@dataclass(frozen=True)
class DenseAscent:
    """The largest relative change seen, its Delta (d,), and the value after every step."""

    value: float
    perturbation: Tensor
    values: tuple[float, ...]


def gaussian_weights(
    n: int, d: int, depth: int = 1, *, width: int | None = None, seed: int = 0
) -> list[Tensor]:
    """V_1, ..., V_L in float64: entries N(0, 1/(n d)), then N(0, 2/width), which suits ReLU. width
    None: n d."""
    width = n * d if width is None else width
    stream = torch.Generator().manual_seed(seed)
    fan_ins = [n * d] + [width] * (depth - 1)
    return [
        torch.randn(width, fan_in, generator=stream, dtype=torch.float64)
        * math.sqrt((1 if at == 0 else 2) / fan_in)
        for at, fan_in in enumerate(fan_ins)
    ]


def dense_features(weights: list[Tensor], X: Tensor) -> Tensor:
    """ReLU layers on the flattened text: V_1 flat(X), and so on."""
    hidden = X.flatten()
    for weight in weights:
        hidden = torch.relu(weight @ hidden)
    return hidden


def dense_ascent(
    weights: list[Tensor],
    X: Tensor,
    word: int,
    *,
    steps: int = 300,
    tolerance: float = 1e-5,
    seed: int = 0,
) -> DenseAscent:
    """One random start; every step goes to sqrt(d) times the gradient's direction, the ball's
    linear maximiser.

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
    return DenseAscent(best, best_delta, tuple(values))


@dataclass(frozen=True)
class Descent:
    """The best point of one descent: the loss, the error on the changed text, gamma, the alignment,
    Delta."""

    loss: float
    error: float
    gamma: float
    alignment: float
    perturbation: Tensor


class PlainRegression:
    """RF with the dense V (k, D): phi(X) = relu(V flat(X)), theta* = pinv(Phi) Y and P = I -
    pinv(Phi) Phi as a matrix.

    Args:
        V: (k, n d).
        texts: (N, n, d).
        labels: (N,).
    """

    def __init__(self, V: Tensor, texts: Tensor, labels: Tensor):
        self.V = V
        Phi = torch.relu(texts.flatten(start_dim=1) @ V.T)
        inverse = torch.linalg.pinv(Phi)
        self.Phi, self.labels = Phi, labels
        self.theta = inverse @ labels
        self.projector = torch.eye(Phi.shape[1], dtype=V.dtype) - inverse @ Phi

    def features(self, X: Tensor) -> Tensor:
        """relu(V flat(X))."""
        return torch.relu(self.V @ X.flatten())

    def learned(self, X: Tensor, label: float, training: str) -> tuple[Tensor, Tensor]:
        """theta after (X, label) is learned, and the vector v with alignment phi . v / (phi(X) .
        v)."""
        psi = self.features(X)
        if training == "fine-tuned":
            return self.theta + psi * (label - psi @ self.theta) / (psi @ psi), psi
        stacked = torch.linalg.pinv(torch.cat([self.Phi, psi.unsqueeze(0)]))
        return stacked @ torch.cat(
            [self.labels, self.labels.new_tensor([label])]
        ), self.projector @ psi

    def descend(
        self, X: Tensor, label: float, word: int, training: str, objective: str, *, steps: int = 200
    ) -> Descent:
        """Projected descent from Delta = 0 with steps of a fifth of the radius, 2 % shorter each
        time.

        Args:
            X: the text, (n, d).
            label: y, whose opposite is the changed text's label.
            word: the row that is perturbed.
            training: "fine-tuned" or "retrained".
            objective: "alignment", (F + 1)², or "error".
            steps: evaluations of the gradient.
        """
        radius = math.sqrt(X.shape[1])
        after, direction = self.learned(X, label, training)
        psi = self.features(X)
        scale = psi @ direction
        delta, best = torch.zeros(X.shape[1], dtype=X.dtype), None
        for step in range(steps):
            delta = delta.requires_grad_(True)
            rows = torch.cat([X[:word], (X[word] + delta).unsqueeze(0), X[word + 1 :]])
            changed = self.features(rows)
            alignment, error = changed @ direction / scale, (changed @ after + label).square()
            loss = (alignment + 1).square() if objective == "alignment" else error
            if best is None or float(loss.detach()) < best.loss:
                gamma = float(((changed - psi) @ self.theta).abs().detach())
                best = Descent(
                    *(float(part.detach()) for part in (loss, error)),
                    gamma,
                    float(alignment.detach()),
                    delta,
                )
            (slope,) = torch.autograd.grad(loss, delta)
            delta = delta.detach() - 0.2 * radius * 0.98**step * slope / torch.linalg.vector_norm(
                slope
            )
            delta = delta * min(1.0, radius / float(torch.linalg.vector_norm(delta)))
        assert best is not None
        return best
