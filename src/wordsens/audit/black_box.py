"""Auditing one text by a model that gives vectors and nothing else: removals, and swaps for other words."""

import math
from collections.abc import Sequence

from wordsens.audit.text import (
    NEGATION,
    NO_SWAP,
    AuditedText,
    AuditedWord,
    AuditPlan,
    drawn_words,
    farthest_swaps,
)
from wordsens.errors import InputError
from wordsens.models.black_box import Model
from wordsens.text.alternatives import Alternatives
from wordsens.text.document import Document
from wordsens.text.english import kind_of
from wordsens.text.whole_words import without, word_spans


def audit_black_box(
    model: Model, document: Document, plan: AuditPlan, alternatives: Alternatives | None = None
) -> AuditedText:
    """Measure a few words of one text by encoding it again: without each, and with others in its place.

    The change is ‖f(changed text) - f(text)‖ / ‖f(text)‖, as for maps; there is no sensitivity, which takes gradients.

    Args:
        model: gives vectors.
        document: the text; its words are counted as a reader counts them.
        plan: words in the place of tokens; removal is by deletion, and there is no search.
        alternatives: the words that are tried in the place of one; None: no swaps.

    Raises:
        InputError: fewer than two words, or the model's answer is no vector a text.
    """
    spans = word_spans(document.text)
    words = [document.text[start:stop] for start, stop in spans]
    read = words[: plan.max_words]
    if len(read) < 2:
        raise InputError(f"{document.source} has {len(read)} words among those that are read; an audit compares words")
    text = document.text if len(read) == len(words) else document.text[: spans[len(read) - 1][1]]
    chosen = drawn_words(read, plan.words_per_text, seed=plan.seed, content=document.text)
    spans_of = {at: spans[at] for at in chosen}
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
    lost = words[len(read) :]
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
