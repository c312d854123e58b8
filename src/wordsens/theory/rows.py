"""What the scalar problem takes of an attention layer's rows: those of the other words, and the word's own."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor


@dataclass(frozen=True)
class Rows:
    """Rows of length sqrt(d), x_j = sqrt(d) (f_j e + sqrt(1 - f_j²) v_j), and what a softmax keeps of them.

    Attributes:
        n, d: rows and coordinates.
        loadings: f_j, as few representatives of equal weight.
        spread: d times the mean square of v_j . v_k, j != k: 0 for orthogonal v, 1 for independent uniform ones, more
            where rows repeat.
        kept: E ‖o_j‖² / d.
        word, cross: of the word i that moves, its loading and x_i . m_j / d.
    """

    n: int
    d: int
    loadings: tuple[float, ...]
    spread: float
    kept: float
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
    def own(self) -> float:
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
        reach: how far beyond z no t is of use: nothing more is drawn there, or all of Delta would not pay for it.
        layout: the nodes as kinds of rows, nodes of the row's score with the word, and other states of a row.
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
class OwnRow:
    """The row i: its squared change over d at a score that Delta moved by t, from where it is by itself.

    Attributes:
        change: t (r,) -> (r,).
        scatter: the standard deviation of its score with itself.
        ease: by how much its score follows Delta, squared, where another row's does by one.
        paid: what lowering its other scores takes of ‖Delta‖², in the mean over words.
        paid_variance: its variance over words.
    """

    change: Callable[[Float[Tensor, " r"]], Float[Tensor, " r"]]
    scatter: float
    ease: float
    paid: float = 0.0
    paid_variance: float = 0.0
