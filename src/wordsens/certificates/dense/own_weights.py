"""The word's own row where scores move by one to four and weights are exponentials over their sum.

New weights are E_l/Z with E_l = a_l e^(tau_l + q_l), Z their sum; tau_l = radius kappa_l . y, ‖y‖ <= 1. Along a unit
vector b the row's change times Z is at most sum_l (E_l - c a_l) beta_l + E_i radius, beta_l = x~_l . b, for any c. Both
y and b are relaxed as in `relaxation`, word by word (docs/theory/certificates-attention.md, "Exponential weights").
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.certificates.attention.rounding import RoundingErrors
from wordsens.certificates.attention.text import AttentionText
from wordsens.certificates.verified import gram_norm_bound, rounding
from wordsens.maps.attention.scores import Expanded, offered

_CELLS, _STRIDE = 48, 4  # of a score's range; the search for multipliers looks at every fourth node
_INTERVALS = 8  # of log Z
_SHARE = 0.7  # of each word in what y and b can do: its weight to this power; .5 leaves the bound up to 5 % wider
_STEPS = 120
_LONGEST, _SHORTEST = 0.2, 0.003  # steps of Adam, in units of the multipliers' sizes
_LEAST_MOVE, _LARGEST_MOVE = 1e-3, 20.0  # below, an expansion is exact enough; above, every weight can become 1
_LOOSEST = 1e-7  # rounding errors of the scores that the constants allow for
_LARGEST_WEIGHT = 0.93  # where a weight can exceed it, likewise: at half of sqrt(d) nothing was gained


def may_gain(text: AttentionText, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Bool[Tensor, " w"]:
    """True where `own_weights_bound` may say more than that rows are means: under no head can a weight come near 1."""
    score, n = offered(text.score, Expanded), len(text.rows)
    gains = torch.full_like(radius, score is not None and score.exponential).bool()
    if not bool(gains.any()):
        return gains
    for head in range(text.heads):
        weights = torch.softmax(text.scores[words + n * head], dim=1)
        keys = text.keys[n * head : n * (head + 1)]
        gram = keys @ keys.T
        drawn = weights @ gram
        speeds = (gram.diagonal() - 2 * drawn + (drawn * weights).sum(dim=1, keepdim=True)).clamp(min=0).sqrt()
        odds = weights.log() - torch.log1p(-weights)
        most = torch.sigmoid(odds + radius.unsqueeze(1) * speeds / (1 - weights)).amax(dim=1)
        gains &= most < _LARGEST_WEIGHT
    return gains


def own_weights_bound(
    text: AttentionText,
    errors: RoundingErrors,
    twist: Float[Tensor, " heads"],
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
) -> Float[Tensor, " w"]:
    """Of the change of the words' own rows over all heads, in units of the radius; infinite where numbers are extreme.

    Only for exponential scores. `twist` bounds |Delta^T W Delta| / (scale ‖Delta‖²) for each head.
    """
    bounds = [
        [_head_bound(text, errors, float(twist[head]), int(word), float(reach), head) for head in range(text.heads)]
        for word, reach in zip(words, radius, strict=True)
    ]
    return torch.tensor(bounds, dtype=radius.dtype, device=radius.device).norm(dim=1) * (1 + 1e-12)


def _head_bound(
    text: AttentionText, errors: RoundingErrors, twist: float, word: int, radius: float, head: int
) -> float:
    problem = _problem(text, errors, twist, word, radius, head)
    if problem is None:
        return torch.inf
    found = float(problem.bound(_searched(problem)).clamp(min=0).amax())
    return (found + problem.error) / radius * (1 + 1e-9) if math.isfinite(found) else torch.inf


@dataclass(frozen=True)
class _Multipliers:
    """One row an interval of Z: lam, mu > 0 for y and b, the centres y' = sum alpha_l kappa_l, b' = sum gamma_l x~_l,
    and s, of Z."""

    lam: Float[Tensor, " k"]
    mu: Float[Tensor, " k"]
    alpha: Float[Tensor, "k n"]
    gamma: Float[Tensor, "k n"]
    s: Float[Tensor, " k"]


@dataclass(frozen=True)
class _Problem:
    """One word's own row under one head.

    Attributes:
        weights: (n,), a.
        tau: (n, nodes), from -radius ‖kappa_l‖ to radius ‖kappa_l‖; high, low: E at the nodes, q largest and smallest.
        moved, apart: (n, n), Gram matrices of radius kappa_l and of x~_l.
        hold, pin: (n,), p and k with sum p_l tau_l² <= ‖y‖² and sum k_l beta_l² <= ‖b‖², verified.
        caps: (n,), ‖x~_l‖.
        least, most: (k,), ends of the intervals of Z.
        error: what the bound may be too small by, but for rounding in its own evaluation.
    """

    weights: Float[Tensor, " n"]
    tau: Float[Tensor, "n nodes"]
    high: Float[Tensor, "n nodes"]
    low: Float[Tensor, "n nodes"]
    moved: Float[Tensor, "n n"]
    apart: Float[Tensor, "n n"]
    hold: Float[Tensor, " n"]
    pin: Float[Tensor, " n"]
    caps: Float[Tensor, " n"]
    least: Float[Tensor, " k"]
    most: Float[Tensor, " k"]
    word: int
    radius: float
    error: float
    roundings: float

    @property
    def centres(self) -> Float[Tensor, "k 1"]:
        """c."""
        return (self.least * self.most).sqrt().unsqueeze(1)

    def bound(self, by: _Multipliers) -> Float[Tensor, " k"]:
        """Of the change where Z is in each interval, rounded outward."""
        ends = [self._values(by, weights, self.tau) for weights in (self.high, self.low)]
        rows = torch.maximum(*(values for values, _ in ends))
        widths = (self.tau[:, 1:] - self.tau[:, :-1]).square() / 8
        # Convex in E, and E within `sag` below its chord: that costs at most the slope where the slope is negative.
        sag = self.high[:, 1:] * widths
        slopes = ends[1][1][..., :-1] + self._pull(by).unsqueeze(-1)
        cells = torch.maximum(rows[..., 1:], rows[..., :-1]) + 2 * (by.lam.unsqueeze(1) * self.hold)[..., None] * widths
        total = (cells + (-slopes).clamp(min=0) * sag).amax(dim=-1).sum(dim=1) + self._outside(by)
        total = total + self.roundings * self._size(by)
        quotient = torch.where(total >= 0, total / self.least, total / self.most) - by.s
        return quotient + self.roundings * by.s.abs()

    def smoothed(self, by: _Multipliers, nodes: Tensor, high: Tensor, low: Tensor) -> Float[Tensor, " k"]:
        """The bound that some nodes alone give; gradients flow through the largest ones."""
        with torch.no_grad():
            values = torch.stack([self._values(by, weights, nodes)[0] for weights in (high, low)], dim=-1)
            picked = values.flatten(start_dim=-2).argmax(dim=-1, keepdim=True)
            both = torch.stack([high, low], dim=-1).flatten(start_dim=-2).expand(len(picked), -1, -1)
            tau = nodes.repeat_interleave(2, dim=-1).expand(len(picked), -1, -1)
            weights, tau = both.gather(2, picked), tau.gather(2, picked)
        total = self._values(by, weights, tau)[0].sum(dim=(1, 2)) + self._outside(by)
        return torch.where(total >= 0, total / self.least, total / self.most) - by.s

    def _pull(self, by: _Multipliers) -> Float[Tensor, "k n"]:
        """The worth of a unit of E_l beside beta_l."""
        mine = torch.zeros_like(by.alpha)
        mine[:, self.word] = self.radius
        return by.s.unsqueeze(1) + mine

    def _values(self, by: _Multipliers, weights: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
        """Each word's term at some E and tau, the best beta taken, and that beta."""
        lam, mu = by.lam[:, None, None], by.mu[:, None, None]
        drawn, turned = (by.alpha @ self.moved).unsqueeze(-1), (by.gamma @ self.apart).unsqueeze(-1)
        slope = weights - (self.centres * self.weights + 2 * by.mu.unsqueeze(1) * by.gamma).unsqueeze(-1)
        pin, caps = self.pin.unsqueeze(-1), self.caps.unsqueeze(-1)
        beta = torch.maximum(torch.minimum(turned + slope / (2 * mu * pin), caps), -caps)
        value = slope * beta - mu * pin * (beta - turned).square() + self._pull(by).unsqueeze(-1) * weights
        held = 2 * by.alpha.unsqueeze(-1) * tau + self.hold.unsqueeze(-1) * (tau - drawn).square()
        return value - lam * held, beta

    def _outside(self, by: _Multipliers) -> Float[Tensor, " k"]:
        drawn = ((by.alpha @ self.moved) * by.alpha).sum(dim=1)
        turned = ((by.gamma @ self.apart) * by.gamma).sum(dim=1)
        return by.lam * (1 + drawn) + by.mu * (1 + turned)

    def _size(self, by: _Multipliers) -> Float[Tensor, " k"]:
        """Bounds the sum of the absolute values of all terms: p_l tau_l² and k_l beta_l² are at most 1."""
        drawn = by.alpha.abs() @ self.moved.diagonal().sqrt()
        turned = by.gamma.abs() @ self.apart.diagonal().sqrt()
        grown = self.high[:, -1] + self.most.unsqueeze(1) * self.weights
        rows = (grown * (self.caps + self._pull(by).abs())).sum(dim=1)
        return rows + 4 * len(self.weights) * (by.lam * (1 + drawn).square() + by.mu * (1 + turned).square())


