"""Attention's rows as the scalar problem takes them (docs/proofs.md): those of the other
words, and row i itself.

Under softmax, for rows that are alike and for those of one text; under normalized ReLU, for
independent rows.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.seeds import generator
from wordsens.theory.random_features import gauss_hermite

# Nodes of s_j: under softmax where all rows are alike, under softmax where rows are of several
# kinds, and under ReLU.
_SOFTMAX_NODES, _COARSE_NODES, _RELU_NODES = 25, 11, 11
# Nodes of the sum of a row's scores under ReLU.
_SUM_NODES = 5
# Nodes of a score before.
_SCATTER_NODES = 61
# Kinds of rows by their loading.
_LOADINGS = 4
# Loadings that scatter by less are one kind.
_ALIKE = 0.05
# Words by how near they are to what a softmax retains, as shares of all: the typical one, then the
# middles of five groups.
_WORDS = (0.5, 0.1, 0.3, 0.5, 0.7, 0.9)
_DRAWS = 2000
# Nodes of g, fewer where rows are of several kinds.
_NODES, _FEW_NODES = 33, 17
# Values of t: for the other rows; for row i, whose weight may be a step.
_REACHES, _SELF_REACHES = 96, 500


class Direction(NamedTuple):
    """Shares of Delta's length: c along the word; of the rest, b along what rows share, w along W^T
    W x_i, and `alpha` for the length of the part that comes of itself. And `lowered`: by how much
    it lowers the other scores of row i, in their standard deviations, where that can turn a row to
    the word.
    """

    c: Tensor
    b: Tensor
    w: Tensor
    alpha: Tensor
    lowered: Tensor

    @property
    def rest(self) -> Tensor:
        """1 - c²."""
        return 1 - self.c**2

    def free(self, spread: float) -> Tensor:
        """The square of what is left to draw single rows with, a share of the rest; not positive
        where nothing is."""
        return 1 - self.b**2 - ((self.alpha - 1) ** 2 + self.w**2) / (min(spread, 1) or 1)

    def noise(self, spread: float) -> Tensor:
        """Of a row's z, what is a fresh Gaussian's: its deviation, in units of sqrt(1 - f_j²)."""
        return (self.rest * (self.alpha**2 + spread * self.free(spread))) ** 0.5


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
        concentration: E Σ a² of a row's weights.
        word, cross: of the word i that moves, its loading and x_i . m_j / d.
    """

    n: int
    d: int
    loadings: tuple[float, ...]
    spread: float
    retained: float
    concentration: float
    word: float = 0.0
    cross: float = 0.0

    @property
    def alone(self) -> float:
        """The mean of 1 - f_j²."""
        return 1 - sum(loading**2 for loading in self.loadings) / len(self.loadings)

    @property
    def unshared(self) -> float:
        """sqrt(1 - f_i²), the word's part along v_i."""
        return math.sqrt(1 - self.word**2)


