"""Rows of ReLU attention, divided by their sum, for the scalar problem."""

import math
from functools import lru_cache

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.theory.rows import Others, OwnRow, Rows
from wordsens.theory.suprema import gaussian_nodes

_WORD_NODES, _SHIFT_NODES, _SUM_NODES = 11, 7, 5
"""Of s_j, of what all scores of a row share, and of the sum of its scores."""

_SCATTER_NODES = 61
"""Of a score before, and of what is new after."""


@lru_cache(maxsize=256)
def relu_rows(n: int, d: int, cosine: float, spread: float) -> Rows:
    """Rows that all have the mean cosine q in common: every loading is sqrt(q).

    A row's scores are sqrt(q) h + sqrt(1 - q) g_l, h its own and g_l of each word: weights are a_l = r_l / sum r,
    r = max(score, 0). Of the words' own parts a row's output keeps E sum a², and beside it, as weights lean towards
    what the row asks for, a share spread / d of E sum over l != m of a_l a_m g_l g_m.
    """
    alone, loading = 1 - cosine, math.sqrt(cosine)
    shifts, law = _shifts(cosine)
    moments = [weight_moments(n, float(h), alone) for h in shifts]
    squares, lean = (float(law @ torch.tensor(each, dtype=torch.float64)) for each in zip(*moments, strict=True))
    return Rows(n, d, (loading,), spread, cosine + alone * (squares + lean * spread / d), loading, cosine)


@lru_cache(maxsize=1024)
def weight_moments(n: int, shift: float, variance: float) -> tuple[float, float]:
    """E of the sum of a_l², and of a_l a_m g_l g_m over l != m, of a row with n scores shift + sqrt(variance) g_l.

    For many scores of mean 0 about pi / n and pi / 2. With r = max(score, 0), n times the integral over u > 0 of
    u E[r² e^(-u r)] E[e^(-u r)]^(n - 1), and n (n - 1) times that of u E[g r e^(-u r)]² E[e^(-u r)]^(n - 2);
    trapezoids in log u. A row without a positive score counts nothing.
    """
    scores, law = _scores()
    r = (shift + math.sqrt(variance) * scores).clamp(min=0)
    logs = torch.linspace(-14, 18, 321, dtype=torch.float64)
    u = logs.exp().unsqueeze(1)
    damped = torch.exp(-u * r)
    rest = damped @ law
    squares = u.squeeze(1) ** 2 * ((r**2 * damped) @ law) * rest ** (n - 1)
    products = u.squeeze(1) ** 2 * ((scores * r * damped) @ law) ** 2 * rest ** (n - 2)
    return n * float(torch.trapezoid(squares, logs)), n * (n - 1) * float(torch.trapezoid(products, logs))


def relu_others(rows: Rows, shift: float = 0.0, scale: float = 1.0) -> Others:
    """The rows j != i: p_j = r / (R_j + r), r = max(score + t_j, 0), R_j the sum of the row's other positive scores.

    R_j is taken as log-normal, with the mean and the variance of n - 1 independent scores.

    Args:
        shift: a standard Gaussian that differs from word to word: s_j is f_j times it, and the rest is j's own.
        scale: of the rest: the length of the word's key beside its mean.
    """
    nodes, weights = gaussian_nodes(_WORD_NODES)
    of_row, law = _shifts(1 - rows.alone)
    mean, second = (_moment(of_row, rows.alone, power) for power in (1, 2))
    spread = torch.log1p((second - mean**2) / (mean**2 * (rows.n - 1)))
    marks, shares = _few_nodes(_SUM_NODES)
    sums = (rows.n - 1) * mean.unsqueeze(1) * torch.exp(spread.sqrt().unsqueeze(1) * marks - spread.unsqueeze(1) / 2)
    word, row, part = torch.cartesian_prod(*map(torch.arange, (len(nodes), len(of_row), len(marks)))).T
    along = math.sqrt(rows.alone) * scale * nodes[word] + shift * rows.loadings[0]
    chance = weights[word] * law[row] * shares[part]
    score = (of_row[row] + rows.own * along).unsqueeze(1)
    rest = sums[row, part].unsqueeze(1)

    def drawn(t: Float[Tensor, " r"]) -> Float[Tensor, "k r"]:
        r = (score + t).clamp(min=0)
        return r / (rest + r)

    return Others(
        chance,
        torch.full_like(along, rows.loadings[0]),
        along,
        drawn(torch.zeros(1, dtype=torch.float64)).squeeze(1),
        drawn,
        1 - 2 * rows.cross + rows.kept,
        float(law @ _lean(of_row, rows.alone)),
        math.sqrt(rows.d),
        (1, len(nodes), len(of_row) * len(marks)),
    )


