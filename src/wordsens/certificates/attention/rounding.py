"""How far floating-point rounding can put the numbers of an attention certificate from the exact ones.

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
from wordsens.maps.attention.scores.certified import Rounding


@dataclass(frozen=True)
class RoundingErrors:
    """Bounds of |computed - exact|.

    Attributes:
        speed: (N,), of the length of u_j; key: likewise of the keys W x_l.
        score: (N,), of a score of row j.
        output: (N,), of the length of o_j.
        norm: a lower bound of ‖phi(X)‖; not positive where rounding hides it.
        longest: the largest ‖x_l‖.
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
    longest = float(lengths.max())
    weights = torch.linalg.matrix_norm(text.matrices).unsqueeze(1)
    speed = (rounding(d + 8) * 1.01 * weights * lengths).flatten()
    score = rounding(2 * d + 16) * 1.01 * longest * (weights * lengths).flatten()
    score = score + 8 * UNIT_ROUNDOFF * text.scores.abs().amax(dim=1)
    attention = text.score.attention(text.scores)
    moved = text.score.weight_errors(text.scores, attention, score.unsqueeze(1))
    output = moved @ lengths + rounding(n + 16) * (attention.abs() @ lengths)
    measured = float(torch.linalg.vector_norm(text.outputs)) * (1 - rounding(text.outputs.numel() + 8))
    norm = measured - float(torch.linalg.vector_norm(output)) * (1 + 1e-9)
    return RoundingErrors(speed=speed, key=speed, score=score, output=output, norm=norm, longest=longest)


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
