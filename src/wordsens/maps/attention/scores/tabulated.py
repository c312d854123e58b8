"""Weights tabulated over all that their scores may do: for bounds of the word's own row where nothing is divided."""

from abc import abstractmethod
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wordsens.maps.attention.scores.expanded import Expanded

CELLS, STRIDE = 48, 4  # of a score's range; a kink stands at a node of those that STRIDE leaves


@dataclass(frozen=True)
class RowMoves:
    """Some rows of scores, and what can move them: score l by tau_l + q_l, |tau_l| <= moves_l and |q_l| <= turns_l.

    `error` is the most that rounding may have put any score off by, moved or not. Word first.
    """

    scores: Float[Tensor, "w n"]
    moves: Float[Tensor, "w n"]
    turns: Float[Tensor, "w n"]
    error: Float[Tensor, "w 1"]


@dataclass(frozen=True)
class WeightTable:
    """Weights E_l where score l has moved by tau_l + q_l.

    On a cell between two nodes of tau_l the lowest E_l is at most `below` below its chord, and the highest at most
    `above` above its own.

    Attributes:
        before: where nothing has moved.
        tau: the nodes, from -moves to moves.
        low, high: E at the nodes, q smallest and largest.
        size: entries are off by at most a few roundings of it.
        off: the most that rounding changes the new weights by, summed over the row.
    """

    before: Float[Tensor, "w n"]
    tau: Float[Tensor, "w n nodes"]
    low: Float[Tensor, "w n nodes"]
    high: Float[Tensor, "w n nodes"]
    below: Float[Tensor, "w n cells"]
    above: Float[Tensor, "w n cells"]
    size: Float[Tensor, "w n"]
    off: Float[Tensor, " w"]

    def of(self, chosen: Bool[Tensor, " w"]) -> "WeightTable":
        """Of some of the rows."""
        return replace(self, **{name: part[chosen] for name, part in vars(self).items()})


class Tabulated(Expanded):
    """A score whose weights are w(s_l), not divided, w never falling; it says w over a range."""

    @abstractmethod
    def table(self, row: RowMoves) -> WeightTable:
        """Of some rows; where numbers are extreme, entries need not be finite."""

    @abstractmethod
    def table_gains(self, scores: Float[Tensor, "w n"], moves: Float[Tensor, "w n"]) -> Bool[Tensor, " w"]:
        """True where a bound by `table` may be less than what other bounds say, with moves without their q."""


def even_nodes(moves: Float[Tensor, "w n"]) -> Float[Tensor, "w n nodes"]:
    places = torch.linspace(-1, 1, CELLS + 1, dtype=moves.dtype, device=moves.device)
    return moves.unsqueeze(-1) * places


def relu_table(row: RowMoves) -> WeightTable:
    """Of relu(s_l)."""
    tau = _nodes_about(-row.scores, row.moves)
    here, turns = row.scores.unsqueeze(-1) + tau, row.turns.unsqueeze(-1)
    low, high = (torch.relu(here + sign * turns) for sign in (-1, 1))
    # A chord over the kink is above it by before (width - before)/width, `before` being the part of the cell before it.
    width = tau[..., 1:] - tau[..., :-1]
    before = torch.minimum((turns - here[..., :-1]).clamp(min=0), width)
    below = before * (width - before) / torch.where(width > 0, width, torch.ones_like(width))
    return WeightTable(
        before=torch.relu(row.scores),
        tau=tau,
        low=low,
        high=high,
        below=below,
        above=torch.zeros_like(below),
        size=row.scores.abs() + row.moves + row.turns,
        off=2 * row.scores.shape[1] * row.error.squeeze(1),
    )


def _nodes_about(kink: Float[Tensor, "w n"], moves: Float[Tensor, "w n"]) -> Float[Tensor, "w n nodes"]:
    """From -moves to moves, one of those that `STRIDE` leaves at the kink where it is between them."""
    reach = torch.where(moves > 0, moves, torch.ones_like(moves))
    place = torch.where(kink.abs() < moves, kink / reach, torch.zeros_like(kink)).unsqueeze(-1)
    groups = CELLS // STRIDE
    left = ((0.5 * (place + 1) * groups).round().clamp(1, groups - 1)) * STRIDE
    index = torch.arange(CELLS + 1, dtype=moves.dtype, device=moves.device)
    nodes = torch.where(
        index <= left, -1 + (place + 1) * (index / left), place + (1 - place) * ((index - left) / (CELLS - left))
    )
    return moves.unsqueeze(-1) * nodes
