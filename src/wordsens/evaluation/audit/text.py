"""Auditing texts one by one: which can be measured, a few words of each, and what the model never
read."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from wordsens.errors import InputError
from wordsens.evaluation.texts import NEGATION, drawn_words
from wordsens.maps.mapping import feature_norm
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.models.model import Model
from wordsens.models.tokens import wide_offsets
from wordsens.search.plan import Search, SearchPlan
from wordsens.sensitivity.replacements import removal_effects
from wordsens.sensitivity.several_words import whole_word_sensitivity
from wordsens.text.document import Document
from wordsens.text.english import kind_of
from wordsens.text.matrix import TextMatrix
from wordsens.text.whole_words import (
    Span,
    reading_words,
    whole_words,
    with_word,
    without,
    word_spans,
)

AUDIT_SEARCH = SearchPlan("quick", starts=1, steps=4)
"""An audit's search of a word: about thirty evaluations, which reach 99 % of what four starts of
six steps reach."""

_TOGETHER = 16
"""Changed texts of one length that are read together."""

Swaps = dict[int, dict[str, Any]]
Offered = Callable[[str, Span], Sequence[str]]
"""By a word's number `swap` and `swapped_for` of its AuditedWord."""


@dataclass(frozen=True, kw_only=True)
class AuditedWord:
    """One measured word.

    Attributes:
        word: as it is written.
        tokens: how many it has.
        place: 0 the first word of the text that was read, 1 the last.
        sensitivity: a lower bound of the sup over perturbations of the word's rows by up to their
            own norms; NaN for a black box.
        removal: relative change of the features when the word is deleted or masked.
        swap: the farthest relative change by one of the words offered in its place; NaN where none
            was.
        swapped_for: that word; "" where there is none.
    """

    word: str
    tokens: int
    place: float
    removal: float
    sensitivity: float = math.nan
    swap: float = math.nan
    swapped_for: str = ""


@dataclass(frozen=True, kw_only=True)
class AuditedText:
    """The result of `audit_text`.

    Attributes:
        source: where the text came from.
        tokens: rows of the text, special tokens included.
        words: whole words that were read.
        read: these words; empty in records of earlier versions.
        words_lost: whole words before or after them that were cut off.
        negations_lost: of those.
        measured: the measured words, in the order of the text.
        evaluations: perturbed texts that the search evaluated.
    """

    source: str
    tokens: int
    words: int
    words_lost: int
    negations_lost: int
    measured: tuple[AuditedWord, ...]
    evaluations: int
    read: tuple[str, ...] = ()

    @property
    def value(self) -> float:
        """The largest sensitivity; of a black box, the largest change by a removal."""
        sensitivities = [
            word.sensitivity for word in self.measured if not math.isnan(word.sensitivity)
        ]
        return max(sensitivities or [word.removal for word in self.measured])


def audit_text(
    phi: TransformerFeatures,
    document: Document,
    offered: Offered | None = None,
    *,
    max_words: int,
    words_per_text: int,
    removal: str = "delete",
    seed: int = 0,
    radius: float | None = None,
    search: Search | None = AUDIT_SEARCH,
) -> AuditedText:
    """Measure a few words of one text. It depends on the text's content, not on where it came from.

    Args:
        phi: a transformer that gives one vector a text.
        document: the text.
        offered: from a text and a place to the words that are tried there, such as `substitutes`;
            None: no swaps.
        max_words: tokens that the text keeps, special ones not counted.
        words_per_text: whole words that are measured: negations first, others drawn at random.
        removal: "delete" or "mask"; a mask token moves a model by itself.
        seed: of the draw and of the search.
        radius, search: of `whole_word_sensitivity`; a search of None measures no sensitivity.

    Raises:
        InputError: fewer than two whole words.
    """
    (text,) = phi.embed(document, max_words=max_words)
    whole = list(text.whole_words or ())
    _require_words(document, len(whole))
    chosen = chosen_words(text, words_per_text, seed=seed, content=document.text)
    sensitivities, evaluations = [math.nan] * len(chosen), 0
    if search is not None:
        searched = whole_word_sensitivity(phi, text, chosen, radius, seed, search=search)
        sensitivities, evaluations = searched.per_word.tolist(), searched.evaluations
    removals = removal_effects(
        phi, document, chosen, way=removal, max_words=max_words
    ).per_word.tolist()
    swaps: Swaps = {}
    if offered is not None:
        # A longer word must push out no other: the text is that from the first word that is read to
        # the last.
        start, stop = whole[0].start, whole[-1].stop
        spans = {at: (whole[at].start - start, whole[at].stop - start) for at in chosen}
        read = document.text[start:stop]
        swaps = farthest_swaps(
            read, spans, offered, lambda texts: _changes(phi, read, texts, max_words)
        )
    lost = _lost(phi, document, (whole[0].start, whole[-1].stop))
    measured = [
        AuditedWord(
            word=whole[at].text,
            tokens=len(whole[at].rows),
            place=at / (len(whole) - 1),
            sensitivity=sensitivity,
            removal=effect,
            **swaps.get(at, {}),
        )
        for at, sensitivity, effect in zip(chosen, sensitivities, removals, strict=True)
    ]
    return _audited(document, len(text), [word.text for word in whole], lost, measured, evaluations)


