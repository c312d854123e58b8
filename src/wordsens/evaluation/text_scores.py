"""The numbers that an explanation is about: of one or two texts, and of what becomes of them when a
text changes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from wordsens.errors import InputError, require_count
from wordsens.evaluation.pairs import SIMILARITY_OF, similarity_of
from wordsens.evaluation.texts import Progress, encoded
from wordsens.maps.transformer.features import TransformerFeatures, map_of
from wordsens.models.classifier import REGRESSION, Classifier, as_classifier
from wordsens.models.load import as_model, as_pair_model, is_pair_model
from wordsens.models.model import SIMILARITIES, Model
from wordsens.models.pairs import PairModel
from wordsens.models.text_model import SIDES
from wordsens.sensitivity.replacements import removal_effects
from wordsens.text.matrix import TextMatrix
from wordsens.text.whole_words import Span, lettered_spans, with_word, without, word_spans

RowFunction = Callable[[Float[Tensor, "*batch n d"]], Float[Tensor, "*batch"]]


class TextScore(ABC):
    """One number of one or two texts, and what becomes of it when a text changes.

    Attributes:
        model: the name of the model.
        name: what the number is, in words.
        texts: one or two.
        signed: whether it can fall; a distance moved cannot.
        value: of the texts as they are.
        window: the part of a single text that is measured, where that is not all of it.
    """

    model: str
    name: str
    texts: tuple[str, ...]
    signed: bool = True
    value: float
    window: Span | None = None
    _model: Any

    @abstractmethod
    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        """The score with each of the texts in the place of the text on that side."""

    def read_span(self, side: int) -> Span:
        """Where the part of that text that the model reads starts and stops."""
        return self.window or self._model.read_span(self.texts[side])

    def labels(self, texts: Sequence[str]) -> list[str]:
        """The label of each text, "" where it is that of the text itself; "" without a
        classifier."""
        return [""] * len(texts)

    def changes(
        self, side: int, texts: Sequence[str], progress: Progress = lambda done: None
    ) -> tuple[list[float], list[str]]:
        """The change of the score with each of the texts in the place of the text on that side,
        and their labels."""
        scores = encoded(lambda part: self.of(side, part), texts, progress)
        return (scores - self.value).tolist(), self.labels(texts)

    def changed(self, side: int, span: Span, word: str = "") -> str:
        """The text on that side, or the part of it that is measured, without the characters of the
        span, or with another word there."""
        start, stop = self.window if side == 0 and self.window else (0, len(self.texts[side]))
        text, place = self.texts[side][start:stop], (span[0] - start, span[1] - start)
        return with_word(text, place, word) if word else without(text, place)

    def spans(self, side: int) -> list[Span]:
        """The words of the text on that side that are measured, signs among them."""
        return _within(word_spans(self.texts[side]), self.read_span(side))

    def removed(
        self, side: int, spans: Sequence[Span], way: str, progress: Progress = lambda done: None
    ) -> tuple[list[float], list[str]]:
        """The change of the score without each word, and the labels.

        Raises:
            InputError: "mask", for a model that is not run from tokens.
        """
        if way == "mask":
            raise InputError(
                f"`way` (='mask') needs a mask token, and {self.model} gives vectors alone; use "
                "'delete'"
            )
        return self.changes(side, [self.changed(side, span) for span in spans], progress)

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


def score_of_words(model: Model | Classifier, text: str, max_words: int | None) -> TextScore:
    """The score of a text on its own: of its label for a Classifier, else the relative change; from
    the tokens where the model can be run from them."""
    if isinstance(model, Classifier):
        return ClassScore(model, text, None)
    if model.no_rows is None:
        return TokensMoved(map_of(model), text, max_words)
    every = word_spans(text)
    spans = _within(every, model.read_span(text))[:max_words]
    # Without a word no other may come in from behind what is read.
    whole = len(spans) in (0, len(every))
    return DistanceMoved(model, text, None if whole else (spans[0][0], spans[-1][1]))


def _within(spans: Iterable[Span], limits: Span) -> list[Span]:
    return [span for span in spans if limits[0] <= span[0] and span[1] <= limits[1]]


def words_read(text: str, limits: Span) -> tuple[list[Span], list[Span]]:
    """The words of the text within what the model reads, and the others; signs are no words."""
    every = lettered_spans(text)
    read = _within(every, limits)
    return read, [span for span in every if span not in read]


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
        similarity = similarity_of(models)
        self.name, self._compare = SIMILARITIES[similarity], SIMILARITY_OF[similarity]
        known: dict[str, Tensor] = {}
        self._known = known, known if models[0] is models[1] else {}
        self._unchanged = [self._vectors(0, [first]), self._vectors(1, [second])]
        self.value = float(self._compare(*self._unchanged))

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        return self._compare(self._vectors(side, texts), self._unchanged[1 - side])[:, 0]

    def read_span(self, side: int) -> Span:
        return self._models[side].read_span(self.texts[side])

    def together(self, first: Sequence[str], second: Sequence[str]) -> Float[Tensor, "a b"]:
        return self._compare(self._vectors(0, first), self._vectors(1, second))

    def _vectors(self, side: int, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        return _remembered(self._known[side], texts, self._models[side].encode)

    def function(self, side: int) -> tuple[TransformerFeatures, TextMatrix, RowFunction]:
        phi, other = map_of(self._models[side]), self._unchanged[1 - side]
        rows = phi.embed([self.texts[side]])[0]
        return phi, rows, lambda moved: self._compare(phi.features(moved), other.to(moved))[:, 0]


class DistanceMoved(TextScore):
    """The distance by which a changed text's vector is moved, over its length: ‖f(x') - f(x)‖ /
    ‖f(x)‖."""

    name, signed, value = "relative change", False, 0.0

    def __init__(self, model: Model, text: str, window: Span | None = None):
        self.model, self.texts, self.window, self._model = model.name, (text,), window, model

    @cached_property
    def _unchanged(self) -> Float[Tensor, " d"]:
        text = self.texts[0]
        return self._model.encode([text[slice(*self.window)] if self.window else text])[0]

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        unchanged = self._unchanged  # first, so that a refusal names the text itself
        return _relative_change(self._model.encode(texts), unchanged)

    def function(self, side: int) -> tuple[TransformerFeatures, TextMatrix, RowFunction]:
        phi = map_of(self._model)
        rows = phi.embed(list(self.texts))[0]
        return phi, rows, lambda moved: _relative_change(phi.features(moved), self._unchanged)


def _relative_change(
    vectors: Float[Tensor, "*b d"], unchanged: Float[Tensor, " d"]
) -> Float[Tensor, "*b"]:
    return (vectors - unchanged.to(vectors)).norm(dim=-1) / unchanged.norm()


class TokensMoved(DistanceMoved):
    """The same for a transformer that is run from its tokens, cut to the first `max_words`:
    deleting or masking a word changes its tokens alone."""

    def __init__(self, phi: TransformerFeatures, text: str, max_words: int | None):
        (self._rows,) = phi.embed([text], max_words=max_words)
        words = self._rows.whole_words or ()
        window = (words[0].start, words[-1].stop) if words else None
        super().__init__(phi, text, window)
        self._phi, self._max_words = phi, max_words

    def spans(self, side: int) -> list[Span]:
        return [(word.start, word.stop) for word in self._rows.whole_words or ()]

    def removed(
        self, side: int, spans: Sequence[Span], way: str, progress: Progress = lambda done: None
    ) -> tuple[list[float], list[str]]:
        places = {span: place for place, span in enumerate(self.spans(side))}
        words = [places[span] for span in spans]
        found = removal_effects(self._phi, self.texts[0], words, way=way, max_words=self._max_words)
        progress(found.evaluations)
        return found.per_word.tolist(), self.labels(found.tokens)

    def function(self, side: int) -> tuple[TransformerFeatures, TextMatrix, RowFunction]:
        phi, unchanged = self._phi, self._phi(self._rows.rows).flatten()
        return (
            phi,
            self._rows,
            lambda rows: _relative_change(phi.features(rows).flatten(1), unchanged),
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
        self._known: dict[str, Tensor] = {}
        row = self._rows([text])[0]
        if target is not None:
            require_count("target", target, least=0)
            if target >= len(row):
                raise InputError(
                    f"`target` (={target}) is no class; {model.name} has 0 to {len(row) - 1}"
                )
        self._target = int(row.argmax()) if target is None else target
        number = "number" if model.kind == REGRESSION else "probability of class"
        self.name = f"{number} {model.label(self._target)}"
        self.value = float(row[self._target])

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        return self._rows(texts)[:, self._target]

    def labels(self, texts: Sequence[str]) -> list[str]:
        if self._model.kind == REGRESSION:
            return super().labels(texts)
        unchanged, *labels = self._model.labels_of(self._rows([*self.texts, *texts]))
        return ["" if label == unchanged else label for label in labels]

    def spans(self, side: int) -> list[Span]:
        return words_read(self.texts[0], self.read_span(0))[0]

    def _rows(self, texts: Sequence[str]) -> Float[Tensor, "m classes"]:
        return _remembered(self._known, texts, self._model.probabilities)

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


def _remembered(
    known: dict[str, Tensor],
    texts: Sequence[str],
    rows_of: Callable[[list[str]], Tensor],
) -> Float[Tensor, "m _"]:
    """The rows of the texts; a text is run once."""
    new = [text for text in dict.fromkeys(texts) if text not in known]
    if new:
        known |= zip(new, rows_of(new), strict=True)
    return torch.stack([known[text] for text in texts])


def uphill(
    function: RowFunction, start: Float[Tensor, "n d"], rows: Float[Tensor, "n d"]
) -> Float[Tensor, "n d"]:
    """For each row a step of its length up the slope that the score has at `start`."""
    with torch.enable_grad():
        leaf = start.detach().clone().requires_grad_(True)
        (slope,) = torch.autograd.grad(function(leaf.unsqueeze(0)).sum(), leaf)
    return torch.linalg.vector_norm(rows, dim=1, keepdim=True) * normalize(slope, dim=1)
