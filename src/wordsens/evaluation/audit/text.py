"""Auditing texts one by one: which can be measured, a few words of each, and what the model never read."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from wordsens.errors import InputError
from wordsens.maps.mapping import feature_norm
from wordsens.maps.transformer.features import TransformerFeatures, by_length
from wordsens.models.black_box import Model
from wordsens.results import ResultTable, Saved, Shown
from wordsens.results.content import same_content
from wordsens.search.plan import Search, SearchPlan
from wordsens.seeds import generator
from wordsens.sensitivity.removals import removal_effects
from wordsens.sensitivity.whole_words import whole_word_sensitivity
from wordsens.text.alternatives import Alternatives
from wordsens.text.document import Document
from wordsens.text.english import kind_of
from wordsens.text.matrix import TextMatrix, Word
from wordsens.text.transformer_encoder import wide_offsets
from wordsens.text.whole_words import reading_words, whole_words, with_word, without, word_spans

NEGATION = "negation"

AUDIT_SEARCH = SearchPlan("quick", starts=1, steps=4)
"""An audit's search of a word: about thirty evaluations, which reach 99 % of what four starts of six steps reach."""

NO_SWAP = (math.nan, "")

_TOGETHER = 16
"""Changed texts of one length that are read together."""


@dataclass(frozen=True, kw_only=True)
class AuditPlan:
    """The way in which every text of an audit is measured.

    Attributes:
        max_words: tokens that a text keeps, special ones not counted.
        words_per_text: whole words that are measured: negations first, others drawn at random.
        removal: "delete" or "mask". A mask token moves a model by itself: masked, "to" and "enable" move MiniLM by .236
            and .284; deleted, by .003 and .046.
        seed: of the draw and of the search.
        radius, search: of `whole_word_sensitivity`; a search of None measures no sensitivity.
    """

    max_words: int
    words_per_text: int
    removal: str = "delete"
    seed: int = 0
    radius: float | None = None
    search: Search | None = AUDIT_SEARCH


@dataclass(frozen=True, kw_only=True, eq=False)
class AuditedWord:
    """One measured word; compares by content, NaN equal to NaN.

    Attributes:
        word: as it is written.
        tokens: how many it has.
        place: 0 the first word of the text that was read, 1 the last.
        sensitivity: attained, a lower bound of the sup over perturbations of the word's rows by up to their own norms;
            NaN for a black box.
        removal: relative change of the features when the word is deleted or masked.
        swap: the farthest relative change by one of the words offered in its place; NaN where none was.
        swapped_for: that word; "" where there is none.
    """

    word: str
    tokens: int
    place: float
    sensitivity: float
    removal: float
    swap: float = math.nan
    swapped_for: str = ""

    def __eq__(self, other: object) -> bool:
        return same_content(self, other) if isinstance(other, AuditedWord) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.word, self.tokens, self.place))


@dataclass(frozen=True, kw_only=True)
class AuditedText(Shown, Saved):
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

    def result_table(self) -> ResultTable:
        """A row a measured word."""
        names = ("word", "tokens", "place", "sensitivity", "removal", "swap", "swapped_for")
        columns = {name: [getattr(word, name) for word in self.measured] for name in names}
        return ResultTable(f"{self.source}: {len(self.measured)} of {self.words} words", columns)

    @property
    def value(self) -> float:
        """The largest sensitivity; of a black box, the largest change by a removal."""
        sensitivities = [word.sensitivity for word in self.measured if not math.isnan(word.sensitivity)]
        return max(sensitivities or [word.removal for word in self.measured])


