"""The result of the one-word experiment for one text, recomputed through the map."""

import sys
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Float
from torch import Tensor

from wordsens.generalization.new_text import NewText, Outputs
from wordsens.maps.dense import RandomFeatures
from wordsens.results import Look, Result

SOLVED_DIGITS = 3
"""So many digits of theta* must be left by rounding for the theorems' numbers to be about it."""


@dataclass(frozen=True)
class TheoremConditions:
    """The conditions of Theorems 4 and 5, at this sample. They are asymptotic; `OneWordGeneralization.bound` is not.

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


@dataclass(frozen=True, eq=False, repr=False)
class Witness(Result):
    """A Delta at one word, and how it was found.

    Attributes:
        word: i.
        perturbation: Delta.
        loss: there.
        radius: of the ball; infinite for a swap without one.
        converged: whether the search stopped at a stationary point.
        swapped_for: the vocabulary word that took the place, or None.
    """

    word: int
    perturbation: Float[Tensor, " d"]
    loss: float
    radius: float
    converged: bool
    swapped_for: str | None = None


@dataclass(frozen=True)
class Effort:
    """A search's allowance and cost: its plan in words, evaluations, seconds, the seed of its random starts."""

    search: str
    evaluations: int
    seconds: float
    seed: int


@dataclass(frozen=True, eq=False, repr=False)
class OneWordGeneralization(Result):
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
        search: what the search was allowed, in words, such as "normal" or "quick, starts=4".
        evaluations: how many perturbed texts were evaluated.
        seconds: what the call took.
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
    search: str
    evaluations: int
    seconds: float = field(compare=False)
    converged: bool
    seed: int
    map_name: str
    swapped_for: str | None = None

    def look(self) -> Look:
        """One row: the numbers of the experiment."""
        names = ("word", "token", "error", "gamma", "alignment", "bound", "output_before", "output_after", "told_apart")
        columns = {name.replace("_", " "): [getattr(self, name)] for name in names}
        return Look(f"{self.map_name}, {self.training}, {self.objective}: error {self.error:.4f}", columns)

    @property
    def told_apart(self) -> bool:
        """True where the model gives the changed text the sign of its label, -y."""
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
    """The conditions of Theorem 4 or 5, at this sample."""
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


def result_at(
    new: NewText, witness: Witness, effort: Effort, *, training: str, objective: str
) -> OneWordGeneralization:
    """The result at one witness, every number recomputed through the map."""
    outputs = new.outputs(witness.word, witness.perturbation, training)
    gamma = abs(outputs.shift)
    return OneWordGeneralization(
        error=error_of(new, outputs),
        gamma=gamma,
        alignment=outputs.alignment,
        bound=finite_sample_bound(gamma, outputs.alignment, new.surprise),
        output_before=new.output_before,
        output_after=outputs.after,
        variant_output_before=outputs.before,
        text_output_after=new.text_output_after(training),
        token=new.text.word(witness.word),
        label=new.label,
        training=training,
        objective=objective,
        conditions=theorem_conditions(new, training, gamma),
        map_name=new.fit.phi.name,
        **vars(witness),
        **vars(effort),
    )
