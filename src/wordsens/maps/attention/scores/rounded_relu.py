"""ReLU scores with their kinks rounded off above zero alone, which a search climbs last."""

import torch
from torch import Tensor

from wordsens.maps.attention.scores.soft_relu import SoftRelu

_FLOOR = 1e-9
"""The addition to a row's sum, in widths: nothing is divided by zero."""


class RoundedRelu(SoftRelu):
    """0 for s <= 0, s² / (2 width) up to the width, s - width / 2 above; divided by the row's sum or not.

    Unlike under `SoftRelu` a score below zero gets no weight at all: a row that ReLU leaves to one word is left to it
    here too, while the scores that hold it there lie at zero.

    Args:
        normalized: whether the weights are divided by their sum.
        width: of the rounded kink, in units of the scores.
    """

    name = "rounded-relu"

    def __init__(self, *, normalized: bool, width: float):
        super().__init__(normalized=normalized, width=width)
        self.floor = _FLOOR * width

    def part(self, scores: Tensor) -> Tensor:
        positive = scores.clamp(min=0)
        return torch.where(positive < self._width, positive.square() / (2 * self._width), positive - self._width / 2)

    def part_slope(self, scores: Tensor) -> Tensor:
        return (scores / self._width).clamp(0, 1)
