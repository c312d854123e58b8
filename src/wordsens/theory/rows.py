"""Attention's rows as the scalar problem takes them (docs/theory/sharp.md): those of the other
words, and row i itself.

Under softmax and under normalized ReLU; for rows that are alike, and for those of one text.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.seeds import generator
from wordsens.theory.random_features import gauss_hermite

# Nodes of s_j under softmax, where all rows are alike and of several kinds; under ReLU.
_SOFTMAX_NODES, _COARSE_NODES, _RELU_NODES = 25, 11, 11
# Nodes of what all scores of a row share, and of the sum of its scores.
_SHIFT_NODES, _SUM_NODES = 7, 5
# Nodes of a score before, and of what is new after.
_SCATTER_NODES = 61
# Kinds of rows by their loading; of words by how near they are to what a softmax retains.
_LOADINGS, _WORDS = 4, 5
# Loadings that scatter by less are one kind.
_ALIKE = 0.05
_DRAWS = 2000
_NEWTON = 12
# Nodes of g, fewer where rows are of several kinds.
_NODES, _FEW_NODES = 33, 17
# Values of t: for the other rows; for row i; for one whose weight may be a step.
_REACHES, _SELF_REACHES, _STEPPED = 96, 192, 1000


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
        lowering: what lowering other scores of the row takes of ‖Delta‖², in the mean over words.
    """

    weights: Float[Tensor, "k g"]
    z: Float[Tensor, "k g"]
    ease: Float[Tensor, "k 1"]
    change: Callable[[Tensor], Tensor]
    reach: float
    nodes: int
    lowering: Tensor | float = 0.0

    @torch.no_grad()
    def curve(self) -> tuple[Float[Tensor, " r"], Float[Tensor, "k r"]]:
        """Values of t and the change there."""

        low, high = self.z.min().item(), self.z.max().item() + self.reach
        t = torch.linspace(low, high, self.nodes, dtype=torch.float64)
        return t, self.change(t.unsqueeze(0))

    @torch.no_grad()
    def best(
        self, y: float, t: Float[Tensor, " r"], change: Float[Tensor, "k r"]
    ) -> Float[Tensor, "k g"]:
        """Where change(t) - y (t - z)² / ease is largest: a parabola through the three largest
        values on an even grid of t."""
        price = y / self.ease
        bent, pulled = change - price * t**2, 2 * price * self.z
        scores = torch.addcmul(bent.unsqueeze(1), pulled.unsqueeze(2), t)
        # NumPy's argmax is several times as fast as torch's.
        middle = torch.from_numpy(scores.numpy().argmax(axis=-1)).clamp(1, len(t) - 2)
        left, top, right = (
            bent.gather(1, middle + by) + pulled * t[middle + by] for by in (-1, 0, 1)
        )
        bend = 2 * top - left - right
        off = torch.where(bend > 0, (right - left) / (2 * bend), 0.0).clamp(-1, 1)
        return t[middle] + off * (t[1] - t[0])

    def values(self, y: float, t: Float[Tensor, "k g"]) -> Float[Tensor, "k g"]:
        """change(t) - y (t - z)² / ease."""
        return self.change(t) - y * (t - self.z) ** 2 / self.ease

    @torch.no_grad()
    def paid(self, t: Float[Tensor, "k g"]) -> float:
        """The mean of (t - z)² / ease, summed over rows."""
        return float((self.weights * (t - self.z) ** 2 / self.ease).sum())


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
            rows.n * torch.outer(self.weights, weights),
            z + at.noise(rows.spread) * alone.sqrt() * nodes,
            alone,
            change,
            self.reach,
            _REACHES,
        )


@lru_cache(maxsize=16)
def gaussian_nodes(
    count: int, farthest: float = 4.5
) -> tuple[Float[Tensor, " count"], Float[Tensor, " count"]]:
    """Evenly spaced nodes and weights of a standard Gaussian: a supremum has kinks, which
    polynomials do not suit."""
    nodes = torch.linspace(-farthest, farthest, count, dtype=torch.float64)
    weights = torch.exp(-0.5 * nodes**2)
    return nodes, weights / weights.sum()


