"""Row i under unnormalized scores, each weight tabulated over the range of its score.

The weights after the change are E_l, a monotone function of tau_l = radius kappa_l . y. Along a unit vector b the row's
change is at most sum_l (E_l - a_l) beta_l + E_i radius y . b with beta_l = x_l . b. The Lagrangian of the constraints
on y and b gives an upper bound for any multipliers ("Tabulated weights" of docs/theory/certificates-attention.md).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.certificates.attention.text import AttentionText, RoundingErrors
from wordsens.certificates.base import gram_norm_bound, rounding
from wordsens.maps.attention.scores import Tabulated
from wordsens.maps.attention.scores.bounds import CELLS, STRIDE, RowMoves, WeightTable

_MOST_SHARED, _SHARED_STEPS = 0.9, 6  # of nu; verified at each step, and nothing of hold and pin is left at the last
_SHARE = 0.7  # of each word in what y and b can do: its weight's secant to this power
_LEAST_SHARE = 1e-20  # of words that cannot get a weight
_LEAST_SQUARE = 1e-250  # of a score's move, and its inverse the largest: nothing overflows
_CHUNK_NUMBERS = 1 << 18  # of one array in the search: words that fit are searched together
_STEPS, _LONGEST, _SHORTEST = 120, 0.2, 0.003  # of Adam, in units of the multipliers' sizes


def self_table_bound(
    text: AttentionText,
    score: Tabulated,
    errors: RoundingErrors,
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
) -> Float[Tensor, " w"]:
    """Upper bounds of the change of row i over all heads, for each word i, in units of the radius.

    Infinite where moves are so large that a table gains nothing, and where numbers are extreme.
    """
    bounds = torch.full_like(radius, torch.inf)
    n = len(text.rows)
    gains = torch.ones_like(radius, dtype=torch.bool)
    for head in range(text.heads):
        speeds = torch.linalg.vector_norm(text.keys[n * head : n * (head + 1)], dim=1)
        gains &= score.table_gains(text.scores[words + n * head], radius.unsqueeze(1) * speeds)
    for chosen in gains.nonzero().squeeze(1).split(max(1, _CHUNK_NUMBERS // (n * (CELLS // STRIDE + 1)))):
        if len(chosen):
            heads = [_of_head(text, score, errors, head, words[chosen], radius[chosen]) for head in range(text.heads)]
            bounds[chosen] = torch.linalg.vector_norm(torch.stack(heads), dim=0) * (1 + 1e-12)
    return bounds


def _of_head(
    text: AttentionText,
    score: Tabulated,
    errors: RoundingErrors,
    head: int,
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
) -> Float[Tensor, " w"]:
    """The bounds under one head."""
    n = len(text.rows)
    row, slack = words + n * head, rounding(8 * (sum(text.rows.shape) + text.values.shape[1]) + 400)
    here = torch.nn.functional.one_hot(words, n).to(radius.dtype)
    scores, keys = text.scores[row], text.keys[n * head : n * (head + 1)]
    kappa = keys + here.unsqueeze(2) * text.queries[row].unsqueeze(1)
    lengths = torch.linalg.vector_norm(kappa, dim=2)
    moves = radius.unsqueeze(1) * lengths * (1 + slack)
    # A bound of the rounding error of any score and of its move.
    error = (
        8 * errors.score[row]
        + slack * (scores.masked_fill(text.hidden[row], 0.0).abs() + moves).amax(dim=1)
        + 4 * radius * (4 * errors.key[n * head : n * (head + 1)].amax() + slack * lengths.amax(dim=1))
    )
    turns = here * (float(text.twist[head]) * radius.square() + error).unsqueeze(1)
    table = score.table(RowMoves(scores, moves, turns, error.unsqueeze(1)))
    caps = torch.linalg.vector_norm(text.values, dim=1) * (1 + slack) + 2 * text.value_error
    squares = moves.square()
    ordinary = (squares.amin(dim=1) > _LEAST_SQUARE) & (squares.amax(dim=1) < 1 / _LEAST_SQUARE)
    ordinary &= table.off.isfinite() & table.high[..., -1].isfinite().all(dim=1) & (caps.amin() > 0)
    bounds = torch.full_like(radius, torch.inf)
    if bool(ordinary.any()):
        kappa = (radius.view(-1, 1, 1) * kappa)[ordinary]
        problem = _lagrangian(text, table.of(ordinary), kappa, caps, (here * radius.unsqueeze(1))[ordinary], slack)
        value = problem.bound(_search(problem)).clamp(min=0)
        off = table.off[ordinary] * (caps.amax() + radius[ordinary])
        bounds[ordinary] = ((value + off) / radius[ordinary] * (1 + 1e-9)).nan_to_num(torch.inf)
    return bounds


@dataclass(frozen=True)
class _Multipliers:
    """One row a word: lam, mu > 0 for y and b, alpha and gamma for the centres y' and b', and nu in
    [0, `_MOST_SHARED`], the share of what y and b cost that is spent on y . b. Any values give a valid bound."""

    lam: Float[Tensor, " w"]
    mu: Float[Tensor, " w"]
    alpha: Float[Tensor, "w n"]
    gamma: Float[Tensor, "w n"]
    nu: Float[Tensor, " w"]

    @property
    def shared(self) -> Float[Tensor, "w 1"]:
        """nu (lam mu)^(1/2), the cost of y . b."""
        return (self.nu * (self.lam * self.mu).sqrt()).unsqueeze(-1)


@dataclass(frozen=True)
class _Lagrangian:
    """Row i of some words i under one head.

    Attributes:
        table: of the weights.
        one_space: whether y and b are in one space; with a value matrix they are not, and nu is 0.
        moved, apart, mixed: Gram matrices of radius kappa_l and of x_l, and of the first by the second.
        remaining: (w, steps + 1), shares of hold and pin that are valid beside nu = 0 to `_MOST_SHARED`; concave in nu.
        hold, pin: (w, n), with sum hold_l tau_l² <= ‖y‖² and sum pin_l beta_l² <= ‖b‖², verified.
        caps: (n,), ‖x_l‖.
        itself: (w, n), the radius at the word itself, 0 elsewhere.
        roundings: gamma of the operations that make up a bound.
    """

    table: WeightTable
    one_space: bool
    moved: Float[Tensor, "w n n"]
    apart: Float[Tensor, "n n"]
    mixed: Float[Tensor, "w n n"]
    remaining: Float[Tensor, "w g"]
    hold: Float[Tensor, "w n"]
    pin: Float[Tensor, "w n"]
    caps: Float[Tensor, " n"]
    itself: Float[Tensor, "w n"]
    roundings: float

    def bound(self, by: _Multipliers) -> Float[Tensor, " w"]:
        """An upper bound of the change, rounded outward."""
        tau = self.table.tau
        (most, steepest), (least, flattest) = (self._values(by, row, tau) for row in (self.table.high, self.table.low))
        rows = torch.maximum(most, least)
        cells = torch.maximum(rows[..., 1:], rows[..., :-1])
        cells = cells + (by.lam.unsqueeze(-1) * self.hold).unsqueeze(-1) * (tau[..., 1:] - tau[..., :-1]).square() / 4
        # Convex in E, and E not far from its chord: that costs at most the slope in E at the end of E on that side.
        cells = cells + (-flattest[..., :-1]).clamp(min=0) * self.table.below
        cells = cells + steepest[..., 1:].clamp(min=0) * self.table.above
        return cells.amax(dim=-1).sum(dim=-1) + self._outside(by) + self.roundings * self._size(by)

    def at_nodes(self, by: _Multipliers) -> Float[Tensor, " w"]:
        """The bound that some nodes alone give; gradients flow through the largest ones."""
        tau, high, low = (row[..., ::STRIDE] for row in (self.table.tau, self.table.high, self.table.low))
        with torch.no_grad():
            values = torch.stack([self._values(by, weights, tau)[0] for weights in (high, low)], dim=-1)
            picked = values.flatten(start_dim=-2).argmax(dim=-1, keepdim=True)
        weights = torch.stack([high, low], dim=-1).flatten(start_dim=-2).gather(-1, picked)
        tau = tau.repeat_interleave(2, dim=-1).gather(-1, picked)
        return self._values(by, weights, tau)[0].sum(dim=(-2, -1)) + self._outside(by)

    def _share(self, by: _Multipliers) -> Float[Tensor, "w 1"]:
        """The share of hold and pin that remains beside nu: on the chord, which verified conditions allow."""
        steps = self.remaining.shape[1] - 1
        place = (by.nu * (steps / _MOST_SHARED)).unsqueeze(1)
        low = place.detach().nan_to_num(0.0).floor().clamp(0, steps - 1).long()  # not a number: not a bound
        left, right = self.remaining.gather(1, low), self.remaining.gather(1, low + 1)
        return left + (right - left) * (place - low)

    def _centre(self, by: _Multipliers) -> tuple[Float[Tensor, "w n"], Float[Tensor, "w n"], Float[Tensor, " w"]]:
        """tau', beta', and what the centre costs."""
        lam, mu, shared = by.lam.unsqueeze(-1), by.mu.unsqueeze(-1), by.shared
        pushed, pulled = (lam * by.alpha).unsqueeze(1), (mu * by.gamma).unsqueeze(1)
        left = lam * mu - shared.square()
        tau = (mu * (pushed @ self.moved).squeeze(1) + shared * (pulled @ self.mixed.mT).squeeze(1)) / left
        beta = (lam * (pulled @ self.apart).squeeze(1) + shared * (pushed @ self.mixed).squeeze(1)) / left
        return tau, beta, (pushed.squeeze(1) * tau).sum(dim=-1) + (pulled.squeeze(1) * beta).sum(dim=-1)

    def _values(self, by: _Multipliers, weights: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
        """Each word's term at some E and tau, the best beta taken, and its slope in E."""
        lam, mu, share = by.lam[:, None, None], by.mu[:, None, None], self._share(by).unsqueeze(-1)
        drawn, turned, _ = (part.unsqueeze(-1) for part in self._centre(by))
        slope = weights - self.table.before.unsqueeze(-1) - 2 * mu * by.gamma.unsqueeze(-1)
        pin, caps, itself = share * self.pin.unsqueeze(-1), self.caps.unsqueeze(-1), self.itself.unsqueeze(-1)
        beta = torch.maximum(torch.minimum(turned + slope / (2 * mu * pin), caps), -caps)
        along = itself * weights - 2 * by.shared.unsqueeze(-1) * (itself > 0)
        cost = 2 * by.alpha.unsqueeze(-1) * tau + share * self.hold.unsqueeze(-1) * (tau - drawn).square()
        value = slope * beta - mu * pin * (beta - turned).square() + along.abs() - lam * cost
        return value, beta + itself * along.sign()

    def _outside(self, by: _Multipliers) -> Float[Tensor, " w"]:
        return by.lam + by.mu + self._centre(by)[2]

    def _size(self, by: _Multipliers) -> Float[Tensor, " w"]:
        """Bounds the sum of the absolute values of all terms: hold_l tau_l² and pin_l beta_l² are at most 1."""
        drawn = (by.alpha.abs() * self.moved.diagonal(dim1=1, dim2=2).sqrt()).sum(dim=-1) * by.lam.sqrt()
        turned = (by.gamma.abs() * self.apart.diagonal().sqrt()).sum(dim=-1) * by.mu.sqrt()
        centre = (by.lam + by.mu).sqrt() + (drawn + turned) / (1 - by.nu.square())
        rows = ((self.table.size + self.table.before) * (self.caps + self.itself)).sum(dim=-1)
        return rows + 8 * len(self.caps) * centre.square() / (1 - by.nu.square())


