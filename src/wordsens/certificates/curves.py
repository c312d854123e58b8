"""How the attention p of a row to the changed word grows with the row's score gain t, cut into cells.

On a grid of t over the whole range |t| <= ‖u_j‖ radius, a curve holds p and the gain g at the nodes, and on each cell
between two nodes bounds of p' and p''. p never falls in t, which is all that the widest cells rely on.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

LOW_TAIL, INNER_NODES, HIGH_TAIL = 8, 25, 2
NODES = LOW_TAIL + INNER_NODES + HIGH_TAIL
_LOW, _HIGH = -6.0, 7.0  # outside these logits p is within .0025 of 0 or .001 of 1, and cells are wide
_JUMP_MARGIN = 1e-6
_STEEPEST_TURN = 0.0963  # max of |sigmoid''| = 1/(6 sqrt(3)) = .09622...


@dataclass(frozen=True)
class Curve:
    """Word first, then row, then node (K of them) or cell (K - 1). The change of a row is p Delta + g r.

    Attributes:
        t: score gains; the first is -reach, the last is reach.
        p: the attention at the nodes.
        g: p - a, times `factor`.
        slope, turn: upper bounds of p' and |p''| on each cell; p' is exact where `affine`.
        factor: (w, N), g = factor (p - a).
        before: (w, N), a.
        affine: whether p is affine on every cell.
    """

    t: Float[Tensor, "w N K"]
    p: Float[Tensor, "w N K"]
    g: Float[Tensor, "w N K"]
    slope: Float[Tensor, "w N cells"]
    turn: Float[Tensor, "w N cells"]
    factor: Float[Tensor, "w N"]
    before: Float[Tensor, "w N"]
    affine: bool = False


def sigmoid_curve(
    logit: Float[Tensor, "w N"], reach: Float[Tensor, "w N"], factor: Float[Tensor, "w N"] | None
) -> Curve:
    """p = sigmoid(logit + t): softmax scores, and sigmoid scores.

    factor None: 1/(1 - a) where a <= 1/2 and 1 elsewhere, as softmax wants it.
    """
    low = _between(_LOW - logit, reach)
    high = _between(_HIGH - logit, reach)
    t = _nodes(low, high, reach, power=1)
    before, rest = torch.sigmoid(logit), torch.sigmoid(-logit)
    if factor is None:
        factor = torch.where(logit <= 0, 1 + logit.clamp(max=0).exp(), torch.ones_like(logit))
    p = torch.sigmoid(logit.unsqueeze(-1) + t)
    # p - a = (p (1 - a) + a (1 - p)) tanh(t/2): no cancellation where t is small.
    g = (p * (factor * rest).unsqueeze(-1) + (1 - p) * (factor * before).unsqueeze(-1)) * torch.tanh(t / 2)
    edge = torch.minimum(p[..., 1:], torch.sigmoid(-logit.unsqueeze(-1) - t[..., :-1]))
    return Curve(t, p, g, edge.clamp(max=0.25), edge.clamp(max=_STEEPEST_TURN), factor, before)


def divided_relu_curve(score: Float[Tensor, "w N"], rest: Float[Tensor, "w N"], reach: Float[Tensor, "w N"]) -> Curve:
    """p = v/(v + rest), v = relu(score + t), rest the other weights of the row; 0 where v = 0."""
    # Where rest = 0 the curve jumps, and rounding of the score may put the jump a little earlier.
    margin = torch.where(rest == 0, _JUMP_MARGIN * (score.abs() + reach), torch.zeros_like(score))
    t = _nodes(_between(-score - margin, reach), reach, reach, power=2)
    own, others = torch.relu(score), rest.unsqueeze(-1)
    weight = torch.relu(score.unsqueeze(-1) + t)
    total = _or_one(weight + others)
    p = weight / total
    dominant = own > rest
    before = own / _or_one(own + rest)
    factor = torch.where(dominant, torch.ones_like(own), (own + rest) / _or_one(rest))
    factor = torch.where((own == 0) & (rest == 0), torch.ones_like(own), factor)
    gain = (weight - own.unsqueeze(-1)) / total
    alone = (rest == 0) & dominant
    g = torch.where(dominant.unsqueeze(-1), gain * (rest / _or_one(own + rest)).unsqueeze(-1), gain)
    g = torch.where(alone.unsqueeze(-1), p - 1, g)
    moves = weight[..., 1:] > 0
    # With rest = 0 and v = 0 the curve jumps from 0 to 1: any large number makes the caller fall back on monotony.
    least = (weight[..., :-1] + others).clamp(min=1e-12)
    slope = torch.where(moves, others / least**2, torch.zeros_like(least))
    turn = torch.where(moves, 2 * others / least**3, torch.zeros_like(least))
    jump = moves & (weight[..., :-1] == 0) & (others == 0)
    return Curve(t, p, g, slope + 1e6 * jump, turn + 1e6 * jump, factor, before)


def affine_curve(score: Float[Tensor, "w N"], reach: Float[Tensor, "w N"], *, kinked: bool) -> Curve:
    """p = score + t, or its positive part where `kinked`: linear scores, and relu scores that are not divided."""
    if not kinked:
        t = _nodes(-reach, reach, reach, power=1)
        p = score.unsqueeze(-1) + t
        slope = torch.ones_like(t[..., 1:])
        return Curve(t, p, t, slope, torch.zeros_like(slope), torch.ones_like(score), score, affine=True)
    t = _nodes(_between(-score, reach), reach, reach, power=1)
    p = torch.relu(score.unsqueeze(-1) + t)
    before = torch.relu(score)
    # Where both are positive p - a is t itself; the difference would cancel.
    g = torch.where((p > 0) & (score > 0).unsqueeze(-1), t, p - before.unsqueeze(-1))
    slope = (p[..., 1:] > 0).to(t.dtype)
    return Curve(t, p, g, slope, torch.zeros_like(slope), torch.ones_like(score), before, affine=True)


def _between(value: Tensor, reach: Tensor) -> Tensor:
    return torch.maximum(torch.minimum(value, reach), -reach)


def _nodes(low: Tensor, high: Tensor, reach: Tensor, *, power: int) -> Tensor:
    """Tails from -reach to low and from high to reach, dense at low and high; for power 2 dense at low between them."""

    def line(count: int, power: int) -> Tensor:
        return torch.linspace(0, 1, count, dtype=low.dtype, device=low.device) ** power

    left, middle, reach = low.unsqueeze(-1), high.unsqueeze(-1), reach.unsqueeze(-1)
    down, inner, up = line(LOW_TAIL + 1, 2).flip(0)[:-1], line(INNER_NODES, power), line(HIGH_TAIL + 1, 2)[1:]
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


def _or_one(total: Tensor) -> Tensor:
    return torch.where(total > 0, total, torch.ones_like(total))