def weight_moments(
    n: int, positive: Callable[[Tensor], Tensor], shift: float, variance: float | Tensor
) -> tuple[Tensor, Tensor]:
    """E of the sum of a_l², and of a_l a_m g_l g_m over l != m, of weights a_l = r_l / sum r, r_l =
    positive(shift + sqrt(variance) g_l): `torch.exp` for a softmax, or `torch.relu`.

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
    u, r = logs.exp(), positive(shift + variance**0.5 * scores)
    damped = torch.exp(-u.unsqueeze(1) * r)
    rest = damped @ law
    squares = u**2 * (damped @ (law * r**2)) * rest ** (n - 1)
    products = (u * (damped @ (law * scores * r))) ** 2 * rest ** (n - 2)
    return n * torch.trapezoid(squares, logs), n * (n - 1) * torch.trapezoid(products, logs)


@lru_cache(maxsize=256)
def alike_rows(
    n: int, d: int, cosine: float, spread: float, positive: Callable[[Tensor], Tensor] = torch.exp
) -> Rows:
    """Rows that all have the mean cosine q in common: every loading is sqrt(q).

    A row's scores are sqrt(q) h + sqrt(1 - q) g_l, h its own and g_l of each word. Its output
    retains the common part, q, and of the words' other parts E Σ a² where weights are independent
    of the words. But they lean towards the row's query, and where rows are not orthogonal a share
    spread / d of the second of `weight_moments` shows (docs/theory/sharp.md).
    """
    alone, loading = 1 - cosine, math.sqrt(cosine)
    shifts, law = _shifts(cosine)
    moments = [weight_moments(n, positive, h, alone) for h in shifts.tolist()]
    squares, lean = (law @ torch.tensor(moments, dtype=law.dtype)).tolist()
    retained = cosine + alone * (squares + lean * spread / d)
    concentration = float(weight_moments(n, positive, 0.0, alone)[0])
    return Rows(n, d, (loading,), spread, retained, concentration, loading, cosine)


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
        weights.repeat(count) / count,
        loadings,
        along,
        lambda t: torch.sigmoid(logits + t),
        1 - 2 * rows.cross + rows.retained,
        rows.alone * (1 - rows.concentration),
        math.log(rows.n) + 12,
        (count, len(nodes), 1),
    )


def softmax_self_row(rows: Rows, at: Direction) -> ScoredRows:
    """The row i, whose query moves too: its query is that of x_i + Delta, of squared length d (2 +
    2 c sqrt(1 - f_i²)).

    Its scores with the others have variance (1 - q) times that; its score with itself, (x_i +
    Delta)^T W (x_i + Delta) / sqrt(d) less what all its scores share, grows with Delta both as a
    query and as a key.
    """
    n, alone, before = rows.n, rows.alone, rows.concentration
    length = 2 + 2 * at.c * rows.unshared
    others, key = alone * length, length - rows.word**2
    base = -math.log(n - 1) - others / 2
    after, _ = weight_moments(n, torch.exp, 0.0, others)
    # Scores before and after have covariance (1 - q)(1 + c unshared): E Σ a a' is about its
    # exponential over n.
    both = torch.minimum(torch.exp(others / 2) / n, torch.sqrt(after * before))

    def change(t: Tensor) -> Tensor:
        p = torch.sigmoid(base + t)
        return p**2 * key + alone * ((1 - p) ** 2 * after + before - 2 * (1 - p) * both)

    reach = math.log(n) + float(others.detach()) / 2 + 12
    return _self_row(rows, at, change, reach, _SELF_REACHES)


def relu_others(rows: Rows, shift: float = 0.0, scale: float = 1.0) -> Others:
    """The rows j != i: p_j = r / (R_j + r), r = max(score + t_j, 0), R_j the sum of the row's other
    positive scores.

    R_j is taken as log-normal, with the mean and the variance of n - 1 independent scores.

    Args:
        shift, scale: as for `softmax_others`.
    """
    nodes, weights = gaussian_nodes(_RELU_NODES)
    of_row, law = _shifts(1 - rows.alone)
    mean, second, _ = rectified(of_row, math.sqrt(rows.alone))
    variance = torch.log1p((second / mean**2 - 1) / (rows.n - 1)).unsqueeze(1)
    marks, shares = gauss_hermite(_SUM_NODES)
    sums = (rows.n - 1) * mean.unsqueeze(1) * torch.exp(variance.sqrt() * marks - variance / 2)
    chance = torch.einsum("s,h,m->shm", weights, law, shares)
    along = math.sqrt(rows.alone) * scale * nodes + shift * rows.loadings[0]
    states = sums.numel()
    score = (rows.unshared * along.unsqueeze(1) + of_row).repeat_interleave(len(marks), dim=1)
    rest = sums.flatten().repeat(len(nodes)).unsqueeze(1)

    def drawn(t: Float[Tensor, "#k m"]) -> Float[Tensor, "k m"]:
        r = (score.reshape(-1, 1) + t).clamp(min=0)
        return r / (rest + r)

    # E sum a g, in units of the score: E[r g] / E[r].
    lean = second / mean - of_row
    return Others(
        chance.flatten(),
        torch.full((chance.numel(),), rows.loadings[0], dtype=torch.float64),
        along.repeat_interleave(states),
        drawn,
        1 - 2 * rows.cross + rows.retained,
        float(law @ lean),
        math.sqrt(rows.d),
        (1, len(nodes), states),
    )


def relu_self_row(rows: Rows, at: Direction, deviations: float = 0.0) -> ScoredRows:
    """The row i, whose query is that of x_i + Delta, of squared length d (2 + 2 c sqrt(1 - f_i²)).

    Delta turns it to the word by its score with itself, and by lowering its scores with the others:
    each positive one by mu and none below 0, and all by what rows share, x say. Of the means R of
    what is left, that costs least, E sum_l (lowered by)² + x² / q: x is where x / q is the sum of
    what single scores are lowered by.

    Args:
        deviations: by how many standard deviations a word's scores cost less to lower than in the
            mean over words.
    """
    n, alone, before = rows.n, rows.alone, rows.concentration
    length = 2 + 2 * at.c * rows.unshared
    key, natural = length - rows.word**2, (alone * length) ** 0.5
    cut = at.lowered * natural
    together = _lowered_together(n * (1 - alone), natural, cut)
    paid = n * _lowered(-together, natural, cut)[1]
    if rows.common:
        paid = paid + together**2 / (1 - alone)
    # The scores before and after have a correlation of `shared`. Words differ in those before; the
    # rest is Delta's.
    shared, new = length**0.5 / 2, (1 - length / 4) ** 0.5
    if deviations:
        nodes, weights = gaussian_nodes(_SCATTER_NODES)
        of_word = _lowered(natural * shared * nodes - together, natural * new, cut)[1]
        scatter = n * (of_word - weights @ of_word) ** 2 @ weights
        # The square root has no slope where nothing is lowered.
        cheaper = deviations * scatter.clamp(min=torch.finfo(torch.float64).tiny).sqrt()
        paid = torch.relu(paid - cheaper)
    left, squares, _ = rectified(-together - cut, natural)
    total = n * left
    scores, law = gaussian_nodes(801, 8.0)
    old, *_ = rectified(math.sqrt(alone) * shared * scores, math.sqrt(alone) * new)
    rest = (natural * scores - together - cut).clamp(min=0)
    both = (rest * old) @ law / (total * (old @ law))
    retained = (squares / (n * left**2)).clamp(max=1)
    both = torch.minimum(both, (retained * before).sqrt())

    def change(t: Tensor) -> Tensor:
        itself = (t - together).clamp(min=0)
        p = itself / (total + itself)
        return p**2 * key + alone * ((1 - p) ** 2 * retained + before - 2 * (1 - p) * both)

    reach = math.sqrt(rows.d * float((length + key).detach()))
    return _self_row(rows, at, change, reach, _STEPPED, paid)


def _self_row(
    rows: Rows,
    at: Direction,
    change: Callable[[Tensor], Tensor],
    reach: float,
    count: int,
    lowering: Tensor | float = 0.0,
) -> ScoredRows:
    """Row i at the nodes of its score with itself, which follows Delta both as a query and as a
    key."""
    nodes, weights = gaussian_nodes(_NODES)
    length = 2 + 2 * at.c * rows.unshared
    key = length - rows.word**2
    z = (rows.d * at.rest) ** 0.5 * at.b * rows.word + (length * key) ** 0.5 * nodes
    ease = (length + key).reshape(1, 1)
    return ScoredRows(weights.unsqueeze(0), z.unsqueeze(0), ease, change, reach, count, lowering)


def _lowered_together(weight: float, deviation: Tensor, cut: Tensor) -> Tensor:
    """x = weight E min(max(a - x, 0), cut) of a Gaussian a: by Newton's method, which from 0
    rises to it, since the right side is convex in x > 0."""
    x = torch.zeros_like(cut)
    for _ in range(_NEWTON if weight else 0):
        lowered, _, between = _lowered(-x, deviation, cut)
        x = x + (weight * lowered - x) / (weight * between + 1)
    return x


def _lowered(mean: Tensor, deviation: Tensor, cut: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """E of min(max(a, 0), cut) and of its square, and P(0 < a < cut), a Gaussian."""
    first, second, positive = rectified(mean, deviation)
    over, squared, above = rectified(mean - cut, deviation)
    return first - over, second - squared - 2 * cut * over, positive - above


def rectified(mean: Tensor, deviation: Tensor | float) -> tuple[Tensor, Tensor, Tensor]:
    """E of max(a, 0) and of its square, and P(a > 0), a Gaussian."""
    standard = mean / deviation
    positive = torch.special.ndtr(standard)
    density = deviation * torch.exp(-(standard**2) / 2) / math.sqrt(2 * math.pi)
    first = mean * positive + density
    return first, mean * first + deviation**2 * positive, positive


def _shifts(cosine: float) -> tuple[Float[Tensor, " h"], Float[Tensor, " h"]]:
    """What all scores of a row share, sqrt(q) h, and the weights of these nodes."""
    nodes, law = gauss_hermite(_SHIFT_NODES if cosine else 1)
    return math.sqrt(cosine * (1 - cosine)) * nodes, law


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
    squares = apart.fill_diagonal_(0).square().sum()
    spread = float(d * squares / (alone.sum() ** 2 - (alone**2).sum()))
    root = vectors * values.clamp(min=0).sqrt()
    draws = torch.randn(_DRAWS, n, generator=generator(0, "scores of a text"), dtype=torch.float64)
    weights = torch.softmax(draws @ root.T, dim=1)
    outputs = weights @ gram
    cross = outputs.mean(dim=0)
    retained = float((outputs * weights).sum(dim=1).mean())
    groups = torch.stack(
        [part.mean() for part in loadings.sort().values.tensor_split(min(_LOADINGS, n))]
    )
    if float(groups.std()) < _ALIKE:
        groups = (1 - alone.mean()).sqrt().reshape(1)
    shared = tuple(groups.tolist())
    concentration = float(weight_moments(n, torch.exp, 0.0, 1 - float(groups.square().mean()))[0])
    order = cross.argsort()
    shares = [0.5, *((2 * k + 1) / (2 * _WORDS) for k in range(_WORDS))]
    picked = [int(order[min(n - 1, int(share * n))]) for share in shares]
    return tuple(
        Rows(n, d, shared, spread, retained, concentration, float(loadings[i]), float(cross[i]))
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
