"""Attention's rows as the scalar problem takes them (docs/theory/sharp.md): those of the other
words, and row i itself.

Under softmax and under normalized ReLU; for rows that are alike, and for those of one text.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from scipy.optimize import root_scalar
from torch import Tensor

from wordsens.seeds import generator
from wordsens.theory.random_features import gauss_hermite

STATE_NODES, COARSE_NODES = 25, 11

_WORD_NODES, _SHIFT_NODES, _SUM_NODES = (
    11,
    7,
    5,
)  # of s_j, of what all scores of a row share, of the sum of its scores
_SCATTER_NODES = 61  # of a score before, and of what is new after
_LOADINGS, _WORDS = (
    4,
    5,
)  # kinds of rows by their loading; of words by how near they are to what a softmax retains
_ALIKE = 0.05  # loadings that scatter by less are one kind
_DRAWS = 2000


@dataclass(frozen=True)
class Rows:
    """Rows of length sqrt(d), x_j = sqrt(d) (f_j e + sqrt(1 - f_j²) v_j), and what attention
    retains of them.

    Attributes:
        n, d: rows and coordinates.
        loadings: f_j, as few representatives of equal weight.
        spread: d times the mean square of v_j . v_k, j != k: 0 for orthogonal v, 1 for independent
            uniform ones, more where rows repeat.
        retained: E ‖o_j‖² / d.
        word, cross: of the word i that moves, its loading and x_i . m_j / d.
    """

    n: int
    d: int
    loadings: tuple[float, ...]
    spread: float
    retained: float
    word: float
    cross: float

    @property
    def alone(self) -> float:
        """The mean of 1 - f_j²."""
        return 1 - sum(loading**2 for loading in self.loadings) / len(self.loadings)

    @property
    def common(self) -> bool:
        """True where rows have something in common."""
        return any(self.loadings)

    @property
    def unshared(self) -> float:
        """sqrt(1 - f_i²), the word's part along v_i."""
        return math.sqrt(1 - self.word**2)


@dataclass(frozen=True)
class Others:
    """The rows j != i: an expectation over nodes of what a row was before the move.

    Attributes:
        weights: (k,), of the nodes.
        loadings: (k,), f_j.
        along: (k,), s_j, what moving along the word adds to t_j.
        before: (k,), the row's attention to the word.
        drawn: t (r,) -> (k, r), its attention after.
        apart: ‖x_i - m_j‖² / d.
        pull: Delta . m_j per unit of t_j.
        reach: how far beyond z no t is of use: nothing more is drawn there, or all of Delta would
            not pay for it.
        layout: the nodes as kinds of rows, nodes of the row's score with the word, and other states
            of a row.
    """

    weights: Float[Tensor, " k"]
    loadings: Float[Tensor, " k"]
    along: Float[Tensor, " k"]
    before: Float[Tensor, " k"]
    drawn: Callable[[Float[Tensor, " r"]], Float[Tensor, "k r"]]
    apart: float
    pull: float
    reach: float
    layout: tuple[int, int, int]


@dataclass(frozen=True)
class PredictedSelfRow:
    """The row i: its squared change over d at a score that Delta moved by t, from where it is by
    itself.

    Attributes:
        change: t (r,) -> (r,).
        scatter: the standard deviation of its score with itself.
        ease: by how much its score follows Delta, squared, where another row's does by one.
        paid: what lowering its other scores takes of ‖Delta‖², in the mean over words.
    """

    change: Callable[[Float[Tensor, " r"]], Float[Tensor, " r"]]
    scatter: float
    ease: float
    paid: float = 0.0


@lru_cache(maxsize=16)
def gaussian_nodes(count: int) -> tuple[Float[Tensor, " count"], Float[Tensor, " count"]]:
    """Evenly spaced nodes and weights of a standard Gaussian: a supremum has kinks, which
    polynomials do not suit."""
    nodes = torch.linspace(-4.5, 4.5, count, dtype=torch.float64)
    weights = torch.exp(-0.5 * nodes**2)
    return nodes, weights / weights.sum()


