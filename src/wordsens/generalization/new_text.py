"""A labelled text that a fit is about to learn: its features, what learning it moves, and its one-word functionals."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_choice
from wordsens.maps.arguments import as_text
from wordsens.maps.contract import DEFAULT_MEMORY_BUDGET
from wordsens.maps.functionals.contract import WordFunctionals
from wordsens.maps.functionals.table import word_functionals
from wordsens.regression import TRAININGS, MinNormFit, Update
from wordsens.text.matrix import TextMatrix


@dataclass(frozen=True)
class Outputs:
    """The linear models on one perturbed text, by definition.

    Attributes:
        shift: delta = (phi(X^i(Delta)) - phi(X)) . theta*.
        alignment: F = phi(X^i(Delta)) . direction of the training.
        before: phi(X^i(Delta)) . theta*.
        after: phi(X^i(Delta)) . theta after (X, y) is learned.
    """

    shift: float
    alignment: float
    before: float
    after: float


class NewText:
    """(X, y), and everything about it that does not depend on Delta. Shared by trainings, objectives and words.

    Args:
        fit: the model before it sees (X, y).
        x: the text X, of the training texts' shape.
        y_x: its label y, +1 or -1; the changed text's label is -y.
        memory_budget: bytes for intermediate results.

    Attributes:
        text: X.
        label: y.
        rows: X in the map's dtype.
        features: phi(X), (p,), float64.
        output_before: f(X) = phi(X) . theta*.
        surprise: y - f(X), what learning X has to make up for.

    Raises:
        InputError: a label, of X or of a training text, that is neither +1 nor -1; or a text of another shape.
    """

    def __init__(
        self, fit: MinNormFit, x: TextMatrix | Tensor, y_x: float | int, *, memory_budget: int = DEFAULT_MEMORY_BUDGET
    ):
        self.fit = fit
        self.text = as_text(x)
        _require_signs(fit.labels, y_x)
        self.label = float(y_x)
        if tuple(self.text.rows.shape) != fit.features.text_shape:
            raise InputError(
                f"`x` (shape {tuple(self.text.rows.shape)}) must have the shape of the training texts, "
                f"{fit.features.text_shape}; truncate it (TextMatrix.truncated)"
            )
        self.memory_budget = memory_budget
        self.rows = fit.phi.accept(self.text.rows)
        self.features = fit.map(self.rows)
        self.output_before = float(self.features @ fit.theta)
        self.surprise = self.label - self.output_before
        self._updates: dict[str, Update] = {}
        self._functionals: dict[str, WordFunctionals] = {}

    def update(self, training: str) -> Update:
        """What learning (X, y) does to the parameters; made once."""
        require_choice("training", training, TRAININGS)
        if training not in self._updates:
            self._updates[training] = self.fit.update(self.features, training)
        return self._updates[training]

    def functionals(self, kind: str) -> WordFunctionals:
        """(delta, F - F(X)) of pairs (word, Delta), F being the alignment of that kind; made once."""
        if kind not in self._functionals:
            thetas = torch.stack([self.fit.theta, self.update(kind).direction])
            self._functionals[kind] = word_functionals(
                self.fit.phi, self.rows, thetas, memory_budget=self.memory_budget
            )
        return self._functionals[kind]

    def text_output_after(self, training: str) -> float:
        """f(X) after (X, y) is learned: y, or short of it with a ridge."""
        return self.output_before + self.update(training).alignment * self.surprise

    def outputs(self, word: int, perturbation: Float[Tensor, " d"], training: str) -> Outputs:
        """The models on X^i(Delta): the perturbed text is built and mapped."""
        rows = self.rows.clone()
        rows[word] += perturbation.to(rows.dtype)
        features = self.fit.map(rows)
        shift = float((features - self.features) @ self.fit.theta)
        alignment = float(features @ self.update(training).direction)
        before = float(features @ self.fit.theta)
        return Outputs(shift, alignment, before, before + alignment * self.surprise)


def _require_signs(trained: Float[Tensor, " N"], y_x: float | int) -> None:
    others = sorted({*trained.tolist(), y_x} - {1, -1})
    if others:
        told = ", ".join(f"{label:g}" for label in others[:3]) + (", ..." if len(others) > 3 else "")
        name = "y_x" if y_x in others else "y"
        raise InputError(
            f"`{name}` (={told}) must be +1 or -1, since the changed text has the opposite label; map the labels "
            "first: 2 * y - 1 for labels 0 and 1"
        )
