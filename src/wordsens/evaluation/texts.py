"""The words that are measured in a text, what may stand in their place, and encoding in batches of like length."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from wordsens.evaluation.word_lists import ANTONYMS, QUANTITIES, TIMES
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.vocabulary import whole_word_tokens
from wordsens.seeds import Seed, derive_seed, generator
from wordsens.text.english import SameKind, kind_of
from wordsens.text.whole_words import Span, lettered_spans, without

LEAST_TEXTS = 6
"""Texts of a row about one word, or pairs of a kind: of fewer a joint test of even a few rows cannot find anything."""

MOST_READ = 256
"""Words of a text among which those that are measured are drawn: few embedding models read more."""

NEGATION = "negation"

_TOGETHER, _CHARACTERS = 256, 25_000
"""The most texts, and about the most characters, between two reports of progress."""

MOST_REPLACEMENTS = 24
"""Words that are offered for one: a batch of most models."""

_ENDINGS = ("ing", "ed", "ly", "est", "ness", "ion", "s")
"""Of content words: they tell verb forms, adverbs and plurals apart well enough for a sentence to stay one."""

_LOOKED_AT = 200
"""Nearest tokens of the vocabulary among which those of a word's kind are taken."""

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
    """At most so many words of the part of the text that is read, negations first, the others at random; the same in
    every set of texts."""
    every = lettered_spans(text)
    within = [span for span in every if read[0] <= span[0] and span[1] <= read[1]]
    spans = within[:MOST_READ]
    words = [text[slice(*span)] for span in spans]
    drawn = drawn_words(words, most, seed=int(seed), content=text)
    last = max(1, len(spans) - 1)
    return ChosenWords(
        text, len(every), tuple(words[i] for i in drawn), tuple(spans[i] for i in drawn),
        tuple(i / last for i in drawn), len(every) - len(within),
    )  # fmt: skip


def drawn_words(words: Sequence[str], count: int, *, seed: int, content: str) -> list[int]:
    """The places of at most so many words: negations first, then a random draw, in their order."""
    order: list[int] = torch.randperm(len(words), generator=generator(seed, "audited words", content)).tolist()
    order.sort(key=lambda place: kind_of(words[place]) != NEGATION)
    return sorted(order[:count])


def common_span(spans: Sequence[Span]) -> Span:
    """The part of a text that lies in all of these."""
    start, stop = max(start for start, _ in spans), min(stop for _, stop in spans)
    return start, max(start, stop)


def encoded(
    encode: Callable[[list[str]], Tensor], texts: Sequence[str], progress: Progress = lambda done: None
) -> Float[Tensor, "m ..."]:
    """The rows that `encode` gives the texts, each text once; texts of like length go together."""
    order = sorted(set(texts), key=lambda text: (len(text), text))
    rows: dict[str, Tensor] = {}
    while order:
        count = max(1, min(_TOGETHER, _CHARACTERS // max(1, len(order[0]))))
        chunk, order = order[:count], order[count:]
        rows |= dict(zip(chunk, encode(chunk), strict=True))
        progress(len(chunk))
    return torch.stack([rows[text] for text in texts]) if texts else torch.empty(0)


class Replacements:
    """From a word to at most `most` words that may stand in its place: opposites by list first, then others of its kind
    (negation, function word, ...) and ending, capitalised where it is: the nearest in the vocabulary of a model with a
    map, else random words of the texts.

    >>> offered = Replacements(["They disable the sound, enabled once; a walked mile"])
    >>> offered("enable")[0], "walked" in offered("enable"), "walked" in offered("enabled")
    ('disable', False, True)
    """

    def __init__(self, texts: Iterable[str], *, seed: Seed = 0, phi: TransformerFeatures | None = None):
        self._alike, self._seed = SameKind(texts), seed
        self._vocabulary = None if phi is None else _Vocabulary.of(phi)

    def __call__(self, word: str, most: int = MOST_REPLACEMENTS) -> tuple[str, ...]:
        named = self.opposites(word)
        further = [] if self._vocabulary is None else self._vocabulary.nearest(word)
        if not further:
            alike = [other for other in self._alike(word) if fits(word, other) and other not in named]
            chance = random.Random(derive_seed(self._seed, "replacements", word))
            further = chance.sample(alike, min(MOST_REPLACEMENTS - len(named), len(alike)))
        others = dict.fromkeys([*named, *further])
        return tuple(other for other in others if other.lower() != word.lower())[:most]

    def opposites(self, word: str) -> list[str]:
        """Those of the lists."""
        listed = [words[word.lower()] for words in (ANTONYMS, QUANTITIES, TIMES) if word.lower() in words]
        return [_cased(word, other) for other in dict.fromkeys(listed) if " " not in other]


class _Vocabulary:
    """The words of a model's vocabulary with their token vectors at length one."""

    def __init__(self, tokenizer: Any, table: Tensor):
        self._tokenize, self._table = tokenizer, table
        tokens = whole_word_tokens(tokenizer, rows=len(table))
        self._words, self._units = list(tokens.values()), normalize(table[list(tokens)], dim=1)

    @classmethod
    def of(cls, phi: TransformerFeatures) -> "_Vocabulary | None":
        """That of the map; None where it has no tokenizer or no table of token vectors."""
        embeddings = getattr(phi.stack.base, "get_input_embeddings", lambda: None)()
        if phi.reader is None or embeddings is None:
            return None
        return cls(phi.reader.tokenizer, embeddings.weight.detach().float())

    def nearest(self, word: str) -> list[str]:
        """The nearest words of the same kind and ending, without those that only add an ending."""
        ids = self._tokenize(f" {word}" if word[0].isalnum() else word, add_special_tokens=False)["input_ids"]
        if not ids:
            return []
        cosines = self._units @ normalize(self._table[ids].mean(dim=0), dim=0)
        order = cosines.topk(min(_LOOKED_AT, len(cosines))).indices.tolist()
        near = dict.fromkeys(_cased(word, self._words[at].lower()) for at in order if fits(word, self._words[at]))
        stems = {other: sorted((word.lower(), other.lower()), key=len) for other in near}
        kept_apart = [other for other, (short, long) in stems.items() if len(short) < 3 or not long.startswith(short)]
        return kept_apart[:MOST_REPLACEMENTS]


def fits(word: str, other: str) -> bool:
    """True for another word of the same kind and ending."""
    word, other = word.lower(), other.lower()
    return word != other and kind_of(word) == kind_of(other) and _ending(word) == _ending(other)


def _ending(word: str) -> str:
    if kind_of(word) != "content word":
        return ""
    return next((ending for ending in _ENDINGS if word.endswith(ending)), "")


def _cased(pattern: str, word: str) -> str:
    return word[0].upper() + word[1:] if pattern[0].isupper() else word
