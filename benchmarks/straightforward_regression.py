"""The straightforward way to generalization after one changed word: dense weights, a pseudo-inverse, a p x p projector.

Independent of the library on purpose: torch alone, the formulas of docs/theory/generalization.md written out, and
projected gradient descent by autograd through the whole map. The benchmarks compare the library with it.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Found:
    """The best point of one descent: the loss, the error on the changed text, gamma, the alignment, Delta."""

    loss: float
    error: float
    gamma: float
    alignment: float
    perturbation: Tensor


class StraightforwardRegression:
    """RF with the dense V (k, D): phi(X) = relu(V flat(X)), theta* = pinv(Phi) Y and P = I - pinv(Phi) Phi as a matrix.

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
        """theta after (X, label) is learned, and the vector v with alignment phi . v / (phi(X) . v)."""
        psi = self.features(X)
        if training == "fine-tuned":
            return self.theta + psi * (label - psi @ self.theta) / (psi @ psi), psi
        stacked = torch.linalg.pinv(torch.cat([self.Phi, psi.unsqueeze(0)]))
        return stacked @ torch.cat([self.labels, self.labels.new_tensor([label])]), self.projector @ psi

    def descend(self, X: Tensor, label: float, word: int, training: str, objective: str, *, steps: int = 200) -> Found:
        """Projected descent from Delta = 0 with steps of a fifth of the radius, 2 % shorter each time.

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
                best = Found(*(float(part.detach()) for part in (loss, error)), gamma, float(alignment.detach()), delta)
            (slope,) = torch.autograd.grad(loss, delta)
            delta = delta.detach() - 0.2 * radius * 0.98**step * slope / torch.linalg.vector_norm(slope)
            delta = delta * min(1.0, radius / float(torch.linalg.vector_norm(delta)))
        assert best is not None
        return best
