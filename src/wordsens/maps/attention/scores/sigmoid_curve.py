"""The logistic curve, which a moved weight follows under softmax and under sigmoid scores."""

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.maps.attention.scores.certified import Rounding
from wordsens.maps.attention.scores.curves import Curve, between, nodes

_LOW, _HIGH = -6.0, 7.0  # outside these logits p is within .0025 of 0 or .001 of 1, and cells are wide
STEEPEST_TURN = 0.0963  # max of |sigmoid''| = 1/(6 sqrt(3)) = .09622...
_LARGEST_SHIFT = 0.1


def sigmoid_curve(
    logit: Float[Tensor, "w N"], reach: Float[Tensor, "w N"], factor: Float[Tensor, "w N"] | None, fineness: int = 1
) -> Curve:
    """p = sigmoid(logit + t): softmax scores, and sigmoid scores.

    factor None: 1/(1 - a) where a <= 1/2 and 1 elsewhere, as softmax wants it.
    """
    low = between(_LOW - logit, reach)
    high = between(_HIGH - logit, reach)
    t = nodes(low, high, reach, power=1, fineness=fineness)
    before, rest = torch.sigmoid(logit), torch.sigmoid(-logit)
    dominant = torch.zeros_like(logit).bool() if factor is not None else logit > 0
    if factor is None:
        factor = torch.where(dominant, torch.ones_like(logit), 1 + logit.clamp(max=0).exp())
    p = torch.sigmoid(logit.unsqueeze(-1) + t)
    # p - a = (p (1 - a) + a (1 - p)) tanh(t/2): no cancellation where t is small.
    g = (p * (factor * rest).unsqueeze(-1) + (1 - p) * (factor * before).unsqueeze(-1)) * torch.tanh(t / 2)
    edge = torch.minimum(p[..., 1:], torch.sigmoid(-logit.unsqueeze(-1) - t[..., :-1]))
    width = t[..., 1:] - t[..., :-1]
    rise, turn = edge.clamp(max=0.25) * width, edge.clamp(max=STEEPEST_TURN) * width**2
    return Curve(t, p, g, rise, turn, factor, before, dominant=dominant)


def sigmoid_errors(
    rounding: Rounding, logit: Float[Tensor, "1 N"]
) -> tuple[Float[Tensor, "w N"], Float[Tensor, "w N"]]:
    """Bounds of the errors of p and g / radius when the logits are off by up to `logit`: p is in [0, 1], |g| <= 1."""
    shift = logit + rounding.speed * rounding.radius
    p_error = 2 * rounding.most_p * shift
    g_error = 4 * logit * rounding.most_g
    g_error = g_error + 2 * rounding.factor * rounding.most_p.clamp(max=0.25) * rounding.speed
    far = shift > _LARGEST_SHIFT
    return torch.where(far, 1.0, p_error), torch.minimum(torch.where(far, torch.inf, g_error), 2 / rounding.radius)


def sigmoid_gain(logit: Tensor, moved: Tensor) -> Tensor:
    """p - a for a = sigmoid(logit), p = sigmoid(logit + moved): (p (1 - a) + a (1 - p)) tanh(moved/2)."""
    after = logit + moved
    p, a = torch.sigmoid(after), torch.sigmoid(logit)
    spread = torch.sigmoid(-logit).mul_(p).addcmul_(a, torch.sigmoid(after.neg_()))
    return spread.mul_(tanh_half(moved))


def tanh_half(t: Tensor) -> Tensor:
    """tanh(t/2) = -y/(2 + y), y = exp(-t) - 1: in half the time of torch.tanh, and as precise near 0."""
    y = t.neg().clamp_(max=80.0).expm1_()  # past 80 the quotient is 1 to rounding, and exp must not overflow
    return y.div_(y + 2).neg_()
