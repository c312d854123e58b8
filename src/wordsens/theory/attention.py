"""The prediction of word sensitivity for attention: of a typical word and of the largest of
many."""

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import ndtri
from torch import Tensor

from wordsens.errors import InputError, argument, require_choice, require_count
from wordsens.text.matrix import TextMatrix, as_text_matrix
from wordsens.theory.comparison import ScalarProblem, Solution
from wordsens.theory.conditions import outside_of_attention, rows_are_scaled, warn_of
from wordsens.theory.rows import (
    Rows,
    alike_rows,
    gram_moments,
    relu_others,
    relu_self_row,
    softmax_others,
    softmax_self_row,
    text_rows,
)

# Steps, in standard deviations of what a word's scores share, and of their scale.
SHIFT, _STRETCH = 1.5, 0.05
# Starts: shares along what rows have in common, where they do; under ReLU, directions that lower
# the other scores of row i by more and more.
_COMMON = (0.1, 0.4, 0.7, 0.9)
_TURNED = (
    (0.45, 0.0, 0.0, 1.0, 0.0),
    (0.45, 0.0, 0.0, 1.0, 0.7),
    (0.45, 0.0, 0.0, 1.0, 1.5),
    (0.45, 0.0, 0.0, 1.0, 3.0),
    (-0.5, 0.0, 0.0, 1.0, 3.0),
)


def raf_sensitivity(
    n: int,
    d: int,
    *,
    score: str = "softmax",
    mean_cosine: float = 0.0,
    spread: float | None = None,
    words: int | None = None,
) -> float:
    """A prediction of S under random attention features: Gordon's comparison, solved as a scalar
    problem.

    Row j is drawn to the changed word with a weight p_j, a function of t_j = u_j . Delta, and
    changes by p_j Delta + (p_j - a_j)(x_i - m_j). For softmax, p_j = sigmoid(l_j + t_j), with l_j
    the logit of its attention to the word before; for ReLU scores divided by their sum, p_j = r /
    (R_j + r), r = max(s_ji + t_j, 0). Moving along the word adds to t_j the very Gaussian that the
    score is made of; the rest of Delta meets fresh Gaussians, for which Gordon's inequality gives a
    problem in a few numbers (docs/proofs.md). Under softmax, for a typical word, its value bounds
    the expected largest over Delta from above, for the idealised rows of the proof; that it is
    attained is not proved. Under ReLU, where row i can be left to the word by lowering its other
    scores, the whole result is a prediction. So is the scatter from word to word, from which the
    largest of several words follows.

    Args:
        n, d: words and coordinates; rows have length sqrt(d), the radius is sqrt(d).
        score: "softmax", or "relu": divided by the row's sum.
        mean_cosine: q, in [0, 1): 0 for orthogonal and for Gaussian rows, and always under ReLU.
        spread: d times the mean squared cosine of what rows have apart: 0 for orthogonal rows; None
            for 1, independent rows; more where rows repeat.
        words: over how many words the largest is taken; None for all n, as S is defined; 1 for a
            typical word.

    Warns (PredictionWarning) of sizes at which it was not compared with measurements.

    >>> round(raf_sensitivity(20, 192, words=1), 2)
    3.17
    >>> round(raf_sensitivity(20, 192, score="relu", words=1), 2)
    1.56
    """
    require_choice("score", score, ("softmax", "relu"))
    n, d = require_count("n", n, least=2), require_count("d", d)
    words = n if words is None else require_count("words", words)
    relu = "0 with score='relu': use score='softmax', or mean_cosine=0"
    rule = "at least 0 and less than 1" if score == "softmax" else relu
    if not 0 <= mean_cosine < 1 or (mean_cosine and score == "relu"):
        raise InputError(f"`mean_cosine` (={mean_cosine!r}) must be {rule}")
    if spread is not None and not 0 <= spread < math.inf:
        raise InputError(
            f"`spread` (={spread!r}) must be at least 0 and finite, or None for independent rows"
        )
    cosine, spread = float(mean_cosine), 1.0 if spread is None else float(spread)
    value = exchangeable_sensitivity(n, d, score, cosine, spread, words)
    warn_of(outside_of_attention(n, d, score, cosine, spread))
    return value


@lru_cache(maxsize=256)
def exchangeable_sensitivity(
    n: int,
    d: int,
    score: str,
    cosine: float,
    spread: float,
    words: int,
) -> float:
    """`raf_sensitivity`, whatever the sizes."""
    rows = alike_rows(n, d, cosine, spread, torch.relu if score == "relu" else torch.exp)
    value = _quantile(over_words(rows, score), words)
    if score == "relu" and words > 1:
        # The word, of several, whose row i costs least to turn.
        value = max(value, relu_problem(rows, deviations=_deviations(words)).solve().value)
    return math.sqrt(max(0.0, value) / (n * rows.retained))


