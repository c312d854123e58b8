"""The words that are measured in a text, and encoding in batches of like length."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.seeds import Seed, generator
from wordsens.text.english import kind_of
from wordsens.text.whole_words import Span, lettered_spans, without

LEAST_TEXTS = 6
"""Texts of a row about one word, or pairs of a kind: of fewer a joint test of even a few rows
cannot find anything."""

MOST_READ = 256
"""Words of a text among which those that are measured are drawn: few embedding models read more."""

NEGATION = "negation"

_TOGETHER, _CHARACTERS = 256, 25_000
"""The most texts, and about the most characters, between two reports of progress."""

Progress = Callable[[int], None]
"""Called with the number of texts encoded since the last call."""


@dataclass(frozen=True)
class ChosenWords:
    """A text, and the words that are removed from it one by one.

    Attributes:
        text: the text.
        length: its words; signs are no words.
        words: those that are removed.
        spans: where each stands.
        places: 0 of the text's first word, 1 of the last that may be drawn.
        unread: its words outside what the model reads, of which none is removed.
    """

    text: str
    length: int
    words: tuple[str, ...]
    spans: tuple[Span, ...]
    places: tuple[float, ...]
    unread: int = 0

    @property
    def changed(self) -> list[str]:
        """The text without each of the words."""
        return [without(self.text, span) for span in self.spans]


def choose_words(text: str, most: int, seed: Seed, read: Span) -> ChosenWords:
    """At most so many words of the part of the text that is read, negations first, the others at
    random; the same in every set of texts."""
    every = lettered_spans(text)
    within = [span for span in every if read[0] <= span[0] and span[1] <= read[1]]
    spans = within[:MOST_READ]
    words = [text[slice(*span)] for span in spans]
    drawn = drawn_words(words, most, seed=int(seed), content=text)
    last = max(1, len(spans) - 1)
    return ChosenWords(
        text,
        len(every),
        tuple(words[i] for i in drawn),
        tuple(spans[i] for i in drawn),
        tuple(i / last for i in drawn),
        len(every) - len(within),
    )


def drawn_words(words: Sequence[str], count: int, *, seed: int, content: str) -> list[int]:
    """The places of at most so many words: negations first, then a random draw, in their order."""
    order: list[int] = torch.randperm(
        len(words), generator=generator(seed, "audited words", content)
    ).tolist()
    order.sort(key=lambda place: kind_of(words[place]) != NEGATION)
    return sorted(order[:count])


def common_span(spans: Sequence[Span]) -> Span:
    """The part of a text that lies in all of these."""
    start, stop = max(start for start, _ in spans), min(stop for _, stop in spans)
    return start, max(start, stop)


Item = TypeVar("Item", str, tuple[str, str])
"""A text, or a pair of texts."""


def encoded(
    encode: Callable[[list[Item]], Tensor],
    items: Sequence[Item],
    progress: Progress = lambda done: None,
) -> Float[Tensor, "m ..."]:
    """The rows that `encode` gives the texts, or pairs of texts, each once; those of like length go
    together."""
    sizes = {item: len(item if isinstance(item, str) else "".join(item)) for item in items}
    order = sorted(sizes, key=lambda item: (sizes[item], item))
    rows: dict[Item, Tensor] = {}
    while order:
        count = max(1, min(_TOGETHER, _CHARACTERS // max(1, sizes[order[0]])))
        chunk, order = order[:count], order[count:]
        rows |= zip(chunk, encode(chunk), strict=True)
        progress(len(chunk))
    return torch.stack([rows[item] for item in items]) if items else torch.empty(0)