def audit_text(
    phi: TransformerFeatures,
    document: Document,
    plan: AuditPlan,
    alternatives: Alternatives | None = None,
) -> AuditedText:
    """Measure a few words of one text. It depends on the text's content, not on where it came from.

    Args:
        phi: a transformer that gives one vector a text.
        document: the text.
        plan: how it is measured.
        alternatives: the words that are tried in the place of one; None: no swaps.

    Raises:
        InputError: fewer than two whole words.
    """
    (text,) = phi.embed(document, max_words=plan.max_words)
    whole = text.whole_words or ()
    if len(whole) < 2:
        raise InputError(f"{document.source} has {len(whole)} words among those that are read; an audit compares words")
    chosen = chosen_words(text, plan.words_per_text, seed=plan.seed, content=document.text)
    sensitivities, evaluations = [math.nan] * len(chosen), 0
    if plan.search is not None:
        searched = whole_word_sensitivity(phi, text, chosen, plan.seed, radius=plan.radius, search=plan.search)
        sensitivities, evaluations = searched.per_word.tolist(), searched.evaluations
    removed = removal_effects(phi, document, chosen, way=plan.removal, max_words=plan.max_words)
    swaps = {} if alternatives is None else _swaps(phi, document, whole, chosen, alternatives, plan)
    lost = _lost(phi, document, whole)
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
                sensitivity=sensitivities[index],
                removal=float(removed.change[index]),
                swap=swaps.get(at, NO_SWAP)[0],
                swapped_for=swaps.get(at, NO_SWAP)[1],
            )
            for index, at in enumerate(chosen)
        ),
        evaluations=evaluations,
        read=tuple(word.text for word in whole),
    )


def chosen_words(text: TextMatrix, count: int, *, seed: int, content: str) -> list[int]:
    """The whole words that are measured: negations first, then a random draw, in the order of the text."""
    return drawn_words([word.text for word in text.whole_words or ()], count, seed=seed, content=content)


def drawn_words(words: Sequence[str], count: int, *, seed: int, content: str) -> list[int]:
    """The places of at most so many words: negations first, then a random draw, in their order."""
    order: list[int] = torch.randperm(len(words), generator=generator(seed, "audited words", content)).tolist()
    order.sort(key=lambda at: kind_of(words[at]) != NEGATION)
    return sorted(order[:count])


def farthest_swaps(
    text: str,
    spans: Mapping[int, tuple[int, int]],
    alternatives: Alternatives,
    changes: Callable[[Sequence[str]], Sequence[float]],
) -> dict[int, tuple[float, str]]:
    """For each named word the change by the farthest of its alternatives, and which that is.

    Args:
        text: of the words.
        spans: where each word starts and ends.
        alternatives: from a word to those that are tried.
        changes: the relative change that each changed text makes, all of them asked for at once.
    """
    offered = [
        (at, other) for at, (start, stop) in spans.items() for other in alternatives(text[start:stop])
        if other != text[start:stop]
    ]  # fmt: skip
    result: dict[int, tuple[float, str]] = {}
    if offered:
        measured = changes([with_word(text, spans[at], other) for at, other in offered])
        for (at, other), change in zip(offered, measured, strict=True):
            result[at] = max(result.get(at, (-1.0, "")), (change, other))
    return result


def _swaps(
    phi: TransformerFeatures,
    document: Document,
    whole: Sequence[Word],
    chosen: Sequence[int],
    alternatives: Alternatives,
    plan: AuditPlan,
) -> dict[int, tuple[float, str]]:
    """The farthest swap of each chosen word, in the text as far as it is read."""
    reader = phi.reading()
    # A longer word must push out no other: the text is that from the first word that is read to the last.
    start, stop = whole[0].start, whole[-1].stop
    read = document.text[start:stop]
    room = None if reader.context is None else max(plan.max_words, reader.context - reader.own_tokens)

    def changes(texts: Sequence[str]) -> Sequence[float]:
        ids = [reader.tokens(text, max_words=room).ids for text in [read, *texts]]
        rows = by_length(ids, _TOGETHER, lambda batch: phi.features(phi.rows_of(batch)).flatten(start_dim=1)[None])[0]
        return ((rows[1:] - rows[0]).norm(dim=1) / feature_norm(rows[0], phi.name)).tolist()

    spans = {at: (whole[at].start - start, whole[at].stop - start) for at in chosen}
    return farthest_swaps(read, spans, alternatives, changes)


def _lost(phi: TransformerFeatures, document: Document, read: Sequence[Word]) -> list[Word]:
    """The words of the text that have a token, but not among those that the model reads."""
    if phi.reader is None:
        return []
    encoded = phi.reader.tokenizer(
        document.text, add_special_tokens=False, truncation=False, return_offsets_mapping=True, verbose=False
    )
    whole = whole_words(document.text, wide_offsets(encoded["offset_mapping"], len(document.text)), 0)
    return [word for word in whole if not read[0].start <= word.start < read[-1].stop]


