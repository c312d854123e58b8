"""The setting of the one-word experiment: labels, a text that a fitted model is about to learn, and
its functionals."""

import sys
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_choice
from wordsens.generalization.features import Texts, as_equal_texts
from wordsens.generalization.min_norm import TRAININGS, MinNormFit, Update
from wordsens.generalization.result import TheoremConditions
from wordsens.maps.arguments import as_text
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET
from wordsens.maps.dense import RandomFeatures
from wordsens.maps.functionals import WordFunctionals, word_functionals
from wordsens.seeds import Seed, gaussian_on, generator
from wordsens.text.matrix import TextMatrix


@dataclass(frozen=True)
class Outputs:
    """The linear models on one perturbed text, by definition.

    Attributes:
        shift: delta = (phi(X^i(Delta)) - phi(X)) . theta*.
        alignment: F = phi(X^i(Delta)) . direction of the training.
        before: phi(X^i(Delta)) . theta*.
        after: phi(X^i(Delta)) . theta after (X, y) is learned.
        error: Err = (after + y)², the squared distance from -y.
    """

    shift: float
    alignment: float
    before: float
    after: float
    error: float

    @property
    def gamma(self) -> float:
        """|delta|."""
        return abs(self.shift)


SOLVED_DIGITS = 3
"""So many digits of theta* must be left by rounding for the theorems' numbers to be about it."""


class OneWordSetting:
    """(X, y), and everything about it that does not depend on Delta. Shared by trainings,
    objectives and words.

    Attributes:
        fit: the model before it sees (X, y).
        text: X.
        label: y; the changed text's label is -y.
        rows: X in the map's dtype.
        features: phi(X), (p,), float64.
        output_before: f(X) = phi(X) . theta*.
        surprise: y - f(X), what learning X has to make up for.
    """

    @torch.inference_mode(False)
    def __init__(
        self,
        fit: MinNormFit,
        x: TextMatrix | Tensor,
        y_x: float | int,
        *,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ):
        self.fit = fit
        self.text = as_text(x)
        if others := sorted({*fit.labels.tolist(), y_x} - {1, -1}):
            listed = ", ".join(f"{label:g}" for label in others[:3]) + (
                ", ..." if len(others) > 3 else ""
            )
            raise InputError(
                f"`{'y_x' if y_x in others else 'y'}` (={listed}) must be +1 or -1, since the "
                "changed text has the "
                "opposite label; map the labels first: 2 * y - 1 for labels 0 and 1"
            )
        self.label = float(y_x)
        if tuple(self.text.rows.shape) != fit.features.text_shape:
            raise InputError(
                f"`x` (shape {tuple(self.text.rows.shape)}) must have the shape of the training "
                "texts, "
                f"{fit.features.text_shape}; truncate it (TextMatrix.truncated)"
            )
        self.memory_budget = memory_budget
        self.rows = fit.phi.accept(self.text.rows)
        self.features = fit.map(self.rows)
        self.output_before = float(self.features @ fit.theta)
        self.surprise = self.label - self.output_before
        self._updates: dict[str, Update] = {}
        self._functionals: dict[tuple[str, ...], WordFunctionals] = {}

    @torch.inference_mode(False)
    def update(self, training: str) -> Update:
        """The change of the parameters when (X, y) is learned; made once."""
        require_choice("training", training, TRAININGS)
        if training not in self._updates:
            self._updates[training] = self.fit.update(self.features, training)
        return self._updates[training]

    @torch.inference_mode(False)
    def functionals(self, *kinds: str) -> WordFunctionals:
        """delta, and F - F(X) for each kind of alignment F, of pairs (word, Delta); made once."""
        if kinds not in self._functionals:
            thetas = torch.stack([self.fit.theta, *(self.update(kind).direction for kind in kinds)])
            self._functionals[kinds] = word_functionals(
                self.fit.phi, self.rows, thetas, memory_budget=self.memory_budget
            )
        return self._functionals[kinds]

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
        after = before + alignment * self.surprise
        return Outputs(shift, alignment, before, after, (after + self.label) ** 2)

    def conditions(self, training: str, gamma: float) -> TheoremConditions:
        """The conditions of Theorem 4 or 5, at this sample."""
        texts, condition = len(self.fit.features), self.fit.conditioning.condition
        return TheoremConditions(
            theorem=4 if training == "fine-tuned" else 5,
            random_features=isinstance(self.fit.phi, RandomFeatures),
            gamma_below_two=gamma < 2,
            texts_per_feature=texts / self.fit.features.size,
            texts_per_coordinate=texts / self.rows.numel(),
            condition=condition,
            solved=condition * texts * sys.float_info.epsilon <= 10.0**-SOLVED_DIGITS,
        )


def linear_labels(texts: Texts, seed: Seed = 0) -> Float[Tensor, " N"]:
    """The sign of a linear function of each text: sign(<G, X>), G iid N(0, 1), fixed by the seed; 0
    gives +1.

    >>> linear_labels(torch.ones(2, 3, 4)).tolist() in ([1.0, 1.0], [-1.0, -1.0])
    True
    """
    rows = as_equal_texts(texts)
    direction = gaussian_on(
        *rows[0].shape,
        generator=generator(seed, "linear labels"),
        dtype=torch.float64,
        device=rows[0].device,
    )
    products = torch.stack([(text.double() * direction).sum() for text in rows])
    return torch.where(products >= 0, 1.0, -1.0).double()


def random_labels(count: int, seed: Seed = 0) -> Float[Tensor, " N"]:
    """+1 and -1 with equal chances.

    >>> sorted(set(random_labels(100).tolist()))
    [-1.0, 1.0]
    """
    drawn = torch.rand(count, generator=generator(seed, "random labels"), dtype=torch.float64)
    return torch.where(drawn < 0.5, -1.0, 1.0).double()