@lru_cache(maxsize=1024)
def softmax_moments(n: int, variance: float) -> tuple[float, float]:
    """E of the sum of a_l², and of a_l a_m g_l g_m over l != m, of softmax weights of n scores
    sqrt(variance) g_l.

    The first is e^variance / n for large n: how concentrated a row's attention is. The second is
    what the words' products add to its output; by Stein's lemma twice it is variance times E[(1 -
    sum a²) - 4 (sum a² - sum a³) + 6 ((sum a²)² - sum a⁴)].
    """
    scores = torch.linspace(-9, 9, 121, dtype=torch.float64)
    law, logs = torch.exp(-0.5 * scores**2), torch.linspace(-30, 12, 301, dtype=torch.float64)
    return _moments_of(n, torch.exp(math.sqrt(variance) * scores), scores, law / law.sum(), logs)


@lru_cache(maxsize=1024)
def relu_moments(n: int, shift: float, variance: float) -> tuple[float, float]:
    """The same of positive parts of scores shift + sqrt(variance) g_l, divided by their sum.

    For many scores of mean 0 about pi / n and pi / 2. A row without a positive score counts
    nothing.
    """
    scores, law = _standard_scores()
    r = (shift + math.sqrt(variance) * scores).clamp(min=0)
    return _moments_of(n, r, scores, law, torch.linspace(-14, 18, 321, dtype=torch.float64))


def _moments_of(
    n: int,
    r: Float[Tensor, " g"],
    scores: Float[Tensor, " g"],
    law: Float[Tensor, " g"],
    logs: Float[Tensor, " u"],
) -> tuple[float, float]:
    """Of weights r_l / sum r: n times the integral over u > 0 of u E[r² e^(-u r)] E[e^(-u r)]^(n -
    1), and n (n - 1) times that of u E[g r e^(-u r)]² E[e^(-u r)]^(n - 2); trapezoids in log u."""
    u = logs.exp().unsqueeze(1)
    damped = torch.exp(-u * r)
    rest, squared = damped @ law, u.squeeze(1) ** 2
    squares = squared * ((r**2 * damped) @ law) * rest ** (n - 1)
    products = squared * ((scores * r * damped) @ law) ** 2 * rest ** (n - 2)
    return n * float(torch.trapezoid(squares, logs)), n * (n - 1) * float(
        torch.trapezoid(products, logs)
    )


def exchangeable_rows(n: int, d: int, cosine: float, spread: float) -> Rows:
    """Rows that all have the mean cosine q in common: every loading is sqrt(q).

    A row's output retains the common part, q, and of the words' other parts E Σ a² where weights
    are independent of the words. But they lean towards the row's query, and where rows are not
    orthogonal a share spread / d of the second of `softmax_moments` shows (docs/theory/sharp.md).
    """
    alone, loading = 1 - cosine, math.sqrt(cosine)
    concentration, lean = softmax_moments(n, alone)
    retained = concentration + lean * spread / d
    return Rows(n, d, (loading,), spread, cosine + alone * retained, loading, cosine)


def softmax_others(rows: Rows, shift: float = 0.0, scale: float = 1.0) -> Others:
    """The rows j != i. Their logits: sqrt(1 - f_i²) s_j - log(n - 1) - (1 - q) / 2, s_j = sqrt(d)
    u_j . v_i.

    Args:
        shift: a standard Gaussian that differs from word to word: s_j is f_j times it, and the rest
            is j's own.
        scale: of the rest: the length of the word's key beside its mean.
    """
    nodes, weights = gaussian_nodes(STATE_NODES if len(rows.loadings) == 1 else COARSE_NODES)
    loadings = torch.tensor(rows.loadings, dtype=torch.float64)
    along = torch.sqrt(1 - loadings**2).unsqueeze(1) * (scale * nodes) + shift * loadings.unsqueeze(
        1
    )
    logits = (rows.unshared * along - math.log(rows.n - 1) - rows.alone / 2).reshape(-1, 1)
    concentration, _ = softmax_moments(rows.n, rows.alone)
    return Others(
        weights.repeat(len(loadings)) / len(loadings),
        loadings.repeat_interleave(len(nodes)),
        along.flatten(),
        torch.sigmoid(logits).squeeze(1),
        lambda t: torch.sigmoid(logits + t),
        1 - 2 * rows.cross + rows.retained,
        rows.alone * (1 - concentration),
        math.log(rows.n) + 12,
        (len(loadings), len(nodes), 1),
    )