@dataclass(frozen=True)
class ScoredRows:
    """Rows whose scores are z before Delta is drawn to them, at the nodes of z.

    Attributes:
        weights: of the nodes; they sum to the number of rows.
        z: the scores.
        ease: by how much a score follows Delta, squared.
        change: t (1 or k, m) -> (k, m), the squared change over d of a row whose score is t.
        reach: how far beyond z no t is of use: nothing more is drawn there, or all of Delta would
            not pay for it.
        nodes: of the grid of t.
        lowering: the part of ‖Delta‖² that is spent on lowering the row's other scores; the mean
            over words.
    """

    weights: Float[Tensor, "k g"]
    z: Float[Tensor, "k g"]
    ease: Float[Tensor, "k 1"]
    change: Callable[[Tensor], Tensor]
    reach: float
    nodes: int
    lowering: Tensor | float = 0.0

    @cached_property
    @torch.no_grad()
    def curve(self) -> tuple[Float[Tensor, " r"], Float[Tensor, "k r"]]:
        """An even grid of t and the change there."""
        low, high = self.z.min().item(), self.z.max().item() + self.reach
        t = torch.linspace(low, high, self.nodes, dtype=torch.float64)
        return t, self.change(t.unsqueeze(0))

    @torch.no_grad()
    def best(self, y: float) -> Float[Tensor, "k g"]:
        """Where change(t) - y (t - z)² / ease is largest: a parabola through the three largest
        values on the grid."""
        t, change = self.curve
        price = y / self.ease
        bent, pulled = change - price * t**2, 2 * price * self.z
        scores = torch.addcmul(bent.unsqueeze(1), pulled.unsqueeze(2), t)
        # NumPy's argmax is several times as fast as torch's.
        middle = torch.from_numpy(scores.numpy().argmax(axis=-1)).clamp(1, len(t) - 2)
        near = [middle - 1, middle, middle + 1]
        left, top, right = (bent.gather(1, at) + pulled * t[at] for at in near)
        bend = 2 * top - left - right
        off = torch.where(bend > 0, (right - left) / (2 * bend), 0.0).clamp(-1, 1)
        return t[middle] + off * (t[1] - t[0])

    def suprema(self, y: float) -> Float[Tensor, "k g"]:
        """The largest change(t) - y (t - z)² / ease."""
        t = self.best(y)
        return self.change(t) - y * (t - self.z) ** 2 / self.ease

    @torch.no_grad()
    def paid(self, y: float) -> float:
        """The mean of (t - z)² / ease at the best t, summed over rows."""
        return float((self.weights * (self.best(y) - self.z) ** 2 / self.ease).sum())


