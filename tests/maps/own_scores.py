"""Scores that the library does not know: one that only says what its weights are, and one with
bounds."""

import torch

import wordsens as ws
from wordsens.maps.attention.scores.base import CertifiedElementwise, Curve, Rounding, nodes


class DividedSquares(ws.Score):
    """s_l² / sum_m s_m²: a weight may fall while its score rises, so no bound of the library speaks
    of it."""

    name, normalized = "squares", True

    def attention(self, scores):
        squares = scores.square()
        return squares / squares.sum(dim=-1, keepdim=True)


class Arctangent(CertifiedElementwise):
    """arctan(s_l), not divided, with what bounds need: |arctan''| is at most 3 sqrt(3)/8 =
    .6495...."""

    name, normalized, lipschitz = "arctangent", False, 1.0

    def attention(self, scores):
        return torch.arctan(scores)

    def curve(self, scores, others, reach):
        t = nodes(-reach, reach, reach, power=1)
        here = scores.unsqueeze(-1)
        p = torch.arctan(here + t)
        # tan(arctan(a) - arctan(b)) = (a - b)/(1 + a b), where both lie within pi/2 of each other.
        near = 1 + here * (here + t) > 0.5
        g = torch.where(near, torch.arctan(t / (1 + here * (here + t))), p - torch.arctan(here))
        slope = torch.ones_like(t[..., 1:])
        return Curve(t, p, g, slope, 0.65 * slope, torch.ones_like(scores), torch.arctan(scores))

    def curve_errors(self, rounding: Rounding):
        shift = rounding.score + rounding.speed * rounding.radius + 1e-15
        slope = rounding.speed + 2 * rounding.score * rounding.fastest + 8e-16 * rounding.most_g
        return shift.expand_as(rounding.most_p), slope.expand_as(rounding.most_g)
