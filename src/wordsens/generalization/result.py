"""The results of the one-word experiment: one witness, the frontier, and all of them from one
search."""

from dataclasses import dataclass, field, replace
from typing import Any

from jaxtyping import Float, Int
from torch import Tensor

from wordsens.display.view import Chart, View
from wordsens.generalization.min_norm import TRAININGS
from wordsens.results import Result

# Points of (2 - gamma)², where Theorems 4 and 5 put RF in the limit.
THEOREM = tuple((gamma / 50, (2 - gamma / 50) ** 2) for gamma in range(101))

# One number for each limit on gamma.
PerLimit = Float[Tensor, " g"]

# alignment: (F + 1)² of the training's own F; the next two: of the named one; error: Err;
# penalized-error: Err + penalty gamma².
OBJECTIVE_NAMES = (
    "alignment",
    "fine-tuned-alignment",
    "retrained-alignment",
    "error",
    "penalized-error",
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _Searched(Result):
    """What the results of a search share.

    Attributes:
        training: how (X, y) was learned.
        output_before: phi(X).theta*, the model before (X, y) is learned, on X.
        label: y.
        search: what the search was allowed, in words, such as "normal" or "quick, starts=4".
        evaluations: how many perturbed texts were evaluated.
        seconds: what the call took.
        seed: of the random starts.
        map_name: the map's name.
    """

    training: str
    output_before: float
    label: float
    search: str
    evaluations: int
    seconds: float = field(compare=False)
    seed: int
    map_name: str


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OneWordGeneralization(_Searched):
    """The model that learned (X, y), on X with one word changed and the label flipped (Theorems 4
    and 5).

    All numbers are recomputed through the map at the witness, by definition.

    Attributes:
        error: Err = (phi(X^i(Delta)).theta - (-y))², an upper bound of the least error.
        gamma: |phi(X^i(Delta)).theta* - phi(X).theta*|, what the model before (X, y) makes of the
            change.
        alignment: F of the training, so that phi(X^i(Delta)).theta - y = delta + (F - 1)(y -
            phi(X).theta*), with delta = (phi(X^i(Delta)) - phi(X)).theta*.
        bound: max(0, 2 - gamma - |F - 1| |y - phi(X).theta*|)² <= error, without asymptotics
            (ours).
        perturbation: Delta, (d,) for one word and (g, d) for a group.
        output_after: phi(X^G(Delta)).theta, the model after, on the changed text.
        variant_output_before: phi(X^G(Delta)).theta*, the model before, on the changed text.
        text_output_after: phi(X).theta, the model after, on X: y, unless there is a ridge.
        word, token: the changed word, or the words of the group; `swapped_for` is the vocabulary
            word that took its place, or None.
        radius: of the ball; for a group, of the ball of each of its words. Infinite for a swap
            without a radius.
        objective: what Delta was chosen for.
        loss: the objective's value.
        conditions: what Theorem 4 or 5 (`theorem`) asks of this sample. They are asymptotic,
            `bound` is not. `texts_per_feature`, N / p, and `texts_per_coordinate`, N / (n d): both
            small for Theorem 5; `condition` of the kernel matrix, estimated; `solved`: whether
            float64 can solve a system with this matrix, condition N eps <= 10^-SOLVED_DIGITS, which
            is about how far rounding moves a solution by Cholesky (Higham 2002, section 10.1);
            `hold`: whether the map is RF, gamma < 2 and `solved`, and for Theorem 5 also N < p and
            N < n d, which is necessary, not sufficient.
        converged: whether the search stopped gaining, before its steps ran out, at a local optimum.
    """

    error: float
    gamma: float
    alignment: float
    bound: float
    perturbation: Float[Tensor, "*g d"]
    output_after: float
    variant_output_before: float
    text_output_after: float
    word: int | tuple[int, ...]
    token: str
    radius: float | tuple[float, ...]
    objective: str
    loss: float
    conditions: dict[str, float | bool]
    converged: bool
    swapped_for: str | None = None

    @property
    def headline(self) -> str:
        """The error, and of what."""
        return f"{self.map_name}, {self.training}, {self.objective}: error {self.error:.4f}"

    def columns(self) -> dict[str, Any]:
        """One row: the numbers of the experiment."""
        names = ["word", "token", "error", "gamma", "alignment", "bound"]
        names += ["output_before", "output_after", "distinguished"]
        return {name.replace("_", " "): [getattr(self, name)] for name in names}

    @property
    def distinguished(self) -> bool:
        """True where the model gives the changed text the sign of its label, -y."""
        return self.output_after * self.label < 0


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class OneWordFrontier(_Searched):
    """The least errors that a search reached under each limit on gamma.

    Each error is recomputed by mapping the witness, so it is an upper bound on the true minimum
    under its limit.

    Attributes:
        gammas: (g,), the limits, ascending.
        errors: (g,), the least Err reached with gamma <= the limit; never rises along the grid.
        attained_gammas: (g,), the gamma of that witness.
        alignments: (g,), the feature alignment F at that perturbation.
        words: (g,), its word; (g, k) for a group of k words.
        perturbations: (g, d), or (g, k, d).
        error_unchanged: Err at Delta = 0.
    """

    gammas: PerLimit
    errors: PerLimit
    attained_gammas: PerLimit
    alignments: PerLimit
    words: Int[Tensor, "g *k"]
    perturbations: Float[Tensor, "g *k d"]
    error_unchanged: float

    @property
    def headline(self) -> str:
        """What the rows are."""
        return f"{self.map_name}, {self.training}: least error reached under each limit on gamma"

    def columns(self) -> dict[str, Any]:
        """One row per limit on gamma."""
        return {
            "limit on gamma": self.gammas.tolist(),
            "least error": self.errors.tolist(),
            "gamma": self.attained_gammas.tolist(),
            "alignment": self.alignments.tolist(),
            "word": self.words.tolist(),
            "(2 - limit)^2": (2 - self.gammas).clamp(min=0).square().tolist(),
        }

    def view(self) -> View:
        """The headline and the table; a figure draws the least error and that of the theorems."""
        options = {
            "x": "limit on gamma",
            "y": "least error",
            "guides": {"(2 − γ)², Theorems 4 and 5": THEOREM},
            "limits": (0, None),
            "labels": {"limit on gamma": "limit on γ", "least error": "error on the changed text"},
            "title": self.headline,
        }
        return replace(super().view(), chart=Chart("lines", self.columns(), options))

    def at(self, gamma: float) -> float:
        """The least error reached with gamma below that limit: the value at the largest limit of
        the grid up to it."""
        inside = self.errors[self.gammas <= gamma]
        return float(inside[-1]) if len(inside) else self.error_unchanged


@dataclass(frozen=True, eq=False, repr=False)
class OneWordOutcomes(Result):
    """What one search found: the best change for each training (fine-tuned, retrained) and
    objective, and the frontier of error against gamma for each training.

    Attributes:
        chosen: by training and objective: "fine-tuned-alignment", "retrained-alignment", "error"
            and "penalized-error".
        frontiers: by training.
    """

    chosen: dict[str, dict[str, OneWordGeneralization]]
    frontiers: dict[str, OneWordFrontier]

    @property
    def headline(self) -> str:
        """What the rows are."""
        map_name = self.frontiers[TRAININGS[0]].map_name
        return f"{map_name}: one word changes and the label flips; every training and objective"

    def columns(self) -> dict[str, Any]:
        """One row per training and objective."""
        names = ("training", "objective", "error", "gamma", "alignment", "bound")
        rows = [choice for chosen in self.chosen.values() for choice in chosen.values()]
        return {name: [getattr(row, name) for row in rows] for name in names}


def finite_sample_bound(
    gamma: float,
    alignment: float,
    surprise: float,
) -> float:
    """max(0, 2 - gamma - |F - 1| |y - f(X)|)²: no sample's Err is below it (ours;
    docs/proofs.md#the-finite-sample-bound).

    >>> finite_sample_bound(0.5, 0.9, 1.0)
    1.95...
    """
    return max(0.0, 2 - gamma - abs(alignment - 1) * abs(surprise)) ** 2
