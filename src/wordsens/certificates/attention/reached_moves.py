"""How far each score of a row can move where the sum of the row's weights is small: less than the radius allows.

One y moves all scores, and to keep their weights small it has to stay where few of them rise
(docs/theory/certificates-attention.md, "How far a score moves where Z is small").
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.attention.weight_cells import WeightCells
from wordsens.certificates.verified import rounding

_STEPS = 150
_LONGEST, _SHORTEST = 0.3, 0.003  # steps of Adam, in logarithms and log-odds
_LEAST = 1e-300


@dataclass(frozen=True)
class ReachedMoves:
    """Ends of what each kappa_l . y may be, and the multipliers that prove it: a good start where less is allowed.

    Attributes:
        ends: the least and the most, rounded outward.
        multipliers: (2 n, 1 + n), log sigma and the log-odds of the slopes.
    """

    ends: Float[Tensor, "2 n"]
    multipliers: Float[Tensor, "m k"]

    @classmethod
    def of(
        cls, kappa: Float[Tensor, "n d"], cells: WeightCells, most: float, start: "ReachedMoves | None" = None
    ) -> "ReachedMoves":
        """Certified, where ‖y‖ <= 1, the weights are those of `cells` and their sum is at most `most`.

        For a = kappa_l or -kappa_l, any sigma >= 0 and phi_m = sigma rho_m,

            a . y <= sigma most + sum_m sup over tau of (phi_m tau - sigma E_m(tau)) + ‖a - sum_m phi_m kappa_m‖,

        E_m the least that weight m may be (ours, docs). sigma and rho are found by Adam. O(n² (steps (n + d) + nodes)).
        """
        search = _Search.of(kappa, cells, most)
        multipliers = search.found(search.start if start is None else start.multipliers)
        found = search.rounded(multipliers)
        least, most_moved = -found[len(kappa) :], found[: len(kappa)]
        first, last = search.edges
        tau = cells.tau
        least = torch.maximum(least, tau.gather(1, first.unsqueeze(1)).squeeze(1))
        most_moved = torch.minimum(most_moved, tau.gather(1, last.unsqueeze(1)).squeeze(1))
        return cls(torch.stack([least, most_moved]), multipliers)


@dataclass(frozen=True)
class _Search:
    """The dual of every target a: `targets` are kappa and -kappa.

    Attributes:
        slopes: (n, cells) of the least weights, never falling.
        edges: the first and the last node that a score may reach.
        alike: targets by kappa.
        gram: of kappa.
    """

    kappa: Float[Tensor, "n d"]
    cells: WeightCells
    most: float
    targets: Float[Tensor, "m d"]
    slopes: Float[Tensor, "n cells"]
    edges: tuple[Int[Tensor, " n"], Int[Tensor, " n"]]
    alike: Float[Tensor, "m n"]
    gram: Float[Tensor, "n n"]

    @classmethod
    def of(cls, kappa: Float[Tensor, "n d"], cells: WeightCells, most: float) -> "_Search":
        tau, lowest = cells.tau, cells.lowest
        width = tau[:, 1:] - tau[:, :-1]
        slopes = (lowest[:, 1:] - lowest[:, :-1]) / torch.where(width > 0, width, torch.inf)
        possible = cells.possible.to(tau.dtype)
        first, last = possible.argmax(dim=1), tau.shape[1] - 1 - possible.flip(1).argmax(dim=1)
        slopes = slopes.masked_fill(~cells.possible, 0.0).cummax(dim=1).values.contiguous()
        targets = torch.cat([kappa, -kappa])
        return cls(kappa, cells, most, targets, slopes, (first, last), targets @ kappa.T, kappa @ kappa.T)

    @property
    def start(self) -> Float[Tensor, "m k"]:
        """phi a third of a target's length over the sum."""
        size = 0.1 * torch.linalg.vector_norm(self.targets, dim=1, keepdim=True) / self.most
        return torch.cat([size.clamp(min=_LEAST).log(), torch.zeros_like(self.alike)], dim=1)

    def found(self, multipliers: Float[Tensor, "m k"]) -> Float[Tensor, "m k"]:
        """The best of Adam's steps."""
        best, least = multipliers, torch.full_like(multipliers[:, 0], torch.inf)
        first, second = torch.zeros_like(multipliers), torch.zeros_like(multipliers)
        for step in range(1, _STEPS + 1):
            value, slope = self._value(multipliers)
            better = value < least
            least, best = torch.where(better, value, least), torch.where(better.unsqueeze(1), multipliers, best)
            first.lerp_(slope, 0.1)
            second.lerp_(slope.square(), 0.01)
            length = _LONGEST * (1 - step / _STEPS) + _SHORTEST
            along = first / (1 - 0.9**step) / ((second / (1 - 0.99**step)).sqrt() + 1e-12)
            multipliers = multipliers - length * along
        return best

    def _value(self, multipliers: Float[Tensor, "m k"]) -> tuple[Float[Tensor, " m"], Float[Tensor, "m k"]]:
        """The bounds and their slopes; where weights are not convex the place of a supremum is a guess."""
        sigma, odds = multipliers[:, :1].exp(), torch.sigmoid(multipliers[:, 1:])
        rho = odds * self.slopes[:, -1]
        node = torch.searchsorted(self.slopes, rho.T.contiguous(), right=True)
        node = torch.maximum(torch.minimum(node, self.edges[1].unsqueeze(1)), self.edges[0].unsqueeze(1))
        tau, weight = (part.gather(1, node).T for part in (self.cells.tau, self.cells.lowest))
        phi = sigma * rho
        left = self.alike - phi @ self.gram
        squares = self.targets.square().sum(dim=1) - (phi * (self.alike + left)).sum(dim=1)
        length = squares.clamp(min=_LEAST).sqrt()
        drawn = left / length.unsqueeze(1)
        over = self.most + (rho * tau - weight).sum(dim=1)
        by_sigma = sigma * over.unsqueeze(1) - (phi * drawn).sum(dim=1, keepdim=True)
        return sigma.squeeze(1) * over + length, torch.cat([by_sigma, phi * (1 - odds) * (tau - drawn)], dim=1)

    def rounded(self, multipliers: Float[Tensor, "m k"]) -> Float[Tensor, " m"]:
        """The bounds, rounded outward; infinite where numbers are extreme."""
        sigma = multipliers[:, :1].exp()
        phi = sigma * torch.sigmoid(multipliers[:, 1:]) * self.slopes[:, -1]
        cells, possible = self.cells, self.cells.possible
        value = phi.unsqueeze(2) * cells.tau - sigma.unsqueeze(2) * cells.lowest
        # Between two nodes a weight is at most `below` below its chord.
        above = torch.maximum(value[..., 1:], value[..., :-1]) + sigma.unsqueeze(2) * cells.below
        suprema = above.masked_fill(~possible, -torch.inf).amax(dim=2).sum(dim=1)
        length = torch.linalg.vector_norm(self.targets - phi @ self.kappa, dim=1)
        found = sigma.squeeze(1) * self.most + suprema + length
        reach, heaviest = cells.tau.abs().amax(dim=1), cells.highest.abs().amax(dim=1) + cells.lowest.abs().amax(dim=1)
        size = sigma.squeeze(1) * (self.most + heaviest.sum()) + 2 * phi @ reach
        size = size + torch.linalg.vector_norm(self.targets, dim=1)
        found = found + rounding(8 * sum(self.kappa.shape) + 400) * size
        return found.nan_to_num(torch.inf)
