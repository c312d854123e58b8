"""The words that carry one score, one embedding, or one text's sensitivity under a map."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from wordsens.errors import InputError, require_count
from wordsens.evaluation.explanation import SHOWN, Explanation, PairEffect, WordEffect
from wordsens.evaluation.replacements import Replacements, fits, neighbours
from wordsens.evaluation.similarities import SIMILARITY_OF, similarity_of
from wordsens.maps.base import FeatureMap
from wordsens.maps.mapping import perturbed_texts
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.loaded import SIDES
from wordsens.models.black_box import SIMILARITIES, Model
from wordsens.models.classifier import Classifier, as_classifier
from wordsens.models.load import as_model, as_pair_model, is_pair_model
from wordsens.models.pairs import PairModel
from wordsens.seeds import Seed
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.text.matrix import TextMatrix
from wordsens.text.shipped_data import shipped_reviews
from wordsens.text.whole_words import Span, lettered_spans, with_word, without, words_at

BATCH = 32
"""Moved texts that run together."""

Function = Callable[[Float[Tensor, "*batch n d"]], Float[Tensor, "*batch"]]


@dataclass(frozen=True, kw_only=True)
class ExplainPlan:
    """The effort of an explanation.

    Attributes:
        tries: other words tried in the place of each: its counterpart of the other text, listed opposites, then the
            model's nearest words of the same kind and ending; of a black box random ones.
        vectors: whether each word is also moved as a vector, where the model has gradients.
    """

    tries: int = 8
    vectors: bool = True

    def __post_init__(self) -> None:
        require_count("tries", self.tries, least=0)


def explain(
    model: Any,
    text: str | TextMatrix,
    other: str | None = None,
    *,
    target: int | None = None,
    plan: ExplainPlan | None = None,
    seed: Seed = 0,
) -> Explanation:
    """The words that carry a number: what becomes of it without each, with another in its place, or moved as a vector.

    The number is the cosine of two texts, or what else the model compares by (similarity_fn_name); of a model that
    scores pairs, its score; of a classifier, the probability of a class; of one text alone, how far its vector moves. A
    removal and a swap are one change each, by encoding the text again; `lowers` and `raises` are attained: the score at
    x_G ± the longest step along its slope, ‖x_j‖ for every row j of the word G, lower bounds of what the best vector
    does. Words past what the model reads have no numbers.

    Args:
        model: whatever `as_model` or `as_pair_model` takes; a Classifier or a TransformerFeatures with
            output="probabilities" for classes; or any feature map, with `text` as rows: its sensitivities and their
            certified bounds. Two Models, for the first and the second text, such as one with two prompts.
        text: the text.
        other: the text that it is compared with.
        target: the class; None for the likeliest.
        plan: the effort.
        seed: of the random words.

    Raises:
        InputError: no such model, a text without a word, or what the model cannot be asked.

    >>> def letters(texts):
    ...     return [[text.count(letter) + 0.1 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
    >>> result = explain(letters, "the door is open", "the door is shut", plan=ExplainPlan(tries=0))
    >>> result.most("apart", 1)[0].word, result.most("apart", 1)[0].counterpart
    ('open', 'shut')
    """
    if isinstance(text, TextMatrix):
        return _of_rows(model, text, seed)
    plan = plan or ExplainPlan()
    score, name = _score(model, text, other, target)
    notes: list[str] = []
    longest = max(len(lettered_spans(each)) for each in score.texts)
    if longest < 2:
        raise InputError(f"`text` (={text[:40]!r}) has {longest} words; an explanation compares two or more")
    spans = [_words(score, side, notes) for side in range(len(score.texts))]
    effects = [_removed(score, side, spans[side]) for side in range(len(score.texts))]
    effects, pairs = _together(score, spans, effects)
    for side in range(len(score.texts)):
        if plan.tries:
            effects[side] = _swapped(score, side, spans, effects[side], plan.tries, seed)
        if plan.vectors:
            effects[side], note = _moved(score, side, spans[side], effects[side])
            notes += [note] if note and note not in notes else []
    words = [word for side, own in enumerate(effects) for word in _with_unread(score, side, own)]
    place = {(word.side, word.start): at for at, word in enumerate(words)}
    measured = [place[word.side, word.start] for own in effects for word in own]
    pairs = tuple(replace(pair, first_at=measured[pair.first_at], second_at=measured[pair.second_at]) for pair in pairs)
    return Explanation(name, score.name, score.value, score.texts, tuple(words), pairs, tuple(notes))


def _score(model: Any, text: str, other: str | None, target: int | None) -> tuple["Score", str]:
    if isinstance(model, Classifier) or (isinstance(model, TransformerFeatures) and model.output == "probabilities"):
        if other is not None:
            raise InputError("`other` goes with a model of embeddings or of pairs; leave it out for a classifier")
        return ClassScore(as_classifier(model), text, target), model.name
    if target is not None:
        raise InputError(f"`target` (={target}) goes with a classifier: a TransformerFeatures of probabilities")
    if isinstance(model, PairModel) or is_pair_model(model):
        if other is None:
            raise InputError("`other` is missing: this model scores pairs of texts; give both")
        pair = as_pair_model(model)
        return RerankerScore(pair, text, other), pair.name
    sides = model if isinstance(model, tuple) and all(isinstance(side, Model) for side in model) else None
    loaded = as_model(model) if sides is None else sides[0]
    if other is None:
        return MovedScore(loaded, text), loaded.name
    return VectorScore((loaded, loaded) if sides is None else sides, text, other), loaded.name


def _words(score: "Score", side: int, notes: list[str]) -> list[Span]:
    """The places of the words that the model reads, of a text with several; a note names the others."""
    text, (start, stop) = score.texts[side], score.read_span(side)
    spans = lettered_spans(text)
    whose = ("the first text", "the second text")[side] if len(score.texts) > 1 else "the text"
    if len(spans) < 2:
        notes.append(
            f"{whose} has {'one word' if spans else 'no word'}: nothing would be left without it, so that it "
            "has no numbers"
        )
        return []
    read = [span for span in spans if start <= span[0] and span[1] <= stop]
    lost = [span for span in spans if span not in read]
    if lost:
        notes.append(
            f"{len(lost)} of {len(spans)} words of {whose}, from '{text[slice(*lost[0])]}' to "
            f"'{text[slice(*lost[-1])]}', are past what the model reads and have no numbers; explain a shorter "
            "passage"
        )
    return read


def _with_unread(score: "Score", side: int, effects: Sequence[WordEffect]) -> list[WordEffect]:
    """The words of a text, those that the model does not read without numbers."""
    text, known = score.texts[side], {word.start: word for word in effects}
    return [
        known.get(start) or WordEffect(side=side, word=text[start:stop], start=start, stop=stop, removal=None)
        for start, stop in lettered_spans(text)
    ]


def _removed(score: "Score", side: int, spans: Sequence[Span]) -> list[WordEffect]:
    text = score.texts[side]
    if not spans:
        return []
    changes = score.of(side, [without(text, span) for span in spans]) - score.value
    return [
        WordEffect(side=side, word=text[start:stop], start=start, stop=stop, removal=change)
        for (start, stop), change in zip(spans, changes.tolist(), strict=True)
    ]


def _together(
    score: "Score", spans: Sequence[Sequence[Span]], effects: list[list[WordEffect]]
) -> tuple[list[list[WordEffect]], tuple[PairEffect, ...]]:
    """Words of the two texts removed together: every word's counterpart, and the pairs that are no sum."""
    if len(effects) < 2 or not all(effects):
        return effects, ()
    texts = [[without(text, span) for span in places] for text, places in zip(score.texts, spans, strict=True)]
    scores = score.together(*texts)
    if scores is None:
        return effects, ()
    joint = scores - score.value
    paired = []
    for side, table in enumerate((joint, joint.T)):
        best, at = table.max(dim=1)
        others = effects[1 - side]
        paired.append(
            [
                replace(word, apart=rise, counterpart=others[index].word)
                for word, rise, index in zip(effects[side], best.tolist(), at.tolist(), strict=True)
            ]
        )
    first, second = (torch.tensor([word.removal for word in one], dtype=joint.dtype) for one in effects)
    alone = first.unsqueeze(1) + second
    order = (joint - alone).abs().flatten().argsort(descending=True)[:SHOWN].tolist()
    pairs = []
    for at in order:
        one, two = divmod(at, len(effects[1]))
        pairs.append(
            PairEffect(
                first=effects[0][one].word, second=effects[1][two].word, first_at=one, second_at=len(effects[0]) + two,
                together=float(joint[one, two]), alone=float(alone[one, two]),
            )
        )  # fmt: skip
    return paired, tuple(pairs)


def _swapped(
    score: "Score",
    side: int,
    spans: Sequence[Sequence[Span]],
    effects: Sequence[WordEffect],
    tries: int,
    seed: Seed,
) -> list[WordEffect]:
    text = score.texts[side]
    own = {text[slice(*span)].lower() for span in lettered_spans(text)}
    elsewhere = [score.texts[at][slice(*span)] for at, places in enumerate(spans) if at != side for span in places]
    lacking = [word for word in dict.fromkeys(elsewhere) if word.lower() not in own]
    offered = Replacements([*score.texts, *(review.text for review in shipped_reviews())], seed=seed)
    near = neighbours(score.map(), [word.word for word in effects])
    tried = []
    for word in effects:
        counterpart = [other for other in (word.counterpart,) if other in lacking and fits(word.word, other)]
        others = [*counterpart, *offered.opposites(word.word), *(near.get(word.word) or offered(word.word))]
        different = (other for other in dict.fromkeys(others) if other.lower() != word.word.lower())
        tried.append(list(different)[:tries])
    texts = [with_word(text, span, other) for span, others in zip(spans[side], tried, strict=True) for other in others]
    if not texts:
        return list(effects)
    changes = iter((score.of(side, texts) - score.value).tolist())
    swapped = []
    for word, others in zip(effects, tried, strict=True):
        best = max(((next(changes), other) for other in others), key=lambda one: abs(one[0]), default=(None, None))
        swapped.append(replace(word, swap=best[0], swapped_for=best[1], tried=len(others)))
    return swapped


def _moved(
    score: "Score", side: int, spans: Sequence[Span], effects: Sequence[WordEffect]
) -> tuple[list[WordEffect], str | None]:
    """The score with every word's rows moved as far as they are long, up and down its slope."""
    if not effects:
        return [], None
    try:
        phi, X, function = score.function(side)
    except InputError as error:
        return list(effects), f"No vectors: {error}"
    rows = X.rows
    if score.signed:
        slope = gradient(function, rows)
    else:
        # A distance has no slope where it is 0: that of the features' sum of squares along a random direction.
        direction = torch.randn(phi(rows).numel(), generator=torch.Generator().manual_seed(0))
        slope = gradient(lambda moved: phi.features(moved).flatten(1) @ direction.to(moved), rows)
    step = torch.linalg.vector_norm(rows, dim=1, keepdim=True) * normalize(slope, dim=1)
    placed = [(at, word) for at, word in enumerate(words_at(X.whole_words, spans)) if word is not None]
    texts = [rows.expand(1, *rows.shape)]
    for _, word in placed:
        texts += [
            perturbed_texts(rows, torch.tensor([word.rows]), sign * step[list(word.rows)].unsqueeze(0))
            for sign in (1, -1)
        ]
    with torch.no_grad():
        values = torch.cat([function(part).double() for part in torch.cat(texts).split(BATCH)])
    moved = list(effects)
    for (at, word), (up, down) in zip(placed, (values[1:] - values[0]).view(-1, 2).tolist(), strict=True):
        raises, lowers = max(up, down, 0.0), min(up, down, 0.0)
        moved[at] = replace(moved[at], raises=raises, lowers=lowers if score.signed else None, shared=word.shared)
    if not placed:
        return moved, "No vectors: the tokenizer does not tell which tokens belong to which word."
    shared = [word.word for word in moved if word.shared]
    note = f"A token is shared by several words, which move together as vectors: {', '.join(shared[:SHOWN])}."
    return moved, note if shared else None


def _of_rows(phi: Any, X: TextMatrix, seed: Seed) -> Explanation:
    """The sensitivities of a map that takes rows, and their certified bounds where it has any."""
    if not isinstance(phi, FeatureMap):
        raise InputError("`text` as rows goes with a feature map as `model`; pass a text for a model")
    result = word_sensitivity(phi, X, seed=seed)
    upper: Float[Tensor, " w"] | None = result.upper_per_word
    names, at, words = [X.word(row) for row in range(len(X))], 0, []
    for row, (name, value) in enumerate(zip(names, result.per_word.tolist(), strict=True)):
        bound = None if upper is None else float(upper[row])
        words.append(
            WordEffect(side=0, word=name, start=at, stop=at + len(name), removal=None, raises=value, upper=bound)
        )
        at += len(name) + 1
    return Explanation(phi.name, "relative change", 0.0, (" ".join(names),), tuple(words), (), phi.notes)


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

    @abstractmethod
    def read_span(self, side: int) -> Span:
        """Where the part of that text that the model reads starts and stops."""

    def together(self, first: Sequence[str], second: Sequence[str]) -> Float[Tensor, "a b"] | None:
        """The score of every pair of the texts; None where it has one text, or every pair would cost an evaluation."""
        return None

    @abstractmethod
    def function(self, side: int) -> tuple[TransformerFeatures, TextMatrix, Function]:
        """The map that reads that text, the text's rows, and the score of such rows.

        Raises:
            InputError: a model without gradients.
        """

    def map(self) -> TransformerFeatures | None:
        """The map of `function`; None where there is none."""
        try:
            return self.function(0)[0]
        except InputError:
            return None


class VectorScore(Score):
    """The similarity of two texts' vectors: their cosine, or what else the models compare by."""

    def __init__(self, models: tuple[Model, Model], first: str, second: str):
        self.texts, self._models = (first, second), models
        self.name, self._compare = SIMILARITIES[similarity_of(models)], SIMILARITY_OF[similarity_of(models)]
        self._known: dict[tuple[int, str], Tensor] = {}
        self._own = [self._vectors(0, [first]), self._vectors(1, [second])]
        self.value = float(self._compare(*self._own))

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        return self._compare(self._vectors(side, texts), self._own[1 - side])[:, 0]

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

    def function(self, side: int) -> tuple[TransformerFeatures, TextMatrix, Function]:
        phi, still = self._models[side].features(), self._own[1 - side]

        def similarity(rows: Tensor) -> Tensor:
            return self._compare(phi.features(rows), still.to(rows))[:, 0]

        return phi, phi.embed([self.texts[side]])[0], similarity


class MovedScore(Score):
    """The distance by which a changed text's vector is moved, over its length: ‖f(x') - f(x)‖ / ‖f(x)‖."""

    name, signed, value = "relative change", False, 0.0

    def __init__(self, model: Model, text: str):
        self.texts, self._model = (text,), model
        self._own = model.encode([text])[0]

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        return (self._model.encode(texts) - self._own).norm(dim=1) / self._own.norm()

    def read_span(self, side: int) -> Span:
        return self._model.read_span(self.texts[0])

    def function(self, side: int) -> tuple[TransformerFeatures, TextMatrix, Function]:
        phi = self._model.features()

        def moved(rows: Tensor) -> Tensor:
            own = self._own.to(rows)
            return (phi.features(rows) - own).norm(dim=-1) / own.norm()

        return phi, phi.embed(list(self.texts))[0], moved


class ClassScore(Score):
    """The probability of one class of a classifier; the number of a regression.

    Args:
        model: the classifier.
        text: what is classified.
        target: the class; None for the likeliest.
    """

    def __init__(self, model: Classifier, text: str, target: int | None):
        self.texts, self._model = (text,), model
        row = model.probabilities([text])[0]
        if target is not None:
            require_count("target", target, least=0)
            if target >= len(row):
                raise InputError(f"`target` (={target}) is no class; {model.name} has 0 to {len(row) - 1}")
        self._target = int(row.argmax()) if target is None else target
        number = "number" if model.kind == "regression" else "probability of class"
        self.name = f"{number} {model.label(self._target)}"
        self.value = float(row[self._target])

    def of(self, side: int, texts: Sequence[str]) -> Float[Tensor, " m"]:
        return self._model.probabilities(texts)[:, self._target]

    def read_span(self, side: int) -> Span:
        return self._model.read_span(self.texts[0])

    def function(self, side: int) -> tuple[TransformerFeatures, TextMatrix, Function]:
        phi = self._model.phi
        if phi is None:
            raise InputError(f"{self._model.name} gives probabilities alone: {self._model.no_map}")
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

    def read_span(self, side: int) -> Span:
        return self._model.read_spans(*self.texts)[side]

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
