"""Bounds of the floating-point rounding in the numbers of an attention certificate.

The text and the weights count as exact; everything computed from them has an error, bounded here by Higham's gamma_k
times norms. Rows whose numbers are off by little make changes that are off by little: `row_errors` is added to the
bound, by the triangle inequality.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.certificates.attention.relaxation import Pairs
from wordsens.certificates.attention.text import AttentionText
from wordsens.certificates.verified import UNIT_ROUNDOFF, rounding
from wordsens.maps.attention.scores.bounds import Rounding


@dataclass(frozen=True)
class RoundingErrors:
    """Bounds of |computed - exact|.

    Attributes:
        speed: (N,), of the length of u_j; key: likewise of the keys W x_l.
        score: (N,), of a score of row j.
        output: (N,), of the length of o_j.
        norm: a lower bound of ‖phi(X)‖; not positive where rounding hides it.
        longest: of the values; so large besides that 16 roundings of it cover the error of any value.
    """

    speed: Float[Tensor, " N"]
    key: Float[Tensor, " N"]
    score: Float[Tensor, " N"]
    output: Float[Tensor, " N"]
    norm: float
    longest: float


def rounding_errors(text: AttentionText) -> RoundingErrors:
    n, d = text.rows.shape
    lengths = torch.linalg.vector_norm(text.rows, dim=1)
    farthest = float(lengths.max())
    speeds, keys, scores = [], [], []
    for head in text.weights:
        norms = head.norms
        once, twice = (1.01 * rounding(k * (d + norms.terms + 8)) / head.scale for k in (1, 2))
        fastest = norms.matrix * lengths + norms.query_offset
        speeds.append(once * fastest)
        keys.append(once * (norms.matrix * lengths + norms.key_offset))
        scores.append(twice * (farthest * fastest + norms.key_offset * lengths + norms.constant))
    speed, key, score = (torch.cat(part) for part in (speeds, keys, scores))
    score = score + 8 * UNIT_ROUNDOFF * _terms(text)
    attention = text.score.attention(text.scores)
    lengths = torch.linalg.vector_norm(text.values, dim=1)
    moved = text.score.weight_errors(text.scores, attention, score.unsqueeze(1))
    output = moved @ lengths + rounding(n + 16) * (attention.abs() @ lengths)
    output = output + 1.01 * text.value_error * attention.abs().sum(dim=1)
    measured = float(torch.linalg.vector_norm(text.outputs)) * (1 - rounding(text.outputs.numel() + 8))
    norm = measured - float(torch.linalg.vector_norm(output)) * (1 + 1e-9)
    longest = float(lengths.max()) + text.value_error / (16 * UNIT_ROUNDOFF)
    return RoundingErrors(speed=speed, key=key, score=score, output=output, norm=norm, longest=longest)


def _terms(text: AttentionText) -> Float[Tensor, " N"]:
    """The largest |score| of a row, and bias of a place, of those that are finite."""
    largest = text.scores.masked_fill(text.hidden, 0.0).abs().amax(dim=1)
    biases = [
        torch.zeros_like(text.rows[:, 0]) if head.bias is None else head.bias.nan_to_num(neginf=0.0).abs().amax(dim=1)
        for head in text.weights
    ]
    return largest + torch.cat(biases)


def row_errors(
    text: AttentionText, errors: RoundingErrors, pairs: Pairs, radius: Float[Tensor, " w"]
) -> Float[Tensor, " w"]:
    """A bound of the length, over all counted rows, of the error of their changes, in units of the radius.

    The change of row j is p Delta + g r_j, and its error at most
    |error of p| radius + |error of g| ‖r_j‖ + |g| ‖error of r_j‖.
    """
    per, unit = radius.unsqueeze(1), pairs.unit.unsqueeze(1)
    most_g = pairs.most_g * unit
    p_error, g_error = text.score.curve_errors(
        Rounding(
            before=text.scores[:, pairs.words].T,
            score=errors.score.unsqueeze(0),
            speed=errors.speed.unsqueeze(0),
            fastest=text.geometry.query_gram.diagonal().clamp(min=0).sqrt().unsqueeze(0) * text.geometry.speed,
            radius=per,
            most_p=pairs.p.abs().amax(dim=-1) * unit,
            most_g=most_g,
            factor=pairs.steep * per / 2,
            others=text.others[:, pairs.words].T,
            all_scores=text.scores,
            words=pairs.words,
        )
    )
    apart = (2 * errors.output if text.score.normalized else 0 * errors.output) + 64 * UNIT_ROUNDOFF * errors.longest
    error = p_error + g_error * pairs.lengths.sqrt() + most_g * apart
    return torch.linalg.vector_norm(torch.where(pairs.counted > 0, error, torch.zeros_like(error)), dim=1)
