"""How far floating-point rounding can put the numbers of an attention certificate from the exact ones.

The text and the weights count as exact; everything computed from them has an error, bounded here by Higham's gamma_k
times norms. Rows whose numbers are off by little make changes that are off by little: `row_errors` is added to the
bound, by the triangle inequality.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from wordsens.certificates.attention_text import AttentionText
from wordsens.certificates.relaxation import Pairs
from wordsens.certificates.verified import UNIT_ROUNDOFF, rounding

_LARGEST_SHIFT = 0.1


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
    sums = rounding(n + 16)
    if text.score.sums_to_one:
        output = (4 * score + sums) * longest
    elif text.score.normalized:
        total = torch.relu(text.scores).sum(dim=1)
        moved = (2 * n * score / total).nan_to_num(torch.inf).clamp(max=2)
        # A row whose scores are all negative, rounding or not, is zero.
        output = torch.where(_unsure(text, score).any(dim=1), moved + sums, torch.zeros_like(moved)) * longest
    else:
        output = score * lengths.sum() + sums * (attention.abs() @ lengths)
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
    per = radius.unsqueeze(1)
    most_p = pairs.p.abs().amax(dim=-1)
    most_g = pairs.most_g
    speed, score = errors.speed.unsqueeze(0), errors.score.unsqueeze(0)
    factor = pairs.steep * per / 2
    lengths = pairs.lengths.sqrt()
    fastest = text.geometry.query_gram.diagonal().clamp(min=0).sqrt().unsqueeze(0)
    # A score that is off by `score` puts the kink of a relu elsewhere: the step relu(s + t) - relu(s) is off by no more
    # than twice that, and by no more than twice |t|.
    kink = torch.minimum(2 * score / per, 2 * fastest) + speed
    match text.score.name:
        case "softmax" | "sigmoid":
            logit = 2 * score if text.score.name == "softmax" else score
            shift = logit + speed * per
            p_error = 2 * most_p * shift
            g_error = 4 * logit * most_g + 2 * factor * most_p.clamp(max=0.25) * speed
            p_error = torch.where(shift > _LARGEST_SHIFT, torch.full_like(p_error, torch.inf), p_error)
        case "relu":
            n = text.scores.shape[1]
            rest = text.others[:, pairs.words].T
            shift = ((n + 1) * score + speed * per) / rest
            p_error = shift.nan_to_num(1.0).clamp(max=1.0)
            g_error = (factor * kink / rest + 2 * most_g * shift).nan_to_num(torch.inf, torch.inf)
            g_error = torch.minimum(g_error, 4 / per)
            # Where no other score can be positive, p is 0 or 1 whatever the rounding; the curve's jump has a margin.
            unsure = _unsure(text, errors.score)
            others = (unsure.sum(dim=1, keepdim=True) - unsure.to(torch.int64))[:, pairs.words].T
            p_error, g_error = (torch.where(others > 0, array, torch.zeros_like(array)) for array in (p_error, g_error))
        case "linear":
            p_error, g_error = score + speed * per, speed.expand_as(most_g)
        case _:
            p_error, g_error = score + speed * per, kink
    apart = (2 * errors.output if text.score.normalized else 0 * errors.output) + 64 * UNIT_ROUNDOFF * errors.longest
    error = p_error + g_error * lengths + most_g * apart
    return torch.linalg.vector_norm(torch.where(pairs.counted > 0, error, torch.zeros_like(error)), dim=1)


def _unsure(text: AttentionText, score_error: Float[Tensor, " N"]) -> Bool[Tensor, "N n"]:
    """Which scores are positive, or may be."""
    return text.scores > -2 * score_error.unsqueeze(1)