@dataclass(frozen=True)
class Others:
    """The rows j != i: an expectation over nodes of what a row was before the move.

    Attributes:
        weights: (k,), of the nodes.
        loadings: (k,), f_j.
        along: (k,), s_j, what moving along the word adds to t_j.
        drawn: t (k, m) -> (k, m), the row's attention to the word at a score that Delta moved by t.
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
    drawn: Callable[[Float[Tensor, "#k m"]], Float[Tensor, "k m"]]
    apart: float
    pull: float
    reach: float
    layout: tuple[int, int, int]

    def scored(self, rows: Rows, at: Direction) -> ScoredRows:
        """At a direction."""
        nodes, weights = gaussian_nodes(_NODES if len(rows.loadings) == 1 else _FEW_NODES)
        loadings, along = self.loadings.unsqueeze(1), self.along.unsqueeze(1)
        alone = 1 - loadings**2
        z = (rows.d * at.rest) ** 0.5 * at.b * loadings + (at.c + at.rest**0.5 * at.w) * along
        before = self.drawn(torch.zeros(1, 1, dtype=torch.float64))

        def change(t: Tensor) -> Tensor:
            after = self.drawn(t)
            gained = after - before
            turned = at.c * rows.unshared - self.pull * t / rows.d
            return after**2 + gained**2 * self.apart + 2 * after * gained * turned

        return ScoredRows(
            weights=rows.n * torch.outer(self.weights, weights),
            z=z + at.noise(rows.spread) * alone.sqrt() * nodes,
            ease=alone,
            change=change,
            reach=self.reach,
            nodes=_REACHES,
        )


@lru_cache(maxsize=16)
def gaussian_nodes(
    count: int,
    farthest: float = 4.5,
) -> tuple[Float[Tensor, " count"], Float[Tensor, " count"]]:
    """Evenly spaced nodes and weights of a standard Gaussian: a supremum has kinks, which
    polynomials do not suit."""
    nodes = torch.linspace(-farthest, farthest, count, dtype=torch.float64)
    weights = torch.exp(-0.5 * nodes**2)
    return nodes, weights / weights.sum()


def weight_moments(
    n: int,
    positive: Callable[[Tensor], Tensor],
    variance: float | Tensor,
) -> tuple[Tensor, Tensor]:
    """E of the sum of a_l², and of a_l a_m g_l g_m over l != m, of weights a_l = r_l / sum r, r_l =
    positive(sqrt(variance) g_l): `torch.exp` for a softmax, or `torch.relu`.

    The first says how concentrated a row's attention is: for large n about e^variance / n of a
    softmax, pi / n of ReLU. The second is what the words' products add to its output; of a softmax,
    by Stein's lemma twice, it is variance times E[(1 - sum a²) - 4 (sum a² - sum a³) + 6 ((sum a²)²
    - sum a⁴)]. A row of which all r are 0 counts nothing.

    They are n times the integral over u > 0 of u E[r² e^(-u r)] E[e^(-u r)]^(n - 1), and n (n - 1)
    times that of u E[g r e^(-u r)]² E[e^(-u r)]^(n - 2); trapezoids in log u.
    """
    # A kink asks for more nodes.
    scores, law = gaussian_nodes(61 if positive is torch.exp else 801, 9.0)
    logs = torch.linspace(-30, 18, 161, dtype=torch.float64)
    u, r = logs.exp(), positive(variance**0.5 * scores)
    damped = torch.exp(-u.unsqueeze(1) * r)
    rest = damped @ law
    squares = u**2 * (damped @ (law * r**2)) * rest ** (n - 1)
    products = (u * (damped @ (law * scores * r))) ** 2 * rest ** (n - 2)
    return n * torch.trapezoid(squares, logs), n * (n - 1) * torch.trapezoid(products, logs)


@lru_cache(maxsize=256)
def alike_rows(
    n: int,
    d: int,
    cosine: float,
    spread: float,
    positive: Callable[[Tensor], Tensor] = torch.exp,
) -> Rows:
    """Rows that all have the mean cosine q in common: every loading is sqrt(q).

    A row's output retains the common part, q, and of the words' other parts E Σ a² where weights
    are independent of the words. But they lean towards the row's query, and where rows are not
    orthogonal a share spread / d of the second of `weight_moments` shows (docs/proofs.md).
    What a row's scores have in common does not change the weights of a softmax.
    """
    alone, loading = 1 - cosine, math.sqrt(cosine)
    concentration, lean = map(float, weight_moments(n, positive, alone))
    retained = cosine + alone * (concentration + lean * spread / d)
    return Rows(
        n=n,
        d=d,
        loadings=(loading,),
        spread=spread,
        retained=retained,
        concentration=concentration,
        word=loading,
        cross=cosine,
    )


def softmax_others(rows: Rows, shift: float = 0.0, scale: float = 1.0) -> Others:
    """The rows j != i. Their logits: sqrt(1 - f_i²) s_j - log(n - 1) - (1 - q) / 2, s_j = sqrt(d)
    u_j . v_i.

    Args:
        shift: a standard Gaussian that differs from word to word: s_j is f_j times it, and the rest
            is j's own.
        scale: of the rest: the length of the word's key beside its mean.
    """
    count = len(rows.loadings)
    nodes, weights = gaussian_nodes(_SOFTMAX_NODES if count == 1 else _COARSE_NODES)
    loadings = torch.tensor(rows.loadings, dtype=torch.float64).repeat_interleave(len(nodes))
    along = torch.sqrt(1 - loadings**2) * scale * nodes.repeat(count) + shift * loadings
    logits = (rows.unshared * along - math.log(rows.n - 1) - rows.alone / 2).unsqueeze(1)
    return Others(
        weights=weights.repeat(count) / count,
        loadings=loadings,
        along=along,
        drawn=lambda t: torch.sigmoid(logits + t),
        apart=1 - 2 * rows.cross + rows.retained,
        pull=rows.alone * (1 - rows.concentration),
        reach=math.log(rows.n) + 12,
        layout=(count, len(nodes), 1),
    )


def relu_others(rows: Rows, scale: float = 1.0) -> Others:
    """The rows j != i: p_j = r / (R_j + r), r = max(s_j + t_j, 0), R_j the sum of the row's other
    positive scores.

    R_j is taken as log-normal, with the mean and the variance of n - 1 independent scores.

    Args:
        scale: as for `softmax_others`.
    """
    nodes, weights = gaussian_nodes(_RELU_NODES)
    marks, shares = gauss_hermite(_SUM_NODES)
    # A positive score has the mean 1 / sqrt(2 pi) and pi times the square of that as mean square.
    variance = math.log1p((math.pi - 1) / (rows.n - 1))
    scatter = torch.exp(math.sqrt(variance) * marks - variance / 2)
    sums = ((rows.n - 1) / math.sqrt(2 * math.pi) * scatter).repeat(len(nodes)).unsqueeze(1)
    along = (scale * nodes).repeat_interleave(len(marks))

    def drawn(t: Float[Tensor, "#k m"]) -> Float[Tensor, "k m"]:
        r = torch.relu(along.unsqueeze(1) + t)
        return r / (sums + r)

    return Others(
        weights=torch.outer(weights, shares).flatten(),
        loadings=torch.zeros_like(along),
        along=along,
        drawn=drawn,
        apart=1 + rows.retained,
        # E sum a g: E[r g] / E[r].
        pull=math.sqrt(math.pi / 2),
        reach=math.sqrt(rows.d),
        layout=(1, len(nodes), len(marks)),
    )


def softmax_self_row(rows: Rows, at: Direction) -> ScoredRows:
    """The row i, whose query moves too: its scores with the others have the variance (1 - q) (2 + 2
    c sqrt(1 - f_i²)), and its score with itself is what all share less than that."""
    length = 2 + 2 * at.c * rows.unshared
    others = rows.alone * length
    base = -math.log(rows.n - 1) - others / 2
    after, _ = weight_moments(rows.n, torch.exp, others)
    # Scores before and after have covariance (1 - q)(1 + c unshared): E Σ a a' is about its
    # exponential over n.
    both = torch.exp(others / 2) / rows.n
    return _self_row(rows, at, lambda t: torch.sigmoid(base + t), after, both)


def relu_self_row(rows: Rows, at: Direction, deviations: float = 0.0) -> ScoredRows:
    """The row i, whose scores with the others have the variance 2 + 2 c.

    Delta turns it to the word by its score with itself, and by lowering its scores with the others:
    each positive one by mu and none below 0. Of the means of what is left, that costs least, n E
    min(max(a, 0), mu)².

    Args:
        deviations: by how many standard deviations a word's scores cost less to lower than in the
            mean over words.
    """
    n, length = rows.n, 2 + 2 * at.c
    natural = length**0.5
    cut = at.lowered * natural
    # The scores before and after have a correlation of `shared`. Words differ in those before; the
    # rest is Delta's.
    shared, new = natural / 2, (1 - length / 4) ** 0.5
    scores, law = gaussian_nodes(_SCATTER_NODES)
    of_word = _lowered(natural * shared * scores, natural * new, cut)
    mean = of_word @ law
    # Where nothing is lowered, the derivative of the square root is not defined: keep above 0.
    scatter = (n * (of_word - mean) ** 2 @ law).clamp(min=torch.finfo(torch.float64).tiny).sqrt()
    lowering = torch.relu(n * mean - deviations * scatter)
    left, squares = rectified(-cut, natural)
    scores, law = gaussian_nodes(801, 8.0)
    old, _ = rectified(shared * scores, new)
    rest = torch.relu(natural * scores - cut)
    both = (rest * old) @ law / (n * left * (old @ law))
    after = (squares / (n * left**2)).clamp(max=1)

    def drawn(t: Tensor) -> Tensor:
        itself = torch.relu(t)
        return itself / (n * left + itself)

    return _self_row(rows, at, drawn, after, both, lowering)


def _self_row(
    rows: Rows,
    at: Direction,
    drawn: Callable[[Tensor], Tensor],
    after: Tensor,
    both: Tensor,
    lowering: Tensor | float = 0.0,
) -> ScoredRows:
    """Row i, whose query is that of x_i + Delta, of squared length d (2 + 2 c sqrt(1 - f_i²)).

    Its score with itself, (x_i + Delta)^T W (x_i + Delta) / sqrt(d) less what all its scores share,
    follows Delta both as a query and as a key.

    Args:
        drawn: its attention to the word at that score.
        after, both: without the word, E Σ a'² of its weights after and E Σ a a'.
        lowering: as for ScoredRows.
    """
    nodes, weights = gaussian_nodes(_NODES)
    length = 2 + 2 * at.c * rows.unshared
    key = length - rows.word**2
    z = (rows.d * at.rest) ** 0.5 * at.b * rows.word + (length * key) ** 0.5 * nodes
    ease = (length + key).reshape(1, 1)
    before = rows.concentration
    both = torch.minimum(both, (after * before).sqrt())

    def change(t: Tensor) -> Tensor:
        p = drawn(t)
        return p**2 * key + rows.alone * ((1 - p) ** 2 * after + before - 2 * (1 - p) * both)

    return ScoredRows(
        weights=weights.unsqueeze(0),
        z=z.unsqueeze(0),
        ease=ease,
        change=change,
        reach=math.sqrt(rows.d * float(ease.detach())),
        nodes=_SELF_REACHES,
        lowering=lowering,
    )


def _lowered(mean: Tensor, deviation: Tensor, cut: Tensor) -> Tensor:
    """E of min(max(a, 0), cut)², a Gaussian."""
    _, second = rectified(mean, deviation)
    over, squared = rectified(mean - cut, deviation)
    return second - squared - 2 * cut * over


def rectified(mean: Tensor, deviation: Tensor) -> tuple[Tensor, Tensor]:
    """E of max(a, 0) and of its square, a Gaussian."""
    standard = mean / deviation
    positive = torch.special.ndtr(standard)
    first = mean * positive + deviation * torch.exp(-(standard**2) / 2) / math.sqrt(2 * math.pi)
    return first, mean * first + deviation**2 * positive


def text_rows(gram: Float[Tensor, "n n"], d: int) -> tuple[Rows, ...]:
    """The rows of a text with this Gram matrix X X^T / d: first for a typical word, then for words
    of every kind.

    e is the Gram matrix's leading eigenvector, f_j = sqrt(its eigenvalue) e_j. What a softmax
    retains of a row and how far that leans towards each word are means over 2,000 Gaussian rows of
    scores with covariance G, drawn with a fixed seed: exact in law.
    """
    n = len(gram)
    values, vectors = torch.linalg.eigh(gram)
    root = vectors * values.clamp(min=0).sqrt()
    loadings = (root[:, -1] * (1 if float(root[:, -1].sum()) >= 0 else -1)).clamp(-0.999, 0.999)
    alone = 1 - loadings**2
    apart = (gram - torch.outer(loadings, loadings)).fill_diagonal_(0)
    spread = float(d * apart.square().sum() / (alone.sum() ** 2 - (alone**2).sum()))
    draws = torch.randn(_DRAWS, n, generator=generator(0, "scores of a text"), dtype=torch.float64)
    weights = torch.softmax(draws @ root.T, dim=1)
    outputs = weights @ gram
    cross = outputs.mean(dim=0)
    retained = float((outputs * weights).sum(dim=1).mean())
    parts = loadings.sort().values.tensor_split(min(_LOADINGS, n))
    groups = torch.stack([part.mean() for part in parts])
    if float(groups.std()) < _ALIKE:
        groups = (1 - alone.mean()).sqrt().reshape(1)
    concentration = float(weight_moments(n, torch.exp, 1 - float(groups.square().mean()))[0])
    words = cross.argsort()[[int(share * n) for share in _WORDS]]
    return tuple(
        Rows(
            n=n,
            d=d,
            loadings=tuple(groups.tolist()),
            spread=spread,
            retained=retained,
            concentration=concentration,
            word=float(loadings[i]),
            cross=float(cross[i]),
        )
        for i in words
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
