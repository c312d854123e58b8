"""The growth of the attention p of a row to the changed word with the row's score gain t, cut into cells.

On a grid of t over the whole range |t| <= ‖u_j‖ radius, a curve holds p and the gain g at the nodes, and on each cell
between two nodes bounds of p' and p'', times the cell's width and its square: no unit of t matters. p never falls in t,
which is all that the widest cells rely on.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

LOW_TAIL, INNER_NODES, HIGH_TAIL = 8, 25, 2
NODES = LOW_TAIL + INNER_NODES + HIGH_TAIL


@dataclass(frozen=True)
class Curve:
    """Word first, then row, then node (K of them) or cell (K - 1). The change of a row is p Delta + g r.

    Attributes:
        t: score gains; the first is -reach, the last is reach.
        p: the attention at the nodes.
        g: p - a, times `factor`.
        rise, turn: upper bounds of p' s and |p''| s² on each cell, s its width; p' is exact where `affine`.
        factor: (w, N), g = factor (p - a).
        before: (w, N), a.
        affine: whether p is affine on every cell.
        dominant: (w, N), where `factor` is that of a > 1/2: g goes with x_i less the row's output without word i, and
            elsewhere, if scores are divided, with x_i less the row's output. None: where `before` is more than 1/2.
            To be given where `factor` goes by another comparison: rounded, a may be 1/2 on either side of it.
    """

    t: Float[Tensor, "w N K"]
    p: Float[Tensor, "w N K"]
    g: Float[Tensor, "w N K"]
    rise: Float[Tensor, "w N cells"]
    turn: Float[Tensor, "w N cells"]
    factor: Float[Tensor, "w N"]
    before: Float[Tensor, "w N"]
    affine: bool = False
    dominant: Bool[Tensor, "w N"] | None = None

    @property
    def mostly(self) -> Bool[Tensor, "w N"]:
        """`dominant`, or what None stands for."""
        return self.before > 0.5 if self.dominant is None else self.dominant


def between(value: Tensor, reach: Tensor) -> Tensor:
    return torch.maximum(torch.minimum(value, reach), -reach)


def nodes(low: Tensor, high: Tensor, reach: Tensor, *, power: int, fineness: int = 1) -> Tensor:
    """Tails from -reach to low and from high to reach, dense at low and high; for power 2 dense at low between them.

    `fineness` times `NODES` of them.
    """

    def line(count: int, power: int) -> Tensor:
        return torch.linspace(0, 1, count, dtype=low.dtype, device=low.device) ** power

    left, middle, reach = low.unsqueeze(-1), high.unsqueeze(-1), reach.unsqueeze(-1)
    low_tail, count, high_tail = (fineness * part for part in (LOW_TAIL, INNER_NODES, HIGH_TAIL))
    down, inner, up = line(low_tail + 1, 2).flip(0)[:-1], line(count, power), line(high_tail + 1, 2)[1:]
    nodes = torch.cat(
        [
            left * (1 - down) - reach * down,
            left * (1 - inner) + middle * inner,
            middle * (1 - up) + reach * up,
        ],
        dim=-1,
    )
    # Where a tail is empty, rounding could put its nodes out of order.
    return torch.minimum(nodes.cummax(dim=-1).values, reach)
