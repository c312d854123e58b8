"""Softmax attention's rows for the scalar problem: who is drawn to the word, and by how much the row's output moves."""

import math
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.theory.rows import Others, OwnRow, Rows
from wordsens.theory.suprema import gaussian_nodes

STATE_NODES, COARSE_NODES = 25, 11


@lru_cache(maxsize=1024)
def attention_concentration(n: int, variance: float) -> float:
    """E of the sum of squared attention weights over n iid N(0, variance) scores; e^variance / n for large n.

    With s a score, n times the integral over u > 0 of u E[e^(2 s - u e^s)] E[e^(-u e^s)]^(n - 1); trapezoids in log u.
    """
    _, law, size, logs = _scores(variance)
    u = logs.exp().unsqueeze(1)
    damped = torch.exp(-u * size)
    integrand = u.squeeze(1) ** 2 * ((size**2 * damped) @ law) * (damped @ law) ** (n - 1)
    return n * float(torch.trapezoid(integrand, logs))


@lru_cache(maxsize=1024)
def attention_lean(n: int, variance: float) -> float:
    """E of the sum over l != m of a_l a_m s_l s_m / variance: what the words' products add to a row's output.

    Each of n iid scores is N(0, variance). With g = s / sqrt(variance), n (n - 1) times the integral over u > 0 of
    u E[g e^(s - u e^s)]² E[e^(-u e^s)]^(n - 2). By Stein's lemma twice it is variance times E[(1 - sum a²) - 4 (sum a²
    - sum a³) + 6 ((sum a²)² - sum a⁴)].
    """
    scores, law, size, logs = _scores(variance)
    u = logs.exp().unsqueeze(1)
    damped = torch.exp(-u * size)
    integrand = u.squeeze(1) ** 2 * ((scores * size * damped) @ law) ** 2 * (damped @ law) ** (n - 2)
    return n * (n - 1) * float(torch.trapezoid(integrand, logs))


def _scores(
    variance: float,
) -> tuple[Float[Tensor, " g"], Float[Tensor, " g"], Float[Tensor, " g"], Float[Tensor, " u"]]:
    """Standard scores, their law, e^score, and values of log u."""
    scores = torch.linspace(-9, 9, 121, dtype=torch.float64)
    law = torch.exp(-0.5 * scores**2)
    logs = torch.linspace(-30, 12, 301, dtype=torch.float64)
    return scores, law / law.sum(), torch.exp(math.sqrt(variance) * scores), logs


def exchangeable_rows(n: int, d: int, cosine: float, spread: float) -> Rows:
    """Rows that all have the mean cosine q in common: every loading is sqrt(q).

    A row's output keeps the common part, q, and of the words' own parts E Σ a² where weights are independent of the
    words. But they lean towards what the row asks for, and where rows are not orthogonal a share spread / d of
    `attention_lean` shows (docs/theory/sharp.md).
    """
    alone, loading = 1 - cosine, math.sqrt(cosine)
    kept = attention_concentration(n, alone) + attention_lean(n, alone) * spread / d
    return Rows(n, d, (loading,), spread, cosine + alone * kept, loading, cosine)


def softmax_others(rows: Rows, shift: float = 0.0, scale: float = 1.0) -> Others:
    """The rows j != i. Their logits: sqrt(1 - f_i²) s_j - log(n - 1) - (1 - q) / 2, s_j = sqrt(d) u_j . v_i.

    Args:
        shift: a standard Gaussian that differs from word to word: s_j is f_j times it, and the rest is j's own.
        scale: of the rest: the length of the word's key beside its mean.
    """
    nodes, weights = gaussian_nodes(STATE_NODES if len(rows.loadings) == 1 else COARSE_NODES)
    loadings = torch.tensor(rows.loadings, dtype=torch.float64)
    along = torch.sqrt(1 - loadings**2).unsqueeze(1) * (scale * nodes) + shift * loadings.unsqueeze(1)
    logits = (rows.own * along - math.log(rows.n - 1) - rows.alone / 2).reshape(-1, 1)
    concentration = attention_concentration(rows.n, rows.alone)
    return Others(
        weights.repeat(len(loadings)) / len(loadings),
        loadings.repeat_interleave(len(nodes)),
        along.flatten(),
        torch.sigmoid(logits).squeeze(1),
        lambda t: torch.sigmoid(logits + t),
        1 - 2 * rows.cross + rows.kept,
        rows.alone * (1 - concentration),
        math.log(rows.n) + 12,
        (len(loadings), len(nodes), 1),
    )


@lru_cache(maxsize=1024)
def softmax_own_row(rows: Rows, c: float) -> OwnRow:
    """The row i, whose query moves too: it asks with x_i + Delta, of squared length d (2 + 2 c sqrt(1 - f_i²)).

    Its scores with the others have variance (1 - q) times that; its score with itself, (x_i + Delta)^T W (x_i + Delta)
    / sqrt(d) less what all its scores share, grows with Delta both as a query and as a key.
    """
    n, alone = rows.n, rows.alone
    length = 2 + 2 * c * rows.own
    others = alone * length
    base = -math.log(n - 1) - others / 2
    after, before = attention_concentration(n, others), attention_concentration(n, alone)
    # Scores before and after have covariance (1 - q)(1 + c own): E Σ a a' is about its exponential over n.
    both = min(math.exp(alone * (1 + c * rows.own)) / n, math.sqrt(after * before))
    key = length - rows.word**2

    def change(t: Float[Tensor, " r"]) -> Float[Tensor, " r"]:
        p = torch.sigmoid(base + t)
        return p**2 * key + alone * ((1 - p) ** 2 * after + before - 2 * (1 - p) * both)

    return OwnRow(change, math.sqrt(length * key), length + key)
