"""Weights before they are divided, tabulated over all that their scores may do: for bounds at medium radii."""

from abc import abstractmethod
from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.maps.attention.scores.expanded import Expanded

CELLS, STRIDE = 48, 4  # of a score's range; a kink stands at a node of those that STRIDE leaves


@dataclass(frozen=True)
class RowMoves:
    """Some rows of scores, and what can move them: score l by kappa_l . y + q_l, ‖y‖ <= 1 and |q_l| <= turns_l.

    Word first.

    Attributes:
        moves: at least ‖kappa_l‖.
        gram: kappa_l . kappa_m; computed, it is off by at most `slack` moves_l moves_m.
        error: what rounding may have put any score off by, moved or not.
    """

    scores: Float[Tensor, "w n"]
    moves: Float[Tensor, "w n"]
    turns: Float[Tensor, "w n"]
    gram: Float[Tensor, "w n n"]
    error: Float[Tensor, "w 1"]
    slack: float


@dataclass(frozen=True)
class WeightTable:
    """Weights E_l before they are divided by Z = sum_l E_l (or that are not), where score l has moved by tau_l + q_l.

    On a cell between two nodes of tau_l the lowest E_l is at most `below` below its chord, and the highest at most
    `above` above its own.

    Attributes:
        before: where nothing has moved, the sum being 1 where scores are divided.
        tau: the nodes, from -moves to moves.
        low, high: E at the nodes, q smallest and largest.
        least, most: bounds of Z; 1 where nothing is divided.
        size: entries are off by at most a few roundings of it.
        off, off_by_sum: rounding may have put the new weights, summed over the row, off by the first and by the
            second (None for 0) over the least Z; infinite where that is not known.
    """

    before: Float[Tensor, "w n"]
    tau: Float[Tensor, "w n nodes"]
    low: Float[Tensor, "w n nodes"]
    high: Float[Tensor, "w n nodes"]
    below: Float[Tensor, "w n cells"]
    above: Float[Tensor, "w n cells"]
    size: Float[Tensor, "w n"]
    least: Float[Tensor, " w"]
    most: Float[Tensor, " w"]
    off: Float[Tensor, " w"]
    off_by_sum: Float[Tensor, " w"] | None = None

    @property
    def error(self) -> Float[Tensor, " w"]:
        """off + off_by_sum / least: the most that rounding changes the new weights by, summed over the row."""
        if self.off_by_sum is None:
            return self.off
        return self.off + torch.where(self.least > 0, self.off_by_sum / self.least, torch.inf)

    def of(self, chosen: Int[Tensor, " c"]) -> "WeightTable":
        """Of some of the rows."""
        return replace(self, **{name: part[chosen] for name, part in vars(self).items() if part is not None})


class Tabulated(Expanded):
    """A score whose weights are w(s_l), or w(s_l) over their sum, w never falling; it says w over a range.

    Attributes:
        rectified: whether weights are positive parts of the scores over their sum.
    """

    rectified = False

    @abstractmethod
    def table(self, row: RowMoves) -> WeightTable:
        """Of some rows; where numbers are extreme, entries need not be finite."""

    @abstractmethod
    def table_gains(self, scores: Float[Tensor, "w n"], moves: Float[Tensor, "w n"]) -> Bool[Tensor, " w"]:
        """True where a bound by `table` may be less than what other bounds say, with moves without their q."""


def even_nodes(moves: Float[Tensor, "w n"]) -> Float[Tensor, "w n nodes"]:
    places = torch.linspace(-1, 1, CELLS + 1, dtype=moves.dtype, device=moves.device)
    return moves.unsqueeze(-1) * places


def relu_table(row: RowMoves, unit: Float[Tensor, "w 1"]) -> WeightTable:
    """Of relu(s_l) / unit, as if nothing were divided."""
    tau = _nodes_about(-row.scores, row.moves)
    here, turns = row.scores.unsqueeze(-1) + tau, row.turns.unsqueeze(-1)
    low, high = (torch.relu(here + sign * turns) / unit.unsqueeze(-1) for sign in (-1, 1))
    # A chord over the kink is above it by before (width - before)/width, `before` being the part of the cell before it.
    width = tau[..., 1:] - tau[..., :-1]
    before = torch.minimum((turns - here[..., :-1]).clamp(min=0), width)
    below = before * (width - before) / torch.where(width > 0, width, torch.ones_like(width)) / unit.unsqueeze(-1)
    ones = torch.ones_like(unit.squeeze(1))
    off = 2 * row.scores.shape[1] * (row.error / unit).squeeze(1)
    return WeightTable(
        before=torch.relu(row.scores) / unit,
        tau=tau,
        low=low,
        high=high,
        below=below,
        above=torch.zeros_like(below),
        size=(row.scores.abs() + row.moves + row.turns) / unit,
        least=ones,
        most=ones,
        off=off,
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