@lru_cache(maxsize=1024)
def relu_own_row(rows: Rows, c: float, lowered: float, luck: float = 0.0) -> OwnRow:
    """The row i, which asks with x_i + Delta, of squared length d (2 + 2 c sqrt(1 - f_i²)).

    Delta turns it to the word by its score with itself, and by lowering its scores with the others: each positive one
    by mu and none below 0, and all by what rows share, x say. Of the means R of what is left, that costs least,
    E sum_l (lowered by)² + x² / q: x is where x / q is the sum of what single scores are lowered by.

    Args:
        lowered: mu, in standard deviations of a score.
        luck: by how many standard deviations a word's scores cost less to lower than in the mean over words.
    """
    n, alone = rows.n, rows.alone
    length = 2 + 2 * c * rows.own
    key = length - rows.word**2
    scores, law = _scores()
    natural = math.sqrt(alone * length) * scores
    cut = lowered * math.sqrt(alone * length)

    def singly(x: float) -> Float[Tensor, " g"]:
        return (natural - x).clamp(min=0, max=cut)

    shift = 0.0
    if rows.common and cut > 0:
        low, high = 0.0, cut + float(natural[-1])
        for _ in range(50):
            shift = (low + high) / 2
            low, high = (shift, high) if (1 - alone) * n * float(singly(shift) @ law) > shift else (low, shift)
    r = (natural - shift - cut).clamp(min=0)
    paid = n * float(singly(shift) ** 2 @ law) + (shift**2 / (1 - alone) if rows.common else 0.0)
    total = n * float(r @ law)
    squares = n * float(r**2 @ law)
    # The scores before and after have a correlation of `shared`. Words differ in those before; the rest is Delta's.
    shared = (1 + c * rows.own) / math.sqrt(length)
    nodes, weights = gaussian_nodes(_SCATTER_NODES)
    mixed = shared * nodes.unsqueeze(1) + math.sqrt(max(0.0, 1 - shared**2)) * nodes
    of_word = (math.sqrt(alone * length) * mixed - shift).clamp(min=0, max=cut) ** 2 @ weights
    scatter = n * float((of_word - weights @ of_word) ** 2 @ weights)
    inner = _rectified(math.sqrt(alone) * shared * scores, alone * (1 - shared**2))
    before, _ = weight_moments(n, 0.0, alone)
    kept = min(squares / total**2, 1.0) if total > 1e-9 else 1.0
    both = n * float((r * inner) @ law) / (total * n * float(inner @ law)) if total > 1e-9 else 0.0
    both = min(both, math.sqrt(kept * before))

    def change(t: Float[Tensor, " r"]) -> Float[Tensor, " r"]:
        own = (t - shift).clamp(min=0)
        p = own / (total + own).clamp(min=1e-300)
        return p**2 * key + alone * ((1 - p) ** 2 * kept + before - 2 * (1 - p) * both)

    return OwnRow(change, math.sqrt(length * key), length + key, max(0.0, paid - luck * math.sqrt(scatter)), scatter)


@lru_cache(maxsize=1)
def _scores() -> tuple[Float[Tensor, " g"], Float[Tensor, " g"]]:
    scores = torch.linspace(-8, 8, 801, dtype=torch.float64)
    law = torch.exp(-0.5 * scores**2)
    return scores, law / law.sum()


def _shifts(cosine: float) -> tuple[Float[Tensor, " h"], Float[Tensor, " h"]]:
    """What all scores of a row share, sqrt(q) h, and the weights of these nodes."""
    nodes, law = _few_nodes(_SHIFT_NODES if cosine else 1)
    return math.sqrt(cosine * (1 - cosine)) * nodes, law


@lru_cache(maxsize=4)
def _few_nodes(count: int) -> tuple[Float[Tensor, " g"], Float[Tensor, " g"]]:
    """Gauss's nodes and weights of a standard Gaussian."""
    nodes, weights = (torch.from_numpy(one).double() for one in np.polynomial.hermite_e.hermegauss(count))
    return nodes, weights / weights.sum()


def _moment(shifts: Float[Tensor, " h"], variance: float, power: int) -> Float[Tensor, " h"]:
    scores, law = _scores()
    return (shifts.unsqueeze(1) + math.sqrt(variance) * scores).clamp(min=0) ** power @ law


def _lean(shifts: Float[Tensor, " h"], variance: float) -> Float[Tensor, " h"]:
    """E sum a g, in units of the score: E[r g] / E[r]."""
    scores, law = _scores()
    own = math.sqrt(variance) * scores
    r = (shifts.unsqueeze(1) + own).clamp(min=0)
    return (r * own) @ law / (r @ law)


def _rectified(mean: Float[Tensor, " g"], variance: float) -> Float[Tensor, " g"]:
    """E max(N(mean, variance), 0)."""
    deviation = math.sqrt(max(variance, 1e-12))
    at = mean / deviation
    density = torch.exp(-(at**2) / 2) / math.sqrt(2 * math.pi)
    return mean * torch.special.ndtr(at) + deviation * density
