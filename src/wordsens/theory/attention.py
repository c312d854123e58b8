"""A semi-empirical prediction of word sensitivity for softmax attention."""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch

from wordsens.errors import InputError, require_count
from wordsens.theory.edge import closer
from wordsens.theory.kernels import gauss_hermite

_NODES = 16
_REACHES = 400
_SHARES, _ROUNDS = 7, 4
_PRICE_STEPS = 30
# Twice as many of each, and four more rounds, move the prediction by less than .1 % (n = 20 to 250, d = 64 to 768).


def raf_sensitivity(n: int, d: int, *, mean_cosine: float = 0.0) -> float:
    """A prediction of a typical word's S under softmax random attention features, for rows that share their cosine.

    Semi-empirical: a scalar problem stands in for the largest over Delta; docs/theory/predictions.md says what is
    proved of it and how far it is from measurements. Row j is drawn to the changed word with weight p_j =
    sigmoid(l_j + t_j), t_j = u_j . Delta, l_j the logit of its attention to the word before. It then changes by p_j
    Delta + (p_j - a_j)(x_i - m_j), so its squared change over d is about

        psi(t) = p² + (p - a)² r + 2 p (p - a) c sqrt(1 - q),

    r = ‖x_i - m_j‖² / d, q the mean cosine, c sqrt(d) the part of Delta along what x_i has for itself. Moving along it
    adds c s_j to t_j, s_j the very Gaussian of l_j = sqrt(1 - q) s_j - log(n - 1) - (1 - q)/2. The vectors u_j have a
    common part of squared length q, along which Delta spends b² of its d, and an independent Gaussian rest:

        S² ‖phi(X)‖² = d max over b, c of min over x of d (1 - q)(1 - c² - b²) / (2 x) + n E sup_t [psi(t) - (t - z)²
        / (2 x)],    z = b sqrt(q d) + c s + sqrt((1 - q)(1 - c²)) g,

    g a standard Gaussian, s of variance 1 - q for a typical word; ‖phi(X)‖² = n d (q + (1 - q) A), A the expected sum
    of a row's squared attention weights, an integral (`attention_concentration`). The word's own row is left out.

    Args:
        n, d: words and coordinates; rows have length sqrt(d), the radius is sqrt(d).
        mean_cosine: q, in [0, 1): 0 for orthogonal and for Gaussian rows.
    """
    n, d = require_count("n", n, least=2), require_count("d", d)
    if not 0 <= mean_cosine < 1:
        raise InputError(f"`mean_cosine` (={mean_cosine!r}) must be at least 0 and less than 1")
    return _predicted(n, d, mean_cosine)


@functools.lru_cache(maxsize=256)
def _predicted(n: int, d: int, mean_cosine: float) -> float:
    """The prediction itself: a second of work with a common part, and texts are asked about more than once."""
    concentration = (1 - mean_cosine) * attention_concentration(n, 1 - mean_cosine)
    text = _Text(n, d, mean_cosine, concentration)
    share = torch.linspace(0, 1, _SHARES, dtype=torch.float64)
    common = share if mean_cosine else torch.zeros(1, dtype=torch.float64)
    best = 0.0
    for _ in range(_ROUNDS):
        values = {(c, b): _scalar_problem(text, float(share[c]), float(common[b]))
                  for c in range(len(share)) for b in range(len(common))}  # fmt: skip
        (c, b), value = max(values.items(), key=lambda item: item[1])
        best = max(best, value)
        share, common = closer(share, c), closer(common, b)
    return math.sqrt(best / (n * (mean_cosine + concentration)))


@dataclass(frozen=True)
class _Text:
    """n rows of length sqrt(d) with one mean cosine; concentration: of the squared attention, times 1 - q."""

    n: int
    d: int
    cosine: float
    concentration: float


def _scalar_problem(text: _Text, c: float, b: float) -> float:
    """The minimum over x of budget / (2 x) + n E sup_t [psi(t) - (t - z)² / (2 x)]; -inf where c² + b² >= 1.

    In y = 1/(2 x) it is a line plus a mean of suprema of lines: convex, so that golden sections find the minimum.
    """
    left, alone = 1 - c**2 - b**2, 1 - text.cosine
    if left <= 0:
        return -math.inf
    nodes, weights = gauss_hermite(_NODES)
    s, budget = math.sqrt(alone) * nodes, text.d * alone * left
    logits = (math.sqrt(alone) * s - math.log(text.n - 1) - alone / 2).unsqueeze(1)
    z = b * math.sqrt(text.cosine * text.d) + c * s.unsqueeze(1) + math.sqrt(alone * (1 - c**2)) * nodes
    t = torch.linspace(float(z.min()), float(z.max()) + math.sqrt(budget) + 1, _REACHES, dtype=torch.float64)
    before, drawn = torch.sigmoid(logits), torch.sigmoid(logits + t)
    gained = drawn - before
    psi = drawn**2 + gained**2 * (alone + text.concentration) + 2 * drawn * gained * c * math.sqrt(alone)
    distance = (t - z.unsqueeze(2)) ** 2

    def value(log_y: float) -> float:
        y = math.exp(log_y)
        suprema = torch.addcmul(psi.unsqueeze(1), distance, distance.new_tensor(-y)).amax(dim=-1)
        return y * budget + text.n * float(weights @ suprema @ weights)

    return _least(value, math.log(1e-5), math.log(1e3))


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """The minimum of a function that falls, then rises, by golden sections."""
    ratio = (math.sqrt(5) - 1) / 2
    inner = [high - ratio * (high - low), low + ratio * (high - low)]
    values = [function(at) for at in inner]
    for _ in range(_PRICE_STEPS):
        if values[0] < values[1]:
            high, inner[1], values[1] = inner[1], inner[0], values[0]
            inner[0] = high - ratio * (high - low)
            values[0] = function(inner[0])
        else:
            low, inner[0], values[0] = inner[0], inner[1], values[1]
            inner[1] = low + ratio * (high - low)
            values[1] = function(inner[1])
    return min(values)


def attention_concentration(n: int, variance: float) -> float:
    """E of the sum of squared attention weights over n iid N(0, variance) scores; e^variance / n for large n.

    With s a score, n times the integral over u > 0 of u E[e^(2 s - u e^s)] E[e^(-u e^s)]^(n - 1); trapezoids in log u.
    """
    scores = torch.linspace(-9, 9, 601, dtype=torch.float64)
    law = torch.exp(-0.5 * scores**2)
    law, size = law / law.sum(), torch.exp(math.sqrt(variance) * scores)
    logs = torch.linspace(-30, 12, 1201, dtype=torch.float64)
    u = logs.exp().unsqueeze(1)
    damped = torch.exp(-u * size)
    integrand = u.squeeze(1) ** 2 * ((size**2 * damped) @ law) * (damped @ law) ** (n - 1)
    return n * float(torch.trapezoid(integrand, logs))
