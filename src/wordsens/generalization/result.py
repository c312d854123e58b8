"""What the one-word experiment found for one text."""

import sys
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from wordsens.generalization.new_text import NewText, Outputs
from wordsens.maps.dense.features import RandomFeatures

SOLVED_DIGITS = 3
"""So many digits of theta* must be left by rounding for the theorems' numbers to be about it."""


@dataclass(frozen=True)
class TheoremConditions:
    """What Theorems 4 and 5 ask for, at this sample. They are asymptotic; `OneWordGeneralization.bound` is not.

    Attributes:
        theorem: 4 for fine-tuned, 5 for retrained.
        random_features: whether the map is a single random layer (RF).
        gamma_below_two: the assumption on the model before: gamma in [0, 2).
        texts_per_feature: N / p.
        texts_per_coordinate: N / (n d).
        condition: of the kernel matrix, estimated.
        solved: whether float64 solves with it: condition N eps <= 10^-SOLVED_DIGITS. N eps times the condition number
            is, up to a small constant, how far rounding moves a solution by Cholesky, relative (Higham 2002, section
            10.1); a matrix that took a jitter is always past it.

    Theorem 5 asks for a small N against k and D and a well-conditioned kernel; how small, and how well, is not known to
    us, so the numbers stand here and `hold` checks only what is necessary.
    """

    theorem: int
    random_features: bool
    gamma_below_two: bool
    texts_per_feature: float
    texts_per_coordinate: float
    condition: float
    solved: bool

    @property
    def hold(self) -> bool:
        """RF, gamma < 2, a solved kernel; for Theorem 5 also N < p and N < n d: necessary, not sufficient."""
        if not (self.random_features and self.gamma_below_two and self.solved):
            return False
        return self.theorem == 4 or (self.texts_per_feature < 1 and self.texts_per_coordinate < 1)


@dataclass(frozen=True)
class OneWordGeneralization:
    """The model that learned (X, y), on X with one word changed and the label flipped (Theorems 4 and 5).

    All numbers are recomputed through the map at the witness, by definition.

    Attributes:
        error: Err = (phi(X^i(Delta)).theta - (-y))², attained: an upper bound of the least error.
        gamma: |phi(X^i(Delta)).theta* - phi(X).theta*|, what the model before (X, y) makes of the change.
        alignment: F of the training, so that phi(X^i(Delta)).theta - y = delta + (F - 1)(y - phi(X).theta*).
        bound: max(0, 2 - gamma - |F - 1| |y - phi(X).theta*|)² <= error, without asymptotics (ours).
        perturbation: Delta, (d,).
        output_before: phi(X).theta*, the model before (X, y) is learned, on X.
        output_after: phi(X^i(Delta)).theta, the model after, on the changed text.
        variant_output_before: phi(X^i(Delta)).theta*, the model before, on the changed text.
        text_output_after: phi(X).theta, the model after, on X: y, unless there is a ridge.
        word, token: the changed word; `swapped_for` is the vocabulary word that took its place, or None.
        radius: of the ball; infinite for a swap without one.
        label: y.
        training, objective: how (X, y) was learned, what Delta was chosen for.
        loss: the objective's value.
        conditions: of Theorem 4 or 5.
        evaluations: how many perturbed texts were evaluated.
        converged: whether the search stopped gaining, before its steps ran out, at a stationary point.
        seed: of the random starts.
        map_name: the map's name.
    """

    error: float
    gamma: float
    alignment: float
    bound: float
    perturbation: Float[Tensor, " d"]
    output_before: float
    output_after: float
    variant_output_before: float
    text_output_after: float
    word: int
    token: str
    radius: float
    label: float
    training: str
    objective: str
    loss: float
    conditions: TheoremConditions
    evaluations: int
    converged: bool
    seed: int
    map_name: str
    swapped_for: str | None = None

    @property
    def told_apart(self) -> bool:
        """Whether the model gives the changed text the sign of its label, -y."""
        return self.output_after * self.label < 0

    def to_dict(self) -> dict[str, Any]:
        """Everything but the perturbation, as plain Python values."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        del plain["perturbation"], plain["conditions"]
        return {**plain, "told_apart": self.told_apart, "theorem_conditions_hold": self.conditions.hold}

    def __repr__(self) -> str:
        return (
            f"OneWordGeneralization({self.map_name}, {self.training}, {self.objective}: error={self.error:.4g}, "
            f"gamma={self.gamma:.4g}, alignment={self.alignment:.4g}, bound={self.bound:.4g}, "
            f"word {self.word} {self.token!r})"
        )


def error_of(new: NewText, outputs: Outputs) -> float:
    """Err: the squared distance of the output from -y."""
    return (outputs.after + new.label) ** 2


def finite_sample_bound(gamma: float, alignment: float, surprise: float) -> float:
    """max(0, 2 - gamma - |F - 1| |y - f(X)|)²: no sample's Err is below it (ours; docs/theory/generalization.md).

    >>> finite_sample_bound(0.5, 0.9, 1.0)
    1.95...
    """
    return max(0.0, 2 - gamma - abs(alignment - 1) * abs(surprise)) ** 2


def theorem_conditions(new: NewText, training: str, gamma: float) -> TheoremConditions:
    """What Theorem 4 or 5 asks for, at this sample."""
    n, d = new.rows.shape
    features, condition = new.fit.features, new.fit.conditioning.condition
    return TheoremConditions(
        theorem=4 if training == "fine-tuned" else 5,
        random_features=isinstance(new.fit.phi, RandomFeatures),
        gamma_below_two=gamma < 2,
        texts_per_feature=len(features) / features.size,
        texts_per_coordinate=len(features) / (n * d),
        condition=condition,
        solved=condition * len(features) * sys.float_info.epsilon <= 10.0**-SOLVED_DIGITS,
    )
