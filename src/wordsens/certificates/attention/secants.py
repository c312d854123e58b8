"""How much a row gains per move of its score: the range of g(t)/t over a curve."""

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.maps.attention.scores.curves import Curve


def secants(curve: Curve, *, kinked: bool) -> tuple[Float[Tensor, "w N"], Float[Tensor, "w N"]]:
    """Bounds of g(t)/t, from below and from above, over 0 < |t| <= reach; 0 where the reach is 0.

    Affine on every cell: g/t is monotone there, so its extrema are at nodes. Smooth: |d(g/t)/dt| <= sup |g''|/2 between
    0 and t, so on a cell of width s, g/t is within (s/4) sup |g''| of the mean of its end values. With kinks: at most
    the largest slope between 0 and t, and on a cell at most the larger |g| over the smaller |t|; at least 0.
    """
    t, g, factor = curve.t, curve.g, curve.factor.unsqueeze(-1)
    nonzero, widths = t != 0, t[..., 1:] - t[..., :-1]
    value = torch.where(nonzero, g / torch.where(nonzero, t, torch.ones_like(t)), torch.nan)
    if curve.affine:
        low, high = value.nan_to_num(torch.inf).amin(dim=-1), value.nan_to_num(-torch.inf).amax(dim=-1)
    elif kinked:
        sizes, reaches = g.abs(), t.abs()
        crude = torch.maximum(sizes[..., 1:], sizes[..., :-1]) / torch.minimum(reaches[..., 1:], reaches[..., :-1])
        crossing = t[..., 1:] * t[..., :-1] <= 0
        crude = torch.where(crossing, torch.inf, crude)
        high = torch.minimum(crude, factor * _outward(_per(curve.rise, widths), t)).amax(dim=-1)
        low = torch.zeros_like(high)
    else:
        # A node at 0 takes the mean of its neighbours, and its two cells count as wide as both: they are one cell.
        value = torch.where(nonzero, value, 0.5 * (value.roll(1, -1) + value.roll(-1, -1)))
        right = torch.where(nonzero, t, t.roll(-1, -1))[..., 1:]
        width = right - torch.where(nonzero, t, t.roll(1, -1))[..., :-1]
        middle = 0.5 * (value[..., 1:] + value[..., :-1])
        off = 0.25 * width * factor * _outward(_per(curve.turn, widths.square()), t)
        low, high = (middle - off).amin(dim=-1), (middle + off).amax(dim=-1)
        low, high = torch.minimum(low, value.amin(dim=-1)), torch.maximum(high, value.amax(dim=-1))
    moves = t[..., -1] > 0
    low, high = torch.where(moves, low, 0.0), torch.where(moves, high, 0.0)
    return (low * (1 - 1e-12)).clamp(min=0), high * (1 + 1e-12)


def _per(bounds: Float[Tensor, "w N cells"], widths: Float[Tensor, "w N cells"]) -> Float[Tensor, "w N cells"]:
    """Bounds of a derivative; 0 on empty cells, and where the square of a width underflows: what it would add is
    smaller still beside g/t, far below the outward rounding."""
    return torch.where(widths > 0, bounds / torch.where(widths > 0, widths, torch.ones_like(widths)), 0.0)


def _outward(cells: Float[Tensor, "w N cells"], t: Float[Tensor, "w N K"]) -> Float[Tensor, "w N cells"]:
    """The largest value between the cell that holds 0 and each cell."""
    above = torch.where(t[..., 1:] >= 0, cells, 0.0).cummax(dim=-1).values
    below = torch.where(t[..., :-1] <= 0, cells, 0.0).flip(-1).cummax(dim=-1).values.flip(-1)
    return torch.maximum(torch.where(t[..., 1:] >= 0, above, 0.0), torch.where(t[..., :-1] <= 0, below, 0.0))