def _lagrangian(
    text: AttentionText,
    table: WeightTable,
    kappa: Float[Tensor, "w n d"],
    caps: Float[Tensor, " n"],
    itself: Float[Tensor, "w n"],
    slack: float,
) -> _Lagrangian:
    inner, values = max(text.rows.shape[1], text.values.shape[1]), text.values
    secants = (table.high[..., -1] - table.low[..., 0]) / table.tau[..., -1]
    largest = secants.amax(dim=1, keepdim=True)
    secants = torch.where(largest > 0, secants / largest, 1.0)  # all 0: no score can become positive
    shares = secants.clamp(min=_LEAST_SHARE) ** _SHARE
    moved, apart = kappa @ kappa.mT, values @ values.T
    hold, pin = _minorants(moved, shares, inner), _minorants(apart.expand_as(moved), shares, inner)
    one_space = text.lift is None
    if one_space:
        mixed = kappa @ values.T
        remaining = _remaining_shares(hold.sqrt().unsqueeze(2) * kappa, pin.sqrt().unsqueeze(2) * values)
    else:
        # At nu = 0 what y and b do is bounded apart, and one is over the larger of two numbers that are at most 1.
        mixed, remaining = torch.zeros_like(moved), caps.new_zeros(len(kappa), _SHARED_STEPS + 1)
        remaining[:, 0] = 1 / (1 + 1e-9)
    return _Lagrangian(table, one_space, moved, apart, mixed, remaining, hold, pin, caps, itself, slack)


