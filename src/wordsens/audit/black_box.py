"""Auditing one text by a model that gives vectors and nothing else: removals, and swaps for words of the same kind."""

import math
import random

from wordsens.audit.text import NEGATION, AuditedText, AuditedWord, AuditPlan, drawn_words
from wordsens.errors import InputError
from wordsens.models.contract import Model
from wordsens.seeds import derive_seed
from wordsens.text.alternatives import SameKind
from wordsens.text.document import Document
from wordsens.text.english import kind_of
from wordsens.text.shipped_data import shipped_reviews
from wordsens.text.whole_words import with_word, without, word_spans

SWAPS = 32
"""Words that are tried in the place of one: a batch of most models."""


def audit_black_box(model: Model, document: Document, plan: AuditPlan, *, swaps: bool = False) -> AuditedText:
    """Measure a few words of one text by encoding it again: without each, and with others in its place.

    The change is ‖f(changed text) - f(text)‖ / ‖f(text)‖, as for maps; there is no sensitivity, which takes gradients.

    Args:
        model: gives vectors.
        document: the text; its words are counted as a reader counts them.
        plan: words in the place of tokens; removal is by deletion, and there is no search.
        swaps: whether each is also exchanged for SWAPS random words of its kind, from the text and shipped ones.

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
    offered: dict[int, list[str]] = {at: [] for at in chosen}
    if swaps:
        alternatives = SameKind([text, *(review.text for review in shipped_reviews())])
        chance = random.Random(derive_seed(plan.seed, "swaps", document.text))
        for at in chosen:
            others = [word for word in alternatives(read[at]) if word != read[at]]
            offered[at] = chance.sample(others, min(SWAPS, len(others)))
    asked = [text]
    for at in chosen:
        asked += [without(text, spans[at]), *(with_word(text, spans[at], word) for word in offered[at])]
    rows = model.encode(asked)
    changes = iter(((rows[1:] - rows[0]).norm(dim=1) / rows[0].norm()).tolist())
    measured = []
    for at in chosen:
        removal, tried = next(changes), [(next(changes), word) for word in offered[at]]
        swap, swapped_for = max(tried, default=(math.nan, ""))
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
        evaluations=len(asked),
    )