def raf_sensitivity_of_text(X: TextMatrix | Tensor, *, words: int | None = None) -> float:
    """The same prediction for one text, from its Gram matrix X X^T / d in place of a mean cosine.

    The part that rows share is the leading eigenvector of the Gram matrix, with a weight for each
    row; the rest enters through its mean square. ‖phi(X)‖² is its mean over W, by 2,000 draws with
    a fixed seed. Words also scatter by how near they are to what attention retains. A text whose
    rows share nothing is treated as in `raf_sensitivity`.

    Args:
        X: the text, (n, d), rows of length sqrt(d).
        words: as for `raf_sensitivity`.

    Raises InputError for rows of another length; warns as `raf_sensitivity` does.
    """
    rows = as_text_matrix(X).rows.double()
    n, d = rows.shape
    words = n if words is None else require_count("words", words)
    if not rows_are_scaled(rows):
        raise InputError(
            f"{argument('X')} must have rows of length sqrt(d), which the prediction is about; "
            "rescale them"
        )
    gram = rows @ rows.T / d
    moments = gram_moments(gram, d)
    value = sensitivity_of_gram(gram, d, moments, words)
    warn_of(outside_of_attention(n, d, "softmax", *moments))
    return value


def sensitivity_of_gram(
    gram: Float[Tensor, "n n"],
    d: int,
    moments: tuple[float, float],
    words: int,
) -> float:
    """The prediction for a text with this Gram matrix X X^T / d, whose `gram_moments` are these."""
    n, (cosine, spread) = len(gram), moments
    if cosine == 0:
        return exchangeable_sensitivity(n, d, "softmax", 0.0, spread, words)
    typical, *others = text_rows(gram, d)
    law = over_words(typical)
    values = [float(softmax_problem(word).least(law.direction)[0]) for word in others]
    law = replace(law, variance=law.variance + float(np.var(values, ddof=1)))
    return math.sqrt(max(0.0, _quantile(law, words)) / (n * typical.retained))


@lru_cache(maxsize=256)
def over_words(rows: Rows, score: str = "softmax") -> Solution:
    """The law over words of S² ‖phi(X)‖² / d.

    What rows share gives the scores of a word a part in common, f_j times a Gaussian h of its own:
    the value is taken as a parabola in h through three values, at the direction that is best for a
    typical word.
    """
    problem = relu_problem if score == "relu" else softmax_problem
    law = problem(rows).solve()

    def value(**options: float) -> float:
        return float(problem(rows, **options).least(law.direction)[0])

    # Scores of words with rows of spread 1 are a key's products with them: its squared length
    # scatters by sqrt(2 / d).
    stretched = (value(scale=1 + _STRETCH) - value(scale=1 - _STRETCH)) / (2 * _STRETCH)
    variance = law.variance + stretched**2 * rows.spread / (2 * rows.d)
    third = law.third * (variance / law.variance) ** 1.5
    if score == "relu":
        # By a difference: where little is left to pay with, a price says little of what another
        # cost would make.
        by_cost = relu_problem(rows, deviations=1.0).solve().value - law.value
        variance += by_cost**2
    low, high = (
        (value(shift=-SHIFT), value(shift=SHIFT)) if any(rows.loadings) else (law.value, law.value)
    )
    slope = (high - low) / (2 * SHIFT)
    bend = (high + low - 2 * law.value) / (2 * SHIFT**2)
    variance += slope**2 + 2 * bend**2
    third += 6 * slope**2 * bend + 8 * bend**3
    return Solution(
        value=law.value + bend,
        variance=variance,
        third=third,
        direction=law.direction,
    )


def softmax_problem(rows: Rows, shift: float = 0.0, scale: float = 1.0) -> ScalarProblem:
    """For a word whose scores share a shift and have a scale of their own, as for
    `softmax_others`."""
    common = _COMMON if any(rows.loadings) else (0.0,)
    starts = tuple((0.45, b, 0.0, 1.0, 0.0) for b in common)
    others = softmax_others(rows, shift, scale)
    return ScalarProblem(rows, others, lambda at: softmax_self_row(rows, at), starts)


def relu_problem(rows: Rows, scale: float = 1.0, deviations: float = 0.0) -> ScalarProblem:
    """The same under ReLU, for a word that costs a number of deviations less to turn row i to."""
    others = relu_others(rows, scale)
    return ScalarProblem(rows, others, lambda at: relu_self_row(rows, at, deviations), _TURNED)


def _quantile(law: Solution, words: int) -> float:
    """The median over words, or a Gumbel limit's mean of the largest of several, by Cornish and
    Fisher's series."""
    deviations = _deviations(words)
    skewed = (deviations**2 - 1) * law.third / (6 * law.variance)
    return law.value + deviations * math.sqrt(law.variance) + skewed


def _deviations(words: int) -> float:
    """The mean of the largest of so many standard Gaussians, by the Gumbel limit; 0 of one."""
    return 0.0 if words == 1 else -float(ndtri(math.exp(-np.euler_gamma) / words))
