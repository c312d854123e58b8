"""A map of your own, outside the package: `wordsens measure
"I love her much" --map own_map:WeightedMeans`."""

import torch
from torch import Tensor

import wordsens as ws


class WeightedMeans(ws.FeatureMap):
    """phi(X) in R^d: the mean of the rows with weights exp(u.x_i / (3 sqrt(d))) for a random unit
    vector u."""

    def __init__(self, d: int, seed: int = 0, dtype: torch.dtype = torch.float64):
        self.dtype = dtype
        u = torch.randn(d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        self.direction = (u / u.norm()).to(dtype)

    def features(self, texts: Tensor) -> Tensor:
        scores = texts @ self.direction / 3
        return torch.einsum("...n,...nd->...d", torch.softmax(scores, dim=-1), texts)


def plain_mean(X: Tensor) -> Tensor:
    """phi(X) in R^d: the mean of the rows of one text."""
    return X.mean(dim=0)
