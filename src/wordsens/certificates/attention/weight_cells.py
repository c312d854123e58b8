"""A table of the weights of a row, cut to where each is between two known numbers."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wordsens.maps.attention.scores.tabulated import WeightTable


@dataclass(frozen=True)
class WeightCells:
    """A table of weights E with nodes where its bounds of E begin to count.

    Attributes:
        tau: the nodes.
        lowest, highest: E there, the score with itself lowest and highest, no less and no more than its bounds.
        below, above: how far E may be off their chords between two nodes.
        possible: False on cells where E would be less or more than its bounds.
    """

    tau: Float[Tensor, "n nodes"]
    lowest: Float[Tensor, "n nodes"]
    highest: Float[Tensor, "n nodes"]
    below: Float[Tensor, "n cells"]
    above: Float[Tensor, "n cells"]
    possible: Bool[Tensor, "n cells"]

    @classmethod
    def of(cls, table: WeightTable, weights: Float[Tensor, "2 n"]) -> "WeightCells":
        """Of one row's table, and of the least and the most that each of its weights may be. O(n nodes).

        Weights never fall in tau: the lowest crosses `least`, and the highest `most`, at one place each, and a node
        stands there. Between nodes either is then a chord; without that node a chord would cut the corner.
        """
        tau, low, high, below, above = (
            part[0] for part in (table.tau, table.low, table.high, table.below, table.above)
        )
        least, most = weights.unsqueeze(2)
        edges = [(low, least), (high, most), (low, most + below), (high, least - above)]
        nodes = torch.cat([tau, *(_crossing(tau, values, level) for values, level in edges)], dim=1).sort(dim=1).values
        cell = (torch.searchsorted(tau, nodes, right=True) - 1).clamp(0, tau.shape[1] - 2)
        left, right = tau.gather(1, cell), tau.gather(1, cell + 1)
        place = ((nodes - left) / torch.where(right > left, right - left, torch.ones_like(left))).clamp(0, 1)

        def between(values: Tensor) -> Tensor:
            return torch.lerp(values.gather(1, cell), values.gather(1, cell + 1), place)

        low, high, cell = between(low), between(high), cell[:, :-1]
        below, above = below.gather(1, cell), above.gather(1, cell)
        possible = (low[:, :-1] - below <= most) & (high[:, 1:] + above >= least)
        # Past `most` the least is that itself, where only the most could be; and so below `least`.
        lowest, highest = (torch.minimum(torch.maximum(part, least), most) for part in (low, high))
        return cls(nodes, lowest, highest, below, above, possible)


def _crossing(tau: Tensor, values: Float[Tensor, "n nodes"], level: Float[Tensor, "n ..."]) -> Float[Tensor, "n 1"]:
    """The place where the chord of rising values crosses a level; the first node where it does not."""
    left, right = values[:, :-1], values[:, 1:]
    crosses = (left < level) & (level < right)
    place = (level - left) / torch.where(crosses, right - left, torch.ones_like(left))
    found = torch.where(crosses, torch.lerp(tau[:, :-1], tau[:, 1:], place), tau[:, :1])
    return found.amax(dim=1, keepdim=True)
