"""The number that an explanation is about: a cosine, a reranker's score, a class's probability, or a distance moved."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from wordsens.errors import InputError, require_count
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.reader import SIDES
from wordsens.models.black_box import Model
from wordsens.models.pairs import PairModel
from wordsens.text.matrix import TextMatrix

Function = Callable[[Float[Tensor, "*batch n d"]], Float[Tensor, "*batch"]]


class Score(ABC):
    """One number of one or two texts, and what becomes of it when a text changes.

    Attributes:
        name: what it is, in words.
        texts: one or two.
        signed: whether it can fall; a distance moved cannot.
        value: of the texts as they are.
    """

    name: str
    texts: tuple[str, ...]
    signed: bool = True
    value: float

    @abstractmethod
    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        """The score with each of the texts in the place of the text on that side."""

    def together(self, first: Sequence[str], second: Sequence[str]) -> Float[Tensor, "a b"] | None:
        """The score of every pair of the texts; None where it has one text, or every pair would cost an evaluation."""
        return None

    def function(self, side: int) -> tuple[TransformerFeatures, TextMatrix, Function]:
        """The map that reads that text, the text's rows, and the score of such rows.

        Raises:
            InputError: a model without gradients.
        """
        raise InputError(f"the {self.name} has no gradient")


class CosineScore(Score):
    """The cosine of two texts' vectors."""

    name = "cosine"

    def __init__(self, model: Model, first: str, second: str):
        self.texts, self._model = (first, second), model
        self._known: dict[str, Tensor] = {}
        self._own = self._units([first, second])
        self.value = float(self._own[0] @ self._own[1])

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        return self._units(texts) @ self._own[1 - side]

    def together(self, first: Sequence[str], second: Sequence[str]) -> Float[Tensor, "a b"]:
        return self._units(first) @ self._units(second).T

    def _units(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        """The texts' vectors at length one; a text is encoded once."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known |= dict(zip(new, normalize(self._model.encode(new), dim=1), strict=True))
        return torch.stack([self._known[text] for text in texts])

    def function(self, side: int) -> tuple[TransformerFeatures, TextMatrix, Function]:
        phi, still = self._model.features(), self._own[1 - side]

        def cosine(rows: Tensor) -> Tensor:
            return normalize(phi.features(rows), dim=-1) @ still.to(rows)

        return phi, phi.embed([self.texts[side]])[0], cosine


class MovedScore(Score):
    """The distance by which a changed text's vector is moved, over its length: ‖f(x') - f(x)‖ / ‖f(x)‖."""

    name, signed, value = "relative change", False, 0.0

    def __init__(self, model: Model, text: str):
        self.texts, self._model = (text,), model
        self._own = model.encode([text])[0]

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        return (self._model.encode(texts) - self._own).norm(dim=1) / self._own.norm()

    def function(self, side: int) -> tuple[TransformerFeatures, TextMatrix, Function]:
        phi = self._model.features()

        def moved(rows: Tensor) -> Tensor:
            own = self._own.to(rows)
            return (phi.features(rows) - own).norm(dim=-1) / own.norm()

        return phi, phi.embed(list(self.texts))[0], moved


class ClassScore(Score):
    """The probability of one class of a classifier.

    Args:
        phi: with output "probabilities".
        text: what is classified.
        target: the class; None for the likeliest.
    """

    def __init__(self, phi: TransformerFeatures, text: str, target: int | None):
        self.texts, self._phi = (text,), phi
        probabilities = phi.encode([text])[0]
        if target is not None:
            require_count("target", target, least=0)
            if target >= len(probabilities):
                raise InputError(f"`target` (={target}) is no class; {phi.name} has 0 to {len(probabilities) - 1}")
        self._target = int(probabilities.argmax()) if target is None else target
        labels: Any = getattr(phi.stack.model.config, "id2label", None) or {}
        self.name = f"probability of class {labels.get(self._target, self._target)}"
        self.value = float(probabilities[self._target])

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        return self._phi.encode(texts)[:, self._target]

    def function(self, side: int) -> tuple[TransformerFeatures, TextMatrix, Function]:
        phi = self._phi
        return phi, phi.embed(list(self.texts))[0], lambda rows: phi.features(rows)[..., self._target]


class RerankerScore(Score):
    """The score that a model of pairs gives two texts; along gradients, its logit."""

    name = "score of the pair"

    def __init__(self, model: PairModel, first: str, second: str):
        self.texts, self._model = (first, second), model
        self.value = float(model.score([first], [second])[0])

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        still = [self.texts[1 - side]] * len(texts)
        return self._model.score(*((texts, still) if side == 0 else (still, texts)))

    def function(self, side: int) -> tuple[TransformerFeatures, TextMatrix, Function]:
        phi = self._model.features()
        rows = phi.embed_pair(*self.texts, moves=SIDES[side])
        return phi, rows, lambda moved: phi.features(moved)[..., 0]


def gradient(function: Function, rows: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """The slope of the score in the rows."""
    with torch.enable_grad():
        leaf = rows.detach().clone().requires_grad_(True)
        (slope,) = torch.autograd.grad(function(leaf.unsqueeze(0)).sum(), leaf)
    return slope
