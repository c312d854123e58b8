"""The texts of a comparison, and all that one model says of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from wordsens.audit.text import drawn_words
from wordsens.models.black_box import Model
from wordsens.seeds import Seed
from wordsens.text.whole_words import without, word_spans

MOST_READ = 256
"""Words of a text among which those that are removed are drawn: few embedding models read more."""

_TOGETHER = 256
"""Texts between two reports of progress."""

Told = Callable[[int], None]
Encode = Callable[[list[str]], Tensor]


@dataclass(frozen=True)
class Chosen:
    """A text, and the words that are removed from it one by one.

    Attributes:
        text: the text.
        length: its words; signs are no words.
        words: those that are removed.
        spans: where each stands.
        places: 0 of the text's first word, 1 of the last that may be drawn.
    """

    text: str
    length: int
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    places: tuple[float, ...]

    @property
    def changed(self) -> list[str]:
        """The text without each of the words."""
        return [without(self.text, span) for span in self.spans]


def choose_words(text: str, most: int, seed: Seed) -> Chosen:
    """At most so many words of the text, negations first, the others at random; the same in every set of texts."""
    spans = [span for span in word_spans(text) if any(sign.isalnum() for sign in text[slice(*span)])]
    read = spans[:MOST_READ]
    words = [text[slice(*span)] for span in read]
    at = drawn_words(words, most, seed=int(seed), content=text)
    last = max(1, len(read) - 1)
    return Chosen(
        text, len(spans), tuple(words[i] for i in at), tuple(read[i] for i in at), tuple(i / last for i in at)
    )


@dataclass(frozen=True)
class Seen:
    """One model's answers.

    Attributes:
        units: every text's vector at length one.
        again: the same of a second call, in other batches.
        repeat: the mean of ‖second vector - first‖² / ‖first‖²: twice the variance of one answer.
        removals: for every text whose words are removed, ‖f(text without the word) - f(text)‖ / ‖f(text)‖.
    """

    units: Float[Tensor, "texts d"]
    again: Float[Tensor, "texts d"]
    repeat: float
    removals: tuple[Float[np.ndarray, " _"], ...]

    def inflation(self, values: Float[np.ndarray, " words"]) -> Float[np.ndarray, " words"]:
        """The part of each removal that the model's own noise makes: r - sqrt(r² - repeat), r where r² is less."""
        return values - np.sqrt(np.clip(values**2 - self.repeat, 0, None))


def see(model: Model, texts: Sequence[str], chosen: Sequence[tuple[int, Chosen]], told: Told) -> Seen:
    """Encode every text twice, and every chosen text without each of its words.

    Args:
        model: what is asked.
        texts: all of them.
        chosen: those whose words are removed, each with its number among the texts.
        told: called with the number of texts encoded since the last call.
    """
    once = encoded(model.encode, texts, told)
    twice = encoded(model.encode, texts[::-1], told).flip(0)
    norms = once.norm(dim=1)
    moved = encoded(model.encode, [text for _, each in chosen for text in each.changed], told)
    parts = moved.split([len(each.words) for _, each in chosen]) if chosen else ()
    removals = tuple(
        ((part - once[at]).norm(dim=1) / norms[at]).numpy() for (at, _), part in zip(chosen, parts, strict=True)
    )
    repeat = float(((twice - once).square().sum(dim=1) / norms.square()).mean())
    return Seen(normalize(once, dim=1), normalize(twice, dim=1), repeat, removals)


def encodings(texts: Sequence[str], chosen: Sequence[tuple[int, Chosen]]) -> int:
    """The number of texts that `see` encodes."""
    return 2 * len(texts) + sum(len(each.words) for _, each in chosen)


def encoded(encode: Encode, texts: Sequence[str], told: Told = lambda done: None) -> Float[Tensor, "m d"]:
    """The rows that `encode` gives the texts; texts of like length go together."""
    order = sorted(range(len(texts)), key=lambda at: len(texts[at]))
    found: Tensor = torch.empty(0)
    for start in range(0, len(order), _TOGETHER):
        chunk = order[start : start + _TOGETHER]
        rows = encode([texts[at] for at in chunk])
        found = rows.new_empty(len(texts), rows.shape[1]) if start == 0 else found
        found[chunk] = rows
        told(len(chunk))
    return found
