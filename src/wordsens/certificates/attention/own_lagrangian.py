"""The Lagrangian of the word's own row: y, which moves its scores, and b, along which its output moves, word by word.

Along a unit vector b the row's change times Z is at most sum_l (E_l - c a_l) beta_l + E_i radius, beta_l = x~_l . b,
for any c; E_l is a monotone function of tau_l = radius kappa_l . y (docs/theory/certificates-attention.md).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.maps.attention.scores.tabulated import STRIDE, WeightTable

MOST_SHARED = 0.9
_STEPS = 120
_LONGEST, _SHORTEST = 0.2, 0.003  # steps of Adam, in units of the multipliers' sizes


@dataclass(frozen=True)
class OwnMultipliers:
    """One row a word and interval of Z: lam, mu > 0 for y and b, alpha and gamma for the centres y' and b', s of Z,
    and nu in [0, `MOST_SHARED`], how much of what y and b cost is spent on y . b."""

    lam: Float[Tensor, "w k"]
    mu: Float[Tensor, "w k"]
    alpha: Float[Tensor, "w k n"]
    gamma: Float[Tensor, "w k n"]
    s: Float[Tensor, "w k"]
    nu: Float[Tensor, "w k"]

    @property
    def shared(self) -> Float[Tensor, "w k 1"]:
        """nu (lam mu)^(1/2), the cost of y . b."""
        return (self.nu * (self.lam * self.mu).sqrt()).unsqueeze(-1)


@dataclass(frozen=True)
class OwnLagrangian:
    """The own rows of some words under one head.

    Attributes:
        table: of weights before they are divided.
        divided: whether Z is anything but 1.
        alike: whether y and b are in one space; where b is among values of their own, nu is 0.
        moved, apart, mixed: (w, n, n), Gram matrices of radius kappa_l and of x~_l, and of the first by the second.
        kept: (w, g), shares of p and k that hold beside nu = 0 to `MOST_SHARED` in even steps; concave in nu.
        hold, pin: (w, 1, n), p and k with sum p_l tau_l² <= ‖y‖² and sum k_l beta_l² <= ‖b‖², verified.
        caps: (w, 1, n), ‖x~_l‖.
        least, most: (w, k), ends of the intervals of Z.
        mine: (w, 1, n), the radius at the word itself, 0 elsewhere.
        roundings: gamma of the operations that make up a bound.
    """

    table: WeightTable
    divided: bool
    alike: bool
    moved: Float[Tensor, "w n n"]
    apart: Float[Tensor, "w n n"]
    mixed: Float[Tensor, "w n n"]
    kept: Float[Tensor, "w g"]
    hold: Float[Tensor, "w 1 n"]
    pin: Float[Tensor, "w 1 n"]
    caps: Float[Tensor, "w 1 n"]
    least: Float[Tensor, "w k"]
    most: Float[Tensor, "w k"]
    mine: Float[Tensor, "w 1 n"]
    roundings: float

    @property
    def centres(self) -> Float[Tensor, "w k 1"]:
        """c."""
        return (self.least * self.most).sqrt().unsqueeze(-1)

    def bound(self, by: OwnMultipliers) -> Float[Tensor, "w k"]:
        """Of the change where Z is in each interval, rounded outward."""
        tau, low, high, below, above = (
            array.unsqueeze(1)
            for array in (self.table.tau, self.table.low, self.table.high, self.table.below, self.table.above)
        )
        (most, steepest), (least, flattest) = (self._values(by, weights, tau) for weights in (high, low))
        rows = torch.maximum(most, least)
        widths = (tau[..., 1:] - tau[..., :-1]).square() / 4
        cells = torch.maximum(rows[..., 1:], rows[..., :-1])
        cells = cells + (by.lam.unsqueeze(-1) * self.hold).unsqueeze(-1) * widths
        # Convex in E, and E not far from its chord: that costs at most the slope in E at the end of E on that side.
        cells = cells + (-flattest[..., :-1]).clamp(min=0) * below + steepest[..., 1:].clamp(min=0) * above
        total = cells.amax(dim=-1).sum(dim=-1) + self._outside(by)
        total = total + self.roundings * self._size(by)
        quotient = torch.where(total >= 0, total / self.least, total / self.most) - by.s
        return quotient + self.roundings * by.s.abs()

    def at_nodes(self, by: OwnMultipliers) -> Float[Tensor, "w k"]:
        """The bound that some nodes alone give; gradients flow through the largest ones."""
        nodes, high, low = (
            array[..., ::STRIDE].unsqueeze(1) for array in (self.table.tau, self.table.high, self.table.low)
        )
        with torch.no_grad():
            values = torch.stack([self._values(by, weights, nodes)[0] for weights in (high, low)], dim=-1)
            picked = values.flatten(start_dim=-2).argmax(dim=-1, keepdim=True)
            both = torch.stack([high, low], dim=-1).flatten(start_dim=-2).expand(-1, picked.shape[1], -1, -1)
            tau = nodes.repeat_interleave(2, dim=-1).expand(-1, picked.shape[1], -1, -1)
            weights, tau = both.gather(-1, picked), tau.gather(-1, picked)
        total = self._values(by, weights, tau)[0].sum(dim=(-2, -1)) + self._outside(by)
        return torch.where(total >= 0, total / self.least, total / self.most) - by.s

    def _held(self, by: OwnMultipliers) -> Float[Tensor, "w k 1"]:
        """The share of p and k that holds beside nu: on the chord, which verified conditions allow."""
        steps = self.kept.shape[1] - 1
        place = by.nu * (steps / MOST_SHARED)
        low = place.detach().nan_to_num(0.0).floor().clamp(0, steps - 1).long()  # no number: no bound
        left, right = self.kept.gather(1, low), self.kept.gather(1, low + 1)
        return (left + (right - left) * (place - low)).unsqueeze(-1)

    def _centre(self, by: OwnMultipliers) -> tuple[Tensor, Tensor, Float[Tensor, "w k"]]:
        """tau', beta', and what the centre costs."""
        lam, mu, shared = by.lam.unsqueeze(-1), by.mu.unsqueeze(-1), by.shared
        pushed, pulled = lam * by.alpha, mu * by.gamma
        left = lam * mu - shared.square()
        tau = (mu * (pushed @ self.moved) + shared * (pulled @ self.mixed.mT)) / left
        beta = (lam * (pulled @ self.apart) + shared * (pushed @ self.mixed)) / left
        return tau, beta, (pushed * tau).sum(dim=-1) + (pulled * beta).sum(dim=-1)

    def _values(self, by: OwnMultipliers, weights: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
        """Each word's term at some E and tau, the best beta taken, and its slope in E."""
        lam, mu, held = by.lam[..., None, None], by.mu[..., None, None], self._held(by).unsqueeze(-1)
        drawn, turned, _ = self._centre(by)
        drawn, turned = drawn.unsqueeze(-1), turned.unsqueeze(-1)
        before = self.centres * self.table.before.unsqueeze(1)
        slope = weights - (before + 2 * by.mu.unsqueeze(-1) * by.gamma).unsqueeze(-1)
        pin, caps, mine = held * self.pin.unsqueeze(-1), self.caps.unsqueeze(-1), self.mine.unsqueeze(-1)
        beta = torch.maximum(torch.minimum(turned + slope / (2 * mu * pin), caps), -caps)
        along = mine * weights - 2 * by.shared.unsqueeze(-1) * (mine > 0)
        value = slope * beta - mu * pin * (beta - turned).square() + by.s[..., None, None] * weights + along.abs()
        cost = 2 * by.alpha.unsqueeze(-1) * tau + held * self.hold.unsqueeze(-1) * (tau - drawn).square()
        return value - lam * cost, beta + by.s[..., None, None] + mine * along.sign()

    def _outside(self, by: OwnMultipliers) -> Float[Tensor, "w k"]:
        return by.lam + by.mu + self._centre(by)[2]

    def _size(self, by: OwnMultipliers) -> Float[Tensor, "w k"]:
        """Bounds the sum of the absolute values of all terms: p_l tau_l² and k_l beta_l² are at most 1."""
        drawn = (by.alpha.abs() * self.moved.diagonal(dim1=1, dim2=2).sqrt().unsqueeze(1)).sum(dim=-1)
        turned = (by.gamma.abs() * self.apart.diagonal(dim1=1, dim2=2).sqrt().unsqueeze(1)).sum(dim=-1)
        drawn, turned = drawn * by.lam.sqrt(), turned * by.mu.sqrt()
        centre = (by.lam + by.mu).sqrt() + (drawn + turned) / (1 - by.nu.square())
        grown = self.table.size.unsqueeze(1) + self.most.unsqueeze(-1) * self.table.before.unsqueeze(1)
        rows = (grown * (self.caps + by.s.abs().unsqueeze(-1) + self.mine)).sum(dim=-1)
        return rows + 8 * self.caps.shape[-1] * centre.square() / (1 - by.nu.square())


