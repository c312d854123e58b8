"""Auditing one text: a few words' sensitivity, their removal, their best swap, and what the model never read."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from wordsens.errors import InputError
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.results import Look, Saved, Shown
from wordsens.search.plan import Search
from wordsens.seeds import generator
from wordsens.sensitivity.removals import removal_effects
from wordsens.sensitivity.swap_search import ShortlistPlan
from wordsens.sensitivity.swaps import best_swaps
from wordsens.sensitivity.whole_words import whole_word_sensitivity
from wordsens.text.document import Document
from wordsens.text.english import kind_of
from wordsens.text.matrix import TextMatrix, Word
from wordsens.text.vocabulary import Vocabulary
from wordsens.text.whole_words import whole_words

NEGATION = "negation"


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """The way in which every text of an audit is measured.

    Attributes:
        max_words: tokens that a text keeps, special ones not counted.
        words_per_text: whole words that are measured: negations first, others drawn at random.
        removal: "delete" or "mask". A mask token moves a model by itself: masked, "to" and "enable" move MiniLM by .236
            and .284; deleted, by .003 and .046.
        seed: of the draw and of the search.
        radius, search: of `whole_word_sensitivity`.
    """

    max_words: int
    words_per_text: int
    removal: str = "delete"
    seed: int = 0
    radius: float | None = None
    search: Search = "normal"


@dataclass(frozen=True, kw_only=True)
class AuditedWord:
    """One measured word.

    Attributes:
        word: as it is written.
        tokens: how many it has.
        place: 0 the first word of the text that was read, 1 the last.
        sensitivity: attained, a lower bound of the sup over perturbations of the word's rows by up to their own norms;
            NaN for a black box.
        removal: relative change of the features when the word is deleted or masked.
        swap: relative change by the best real swap found; NaN for words of several tokens, or where none was asked for.
        swapped_for: the entry of that swap; "" where there is none.
    """

    word: str
    tokens: int
    place: float
    sensitivity: float
    removal: float
    swap: float = math.nan
    swapped_for: str = ""


@dataclass(frozen=True, kw_only=True)
class AuditedText(Shown, Saved):
    """The result of `audit_text`.

    Attributes:
        source: where the text came from.
        tokens: rows of the text, special tokens included.
        words: whole words that were read.
        words_lost: whole words after them that were cut off.
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

    def look(self) -> Look:
        """A row a measured word."""
        names = ("word", "tokens", "place", "sensitivity", "removal", "swap", "swapped_for")
        columns = {name: [getattr(word, name) for word in self.measured] for name in names}
        return Look(f"{self.source}: {len(self.measured)} of {self.words} words", columns)

    @property
    def value(self) -> float:
        """The largest sensitivity; of a black box, the largest change by a removal."""
        sensitivities = [word.sensitivity for word in self.measured if not math.isnan(word.sensitivity)]
        return max(sensitivities or [word.removal for word in self.measured])


def audit_text(
    phi: TransformerFeatures,
    document: Document,
    plan: AuditPlan,
    vocabulary: Vocabulary | None = None,
) -> AuditedText:
    """Measure a few words of one text. It depends on the text's content, not on where it came from.

    Args:
        phi: a transformer that gives one vector a text.
        document: the text.
        plan: how it is measured.
        vocabulary: what a word may be swapped for; None: no swaps.

    Raises:
        InputError: fewer than two whole words.
    """
    (text,) = phi.embed(document, max_words=plan.max_words)
    whole = text.whole_words or ()
    if len(whole) < 2:
        raise InputError(f"{document.source} has {len(whole)} words among those that are read; an audit compares words")
    chosen = chosen_words(text, plan.words_per_text, seed=plan.seed, content=document.text)
    searched = whole_word_sensitivity(phi, text, chosen, plan.seed, radius=plan.radius, search=plan.search)
    removed = removal_effects(phi, document, chosen, way=plan.removal, max_words=plan.max_words)
    swaps = {} if vocabulary is None else _swaps(phi, text, vocabulary, [whole[at] for at in chosen], plan.seed)
    lost = _lost(phi, document, len(whole))
    return AuditedText(
        source=document.source,
        tokens=len(text),
        words=len(whole),
        words_lost=len(lost),
        negations_lost=sum(kind_of(word.text) == NEGATION for word in lost),
        measured=tuple(
            AuditedWord(
                word=whole[at].text,
                tokens=len(whole[at].rows),
                place=at / (len(whole) - 1),
                sensitivity=float(searched.per_word[index]),
                removal=float(removed.change[index]),
                swap=swaps.get(whole[at], (math.nan, ""))[0],
                swapped_for=swaps.get(whole[at], (math.nan, ""))[1],
            )
            for index, at in enumerate(chosen)
        ),
        evaluations=searched.evaluations,
    )


def chosen_words(text: TextMatrix, count: int, *, seed: int, content: str) -> list[int]:
    """The whole words that are measured: negations first, then a random draw, in the order of the text."""
    return drawn_words([word.text for word in text.whole_words or ()], count, seed=seed, content=content)


def drawn_words(words: Sequence[str], count: int, *, seed: int, content: str) -> list[int]:
    """The places of at most so many words: negations first, then a random draw, in their order."""
    order: list[int] = torch.randperm(len(words), generator=generator(seed, "audited words", content)).tolist()
    order.sort(key=lambda at: kind_of(words[at]) != NEGATION)
    return sorted(order[:count])


def _swaps(
    phi: TransformerFeatures, text: TextMatrix, vocabulary: Vocabulary, words: Sequence[Word], seed: int
) -> dict[Word, tuple[float, str]]:
    """The best swap of each word that is one token."""
    single = [word for word in words if len(word.rows) == 1]
    if not single:
        return {}
    best = best_swaps(phi, text, vocabulary, [word.rows[0] for word in single], method=ShortlistPlan(seed=seed))
    return dict(zip(single, zip(best.per_word.tolist(), best.swapped_for, strict=True), strict=True))


def _lost(phi: TransformerFeatures, document: Document, read: int) -> tuple[Word, ...]:
    """The words of the text after the first `read` ones, which are all that the model reads."""
    if phi.reader is None:
        return ()
    encoded = phi.reader.tokenizer(
        document.text, add_special_tokens=False, truncation=False, return_offsets_mapping=True, verbose=False
    )
    return whole_words(document.text, encoded["offset_mapping"], 0)[read:]