@lru_cache(maxsize=1024)
def softmax_self_row(rows: Rows, c: float) -> PredictedSelfRow:
    """The row i, whose query moves too: its query is that of x_i + Delta, of squared length d (2 +
    2 c sqrt(1 - f_i²)).

    Its scores with the others have variance (1 - q) times that; its score with itself, (x_i +
    Delta)^T W (x_i + Delta) / sqrt(d) less what all its scores share, grows with Delta both as a
    query and as a key.
    """
    n, alone = rows.n, rows.alone
    length = 2 + 2 * c * rows.unshared
    others = alone * length
    base = -math.log(n - 1) - others / 2
    after, before = softmax_moments(n, others)[0], softmax_moments(n, alone)[0]
    # Scores before and after have covariance (1 - q)(1 + c unshared): E Σ a a' is about its
    # exponential over n.
    both = min(math.exp(alone * (1 + c * rows.unshared)) / n, math.sqrt(after * before))
    key = length - rows.word**2

    def change(t: Float[Tensor, " r"]) -> Float[Tensor, " r"]:
        p = torch.sigmoid(base + t)
        return p**2 * key + alone * ((1 - p) ** 2 * after + before - 2 * (1 - p) * both)

    return PredictedSelfRow(change, math.sqrt(length * key), length + key)


@lru_cache(maxsize=256)
def relu_rows(n: int, d: int, cosine: float, spread: float) -> Rows:
    """Rows that all have the mean cosine q in common: every loading is sqrt(q).

    A row's scores are sqrt(q) h + sqrt(1 - q) g_l, h its own and g_l of each word: weights are a_l
    = r_l / sum r, r = max(score, 0). Of the words' other parts a row's output retains E sum a², and
    beside it, as weights lean towards the row's query, a share spread / d of E sum over l != m of
    a_l a_m g_l g_m.
    """
    alone, loading = 1 - cosine, math.sqrt(cosine)
    shifts, law = _shifts(cosine)
    moments = [relu_moments(n, float(h), alone) for h in shifts]
    squares, lean = (
        float(law @ torch.tensor(each, dtype=torch.float64)) for each in zip(*moments, strict=True)
    )
    return Rows(
        n, d, (loading,), spread, cosine + alone * (squares + lean * spread / d), loading, cosine
    )


def relu_others(rows: Rows, shift: float = 0.0, scale: float = 1.0) -> Others:
    """The rows j != i: p_j = r / (R_j + r), r = max(score + t_j, 0), R_j the sum of the row's other
    positive scores.

    R_j is taken as log-normal, with the mean and the variance of n - 1 independent scores.

    Args:
        shift: a standard Gaussian that differs from word to word: s_j is f_j times it, and the rest
            is j's own.
        scale: of the rest: the length of the word's key beside its mean.
    """
    nodes, weights = gaussian_nodes(_WORD_NODES)
    of_row, law = _shifts(1 - rows.alone)
    mean, second = (_moment(of_row, rows.alone, power) for power in (1, 2))
    spread = torch.log1p((second - mean**2) / (mean**2 * (rows.n - 1)))
    marks, shares = gauss_hermite(_SUM_NODES)
    sums = (
        (rows.n - 1)
        * mean.unsqueeze(1)
        * torch.exp(spread.sqrt().unsqueeze(1) * marks - spread.unsqueeze(1) / 2)
    )
    word, row, part = torch.cartesian_prod(
        *map(torch.arange, (len(nodes), len(of_row), len(marks)))
    ).T
    along = math.sqrt(rows.alone) * scale * nodes[word] + shift * rows.loadings[0]
    chance = weights[word] * law[row] * shares[part]
    score = (of_row[row] + rows.unshared * along).unsqueeze(1)
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
        1 - 2 * rows.cross + rows.retained,
        float(law @ _lean(of_row, rows.alone)),
        math.sqrt(rows.d),
        (1, len(nodes), len(of_row) * len(marks)),
    )


