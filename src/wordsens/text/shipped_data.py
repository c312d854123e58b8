"""The texts that come with the package: movie reviews, and pairs of sentences that differ in one word."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from wordsens.text.document import Document

SHIPPED = "shipped"


@dataclass(frozen=True)
class MinimalPair:
    """Two sentences that differ in exactly one word.

    Attributes:
        id: e.g. "negation-03".
        kind: sentiment, negation, quantity, role, intensity; or synonym, the control: its meaning stays.
        first, second: the sentences.
    """

    id: str
    kind: str
    first: str
    second: str


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
    return [MinimalPair(**record) for record in _records("minimal_pairs.jsonl")]


def _records(name: str) -> Iterator[dict[str, Any]]:
    content = files("wordsens.text").joinpath("shipped", name).read_text(encoding="utf-8")
    return (json.loads(line) for line in content.split("\n") if line)
