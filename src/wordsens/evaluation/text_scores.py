"""The numbers that an explanation is about: of one or two texts, and of what becomes of them when a
text changes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_count
from wordsens.evaluation.similarities import SIMILARITY_OF, similarity_of
from wordsens.maps.transformer.features import TransformerFeatures, map_of
from wordsens.models.classifier import Classifier, as_classifier
from wordsens.models.load import as_model, as_pair_model, is_pair_model
from wordsens.models.model import SIMILARITIES, Model
from wordsens.models.pairs import PairModel
from wordsens.models.text_model import SIDES
from wordsens.text.matrix import TextMatrix
from wordsens.text.whole_words import Span

RowFunction = Callable[[Float[Tensor, "*batch n d"]], Float[Tensor, "*batch"]]


class TextScore(ABC):
    """One number of one or two texts, and what becomes of it when a text changes.

    Attributes:
        model: the name of the model.
        name: what the number is, in words.
        texts: one or two.
        signed: whether it can fall; a distance moved cannot.
        value: of the texts as they are.
    """

    model: str
    name: str
    texts: tuple[str, ...]
    signed: bool = True
    value: float

    @abstractmethod
    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        """The score with each of the texts in the place of the text on that side."""

    @abstractmethod
    def read_span(self, side: int) -> Span:
        """Where the part of that text that the model reads starts and stops."""

    def together(self, first: Sequence[str], second: Sequence[str]) -> Float[Tensor, "a b"] | None:
        """The score of every pair of the texts; None where it has one text, or every pair would
        cost an evaluation."""
        return None

    @abstractmethod
    def function(self, side: int) -> tuple[TransformerFeatures, TextMatrix, RowFunction]:
        """The map that reads that text, the text's rows, and the score of such rows.

        Raises:
            InputError: a model without gradients.
        """


def score_of(model: Any, text: str, other: str | None, target: int | None) -> TextScore:
    """The score that a model gives one or two texts; InputError for what it cannot be asked."""
    if isinstance(model, Classifier) or (
        isinstance(model, TransformerFeatures) and model.output == "probabilities"
    ):
        if other is not None:
            raise InputError(
                "`other` goes with a model of embeddings or of pairs; leave it out for a classifier"
            )
        return ClassScore(as_classifier(model), text, target)
    if target is not None:
        raise InputError(
            f"`target` (={target}) goes with a classifier: a TransformerFeatures of probabilities"
        )
    if isinstance(model, PairModel) or is_pair_model(model):
        if other is None:
            raise InputError("`other` is missing: this model scores pairs of texts; give both")
        return RerankerScore(as_pair_model(model), text, other)
    if isinstance(model, tuple) and all(isinstance(side, Model) for side in model):
        first, second = model
    else:
        first = second = as_model(model)
    return (
        DistanceMoved(first, text)
        if other is None
        else SimilarityScore((first, second), text, other)
    )


class SimilarityScore(TextScore):
    """The similarity of two texts' vectors: their cosine, or what else the models compare by."""

    def __init__(self, models: tuple[Model, Model], first: str, second: str):
        self.model, self.texts, self._models = models[0].name, (first, second), models
        self.name, self._compare = (
            SIMILARITIES[similarity_of(models)],
            SIMILARITY_OF[similarity_of(models)],
        )
        self._known: dict[tuple[int, str], Tensor] = {}
        self._unchanged = [self._vectors(0, [first]), self._vectors(1, [second])]
        self.value = float(self._compare(*self._unchanged))

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        return self._compare(self._vectors(side, texts), self._unchanged[1 - side])[:, 0]

    def read_span(self, side: int) -> Span:
        return self._models[side].read_span(self.texts[side])

    def together(self, first: Sequence[str], second: Sequence[str]) -> Float[Tensor, "a b"]:
        return self._compare(self._vectors(0, first), self._vectors(1, second))

    def _vectors(self, side: int, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        """The texts' vectors; a text is encoded once by each model."""
        side = side if self._models[0] is not self._models[1] else 0
        new = [text for text in dict.fromkeys(texts) if (side, text) not in self._known]
        if new:
            rows = self._models[side].encode(new)
            self._known |= {(side, text): row for text, row in zip(new, rows, strict=True)}
        return torch.stack([self._known[side, text] for text in texts])

    def function(self, side: int) -> tuple[TransformerFeatures, TextMatrix, RowFunction]:
        phi, other = map_of(self._models[side]), self._unchanged[1 - side]
        rows = phi.embed([self.texts[side]])[0]
        return phi, rows, lambda moved: self._compare(phi.features(moved), other.to(moved))[:, 0]


class DistanceMoved(TextScore):
    """The distance by which a changed text's vector is moved, over its length: ‖f(x') - f(x)‖ /
    ‖f(x)‖."""

    name, signed, value = "relative change", False, 0.0

    def __init__(self, model: Model, text: str):
        self.model, self.texts, self._model = model.name, (text,), model
        self._unchanged = model.encode([text])[0]

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        return self._relative(self._model.encode(texts))

    def _relative(self, vectors: Float[Tensor, "m d"]) -> Float[Tensor, " m"]:
        unchanged = self._unchanged.to(vectors)
        return (vectors - unchanged).norm(dim=-1) / unchanged.norm()

    def read_span(self, side: int) -> Span:
        return self._model.read_span(self.texts[0])

    def function(self, side: int) -> tuple[TransformerFeatures, TextMatrix, RowFunction]:
        phi = map_of(self._model)
        return (
            phi,
            phi.embed(list(self.texts))[0],
            lambda moved: self._relative(phi.features(moved)),
        )


class ClassScore(TextScore):
    """The probability of one class of a classifier; the number of a regression.

    Args:
        model: the classifier.
        text: what is classified.
        target: the class; None for the likeliest.
    """

    def __init__(self, model: Classifier, text: str, target: int | None):
        self.model, self.texts, self._model = model.name, (text,), model
        row = model.probabilities([text])[0]
        if target is not None:
            require_count("target", target, least=0)
            if target >= len(row):
                raise InputError(
                    f"`target` (={target}) is no class; {model.name} has 0 to {len(row) - 1}"
                )
        self._target = int(row.argmax()) if target is None else target
        number = "number" if model.kind == "regression" else "probability of class"
        self.name = f"{number} {model.label(self._target)}"
        self.value = float(row[self._target])

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        return self._model.probabilities(texts)[:, self._target]

    def read_span(self, side: int) -> Span:
        return self._model.read_span(self.texts[0])

    def function(self, side: int) -> tuple[TransformerFeatures, TextMatrix, RowFunction]:
        phi = map_of(self._model, self._model.output)
        return (
            phi,
            phi.embed(list(self.texts))[0],
            lambda rows: phi.features(rows)[..., self._target],
        )


class RerankerScore(TextScore):
    """The score that a model of pairs gives two texts; along gradients, its logit."""

    name = "score of the pair"

    def __init__(self, model: PairModel, first: str, second: str):
        self.model, self.texts, self._model = model.name, (first, second), model
        self.value = float(model.score([first], [second])[0])

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        unchanged = [self.texts[1 - side]] * len(texts)
        return self._model.score(*((texts, unchanged) if side == 0 else (unchanged, texts)))

    def read_span(self, side: int) -> Span:
        return self._model.read_spans(*self.texts)[side]

    def function(self, side: int) -> tuple[TransformerFeatures, TextMatrix, RowFunction]:
        phi = map_of(self._model, "logits")
        rows = phi.embed_pair(*self.texts, moves=SIDES[side])
        return phi, rows, lambda moved: phi.features(moved)[..., 0]


def gradient(function: RowFunction, rows: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """The slope of the score in the rows."""
    with torch.enable_grad():
        leaf = rows.detach().clone().requires_grad_(True)
        (slope,) = torch.autograd.grad(function(leaf.unsqueeze(0)).sum(), leaf)
    return slope
