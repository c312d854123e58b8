"""Vectors of length one, and inside a ball."""

import torch
from torch import Tensor


def unit(vectors: Tensor) -> Tensor:
    """Each of length 1; zero stays zero."""
    return torch.nn.functional.normalize(vectors, dim=-1, eps=torch.finfo(vectors.dtype).tiny)


def into_ball(points: Tensor) -> Tensor:
    """Those longer than 1 shortened to it."""
    length = torch.linalg.vector_norm(points, dim=-1, keepdim=True)
    return torch.nan_to_num(torch.where(length > 1, points / length, points))
