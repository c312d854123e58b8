"""The texts that come with the package: movie reviews, one-word pairs, and pairs of equal or
different meaning."""

import csv
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wordsens.files import packaged_text
from wordsens.text.document import Document

SHIPPED = "shipped"

_SAME = ("synonym", "paraphrase")
"""Kinds whose two texts mean the same."""

_PARAGRAPH, _PAGE = 60, 200
"""Words from which a text is a paragraph, and a page."""


@dataclass(frozen=True)
class MinimalPair:
    """Two sentences that differ in exactly one word.

    Attributes:
        id: e.g. "negation-03".
        kind: sentiment, negation, quantity, role, intensity; or synonym, the control: its meaning
            stays.
        first, second: the sentences.
    """

    id: str
    kind: str
    first: str
    second: str


@dataclass(frozen=True)
class MeaningPair:
    """Two texts that mean the same, or that do not although nearly all of their words agree.

    Attributes:
        id: e.g. "negation-003".
        kind: negation, antonym, role, quantity, time, entity or modality, whose meanings differ;
            synonym (one word replaced by another of its meaning in this text) or paraphrase (few
            content words shared), whose meanings agree.
        domain: support, documentation, health, finance, law or everyday.
        first, second: the texts.
        same: True where they mean the same.
        changed: the words of `first`, and those of `second` that stand in their place; for a role
            pair the two words that change places; empty for a paraphrase.
        length: question or sentence (up to 45 words), paragraph (60 to 120) or page (200 and more).
        note: a short description of the difference.
        set: of two texts that mean the same, "far" where they share few words, else "near"; "" of
            opposites.
    """

    id: str
    kind: str
    domain: str
    first: str
    second: str
    same: bool
    changed: tuple[str, ...]
    length: str
    note: str
    set: str


def shipped_reviews() -> list[Document]:
    """The movie reviews written for this package: 20 to 400 words, as many positive as negative.

    >>> review = shipped_reviews()[0]
    >>> review.source, review.label
    ('shipped/review-001', 1)
    """
    return [
        Document(text=record["text"], label=record["label"], source=f"{SHIPPED}/{record['id']}")
        for record in _records("reviews.jsonl")
    ]


def minimal_pairs() -> list[MinimalPair]:
    """The one-word pairs written for this package, each with its kind.

    >>> sorted({pair.kind for pair in minimal_pairs()})
    ['intensity', 'negation', 'quantity', 'role', 'sentiment', 'synonym']
    """
    return [
        MinimalPair(
            pair["id"],
            pair["kind"],
            pair["first"],
            _changed(pair["first"], *pair["changed"], both=False),
        )
        for pair in _records("minimal_pairs.jsonl")
    ]


def meaning_pairs() -> list[MeaningPair]:
    """The pairs written for this package to test whether a model sees a changed meaning.

    >>> pair = meaning_pairs()[0]
    >>> pair.first, pair.changed, pair.same
    ('Why was my card charged after the trial ended?', ('was', "wasn't"), False)
    """
    return [
        *(_of_pair(record) for record in _records("meaning_pairs.jsonl")),
        *(pair for page in _records("meaning_pages.jsonl") for pair in _of_page(page)),
    ]


def near_duplicates() -> list[MeaningPair]:
    """The near-duplicates written for this package: texts that mean the same and differ in a few
    words or signs.

    Their kind says how: contraction, number, date, voice, order, spelling, typo, abbreviation,
    filler, reminder ("do not forget to", "remember to"), double negation, wording, case, or
    paragraph for longer texts.

    >>> pair = near_duplicates()[0]
    >>> pair.kind, pair.same, pair.second
    ('contraction', True, 'The replacement I was promised has not arrived yet.')
    """
    counts: Counter[str] = Counter()
    pairs = []
    for row in csv.DictReader(packaged_text("text/shipped/near_duplicates.csv").splitlines()):
        counts[row["kind"]] += 1
        identity = f"{row['kind'].replace(' ', '-')}-{counts[row['kind']]:03}"
        length = _length(row["first"], row["second"])
        pairs.append(
            MeaningPair(
                **row,
                id=identity,
                same=True,
                changed=(),
                length=length,
                note="a near-duplicate",
                set="near",
            )
        )
    return pairs


def _of_pair(record: dict[str, Any]) -> MeaningPair:
    """The pair of a record, which has no `second` where the first text with its changed words is
    the second."""
    first, kind, changed = record["first"], record["kind"], tuple(record.get("changed", ()))
    second = record.get("second") or _changed(first, *changed, both=kind == "role")
    changes = {
        "second": second,
        "same": kind in _SAME,
        "changed": changed,
        "length": _length(first, second),
        "set": _set(kind),
    }
    return MeaningPair(**{**record, **changes})


def _set(kind: str) -> str:
    if kind not in _SAME:
        return ""
    return "far" if kind == "paraphrase" else "near"


def _length(first: str, second: str) -> str:
    words = max(len(text.split()) for text in (first, second))
    if words >= _PARAGRAPH:
        return "page" if words >= _PAGE else "paragraph"
    return "question" if first.endswith("?") else "sentence"


def _of_page(page: dict[str, Any]) -> Iterator[MeaningPair]:
    """The pairs that one page stands in: with one change of each kind, and with its paraphrase."""
    text, paraphrase = page["text"], page["paraphrase"]
    seconds = {
        kind: _changed(text, old, new, both=kind == "role")
        for kind, (old, new) in page["changes"].items()
    }
    for kind, second in {**seconds, "paraphrase": paraphrase}.items():
        yield MeaningPair(
            id=f"{kind}-{page['id']}",
            kind=kind,
            domain=page["domain"],
            first=text,
            second=second,
            same=kind in _SAME,
            changed=tuple(page["changes"].get(kind, ())),
            length="page",
            note="a page that stands in a pair of every kind",
            set=_set(kind),
        )


def _changed(text: str, old: str, new: str, *, both: bool) -> str:
    """The text with the new words for the old ones, or with the two exchanged."""
    other = {old: new, new: old} if both else {old: new}
    return re.sub(rf"\b({'|'.join(map(re.escape, other))})\b", lambda match: other[match[0]], text)


def _records(name: str) -> Iterator[dict[str, Any]]:
    """Of a file of this package."""
    return (json.loads(line) for line in packaged_text(f"text/shipped/{name}").split("\n") if line)
