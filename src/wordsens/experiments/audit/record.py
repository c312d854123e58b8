"""The record of one audited text: one row of the table."""

import json
import math
from dataclasses import dataclass

from wordsens.audit.text import AuditedText, AuditedWord
from wordsens.experiments.store.record import TorchRecord


@dataclass(frozen=True, kw_only=True)
class AuditRecord(TorchRecord):
    """The measurements of one text. Tuples have one entry a measured word.

    `value` is the largest sensitivity; of a black box, which has none, the largest removal.

    Attributes:
        audit: the hash of everything but the text: records of one audit share it.
        model: its name.
        map: the model with its layer and pooling, or its output; "" where it could not be loaded.
        source: where the text came from.
        label: of the text, where it has one.
        tokens: rows of the text, special tokens included.
        words: whole words that were read.
        read: these words, a JSON list of strings.
        words_lost, negations_lost: whole words, and negations among them, that were cut off.
        measured: the measured words, a JSON list of strings.
        rows: a JSON list: how many tokens each has.
        places: each word's place, 0 the first word of the text and 1 the last.
        sensitivity: attained, a lower bound of the sup over perturbations of the word's rows by up to their own norms;
            empty for a black box.
        removal: relative change of the features when the word is deleted or masked.
        swap: relative change by the farthest of the words offered in its place; NaN where none was; empty where not
            asked for.
        swapped_for: a JSON list of strings, likewise.
        evaluations: perturbed texts that the search evaluated.
    """

    audit: str
    model: str
    map: str = ""
    source: str
    label: int | None = None
    tokens: int = 0
    words: int = 0
    read: str = "[]"
    words_lost: int = 0
    negations_lost: int = 0
    measured: str = "[]"
    rows: str = "[]"
    places: tuple[float, ...] = ()
    sensitivity: tuple[float, ...] = ()
    removal: tuple[float, ...] = ()
    swap: tuple[float, ...] = ()
    swapped_for: str = "[]"
    evaluations: int = 0

    def audited(self) -> AuditedText:
        """The measured words as `audit_text` gave them."""
        names, rows, swapped = (json.loads(text) for text in (self.measured, self.rows, self.swapped_for))
        values = zip(
            names,
            rows,
            self.places,
            self.sensitivity or (math.nan,) * len(names),
            self.removal,
            self.swap or (math.nan,) * len(names),
            swapped or ("",) * len(names),
            strict=True,
        )
        keys = ("word", "tokens", "place", "sensitivity", "removal", "swap", "swapped_for")
        return AuditedText(
            source=self.source,
            tokens=self.tokens,
            words=self.words,
            words_lost=self.words_lost,
            negations_lost=self.negations_lost,
            measured=tuple(AuditedWord(**dict(zip(keys, value, strict=True))) for value in values),
            evaluations=self.evaluations,
            read=tuple(json.loads(self.read)),
        )


def columns_of(found: AuditedText, *, swaps: bool) -> dict[str, object]:
    """The columns of a text's record."""
    words = found.measured
    return {
        "value": found.value,
        "tokens": found.tokens,
        "words": found.words,
        "read": json.dumps(found.read, ensure_ascii=False),
        "words_lost": found.words_lost,
        "negations_lost": found.negations_lost,
        "measured": json.dumps([word.word for word in words], ensure_ascii=False),
        "rows": json.dumps([word.tokens for word in words]),
        "places": tuple(word.place for word in words),
        "sensitivity": tuple(word.sensitivity for word in words if not math.isnan(word.sensitivity)),
        "removal": tuple(word.removal for word in words),
        "swap": tuple(word.swap for word in words) if swaps else (),
        "swapped_for": json.dumps([word.swapped_for for word in words] if swaps else [], ensure_ascii=False),
        "evaluations": found.evaluations,
    }