def _minorants(grams: Float[Tensor, "w n n"], shares: Float[Tensor, "w n"], inner: int) -> Float[Tensor, "w n"]:
    """Each word's k, in the shares' proportions, with sum k_l (v_l . y)² <= ‖y‖² for the vectors of its Gram matrix."""
    scales = [
        gram_norm_bound(root.unsqueeze(1) * gram * root, inner=inner + 16)
        for gram, root in zip(grams, shares.sqrt(), strict=True)
    ]
    return shares / (shares.new_tensor(scales).unsqueeze(1) * (1 + 1e-12))


def _remaining_shares(moving: Float[Tensor, "w n d"], turning: Float[Tensor, "w n d"]) -> Float[Tensor, "w g"]:
    """Shares f(nu) with f (sum_l (m_l . y)² + sum_l (t_l . b)²) <= ‖y‖² + ‖b‖² - 2 nu y . b for all y and b.

    The right side is a square in other coordinates, in which vectors (m, 0) and (0, t) have the inner products
    m . m', t . t' and nu m . t, over 1 - nu². Zero at the last nu, so that every chord is valid.
    """
    d = moving.shape[2]
    shares = moving.new_zeros(len(moving), _SHARED_STEPS + 1)
    for at in range(_SHARED_STEPS):
        nu = _MOST_SHARED * at / _SHARED_STEPS
        for word, (m, t) in enumerate(zip(moving, turning, strict=True)):
            mixed = nu * (m @ t.T)
            gram = torch.cat([torch.cat([m @ m.T, mixed], dim=1), torch.cat([mixed.T, t @ t.T], dim=1)])
            shares[word, at] = (1 - nu**2) / (gram_norm_bound(gram, inner=d + 16) * (1 + 1e-12))
    return shares