def searched(rows: OwnLagrangian) -> OwnMultipliers:
    """Good multipliers, by Adam, for all words at once; any are valid."""
    (words, count), n = rows.least.shape, rows.caps.shape[-1]
    unit = (rows.caps.squeeze(1) * (rows.table.high[..., -1] - rows.table.low[..., 0])).amax(dim=-1, keepdim=True) / 4
    alphas, gammas = (
        (0.3 / gram.diagonal(dim1=1, dim2=2).mean(dim=1).sqrt()).view(-1, 1, 1) for gram in (rows.moved, rows.apart)
    )
    sizes = [(words, count), (words, count), (words, count, n), (words, count, n), (words, count), (words, count)]
    free = [rows.caps.new_zeros(size).requires_grad_() for size in sizes]

    def multipliers(raw: list[Tensor]) -> OwnMultipliers:
        lam, mu, alpha, gamma, s, nu = raw
        return OwnMultipliers(
            lam=unit * lam.exp(),
            mu=unit * mu.exp(),
            alpha=alpha * alphas,
            gamma=gamma * gammas,
            s=unit * s * rows.divided,
            nu=MOST_SHARED * torch.sigmoid(nu - 2) * rows.alike,
        )

    best, least = [tensor.detach().clone() for tensor in free], torch.full_like(rows.least, torch.inf)
    optimizer = torch.optim.Adam(free)
    with torch.enable_grad():
        for step in range(_STEPS):
            optimizer.param_groups[0]["lr"] = _LONGEST * (1 - step / _STEPS) + _SHORTEST
            value = rows.at_nodes(multipliers(free))
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
