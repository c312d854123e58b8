"""The numbers that an explanation is about: of one or two texts, and of what becomes of them when a
text changes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from wordsens.errors import InputError, argument, require_count
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

# The map that reads a text, the text's rows, and the score of such rows.
ScoredRows = tuple[TransformerFeatures, TextMatrix, RowFunction]

# The changes of a score, and the labels of the changed texts where they differ from the text's own.
Changes = tuple[list[float], list[str]]


class TextScore(ABC):
    """One number of one or two texts, and what becomes of it when a text changes.

    Attributes:
        model: the name of the model.
        name: what the number is, in words.
        texts: one or two.
        signed: whether it can fall; a distance moved cannot.
        value: of the texts as they are.
        read: where the part of each text that the model reads starts and stops.
        window: the part of a single text that is measured, where that is not all of it.
    """

    name: str
    value: float
    signed: bool = True
    window: Span | None = None

    def __init__(self, model: Any, texts: tuple[str, ...], read: tuple[Span, ...]):
        self.model: str = model.name
        self.texts = texts
        self.read = read
        self._model = model

    @abstractmethod
    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        """The score with each of the texts in the place of the text on that side."""

    @abstractmethod
    def rows(self, side: int) -> ScoredRows:
        """The rows of that text and their score; InputError for a model without gradients."""

    def spans(self, side: int) -> list[Span]:
        """The words of the text on that side that are measured, signs among them."""
        return _within(word_spans(self.texts[side]), self.read[side])

    def changed(self, side: int, span: Span, word: str = "") -> str:
        """The text on that side, or the part of it that is measured, without the characters of the
        span, or with another word there."""
        text = self.texts[side]
        start, stop = self.window or (0, len(text))
        place = span[0] - start, span[1] - start
        text = text[start:stop]
        return with_word(text, place, word) if word else without(text, place)

    def changes(self, side: int, texts: Sequence[str], progress: Progress) -> Changes:
        """The changes with each of the texts in the place of the text on that side."""
        scores = encoded(lambda part: self.of(side, part), texts, progress)
        return (scores - self.value).tolist(), self.labels(texts)

    def labels(self, texts: Sequence[str]) -> list[str]:
        """The label of each text, "" where it is that of the text itself; "" without a
        classifier."""
        return [""] * len(texts)

    def removed(self, side: int, spans: Sequence[Span], way: str, progress: Progress) -> Changes:
        """The changes without each word.

        Raises:
            InputError: "mask", for a model that is not run from tokens.
        """
        if way == "mask":
            raise InputError(
                f"{argument('way')} (='mask') needs a mask token, and {self.model} gives vectors "
                "alone; use 'delete'"
            )
        return self.changes(side, [self.changed(side, span) for span in spans], progress)


def score_of_words(model: Model | Classifier, text: str, max_words: int | None) -> TextScore:
    """The score of a text on its own: of its label for a Classifier, else the relative change; from
    the tokens where the model can be run from them and they are known to belong to words."""
    if isinstance(model, Classifier):
        labelled = model.kind != REGRESSION
        return LabelScore(model, text) if labelled else ClassScore(model, text, None)
    if model.no_rows is None:
        phi = map_of(model)
        (X,) = phi.embed([text], max_words=max_words)
        if X.whole_words is not None:
            return TokensMoved(phi, text, X, max_words)
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
            f"{argument('target')} (={target}) goes with a classifier: a TransformerFeatures of "
            "probabilities"
        )
    if isinstance(model, PairModel) or is_pair_model(model):
        if other is None:
            raise InputError("`other` is missing: this model scores pairs of texts; give both")
        return RerankerScore(as_pair_model(model), text, other)
    if not (isinstance(model, tuple) and all(isinstance(side, Model) for side in model)):
        model = (as_model(model),) * 2
    return DistanceMoved(model[0], text) if other is None else SimilarityScore(model, text, other)


class SimilarityScore(TextScore):
    """The similarity of two texts' vectors: their cosine, or what else the models compare by."""

    def __init__(self, models: tuple[Model, Model], first: str, second: str):
        read = models[0].read_span(first), models[1].read_span(second)
        super().__init__(models[0], (first, second), read)
        self._models = models
        similarity = similarity_of(models)
        self.name = SIMILARITIES[similarity]
        self._compare = SIMILARITY_OF[similarity]
        known: dict[str, Tensor] = {}
        self._known = known, known if models[0] is models[1] else {}
        self._unchanged = [self._vectors(0, [first]), self._vectors(1, [second])]
        self.value = float(self._compare(*self._unchanged))

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        vectors = self._vectors(side, texts)
        return self._compare(vectors, self._unchanged[1 - side])[:, 0]

    def together(self, first: Sequence[str], second: Sequence[str]) -> Float[Tensor, "a b"]:
        """The score of every pair of the texts."""
        return self._compare(self._vectors(0, first), self._vectors(1, second))

    def _vectors(self, side: int, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        return _remembered(self._known[side], texts, self._models[side].encode)

    def rows(self, side: int) -> ScoredRows:
        phi = map_of(self._models[side])
        (X,) = phi.embed([self.texts[side]])
        other = self._unchanged[1 - side]
        return phi, X, lambda moved: self._compare(phi.features(moved), other.to(moved))[:, 0]


class DistanceMoved(TextScore):
    """The distance by which a changed text's vector is moved, over its length: ‖f(x') - f(x)‖ /
    ‖f(x)‖."""

    name = "relative change"
    signed = False
    value = 0.0

    def __init__(self, model: Model, text: str, window: Span | None = None):
        super().__init__(model, (text,), (window or model.read_span(text),))
        self.window = window

    @cached_property
    def _unchanged(self) -> Float[Tensor, " d"]:
        text = self.texts[0]
        return self._model.encode([text[slice(*self.window)] if self.window else text])[0]

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        unchanged = self._unchanged  # first, so that a refusal names the text itself
        return _relative_change(self._model.encode(texts), unchanged)

    def rows(self, side: int) -> ScoredRows:
        phi = map_of(self._model)
        (X,) = phi.embed(list(self.texts))
        return phi, X, lambda moved: _relative_change(phi.features(moved), self._unchanged)


def _relative_change(
    vectors: Float[Tensor, "*b d"], unchanged: Float[Tensor, " d"]
) -> Float[Tensor, "*b"]:
    return (vectors - unchanged.to(vectors)).norm(dim=-1) / unchanged.norm()


class TokensMoved(DistanceMoved):
    """The same for a transformer that is run from its tokens, cut to the first `max_words`:
    deleting or masking a word changes its tokens alone."""

    def __init__(self, phi: TransformerFeatures, text: str, X: TextMatrix, max_words: int | None):
        self._rows = X
        self._max_words = max_words
        words = self.spans(0)
        super().__init__(phi, text, (words[0][0], words[-1][1]) if words else None)

    def spans(self, side: int) -> list[Span]:
        return [(word.start, word.stop) for word in self._rows.whole_words or ()]

    def removed(self, side: int, spans: Sequence[Span], way: str, progress: Progress) -> Changes:
        every = self.spans(side)
        words = [every.index(span) for span in spans]
        found = removal_effects(
            self._model, self.texts[0], words, way=way, max_words=self._max_words
        )
        progress(found.evaluations)
        return found.per_word.tolist(), self.labels(found.tokens)

    def rows(self, side: int) -> ScoredRows:
        phi = self._model
        unchanged = phi(self._rows.rows).flatten()

        def score(moved: Tensor) -> Tensor:
            return _relative_change(phi.features(moved).flatten(1), unchanged)

        return phi, self._rows, score


class ClassScore(TextScore):
    """The probability of one class of a classifier; the number of a regression.

    Args:
        model: the classifier.
        text: what is classified.
        target: the class; None for the likeliest.
    """

    def __init__(self, model: Classifier, text: str, target: int | None):
        super().__init__(model, (text,), (model.read_span(text),))
        self._known: dict[str, Tensor] = {}
        row = self._rows([text])[0]
        if target is None:
            target = int(row.argmax())
        if require_count("target", target, least=0) >= len(row):
            raise InputError(
                f"{argument('target')} (={target}) is no class; {model.name} has 0 to "
                f"{len(row) - 1}"
            )
        self._target = target
        number = "number" if model.kind == REGRESSION else "probability of class"
        self.name = f"{number} {model.label(target)}"
        self.value = float(row[target])

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        return self._number(self._rows(texts))

    def _number(self, rows: Float[Tensor, "m classes"]) -> Float[Tensor, " m"]:
        return rows[..., self._target]

    def labels(self, texts: Sequence[str]) -> list[str]:
        if self._model.kind == REGRESSION:
            return super().labels(texts)
        rows = self._rows([*self.texts, *texts])
        unchanged, *labels = self._model.labels_of(rows)
        return ["" if label == unchanged else label for label in labels]

    def _rows(self, texts: Sequence[str]) -> Float[Tensor, "m classes"]:
        return _remembered(self._known, texts, self._model.probabilities)

    def spans(self, side: int) -> list[Span]:
        return words_read(self.texts[0], self.read[0])[0]

    def rows(self, side: int) -> ScoredRows:
        phi = map_of(self._model, self._model.output)
        (X,) = phi.embed(list(self.texts))
        return phi, X, lambda moved: self._number(phi.features(moved))


class LabelScore(ClassScore):
    """The probability of the label that a classifier gives a text; of several independent labels
    the smallest one."""

    def __init__(self, model: Classifier, text: str):
        super().__init__(model, text, None)
        self.name = "probability of the label"
        self._row = self._rows([text])[0]
        self.value = float(self._number(self._row.unsqueeze(0)))
        # Without a word no other may come in from behind what is read.
        self.window = self.read[0]

    def _number(self, rows: Float[Tensor, "m classes"]) -> Float[Tensor, " m"]:
        return self._model.support(rows, self._row.to(rows))


class RerankerScore(TextScore):
    """The score that a model of pairs gives two texts; along gradients, its logit."""

    name = "score of the pair"

    def __init__(self, model: PairModel, first: str, second: str):
        super().__init__(model, (first, second), model.read_spans(first, second))
        self.value = float(model.score([first], [second])[0])

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        pair = [[text] * len(texts) for text in self.texts]
        pair[side] = list(texts)
        return self._model.score(*pair)

    def rows(self, side: int) -> ScoredRows:
        phi = map_of(self._model, "logits")
        X = phi.embed_pair(*self.texts, moves=SIDES[side])
        return phi, X, lambda moved: phi.features(moved)[..., 0]


def _remembered(
    known: dict[str, Tensor], texts: Sequence[str], rows_of: Callable[[list[str]], Tensor]
) -> Float[Tensor, "m _"]:
    """The rows of the texts; a text is run once."""
    if new := [text for text in dict.fromkeys(texts) if text not in known]:
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