def _search(problem: _Lagrangian) -> _Multipliers:
    """Good multipliers, by Adam, for all words at once; any are valid."""
    words, n = problem.hold.shape
    unit = (problem.caps * (problem.table.high[..., -1] - problem.table.low[..., 0])).amax(dim=-1) / 4
    alphas = (0.3 / problem.moved.diagonal(dim1=1, dim2=2).mean(dim=1).sqrt()).unsqueeze(1)
    gammas = 0.3 / problem.apart.diagonal().mean().sqrt()

    def multipliers(free: list[Tensor]) -> _Multipliers:
        lam, mu, alpha, gamma, nu = free
        shared = _MOST_SHARED * torch.sigmoid(nu - 2) * problem.one_space
        return _Multipliers(unit * lam.exp(), unit * mu.exp(), alpha * alphas, gamma * gammas, shared)

    shapes = [(words,), (words,), (words, n), (words, n), (words,)]
    free = [problem.hold.new_zeros(shape).requires_grad_() for shape in shapes]
    best, least = [part.detach().clone() for part in free], torch.full_like(unit, torch.inf)
    optimizer = torch.optim.Adam(free)
    with torch.enable_grad():
        for step in range(_STEPS):
            optimizer.param_groups[0]["lr"] = _LONGEST * (1 - step / _STEPS) + _SHORTEST
            value = problem.at_nodes(multipliers(free))
            better: Bool[Tensor, " w"] = value.detach() < least
            least = torch.where(better, value.detach(), least)
            for old, new in zip(best, free, strict=True):
                old[better] = new.detach()[better]
            optimizer.zero_grad()
            (value / unit).sum().backward()
            optimizer.step()
    return multipliers(best)
