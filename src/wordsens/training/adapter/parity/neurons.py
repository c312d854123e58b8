"""Neurons of a feed-forward part that compute a function of one coordinate exactly, two at a time.

The difference of two neurons is z for ReLU, and for GELU too, as GELU(z) - GELU(-z) = z; of two steep ones it is a
step, which is done within 4 / STEEP of its place, where GELU is a straight line again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

STEEP = 200.0


@dataclass(frozen=True)
class Difference:
    """Two neurons.

    Attributes:
        coordinate: that both read.
        slopes: of the two.
        biases: of the two.
        writes: what their difference is multiplied by, and then added to the states.
    """

    coordinate: int
    slopes: tuple[float, float]
    biases: tuple[float, float]
    writes: Float[Tensor, " d"]


def value(coordinate: int, writes: Float[Tensor, " d"]) -> Difference:
    """The coordinate's z."""
    return Difference(coordinate, (1, -1), (0, 0), writes)


def above(coordinate: int, threshold: float, writes: Float[Tensor, " d"]) -> Difference:
    """1 where z is above the threshold, else 0."""
    return Difference(coordinate, (STEEP, STEEP), (0.5 - STEEP * threshold, -0.5 - STEEP * threshold), writes)


def below(coordinate: int, threshold: float, writes: Float[Tensor, " d"]) -> Difference:
    """1 where -z is above the threshold, else 0."""
    return Difference(coordinate, (-STEEP, -STEEP), (0.5 - STEEP * threshold, -0.5 - STEEP * threshold), writes)


@torch.no_grad()
def add_neurons(layer: Any, differences: Sequence[Difference]) -> None:
    """Widen the feed-forward part of a layer of BERT's kind by them."""
    size = layer.intermediate.dense.in_features
    rows, columns = torch.zeros(2 * len(differences), size), torch.zeros(size, 2 * len(differences))
    for at, each in enumerate(differences):
        rows[2 * at : 2 * at + 2, each.coordinate] = torch.tensor(each.slopes)
        columns[:, 2 * at], columns[:, 2 * at + 1] = each.writes, -each.writes
    _widen(layer, rows, torch.tensor([bias for each in differences for bias in each.biases]), columns)


@torch.no_grad()
def of_one_width(base: Any, layers: Sequence[Any]) -> None:
    """Give all feed-forward parts the width of the widest, by neurons that do nothing."""
    width = max(layer.intermediate.dense.out_features for layer in layers)
    for layer in layers:
        into = layer.intermediate.dense
        more, size = width - into.out_features, into.in_features
        _widen(layer, torch.zeros(more, size), torch.zeros(more), torch.zeros(size, more))
    base.config.intermediate_size = width


def _widen(layer: Any, rows: Tensor, biases: Tensor, columns: Tensor) -> None:
    into, out = layer.intermediate.dense, layer.output.dense
    into.weight = nn.Parameter(torch.cat([into.weight, rows]))
    into.bias = nn.Parameter(torch.cat([into.bias, biases]))
    out.weight = nn.Parameter(torch.cat([out.weight, columns], dim=1))
    into.out_features = out.in_features = len(into.bias)
