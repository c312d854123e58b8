"""The word's own row where scores move by one to four and weights are exponentials over their sum.

New weights are E_l/Z with E_l = a_l e^(tau_l + q_l), Z their sum; tau_l = radius kappa_l . y, ‖y‖ <= 1. Along a unit
vector b the row's change times Z is at most sum_l (E_l - c a_l) beta_l + E_i radius, beta_l = x~_l . b, for any c. Both
y and b are relaxed as in `relaxation`, word by word (docs/theory/certificates-attention.md, "Exponential weights").
"""

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
_CHUNK_NUMBERS = 1 << 18  # of one array in the search: words that fit are searched together
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
    size = max(1, _CHUNK_NUMBERS // (_INTERVALS * len(text.rows) * (_CELLS // _STRIDE + 1)))
    bounds = [
        torch.stack([_head_bound(text, errors, float(twist[head]), *some, head) for head in range(text.heads)])
        for some in zip(words.split(size), radius.split(size), strict=True)
    ]
    return torch.linalg.vector_norm(torch.cat(bounds, dim=1), dim=0) * (1 + 1e-12)


def _head_bound(
    text: AttentionText,
    errors: RoundingErrors,
    twist: float,
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    head: int,
) -> Float[Tensor, " w"]:
    bounds = torch.full_like(radius, torch.inf)
    problem = _problem(text, errors, twist, words, radius, head)
    if len(problem.bounded):
        found = problem.bound(_searched(problem)).clamp(min=0).amax(dim=1)
        found = (found + problem.error) / radius[problem.bounded] * (1 + 1e-9)
        bounds[problem.bounded] = torch.where(found.isfinite(), found, torch.inf)
    return bounds


@dataclass(frozen=True)
class _Multipliers:
    """One row a word and interval of Z: lam, mu > 0 for y and b, the centres y' = sum alpha_l kappa_l,
    b' = sum gamma_l x~_l, and s, of Z."""

    lam: Float[Tensor, "w k"]
    mu: Float[Tensor, "w k"]
    alpha: Float[Tensor, "w k n"]
    gamma: Float[Tensor, "w k n"]
    s: Float[Tensor, "w k"]


@dataclass(frozen=True)
class _Problem:
    """The own rows of some words under one head.

    Attributes:
        bounded: (w,), places of the words that this bounds among those asked for: numbers of others are extreme.
        weights: (w, n), a.
        tau: (w, 1, n, nodes), from -radius ‖kappa_l‖ to radius ‖kappa_l‖; high, low: E at the nodes, q largest and
            smallest.
        moved, apart: (w, n, n), Gram matrices of radius kappa_l and of x~_l.
        hold, pin: (w, 1, n), p and k with sum p_l tau_l² <= ‖y‖² and sum k_l beta_l² <= ‖b‖², verified.
        caps: (w, 1, n), ‖x~_l‖.
        least, most: (w, k), ends of the intervals of Z.
        mine: (w, 1, n), the radius at the word itself, 0 elsewhere.
        error: (w,), what the bound may be too small by, but for rounding in its own evaluation.
    """

    bounded: Int[Tensor, " w"]
    weights: Float[Tensor, "w 1 n"]
    tau: Float[Tensor, "w 1 n nodes"]
    high: Float[Tensor, "w 1 n nodes"]
    low: Float[Tensor, "w 1 n nodes"]
    moved: Float[Tensor, "w n n"]
    apart: Float[Tensor, "w n n"]
    hold: Float[Tensor, "w 1 n"]
    pin: Float[Tensor, "w 1 n"]
    caps: Float[Tensor, "w 1 n"]
    least: Float[Tensor, "w k"]
    most: Float[Tensor, "w k"]
    mine: Float[Tensor, "w 1 n"]
    error: Float[Tensor, " w"]
    roundings: float

    @property
    def centres(self) -> Float[Tensor, "w k 1"]:
        """c."""
        return (self.least * self.most).sqrt().unsqueeze(-1)

    def bound(self, by: _Multipliers) -> Float[Tensor, "w k"]:
        """Of the change where Z is in each interval, rounded outward."""
        ends = [self._values(by, weights, self.tau) for weights in (self.high, self.low)]
        rows = torch.maximum(*(values for values, _ in ends))
        widths = (self.tau[..., 1:] - self.tau[..., :-1]).square() / 8
        # Convex in E, and E within `sag` below its chord: that costs at most the slope where the slope is negative.
        sag = self.high[..., 1:] * widths
        slopes = ends[1][1][..., :-1] + self._pull(by).unsqueeze(-1)
        cells = (
            torch.maximum(rows[..., 1:], rows[..., :-1]) + 2 * (by.lam.unsqueeze(-1) * self.hold).unsqueeze(-1) * widths
        )
        total = (cells + (-slopes).clamp(min=0) * sag).amax(dim=-1).sum(dim=-1) + self._outside(by)
        total = total + self.roundings * self._size(by)
        quotient = torch.where(total >= 0, total / self.least, total / self.most) - by.s
        return quotient + self.roundings * by.s.abs()

    def smoothed(self, by: _Multipliers, nodes: Tensor, high: Tensor, low: Tensor) -> Float[Tensor, "w k"]:
        """The bound that some nodes alone give; gradients flow through the largest ones."""
        with torch.no_grad():
            values = torch.stack([self._values(by, weights, nodes)[0] for weights in (high, low)], dim=-1)
            picked = values.flatten(start_dim=-2).argmax(dim=-1, keepdim=True)
            both = torch.stack([high, low], dim=-1).flatten(start_dim=-2).expand(-1, picked.shape[1], -1, -1)
            tau = nodes.repeat_interleave(2, dim=-1).expand(-1, picked.shape[1], -1, -1)
            weights, tau = both.gather(-1, picked), tau.gather(-1, picked)
        total = self._values(by, weights, tau)[0].sum(dim=(-2, -1)) + self._outside(by)
        return torch.where(total >= 0, total / self.least, total / self.most) - by.s

    def _pull(self, by: _Multipliers) -> Float[Tensor, "w k n"]:
        """The worth of a unit of E_l beside beta_l."""
        return by.s.unsqueeze(-1) + self.mine

    def _values(self, by: _Multipliers, weights: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
        """Each word's term at some E and tau, the best beta taken, and that beta."""
        lam, mu = by.lam[..., None, None], by.mu[..., None, None]
        drawn, turned = (by.alpha @ self.moved).unsqueeze(-1), (by.gamma @ self.apart).unsqueeze(-1)
        slope = weights - (self.centres * self.weights + 2 * by.mu.unsqueeze(-1) * by.gamma).unsqueeze(-1)
        pin, caps = self.pin.unsqueeze(-1), self.caps.unsqueeze(-1)
        beta = torch.maximum(torch.minimum(turned + slope / (2 * mu * pin), caps), -caps)
        value = slope * beta - mu * pin * (beta - turned).square() + self._pull(by).unsqueeze(-1) * weights
        held = 2 * by.alpha.unsqueeze(-1) * tau + self.hold.unsqueeze(-1) * (tau - drawn).square()
        return value - lam * held, beta

    def _outside(self, by: _Multipliers) -> Float[Tensor, "w k"]:
        drawn = ((by.alpha @ self.moved) * by.alpha).sum(dim=-1)
        turned = ((by.gamma @ self.apart) * by.gamma).sum(dim=-1)
        return by.lam * (1 + drawn) + by.mu * (1 + turned)

    def _size(self, by: _Multipliers) -> Float[Tensor, "w k"]:
        """Bounds the sum of the absolute values of all terms: p_l tau_l² and k_l beta_l² are at most 1."""
        drawn = (by.alpha.abs() * self.moved.diagonal(dim1=1, dim2=2).sqrt().unsqueeze(1)).sum(dim=-1)
        turned = (by.gamma.abs() * self.apart.diagonal(dim1=1, dim2=2).sqrt().unsqueeze(1)).sum(dim=-1)
        grown = self.high[..., -1] + self.most.unsqueeze(-1) * self.weights
        rows = (grown * (self.caps + self._pull(by).abs())).sum(dim=-1)
        return rows + 4 * self.weights.shape[-1] * (by.lam * (1 + drawn).square() + by.mu * (1 + turned).square())


def _problem(
    text: AttentionText,
    errors: RoundingErrors,
    twist: float,
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    head: int,
) -> _Problem:
    n, d = text.rows.shape
    slack = rounding(8 * (n + d) + 400)
    keys = text.keys[n * head : n * (head + 1)]
    weights = torch.softmax(text.scores[words + n * head], dim=1)
    moves, caps, loose = (torch.empty_like(weights), torch.empty_like(weights), torch.empty_like(radius))
    grams, uncancelled = [], torch.empty_like(radius)
    for at, word in enumerate(words.tolist()):
        own = keys.clone()
        own[word] += text.rows[word] @ text.matrices[head]
        longest = float(torch.linalg.vector_norm(own, dim=1).amax())
        own -= weights[at] @ own
        apart = text.rows - text.outputs[word + n * head]
        moves[at] = radius[at] * torch.linalg.vector_norm(own, dim=1) * (1 + slack)
        caps[at] = torch.linalg.vector_norm(apart, dim=1) * (1 + slack)
        # What rounding may do to any exponent: the score, the weight, and the move.
        key_error = 4 * float(errors.key[n * head : n * (head + 1)].amax()) + slack * longest
        loose[at] = 8 * float(errors.score[word + n * head]) + slack + 4 * float(radius[at]) * key_error
        uncancelled[at] = torch.linalg.vector_norm(weights[at] @ apart) + slack * n * errors.longest
        grams.append((radius[at].square() * (own @ own.T), apart @ apart.T))
    turn = twist * radius.square() + loose
    largest = moves.amax(dim=1) + turn
    usable = (loose < _LOOSEST) & (largest > _LEAST_MOVE) & (largest < _LARGEST_MOVE)
    bounded = (usable & (caps.amin(dim=1) > 0) & (moves.amin(dim=1) > 0)).nonzero().squeeze(1)
    words, radius, weights, moves, caps, loose, turn, uncancelled = (
        array[bounded] for array in (words, radius, weights, moves, caps, loose, turn, uncancelled)
    )
    if not len(bounded):
        moved = gram = weights.new_empty(0, n, n)
    else:
        moved, gram = (torch.stack([grams[at][k] for at in bounded.tolist()]) for k in (0, 1))
    tau = moves.unsqueeze(-1) * torch.linspace(-1, 1, _CELLS + 1, dtype=moves.dtype, device=moves.device)
    here = torch.nn.functional.one_hot(words, n).to(moves.dtype)
    turns = (here * turn.unsqueeze(1)).unsqueeze(-1)
    high, low = (weights.unsqueeze(-1) * torch.exp(tau + sign * turns) for sign in (1, -1))
    # sum_l a_l tau_l = 0 but for rounding, so Z is at least e^(-a_i q) by Jensen.
    least = -(weights * here).sum(dim=1) * turn - 10 * loose - 1e-6
    most = torch.log(high[..., -1].sum(dim=1)) + 1e-6
    places = torch.linspace(0, 1, _INTERVALS + 1, dtype=moves.dtype, device=moves.device)
    ends = (least.unsqueeze(1) + (most - least).unsqueeze(1) * places).exp()
    # Other exponents: each weight times a number between e^(-2 loose) and e^(2 loose); another old output, whose
    # weights do not quite cancel the x~_l.
    output = errors.output[words + n * head] + slack * errors.longest
    off = 4 * loose * (caps.amax(dim=1) + radius) + output if len(bounded) else loose
    shares = weights.clamp(min=1e-30) ** _SHARE
    return _Problem(
        bounded=bounded,
        weights=weights.unsqueeze(1),
        tau=tau.unsqueeze(1),
        high=high.unsqueeze(1),
        low=low.unsqueeze(1),
        moved=moved,
        apart=gram,
        hold=_minorants(moved, shares, d).unsqueeze(1),
        pin=_minorants(gram, shares, d).unsqueeze(1),
        caps=caps.unsqueeze(1),
        least=ends[:, :-1] * (1 - 1e-12),
        most=ends[:, 1:] * (1 + 1e-12),
        mine=(here * (radius * (1 + 1e-12)).unsqueeze(1)).unsqueeze(1),
        error=off + uncancelled * (ends[:, 1] / ends[:, 0]) * (1 + 1e-9),
        roundings=slack,
    )


def _minorants(grams: Float[Tensor, "w n n"], shares: Float[Tensor, "w n"], inner: int) -> Float[Tensor, "w n"]:
    """Each word's k, in the shares' proportions, with sum k_l (v_l . y)² <= ‖y‖² for the vectors of its Gram matrix."""
    scales = [
        gram_norm_bound(root.unsqueeze(1) * gram * root, inner=inner + 16)
        for gram, root in zip(grams, shares.sqrt(), strict=True)
    ]
    return shares / (shares.new_tensor(scales).unsqueeze(1) * (1 + 1e-12))


def _searched(problem: _Problem) -> _Multipliers:
    """Good multipliers, by Adam, for all words at once; any are valid."""
    (words, count), n = problem.least.shape, problem.weights.shape[-1]
    unit = (problem.caps * (problem.high[..., -1] - problem.weights)).amax(dim=-1) / 4
    alphas, gammas = (
        (0.3 / gram.diagonal(dim1=1, dim2=2).mean(dim=1).sqrt()).view(-1, 1, 1)
        for gram in (problem.moved, problem.apart)
    )
    sizes = [(words, count), (words, count), (words, count, n), (words, count, n), (words, count)]
    free = [problem.weights.new_zeros(size).requires_grad_() for size in sizes]

    def multipliers(raw: list[Tensor]) -> _Multipliers:
        lam, mu, alpha, gamma, s = raw
        return _Multipliers(unit * lam.exp(), unit * mu.exp(), alpha * alphas, gamma * gammas, unit * s)

    picked = [array[..., ::_STRIDE] for array in (problem.tau, problem.high, problem.low)]
    best, least = [tensor.detach().clone() for tensor in free], torch.full_like(problem.least, torch.inf)
    optimizer = torch.optim.Adam(free)
    with torch.enable_grad():
        for step in range(_STEPS):
            optimizer.param_groups[0]["lr"] = _LONGEST * (1 - step / _STEPS) + _SHORTEST
            value = problem.smoothed(multipliers(free), *picked)
            better = value.detach() < least
            least = torch.where(better, value.detach(), least)
            best = [
                torch.where(better if old.dim() == 2 else better.unsqueeze(-1), new.detach(), old)
                for old, new in zip(best, free, strict=True)
            ]
            optimizer.zero_grad()
            (value / unit).sum().backward()
            optimizer.step()
    return multipliers(best)