def audit_black_box(
    model: Model,
    document: Document,
    offered: Offered | None = None,
    *,
    max_words: int,
    words_per_text: int,
    seed: int = 0,
) -> AuditedText:
    """Measure a few words of one text by encoding it again: without each, and with others in its
    place.

    The change is ‖f(changed text) - f(text)‖ / ‖f(text)‖, as for maps; there is no sensitivity,
    which takes gradients.

    Args:
        model: gives vectors.
        document: the text; its words are counted as a reader counts them. Those that the model does
            not read are lost, as those past `max_words` are.
        offered, max_words, words_per_text, seed: as of `audit_text`, words in the place of tokens.

    Raises:
        InputError: fewer than two words, or the model's answer is no vector a text.
    """
    every, (begin, end) = word_spans(document.text), model.read_span(document.text)
    spans = [span for span in every if begin <= span[0] and span[1] <= end][:max_words]
    words = [document.text[start:stop] for start, stop in spans]
    _require_words(document, len(words))
    # Without a word, no other may come in from behind what is read.
    begin, end = (
        (0, len(document.text)) if len(spans) == len(every) else (spans[0][0], spans[-1][1])
    )
    text = document.text[begin:end]
    chosen = drawn_words(words, words_per_text, seed=seed, content=document.text)
    spans_of = {at: (spans[at][0] - begin, spans[at][1] - begin) for at in chosen}
    rows = model.encode([text, *(without(text, span) for span in spans_of.values())])
    evaluations = len(rows)

    def relative(moved: Tensor) -> list[float]:
        return ((moved - rows[0]).norm(dim=1) / rows[0].norm()).tolist()

    def changes(texts: Sequence[str]) -> list[float]:
        nonlocal evaluations
        evaluations += len(texts)
        return relative(model.encode(texts))

    removals = relative(rows[1:])
    swaps = {} if offered is None else farthest_swaps(text, spans_of, offered, changes)
    lost = [document.text[start:stop] for start, stop in every if (start, stop) not in spans]
    last = len(words) - 1
    measured = [
        AuditedWord(word=words[at], tokens=1, place=at / last, removal=effect, **swaps.get(at, {}))
        for at, effect in zip(chosen, removals, strict=True)
    ]
    return _audited(document, len(words), words, lost, measured, evaluations)


def _require_words(document: Document, count: int) -> None:
    if count < 2:
        raise InputError(
            f"{document.source} has {count} words among those that are read; an audit compares "
            "words"
        )


def _audited(
    document: Document,
    tokens: int,
    read: Sequence[str],
    lost: Sequence[str],
    measured: Sequence[AuditedWord],
    evaluations: int,
) -> AuditedText:
    return AuditedText(
        source=document.source,
        tokens=tokens,
        words=len(read),
        words_lost=len(lost),
        negations_lost=sum(kind_of(word) == NEGATION for word in lost),
        measured=tuple(measured),
        evaluations=evaluations,
        read=tuple(read),
    )


def chosen_words(text: TextMatrix, count: int, *, seed: int, content: str) -> list[int]:
    """The whole words that are measured: negations first, then a random draw, in the order of the
    text."""
    return drawn_words(
        [word.text for word in text.whole_words or ()], count, seed=seed, content=content
    )


def farthest_swaps(
    text: str,
    spans: Mapping[int, Span],
    offered: Offered,
    changes: Callable[[Sequence[str]], Sequence[float]],
) -> Swaps:
    """For each named word the change by the farthest of the words offered for it, and which that
    is; none without any.

    Args:
        text: of the words.
        spans: where each word starts and ends.
        offered: from the text and a place to the words that are tried there.
        changes: the relative change that each changed text makes, all of them asked for at once.
    """
    tried = [(at, other) for at, span in spans.items() for other in offered(text, span)]
    farthest: dict[int, tuple[float, str]] = {}
    measured = changes([with_word(text, spans[at], other) for at, other in tried]) if tried else []
    for (at, other), change in zip(tried, measured, strict=True):
        farthest[at] = max(farthest.get(at, (-1.0, "")), (change, other))
    return {at: {"swap": change, "swapped_for": other} for at, (change, other) in farthest.items()}


def _changes(
    phi: TransformerFeatures, text: str, changed: Sequence[str], max_words: int
) -> list[float]:
    """The relative change of the features from the text to each changed one."""
    model = phi.model
    room = None if model.context is None else max(max_words, model.context - model.own_tokens)
    ids = [model.read(each, max_words=room).ids for each in [text, *changed]]
    made = model.by_length(ids, lambda batch: phi.features(phi.rows_of(batch)))
    rows = torch.stack([row.flatten().double().cpu() for row in made])
    return ((rows[1:] - rows[0]).norm(dim=1) / feature_norm(rows[0], phi.name)).tolist()


def _lost(phi: TransformerFeatures, document: Document, read: Span) -> list[str]:
    """The words of the text that have a token, but outside what the model reads."""
    encoded = phi.model.tokenizer(
        document.text,
        add_special_tokens=False,
        truncation=False,
        return_offsets_mapping=True,
        verbose=False,
    )
    whole = whole_words(
        document.text, wide_offsets(encoded["offset_mapping"], len(document.text)), 0
    )
    return [word.text for word in whole if not read[0] <= word.start < read[1]]


@dataclass
class AuditTexts:
    """The texts of a dataset.

    Attributes:
        documents: what is measured, each text once.
        copies: texts that are equal to an earlier one.
        left_out: where each text stands that cannot be measured, and why: a rule, not a failure.
    """

    documents: list[Document] = field(default_factory=list)
    copies: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def take(self, documents: Iterable[Document]) -> None:
        """Add documents: to those that are measured, to the copies or to those that are left
        out."""
        taken = {document.text for document in self.documents}
        for document in documents:
            words = reading_words(document.text)
            if len(words) < 2:
                count = f"{len(words)} word{'' if len(words) == 1 else 's'}"
                self.left_out.append(
                    (document.source, f"it has {count}, and an audit compares words")
                )
            elif document.text in taken:
                self.copies += 1
            else:
                taken.add(document.text)
                self.documents.append(document)