@lru_cache(maxsize=1024)
def relu_self_row(
    rows: Rows, c: float, lowered: float, deviations: float = 0.0
) -> PredictedSelfRow:
    """The row i, whose query is that of x_i + Delta, of squared length d (2 + 2 c sqrt(1 - f_i²)).

    Delta turns it to the word by its score with itself, and by lowering its scores with the others:
    each positive one by mu and none below 0, and all by what rows share, x say. Of the means R of
    what is left, that costs least, E sum_l (lowered by)² + x² / q: x is where x / q is the sum of
    what single scores are lowered by.

    Args:
        lowered: mu, in standard deviations of a score.
        deviations: by how many standard deviations a word's scores cost less to lower than in the
            mean over words.
    """
    n, alone = rows.n, rows.alone
    length = 2 + 2 * c * rows.unshared
    key = length - rows.word**2
    scores, law = _standard_scores()
    natural = math.sqrt(alone * length) * scores
    cut = lowered * math.sqrt(alone * length)

    def singly(x: float) -> Float[Tensor, " g"]:
        return (natural - x).clamp(min=0, max=cut)

    shift: float = 0.0
    if rows.common and cut > 0:
        shift = root_scalar(
            lambda x: (1 - alone) * n * float(singly(x) @ law) - x,
            bracket=(0.0, cut + float(natural[-1])),
        ).root
    r = (natural - shift - cut).clamp(min=0)
    paid = n * float(singly(shift) ** 2 @ law) + (shift**2 / (1 - alone) if rows.common else 0.0)
    total = n * float(r @ law)
    squares = n * float(r**2 @ law)
    # The scores before and after have a correlation of `shared`. Words differ in those before; the
    # rest is Delta's.
    shared = (1 + c * rows.unshared) / math.sqrt(length)
    nodes, weights = gaussian_nodes(_SCATTER_NODES)
    mixed = shared * nodes.unsqueeze(1) + math.sqrt(max(0.0, 1 - shared**2)) * nodes
    of_word = (math.sqrt(alone * length) * mixed - shift).clamp(min=0, max=cut) ** 2 @ weights
    scatter = n * float((of_word - weights @ of_word) ** 2 @ weights)
    inner = _rectified(math.sqrt(alone) * shared * scores, alone * (1 - shared**2))
    before, _ = relu_moments(n, 0.0, alone)
    retained = min(squares / total**2, 1.0) if total > 1e-9 else 1.0
    both = n * float((r * inner) @ law) / (total * n * float(inner @ law)) if total > 1e-9 else 0.0
    both = min(both, math.sqrt(retained * before))

    def change(t: Float[Tensor, " r"]) -> Float[Tensor, " r"]:
        itself = (t - shift).clamp(min=0)
        p = itself / (total + itself).clamp(min=1e-300)
        return p**2 * key + alone * ((1 - p) ** 2 * retained + before - 2 * (1 - p) * both)

    paid = max(0.0, paid - deviations * math.sqrt(scatter))
    return PredictedSelfRow(change, math.sqrt(length * key), length + key, paid)


@lru_cache(maxsize=1)
def _standard_scores() -> tuple[Float[Tensor, " g"], Float[Tensor, " g"]]:
    scores = torch.linspace(-8, 8, 801, dtype=torch.float64)
    law = torch.exp(-0.5 * scores**2)
    return scores, law / law.sum()


def _shifts(cosine: float) -> tuple[Float[Tensor, " h"], Float[Tensor, " h"]]:
    """What all scores of a row share, sqrt(q) h, and the weights of these nodes."""
    nodes, law = gauss_hermite(_SHIFT_NODES if cosine else 1)
    return math.sqrt(cosine * (1 - cosine)) * nodes, law


