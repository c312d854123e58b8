"""A semi-empirical prediction of word sensitivity for softmax attention."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_count
from wordsens.theory.kernels import gauss_hermite

_NODES = 16
_REACHES = 160
_PRICES = 48
_SHARES = 13


def raf_sensitivity(n: int, d: int, *, mean_cosine: float = 0.0) -> float:
    """A prediction of a typical word's S under softmax random attention features, for rows that share their cosine.

    Semi-empirical: the count below is a mean-field heuristic (the replica-symmetric formula), not a theorem; how far
    it is from measurements is in docs/theory/predictions.md. Row j is drawn to the changed word with weight p_j =
    sigmoid(l_j + t_j), t_j = u_j . Delta, l_j the logit of its attention to the word before. It then changes by p_j
    Delta + (p_j - a_j)(x_i - m_j), so its squared change over d is about

        psi(t) = p² + (p - a)² r + 2 p (p - a) c,

    where c is the share of Delta along x_i and r = ‖x_i - m_j‖² / d. With mean cosine q the vectors u_j have a
    common part of squared length q, along which Delta spends b² of its d, and an independent Gaussian rest, in which
    d (1 - c² - b²) is left:

        S² ‖phi(X)‖² = d max over b, c of min over x of d (1 - q)(1 - c² - b²) / (2 x) + n E sup_t [psi(t) - (t - z)²
        / (2 x)],

    z Gaussian with mean b sqrt(q d) and variance 1 - q; ‖phi(X)‖² = n d (q + (1 - q) e^(1 - q) / n).

    Args:
        n, d: words and coordinates; rows have length sqrt(d), the radius is sqrt(d).
        mean_cosine: q, in [0, 1): 0 for orthogonal and for Gaussian rows.
    """
    n, d = require_count("n", n, least=2), require_count("d", d)
    if not 0 <= mean_cosine < 1:
        raise InputError(f"`mean_cosine` (={mean_cosine!r}) must be at least 0 and less than 1")
    own = 1 - mean_cosine
    concentration = own * attention_concentration(n, own)
    nodes, weights = gauss_hermite(_NODES)
    logits = math.sqrt(own) * nodes - math.log(n - 1) - own / 2
    along = torch.linspace(0, 1, _SHARES, dtype=torch.float64)[:-1].tolist()
    common = [0.0] if mean_cosine == 0 else along
    best = 0.0
    for c in along:
        for b in common:
            left = 1 - c**2 - b**2
            if left > 0:
                drift, apart = b * math.sqrt(mean_cosine * d), own + concentration
                terms = (n, d * own * left, own * left, drift, logits, nodes, weights, apart, c * math.sqrt(own))
                best = max(best, _free_energy(*terms))
    return math.sqrt(best / (n * (mean_cosine + concentration)))


def attention_concentration(n: int, variance: float) -> float:
    """E of the sum of squared attention weights over n iid N(0, variance) scores; e^variance / n for large n.

    With s a score, n times the integral over u > 0 of u E[e^(2 s - u e^s)] E[e^(-u e^s)]^(n - 1); trapezoids in log u.
    """
    scores = torch.linspace(-9, 9, 601, dtype=torch.float64)
    law = torch.exp(-0.5 * scores**2)
    law, size = law / law.sum(), torch.exp(math.sqrt(variance) * scores)
    logs = torch.linspace(-30, 12, 1201, dtype=torch.float64)
    u = logs.exp().unsqueeze(1)
    kept = torch.exp(-u * size)
    integrand = u.squeeze(1) ** 2 * ((size**2 * kept) @ law) * (kept @ law) ** (n - 1)
    return n * float(torch.trapezoid(integrand, logs))


def _free_energy(
    n: int,
    budget: float,
    variance: float,
    drift: float,
    logits: Float[Tensor, " nodes"],
    nodes: Float[Tensor, " nodes"],
    weights: Float[Tensor, " nodes"],
    apart: float,
    along: float,
) -> float:
    """The minimum over x of budget / (2 x) + n E sup_t [psi(t) - (t - z)² / (2 x)]."""
    furthest = drift + math.sqrt(budget) + 3
    t = torch.linspace(drift - 3, furthest, _REACHES, dtype=torch.float64)
    before = torch.sigmoid(logits).unsqueeze(1)
    drawn = torch.sigmoid(logits.unsqueeze(1) + t)
    psi = drawn**2 + (drawn - before) ** 2 * apart + 2 * drawn * (drawn - before) * along
    z = drift + math.sqrt(variance) * nodes
    distance = (t - z.unsqueeze(1)) ** 2
    least = math.inf
    for price in torch.logspace(-2.5, 4, _PRICES, dtype=torch.float64).tolist():
        edge = budget / (2 * price)
        if edge >= least:
            continue
        gained = (psi.unsqueeze(1) - distance / (2 * price)).amax(dim=-1)
        least = min(least, edge + n * float(weights @ gained @ weights))
    return least
