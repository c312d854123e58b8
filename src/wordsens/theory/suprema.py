"""Suprema along a grid, at many Gaussian nodes at once: what a row of the scalar problem counts."""

from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Largest:
    """sup_t [psi(t) - y (t - z)²] of several rows, each at several z.

    Attributes:
        value: (k, g).
        at: (k, g), the t.
        force: (k, g), the derivative over z.
        paid: (k, g), y (t - z)².
        grid: the place on the grid of t next to it, and how many steps t lies beyond.
    """

    value: Float[Tensor, "..."]
    at: Float[Tensor, "..."]
    force: Float[Tensor, "..."]
    paid: Float[Tensor, "..."]
    grid: tuple[Int[Tensor, "k g"], Float[Tensor, "k g"]] | None = None

    def read(self, values: Float[Tensor, "k r"]) -> Float[Tensor, "k g"]:
        """Another function of t on the grid, at the t found: a parabola through three values."""
        assert self.grid is not None
        middle, off = self.grid
        left, at, right = (values.gather(1, middle + by) for by in (-1, 0, 1))
        return at + off * (right - left) / 2 + off**2 * (left + right - 2 * at) / 2

    def row(self, k: int) -> "Largest":
        """One row's."""
        return Largest(self.value[k], self.at[k], self.force[k], self.paid[k])


@lru_cache(maxsize=16)
def gaussian_nodes(count: int) -> tuple[Float[Tensor, " count"], Float[Tensor, " count"]]:
    """Evenly spaced nodes and weights of a standard Gaussian: a supremum has kinks, which polynomials do not suit."""
    nodes = torch.linspace(-4.5, 4.5, count, dtype=torch.float64)
    weights = torch.exp(-0.5 * nodes**2)
    return nodes, weights / weights.sum()


def largest(
    psi: Float[Tensor, "k r"],
    t: Float[Tensor, " r"],
    z: Float[Tensor, "k g"],
    y: Float[Tensor, "k 1"],
    *,
    smooth: bool = True,
) -> Largest:
    """The largest of psi(t) - y (t - z)² along an even grid of t, and what a parabola through three values adds.

    `smooth`: False where psi has a step, over which a parabola would rise.
    """
    bent, pulled = psi - y * t**2, 2 * y * z
    # NumPy's argmax is several times as fast as torch's.
    scores = torch.addcmul(bent.unsqueeze(1), pulled.unsqueeze(2), t)
    middle = torch.from_numpy(scores.numpy().argmax(axis=-1)).clamp(1, len(t) - 2)
    left, top, right = (bent.gather(1, middle + by) + pulled * t[middle + by] for by in (-1, 0, 1))
    bend = (2 * top - left - right).clamp(min=1e-12)
    off = ((right - left) / (2 * bend)).clamp(-1, 1) if smooth else torch.zeros_like(bend)
    at = t[middle] + off * (t[1] - t[0])
    value = top + off * (right - left) / 2 - off**2 * bend / 2 - y * z**2
    paid = y * (at - z) ** 2
    return Largest(value, at, 2 * y * (at - z), paid, (middle, off))