def _moment(shifts: Float[Tensor, " h"], variance: float, power: int) -> Float[Tensor, " h"]:
    scores, law = _standard_scores()
    return (shifts.unsqueeze(1) + math.sqrt(variance) * scores).clamp(min=0) ** power @ law


def _lean(shifts: Float[Tensor, " h"], variance: float) -> Float[Tensor, " h"]:
    """E sum a g, in units of the score: E[r g] / E[r]."""
    scores, law = _standard_scores()
    itself = math.sqrt(variance) * scores
    r = (shifts.unsqueeze(1) + itself).clamp(min=0)
    return (r * itself) @ law / (r @ law)


def _rectified(mean: Float[Tensor, " g"], variance: float) -> Float[Tensor, " g"]:
    """E max(N(mean, variance), 0)."""
    deviation = math.sqrt(max(variance, 1e-12))
    standard = mean / deviation
    density = torch.exp(-(standard**2) / 2) / math.sqrt(2 * math.pi)
    return mean * torch.special.ndtr(standard) + deviation * density


def text_rows(gram: Float[Tensor, "n n"], d: int) -> tuple[Rows, ...]:
    """The rows of a text with this Gram matrix X X^T / d: first for a typical word, then for words
    of every kind.

    e is the Gram matrix's leading eigenvector, f_j = sqrt(its eigenvalue) e_j. What a softmax
    retains of a row and how far that leans towards each word are means over 2,000 Gaussian rows of
    scores with covariance G, drawn with a fixed seed: exact in law.
    """
    n = len(gram)
    values, vectors = torch.linalg.eigh(gram)
    loadings = values[-1].clamp(min=0).sqrt() * vectors[:, -1]
    loadings = (loadings * (1 if float(loadings.sum()) >= 0 else -1)).clamp(-0.999, 0.999)
    alone = 1 - loadings**2
    apart = gram - torch.outer(loadings, loadings)
    squares = (apart**2).sum() - apart.diagonal().square().sum()
    products = alone.sum() ** 2 - (alone**2).sum()
    spread = float(d * squares / products)
    root = vectors * values.clamp(min=0).sqrt()
    draws = torch.randn(_DRAWS, n, generator=generator(0, "scores of a text"), dtype=torch.float64)
    weights = torch.softmax(draws @ root.T, dim=1)
    retained, cross = (
        float(((weights @ gram) * weights).sum() / _DRAWS),
        (weights @ gram).mean(dim=0),
    )
    groups = torch.stack(
        [part.mean() for part in loadings.sort().values.tensor_split(min(_LOADINGS, n))]
    )
    if float(groups.std()) < _ALIKE:
        groups = (1 - alone.mean()).sqrt().reshape(1)
    order = cross.argsort()
    shares = [0.5, *((2 * k + 1) / (2 * _WORDS) for k in range(_WORDS))]
    picked = [int(order[min(n - 1, int(share * n))]) for share in shares]
    return tuple(
        Rows(n, d, tuple(groups.tolist()), spread, retained, float(loadings[i]), float(cross[i]))
        for i in picked
    )


def gram_moments(gram: Float[Tensor, "n n"], d: int) -> tuple[float, float]:
    """The mean cosine q of a text's rows and their spread, each taken as what it is nearly.

    q is at least 0, less than 1, and 0 where it is mere noise; the spread is d times the mean over
    pairs of ((cosine - q) / (1 - q))², and 1 where independent rows scatter so.
    """
    n = len(gram)
    pairs = n * (n - 1)
    away = gram - torch.diag(gram.diagonal())
    cosine = float(away.sum()) / pairs
    # Of iid Gaussian rows the mean cosine scatters by sqrt(2 / (pairs d)), the spread by sqrt(4 /
    # pairs).
    shared = 0.0 if cosine < 3 * (2 / (pairs * d)) ** 0.5 else min(cosine, 1 - 1e-3)
    squares = float(away.sub(shared).square().sum()) - n * shared**2
    spread = d * max(0.0, squares) / pairs / (1 - shared) ** 2
    if spread < 1e-9:
        return shared, 0.0
    return shared, 1.0 if abs(spread - 1) < 3 * (4 / pairs) ** 0.5 else spread