def _problem(
    text: AttentionText, errors: RoundingErrors, twist: float, word: int, radius: float, head: int
) -> _Problem | None:
    n, d = text.rows.shape
    row = word + n * head
    scores, outputs = text.scores[row], text.outputs[row]
    weights = torch.softmax(scores, dim=0)
    keys = text.keys[n * head : n * (head + 1)].clone()
    keys[word] += text.rows[word] @ text.matrices[head]
    slack = rounding(8 * (n + d) + 400)
    longest_key = float(torch.linalg.vector_norm(keys, dim=1).amax())
    keys = keys - weights @ keys
    apart = text.rows - outputs
    moves = radius * torch.linalg.vector_norm(keys, dim=1) * (1 + slack)
    caps = torch.linalg.vector_norm(apart, dim=1) * (1 + slack)
    # What rounding may do to any exponent: the score, the weight, and the move.
    key_error = 4 * float(errors.key[n * head : n * (head + 1)].amax()) + slack * longest_key
    loose = 8 * float(errors.score[row]) + slack + 4 * radius * key_error
    turn = twist * radius * radius + loose
    largest = float(moves.amax()) + turn
    if not (
        loose < _LOOSEST
        and _LEAST_MOVE < largest < _LARGEST_MOVE
        and float(caps.amin()) > 0
        and float(moves.amin()) > 0
    ):
        return None
    moved = radius * radius * (keys @ keys.T)
    gram = apart @ apart.T
    tau = moves.unsqueeze(1) * torch.linspace(-1, 1, _CELLS + 1, dtype=moves.dtype, device=moves.device)
    turns = torch.zeros_like(moves)
    turns[word] = turn
    high, low = (weights.unsqueeze(1) * torch.exp(tau + sign * turns.unsqueeze(1)) for sign in (1, -1))
    # sum_l a_l tau_l = 0 but for rounding, so Z is at least e^(-a_i q) by Jensen.
    least = float(-weights[word] * turn - 10 * loose - 1e-6)
    most = float(torch.log(high[:, -1].sum())) + 1e-6
    ends = torch.linspace(least, most, _INTERVALS + 1, dtype=moves.dtype, device=moves.device).exp()
    # Other exponents: each weight times a number between e^(-2 loose) and e^(2 loose); another old output, whose
    # weights do not quite cancel the x~_l.
    off = 4 * loose * (float(caps.amax()) + radius) + float(errors.output[row]) + slack * errors.longest
    uncancelled = torch.linalg.vector_norm(weights @ apart) + slack * n * errors.longest
    error = off + float(uncancelled) * float(ends[1] / ends[0]) * (1 + 1e-9)
    shares = weights.clamp(min=1e-30) ** _SHARE
    return _Problem(
        weights=weights,
        tau=tau,
        high=high,
        low=low,
        moved=moved,
        apart=gram,
        hold=_minorant(moved, shares, d),
        pin=_minorant(gram, shares, d),
        caps=caps,
        least=ends[:-1] * (1 - 1e-12),
        most=ends[1:] * (1 + 1e-12),
        word=word,
        radius=radius * (1 + 1e-12),
        error=error,
        roundings=slack,
    )


