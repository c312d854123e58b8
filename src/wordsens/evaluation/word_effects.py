"""The effects of single words of real texts, one row per word and way of changing it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from wordsens.display.numbers import plural
from wordsens.errors import InputError, argument, require_choice, require_count
from wordsens.evaluation.substitutes import substitutes
from wordsens.evaluation.text_scores import TextScore, score_of_words, uphill
from wordsens.evaluation.texts import Progress, drawn_words
from wordsens.maps.mapping import perturbed_texts
from wordsens.models.classifier import Classifier
from wordsens.models.function import require_texts
from wordsens.models.load import as_model
from wordsens.results import Result
from wordsens.seeds import Seed
from wordsens.text.english import kind_of
from wordsens.text.whole_words import TAKEN_APART, Span, takes_apart, word_spans, words_at

WAYS = ("delete", "mask", "swap", "move")

# Why a text that was measured before is left out.
COPY = "it is equal to an earlier one"

# Moved texts that run together, and words that a note names.
_BATCH, _NAMED = 32, 8


@dataclass(frozen=True, kw_only=True)
class WordEffect:
    """One word of one text, and what one way of changing it does to the score.

    Attributes:
        text: the number of the text.
        word, start, end: the word, and the characters of the text that it has.
        kind: one of `text.english.KINDS`.
        place: 0 for the first word that the model reads, 1 for the last.
        way: one of WAYS.
        change: the score of the changed text minus the score; for "swap" the largest by size over
            the words tried, for "move" over the steps tried: a lower bound of the sup over the
            ball.
        replaced_by: for "swap", the word with that change.
        label: the label of the changed text where it differs; "" otherwise and without a
            classifier.
    """

    text: int
    word: str
    start: int
    end: int
    kind: str
    place: float
    way: str
    change: float
    replaced_by: str = ""
    label: str = ""

    @property
    def span(self) -> Span:
        """The characters of the text that the word has."""
        return self.start, self.end


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class WordEffects(Result):
    """The effects of single words.

    Attributes:
        model: the name of the model.
        score: what changes, such as "relative change".
        texts: the texts that were measured.
        effects: one row per word and way of changing it (delete, mask, swap, move).
        read: the characters of each text that the model reads.
        left_out: for each text that was not measured, its index among the given texts and the
            reason.
        notes: which ways of changing words were skipped, and why.
    """

    model: str
    score: str
    texts: tuple[str, ...]
    effects: tuple[WordEffect, ...]
    read: tuple[Span, ...] = ()
    left_out: tuple[tuple[int, str], ...] = ()
    notes: tuple[str, ...] = ()

    def by(self, way: str) -> list[WordEffect]:
        """The rows of one way."""
        return [effect for effect in self.effects if effect.way == way]

    def unread(self, number: int) -> list[str]:
        """The words of a text that the model does not read."""
        text, (start, stop) = self.texts[number], self.read[number]
        spans = word_spans(text)
        return [text[slice(*span)] for span in spans if span[0] < start or span[1] > stop]

    @property
    def headline(self) -> str:
        """How much was measured."""
        words = len({(effect.text, effect.start) for effect in self.effects})
        return f"{self.model}: {self.score} for {words} words of {plural(len(self.texts), 'text')}"

    def columns(self) -> dict[str, Any]:
        """One row per word and way."""
        names = [field.name for field in fields(WordEffect)]
        return {name: [getattr(effect, name) for effect in self.effects] for name in names}


def word_effects(
    model: Any,
    texts: Sequence[str],
    ways: Sequence[str] = ("delete",),
    *,
    words_per_text: int | None = None,
    tries: int = 8,
    max_words: int | None = None,
    seed: Seed = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> WordEffects:
    """What deleting, masking, replacing or moving single words does to a model's output.

    The change is ‖f(changed text) - f(text)‖ / ‖f(text)‖; for a classifier, the change of the
    probability of the text's label. "delete" and "mask" are one change each: of the tokens where
    the model can be run from them, otherwise of the text. "swap" tries the `substitutes` of the
    word. "move" moves every row of the word by up to its own length, up and down the slope. A text
    that equals an earlier one, or that the model cannot read, is left out.

    Args:
        model: whatever `as_model` takes, a Classifier, or a TransformerFeatures.
        texts: those of fewer than two words that the model reads are left out.
        ways: some of "delete", "mask", "swap", "move".
        words_per_text: words that are measured: negations first, then a random draw; None for all.
        tries: the most words that are tried in the place of each.
        max_words: a longer text keeps its first tokens, without a tokenizer its first words.
        seed: of the draw of words.
        progress: called with (texts done, texts).

    Raises:
        InputError: no such model or way, or no text that can be measured in these ways.

    >>> def letters(texts):
    ...     return [[text.count("o") + 1.0, text.count("n") + 1.0] for text in texts]
    >>> found = word_effects(letters, ["no one is in"])
    >>> [(effect.word, round(effect.change, 2)) for effect in found.effects]
    [('no', 0.28), ('one', 0.28), ('is', 0.0), ('in', 0.2)]
    """
    ways = [ways] if isinstance(ways, str) else list(ways)
    for way in ways or [""]:
        require_choice("ways", way, WAYS)
    if words_per_text is not None:
        require_count("words_per_text", words_per_text)
    require_count("tries", tries)
    if not isinstance(model, Classifier):
        model = as_model(model)
    texts = require_texts(texts)
    score_name = ""
    effects: list[WordEffect] = []
    notes: list[str] = []
    read: dict[str, Span] = {}
    left_out: list[tuple[int, str]] = []
    for number, text in enumerate(texts):
        progress(number, len(texts))
        if text in read:
            left_out.append((number, COPY))
            continue
        try:
            score = score_of_words(model, text, max_words)
            words = _drawn(score, words_per_text, seed)
            found = [effects_of(score, words, way, tries=tries) for way in ways]
        except InputError as error:
            left_out.append((number, re.sub(r"^(text 0|the text)[ :]+", "", str(error))))
            continue
        score_name = score.name
        for rows, omitted in found:
            effects += [replace(row, text=len(read)) for row in rows]
            notes += omitted
        read[text] = score.read[0]
    if not read:
        number, reason = left_out[0]
        raise InputError(
            f"{argument('texts')} holds none that can be measured; the first, text {number}: "
            f"{reason}"
        )
    progress(len(texts), len(texts))
    if any(map(takes_apart, read)):
        notes.append(TAKEN_APART)
    return WordEffects(
        model=model.name,
        score=score_name,
        texts=tuple(read),
        effects=tuple(effects),
        read=tuple(read.values()),
        left_out=tuple(left_out),
        notes=tuple(dict.fromkeys(notes)),
    )


def _drawn(score: TextScore, words_per_text: int | None, seed: Seed) -> list[WordEffect]:
    """The words of a text that are measured, unchanged: negations first, then a random draw, in the
    order of the text.

    Raises:
        InputError: the model reads fewer than two words.
    """
    text = score.texts[0]
    words = unchanged_words(score, 0, score.spans(0))
    if len(words) < 2:
        raise InputError(
            f"the model reads {plural(len(words), 'word')} of {text[:40]!r}; an effect is measured "
            "beside other words, give a text of two words or more"
        )
    count = len(words) if words_per_text is None else words_per_text
    drawn = drawn_words([word.word for word in words], count, seed=int(seed), content=text)
    return [words[place] for place in drawn]


def unchanged_words(score: TextScore, side: int, spans: Sequence[Span]) -> list[WordEffect]:
    """A row without a way and a change for each of the words that the model reads in the text on
    that side."""
    words = [score.texts[side][slice(*span)] for span in spans]
    last = max(1, len(spans) - 1)
    return [
        WordEffect(
            text=side,
            word=word,
            start=span[0],
            end=span[1],
            kind=kind_of(word),
            place=number / last,
            way="",
            change=0.0,
        )
        for number, (word, span) in enumerate(zip(words, spans, strict=True))
    ]


def effects_of(
    score: TextScore,
    words: Sequence[WordEffect],
    way: str,
    *,
    tries: int = 8,
    progress: Progress = lambda done: None,
) -> tuple[list[WordEffect], list[str]]:
    """The rows of one way, and notes on words without a row.

    Args:
        score: what changes.
        words: rows of the words in any other way, or unchanged, all of one text of the score.
        way: one of WAYS.
        tries: the most words that are tried in the place of each.
        progress: called with the number of evaluations since the last call.
    """
    side = words[0].text
    spans = [word.span for word in words]
    notes: list[str] = []
    if way == "swap":
        changes = _swapped(score, side, spans, tries, progress)
    elif way == "move":
        changes, notes = _moved(score, side, spans, progress)
    else:
        found = zip(spans, *score.removed(side, spans, way, progress), strict=True)
        changes = {span: {"change": change, "label": label} for span, change, label in found}
    unchanged = [replace(word, way=way, replaced_by="", label="") for word in words]
    return [
        replace(word, **changes[word.span]) for word in unchanged if word.span in changes
    ], notes


# The `change`, and `replaced_by` and `label` where there are any, of the words that have a row.
_Changes = dict[Span, dict[str, Any]]


def _swapped(
    score: TextScore, side: int, spans: Sequence[Span], tries: int, progress: Progress
) -> _Changes:
    """The largest change by one of the words that a writer could put there, among those that
    change the label where any does."""
    text = score.texts[side]
    swaps = [(span, other) for span in spans for other in substitutes(text, span)[:tries]]
    changed = [score.changed(side, span, other) for span, other in swaps]
    found: dict[Span, list[dict[str, Any]]] = {}
    for (span, other), change, label in zip(
        swaps, *score.changes(side, changed, progress), strict=True
    ):
        row = {"change": change, "replaced_by": other, "label": label}
        found.setdefault(span, []).append(row)
    return {
        span: max(rows, key=lambda row: (row["label"] != "", abs(row["change"])))
        for span, rows in found.items()
    }


@torch.no_grad()
def _moved(
    score: TextScore, side: int, spans: Sequence[Span], progress: Progress
) -> tuple[_Changes, list[str]]:
    """The larger change, by size, with the word's rows moved by their own length up and down the
    slope."""
    try:
        phi, X, function = score.rows(side)
    except InputError as error:
        return {}, [f"no vectors moved: {error}"]
    rows = X.rows
    if score.signed:
        step = uphill(function, rows, rows)
    else:
        # A distance has no slope where it is 0: that of the features along a random direction.
        direction = torch.randn(phi(rows).numel(), generator=torch.Generator().manual_seed(0))

        def along(moved: Tensor) -> Tensor:
            return phi.features(moved).flatten(1) @ direction.to(moved)

        step = uphill(along, rows, rows)
    words = [word for word in words_at(X.whole_words, spans) if word is not None]
    if not words:
        why = "the tokenizer does not tell which tokens belong to which word"
        return {}, [f"no vectors moved: {why}"]
    texts = [rows.unsqueeze(0)]
    for word in words:
        places, delta = torch.tensor([word.rows]), step[list(word.rows)].unsqueeze(0)
        texts += [perturbed_texts(rows, places, sign * delta) for sign in (1, -1)]
    values = torch.cat([function(part).double() for part in torch.cat(texts).split(_BATCH)])
    progress(len(values))
    both = (values[1:] - values[0]).view(-1, 2).tolist()
    changes = {
        (word.start, word.stop): {"change": max(pair, key=abs)}
        for word, pair in zip(words, both, strict=True)
    }
    shared = [word.text for word in words if word.shared]
    note = f"words that share a token move together: {', '.join(shared[:_NAMED])}"
    return changes, [note] * bool(shared)
