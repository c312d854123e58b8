"""The word's own row at medium radii: each of its weights tabulated over all that its score may do.

New weights are E_l/Z, or E_l where scores are not divided, E_l a monotone function of how far score l moves
(docs/theory/certificates-attention.md, "Tabulated weights").
"""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.certificates.attention.own_lagrangian import MOST_SHARED, OwnLagrangian, searched
from wordsens.certificates.attention.rounding import RoundingErrors
from wordsens.certificates.attention.text import AttentionText
from wordsens.certificates.verified import gram_norm_bound, rounding
from wordsens.maps.attention.scores import Tabulated, offered
from wordsens.maps.attention.scores.tabulated import CELLS, STRIDE, RowMoves, WeightTable

_INTERVALS = 8  # of log Z
_SHARE = 0.7  # of each word in what y and b can do: its weight's secant to this power; .5 and 1 are up to 5 % wider
_LEAST_SHARE = 1e-20  # of words that cannot get a weight
_LEAST_SQUARE = 1e-250  # of a score's move, and its inverse the largest: nothing overflows
SHARED_STEPS = 6  # of nu, verified; the last leaves nothing of p and k
_CHUNK_NUMBERS = 1 << 18  # of one array in the search: words that fit are searched together


def may_gain(text: AttentionText, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Bool[Tensor, " w"]:
    """True where `own_weights_bound` may say more than other bounds of the own rows, by what the score says."""
    score, n = offered(text.score, Tabulated), len(text.rows)
    if score is None:
        return torch.zeros_like(radius).bool()
    gains = torch.ones_like(radius).bool()
    for head in range(text.heads):
        scores, keys = text.scores[words + n * head], text.keys[n * head : n * (head + 1)]
        if score.shift_invariant:
            weights, gram = score.attention(scores), keys @ keys.T
            drawn = weights @ gram
            squares = gram.diagonal() - 2 * drawn + (drawn * weights).sum(dim=1, keepdim=True)
        else:
            squares = keys.square().sum(dim=1)
        gains &= score.table_gains(scores, radius.unsqueeze(1) * squares.clamp(min=0).sqrt())
    return gains


def own_weights_bound(
    text: AttentionText,
    errors: RoundingErrors,
    twist: Float[Tensor, " heads"],
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
) -> Float[Tensor, " w"]:
    """Of the change of the words' own rows over all heads, in units of the radius; infinite where numbers are extreme.

    Only for scores that are `Tabulated`. `twist` bounds |Delta^T W Delta| / (scale ‖Delta‖²) for each head.
    """
    score = offered(text.score, Tabulated)
    assert score is not None
    intervals = _INTERVALS if score.normalized else 1
    size = max(1, _CHUNK_NUMBERS // (intervals * len(text.rows) * (CELLS // STRIDE + 1)))
    bounds = [
        torch.stack([OwnRows(text, score, errors, float(twist[head]), head).bound(*some) for head in range(text.heads)])
        for some in zip(words.split(size), radius.split(size), strict=True)
    ]
    return torch.linalg.vector_norm(torch.cat(bounds, dim=1), dim=0) * (1 + 1e-12)


@dataclass(frozen=True)
class OwnProblem:
    """The Lagrangian of the own rows that numbers let it bound, where Z is not below a floor.

    Attributes:
        floored: whether Z may be below it.
        error: what the bound may be too small by.
        kappa, apart: the vectors radius kappa_l, and the x~_l.
        turn: at least what the word's score with itself moves by beside kappa_i . y.
    """

    bounded: Int[Tensor, " w"]
    rows: OwnLagrangian
    floored: Bool[Tensor, " w"]
    error: Float[Tensor, " w"]
    kappa: Float[Tensor, "w n d"]
    apart: Float[Tensor, "w n p"]
    turn: Float[Tensor, " w"]


@dataclass(frozen=True)
class OwnRows:
    """The own rows under one head."""

    text: AttentionText
    score: Tabulated
    errors: RoundingErrors
    twist: float
    head: int

    @property
    def slack(self) -> float:
        return rounding(8 * (sum(self.text.rows.shape) + self.text.values.shape[1]) + 400)

    def bound(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Float[Tensor, " w"]:
        bounds = torch.full_like(radius, torch.inf)
        problem = self.problem(words, radius)
        if problem is not None:
            found = problem.rows.bound(searched(problem.rows)).clamp(min=0).amax(dim=1)
            found = (found + problem.error) / radius[problem.bounded] * (1 + 1e-9)
            bounds[problem.bounded] = torch.where(found.isfinite(), found, torch.inf)
        return bounds

    def problem(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"], floor: float = 0.0) -> OwnProblem | None:
        """Of the words whose numbers are not extreme, where Z is at least `floor`; None without one."""
        text, score, head = self.text, self.score, self.head
        n = len(text.rows)
        own, slack = words + n * head, self.slack
        here = torch.nn.functional.one_hot(words, n).to(radius.dtype)
        scores, keys = text.scores[own], text.keys[n * head : n * (head + 1)]
        weights = score.attention(scores)
        kappa = keys + here.unsqueeze(2) * text.queries[own].unsqueeze(1)
        longest = torch.linalg.vector_norm(kappa, dim=2).amax(dim=1)
        if score.shift_invariant:
            kappa = kappa - weights.unsqueeze(1) @ kappa
        values = text.values
        apart = values - text.outputs[own].unsqueeze(1) if score.normalized else values.expand(len(own), -1, -1)
        caps = torch.linalg.vector_norm(apart, dim=2) * (1 + slack) + 2 * text.value_error
        moves = radius.unsqueeze(1) * torch.linalg.vector_norm(kappa, dim=2) * (1 + slack)
        # What rounding may do to any score: to the score itself and to its move.
        key_error = 4 * self.errors.key[n * head : n * (head + 1)].amax() + slack * longest
        error = (
            8 * self.errors.score[own]
            + slack * (scores.masked_fill(text.hidden[own], 0.0).abs() + moves).amax(dim=1)
            + 4 * radius * key_error
        )
        turn = self.twist * radius.square() + error
        turns = here * turn.unsqueeze(1)
        kappa = radius.view(-1, 1, 1) * kappa
        gram = kappa @ kappa.mT
        table = score.table(RowMoves(scores, moves, turns, gram, error.unsqueeze(1), slack))
        floored = table.least < floor
        table = replace(table, least=table.least.clamp(min=floor))
        bounded = self._bounded(table, caps, gram).nonzero().squeeze(1)
        if not len(bounded):
            return None
        table = table.of(bounded)
        of_words = radius, own, caps, apart, kappa, here, turn
        radius, own, caps, apart, kappa, here, turn = (x[bounded] for x in of_words)
        rows = self._lagrangian(table, kappa, apart, caps, here * radius.unsqueeze(1))
        # Other weights; another old output, whose weights do not quite cancel the x~_l.
        off = table.error * (caps.amax(dim=1) + radius)
        if score.normalized:
            uncancelled = torch.linalg.vector_norm((table.before.unsqueeze(1) @ apart).squeeze(1), dim=1)
            uncancelled = uncancelled + slack * n * self.errors.longest
            off = off + self.errors.output[own] + slack * self.errors.longest
            off = off + uncancelled * (rows.most / rows.least).amax(dim=1) * (1 + 1e-9)
        return OwnProblem(bounded, rows, floored[bounded], off, kappa, apart, turn)

    def _bounded(self, table: WeightTable, caps: Tensor, gram: Tensor) -> Bool[Tensor, " w"]:
        """True where nothing is extreme."""
        squares = gram.diagonal(dim1=1, dim2=2)
        moving = (squares.amin(dim=1) > _LEAST_SQUARE) & (squares.amax(dim=1) < 1 / _LEAST_SQUARE)
        finite = table.error.isfinite() & table.most.isfinite() & table.high[..., -1].isfinite().all(dim=1)
        return moving & finite & (table.least > 0) & (caps.amin(dim=1) > 0)

    def _lagrangian(
        self, table: WeightTable, kappa: Tensor, apart: Tensor, caps: Tensor, mine: Tensor
    ) -> OwnLagrangian:
        n, inner = len(self.text.rows), max(self.text.rows.shape[1], self.text.values.shape[1])
        count = _INTERVALS if self.score.normalized else 1
        places = torch.linspace(0, 1, count + 1, dtype=caps.dtype, device=caps.device)
        ends = (table.least.log().unsqueeze(1) + (table.most / table.least).log().unsqueeze(1) * places).exp()
        secants = (table.high[..., -1] - table.low[..., 0]) / table.tau[..., -1]
        largest = secants.amax(dim=1, keepdim=True)
        secants = torch.where(largest > 0, secants / largest, 1.0)  # all 0: no score can become positive
        shares = secants.clamp(min=_LEAST_SHARE) ** _SHARE
        moved, gram, mixed = kappa @ kappa.mT, apart @ apart.mT, caps.new_zeros(len(caps), n, n)
        hold, pin = _minorants(moved, shares, inner), _minorants(gram, shares, inner)
        moving, turning = hold.sqrt().unsqueeze(2) * kappa, pin.sqrt().unsqueeze(2) * apart
        alike = self.text.lift is None
        if alike:
            mixed, kept = kappa @ apart.mT, _kept(moving, turning)
        else:
            # At nu = 0 what y and b do is held apart, and one is over the larger of two numbers that are at most 1.
            kept = caps.new_zeros(len(caps), SHARED_STEPS + 1)
            kept[:, 0] = 1 / (1 + 1e-9)
        return OwnLagrangian(
            table=table,
            divided=self.score.normalized,
            moved=moved,
            apart=gram,
            mixed=mixed,
            kept=kept,
            alike=alike,
            hold=hold.unsqueeze(1),
            pin=pin.unsqueeze(1),
            caps=caps.unsqueeze(1),
            least=ends[:, :-1] * (1 - 1e-12),
            most=ends[:, 1:] * (1 + 1e-12),
            mine=mine.unsqueeze(1),
            roundings=self.slack,
        )


def _minorants(grams: Float[Tensor, "w n n"], shares: Float[Tensor, "w n"], inner: int) -> Float[Tensor, "w n"]:
    """Each word's k, in the shares' proportions, with sum k_l (v_l . y)² <= ‖y‖² for the vectors of its Gram matrix."""
    scales = [
        gram_norm_bound(root.unsqueeze(1) * gram * root, inner=inner + 16)
        for gram, root in zip(grams, shares.sqrt(), strict=True)
    ]
    return shares / (shares.new_tensor(scales).unsqueeze(1) * (1 + 1e-12))


def _kept(moving: Float[Tensor, "w n d"], turning: Float[Tensor, "w n d"]) -> Float[Tensor, "w g"]:
    """Shares f(nu) with f (sum_l (m_l . y)² + sum_l (t_l . b)²) <= ‖y‖² + ‖b‖² - 2 nu y . b for all y and b.

    The right side is a square in other coordinates, in which vectors (m, 0) and (0, t) have the inner products
    m . m', t . t' and nu m . t, over 1 - nu². Zero at the last nu, so that every chord is valid.
    """
    d = moving.shape[2]
    shares = moving.new_zeros(len(moving), SHARED_STEPS + 1)
    for at in range(SHARED_STEPS):
        nu = MOST_SHARED * at / SHARED_STEPS
        for word, (m, t) in enumerate(zip(moving, turning, strict=True)):
            mixed = nu * (m @ t.T)
            gram = torch.cat([torch.cat([m @ m.T, mixed], dim=1), torch.cat([mixed.T, t @ t.T], dim=1)])
            shares[word, at] = (1 - nu**2) / (gram_norm_bound(gram, inner=d + 16) * (1 + 1e-12))
    return shares