def _minorant(gram: Float[Tensor, "n n"], shares: Float[Tensor, " n"], inner: int) -> Float[Tensor, " n"]:
    """k, in proportion to the shares, with sum k_l (v_l . y)² <= ‖y‖² for the vectors of the Gram matrix."""
    root = shares.sqrt()
    return shares / (gram_norm_bound(root.unsqueeze(1) * gram * root, inner=inner + 16) * (1 + 1e-12))


def _searched(problem: _Problem) -> _Multipliers:
    """Good multipliers, by Adam; any are valid."""
    count, n = len(problem.least), len(problem.weights)
    unit = float((problem.caps * (problem.high[:, -1] - problem.weights)).amax()) / 4
    alphas, gammas = (0.3 / gram.diagonal().mean().sqrt() for gram in (problem.moved, problem.apart))
    like = problem.weights
    free = [like.new_zeros(count), like.new_zeros(count), like.new_zeros(count, n), like.new_zeros(count, n)]
    free = [tensor.requires_grad_() for tensor in (*free, like.new_zeros(count))]

    def multipliers(raw: list[Tensor]) -> _Multipliers:
        lam, mu, alpha, gamma, s = raw
        return _Multipliers(unit * lam.exp(), unit * mu.exp(), alpha * alphas, gamma * gammas, unit * s)

    picked = [array[:, ::_STRIDE] for array in (problem.tau, problem.high, problem.low)]
    best, least = [tensor.detach().clone() for tensor in free], torch.full_like(problem.least, torch.inf)
    optimizer = torch.optim.Adam(free)
    with torch.enable_grad():
        for step in range(_STEPS):
            optimizer.param_groups[0]["lr"] = _LONGEST * (1 - step / _STEPS) + _SHORTEST
            value = problem.smoothed(multipliers(free), *picked)
            better = value.detach() < least
            least = torch.where(better, value.detach(), least)
            best = [
                torch.where(better if old.dim() == 1 else better.unsqueeze(1), new.detach(), old)
                for old, new in zip(best, free, strict=True)
            ]
            optimizer.zero_grad()
            (value.sum() / unit).backward()
            optimizer.step()
    return multipliers(best)
