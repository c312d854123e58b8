"""Maps whose word sensitivity is known exactly."""

from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.feature_map import FeatureMap


class KnownMap(FeatureMap):
    """A map that also knows its sensitivity to each word."""

    def __init__(self, *, dtype: torch.dtype = torch.float64, device: str = "cpu"):
        self.dtype, self.device = dtype, torch.device(device)
        self.name = type(self).__name__

    @abstractmethod
    def exact(self, rows: Float[Tensor, "n d"], radius: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
        """sup over ‖Delta‖ <= radius_i of ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖, for every word."""


class Linear(KnownMap):
    """phi(X) = A flat(X): S_i = radius ‖A_i‖_op / ‖A flat(X)‖, A_i the columns of word i."""

    def __init__(self, n: int, d: int, features: int, seed: int = 0, **options):
        super().__init__(**options)
        A = torch.randn(features, n * d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        self.A = A.to(dtype=self.dtype, device=self.device)
        self.blocks = self.A.unflatten(1, (n, d)).transpose(0, 1)

    def features(self, texts):
        return texts.flatten(start_dim=-2) @ self.A.T

    def exact(self, rows, radius):
        return radius * torch.linalg.matrix_norm(self.blocks, ord=2) / self.features(rows).norm()


class Identity(KnownMap):
    """phi(X) = X: S_i = radius / ‖X‖_F, in every direction."""

    def features(self, texts):
        return texts.clone()

    def exact(self, rows, radius):
        return radius / rows.norm()


class Constant(KnownMap):
    """phi(X) = (3, 4): S = 0. No gradient reaches the text."""

    def features(self, texts):
        return torch.tensor([3.0, 4.0], dtype=self.dtype, device=self.device).expand(*texts.shape[:-2], 2)

    def exact(self, rows, radius):
        return torch.zeros_like(radius)


class Selection(KnownMap):
    """phi(X) = x_k: S_k = radius / ‖x_k‖, and 0 for the other words."""

    def __init__(self, word: int, **options):
        super().__init__(**options)
        self.word = word

    def features(self, texts):
        return texts[..., self.word, :]

    def exact(self, rows, radius):
        expected = torch.zeros_like(radius)
        expected[self.word] = radius[self.word] / rows[self.word].norm()
        return expected


class Pooled(KnownMap):
    """phi(X) = the mean of the rows: S_i = radius / ‖sum of the rows‖."""

    def features(self, texts):
        return texts.mean(dim=-2)

    def exact(self, rows, radius):
        return radius / rows.sum(dim=0).norm()


class Bump(KnownMap):
    """phi(X) = (1, 1 + height exp(-‖x_0 - peak‖² / 2 width²)): the maximum is inside the ball where the peak is.

    S_0 = height (1 - exp(-‖x_0 - peak‖² / 2 width²)) / ‖phi(X)‖ for a peak in the ball, when phi falls less on the
    way out of it than it climbs to the peak.
    """

    def __init__(self, peak: Float[Tensor, " d"], width: float, height: float = 1.0, **options):
        super().__init__(**options)
        self.peak = peak.to(dtype=self.dtype, device=self.device)
        self.width, self.height = width, height

    def features(self, texts):
        distance = (texts[..., 0, :] - self.peak).square().sum(dim=-1)
        bump = 1 + self.height * torch.exp(-distance / (2 * self.width**2))
        return torch.stack([torch.ones_like(bump), bump], dim=-1)

    def exact(self, rows, radius):
        features = self.features(rows)
        expected = torch.zeros_like(radius)
        expected[0] = (1 + self.height - features[1]) / features.norm()
        return expected