def audit_black_box(
    model: Model, document: Document, plan: AuditPlan, alternatives: Alternatives | None = None
) -> AuditedText:
    """Measure a few words of one text by encoding it again: without each, and with others in its place.

    The change is ‖f(changed text) - f(text)‖ / ‖f(text)‖, as for maps; there is no sensitivity, which takes gradients.

    Args:
        model: gives vectors.
        document: the text; its words are counted as a reader counts them. Those that the model does not read are lost,
            as those past `max_words` are.
        plan: words in the place of tokens; removal is by deletion, and there is no search.
        alternatives: the words that are tried in the place of one; None: no swaps.

    Raises:
        InputError: fewer than two words, or the model's answer is no vector a text.
    """
    every, (begin, end) = word_spans(document.text), model.read_span(document.text)
    spans = [span for span in every if begin <= span[0] and span[1] <= end][: plan.max_words]
    read = [document.text[start:stop] for start, stop in spans]
    if len(read) < 2:
        raise InputError(f"{document.source} has {len(read)} words among those that are read; an audit compares words")
    # Without a word, no other may come in from behind what is read.
    begin, end = (0, len(document.text)) if len(spans) == len(every) else (spans[0][0], spans[-1][1])
    text = document.text[begin:end]
    chosen = drawn_words(read, plan.words_per_text, seed=plan.seed, content=document.text)
    spans_of = {at: (spans[at][0] - begin, spans[at][1] - begin) for at in chosen}
    rows = model.encode([text, *(without(text, span) for span in spans_of.values())])
    evaluations = len(rows)

    def changes(texts: Sequence[str]) -> Sequence[float]:
        nonlocal evaluations
        evaluations += len(texts)
        return ((model.encode(texts) - rows[0]).norm(dim=1) / rows[0].norm()).tolist()

    removals = ((rows[1:] - rows[0]).norm(dim=1) / rows[0].norm()).tolist()
    swaps = {} if alternatives is None else farthest_swaps(text, spans_of, alternatives, changes)
    measured = []
    for at, removal in zip(chosen, removals, strict=True):
        swap, swapped_for = swaps.get(at, NO_SWAP)
        measured.append(
            AuditedWord(
                word=read[at], tokens=1, place=at / (len(read) - 1), sensitivity=math.nan,
                removal=removal, swap=swap, swapped_for=swapped_for,
            )
        )  # fmt: skip
    lost = [document.text[start:stop] for start, stop in every if (start, stop) not in spans]
    return AuditedText(
        source=document.source,
        tokens=len(read),
        words=len(read),
        words_lost=len(lost),
        negations_lost=sum(kind_of(word) == NEGATION for word in lost),
        measured=tuple(measured),
        evaluations=evaluations,
        read=tuple(read),
    )


def counted(words: Iterable[str]) -> Counter[str]:
    """The number of times each word occurs, in lower case."""
    return Counter(word.lower() for word in words)


@dataclass
class AuditTexts:
    """The texts of a dataset.

    Attributes:
        documents: what is measured, each text once.
        counts: how often each word occurs in the data, in lower case.
        copies: texts that are equal to an earlier one.
        left_out: where each text stands that cannot be measured, and why: a rule, not a failure.
    """

    documents: list[Document] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    copies: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)

    def leave_out_empty(self, source: str) -> None:
        """Note an empty text as left out."""
        self.left_out.append((source, "it is empty"))

    def take(self, documents: Iterable[Document]) -> None:
        """Add documents: to those that are measured, to the copies or to those that are left out."""
        observed: set[str] = set()
        for document in documents:
            words = reading_words(document.text)
            self.counts.update(counted(words))
            reason = _reason(words)
            if reason is not None:
                self.left_out.append((document.source, reason))
            elif document.text in observed:
                self.copies += 1
            else:
                observed.add(document.text)
                self.documents.append(document)


def _reason(words: list[str]) -> str | None:
    if len(words) < 2:
        return f"it has {len(words)} word{'' if len(words) == 1 else 's'}, and an audit compares words"
    return None
