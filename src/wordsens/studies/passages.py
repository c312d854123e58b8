"""Pairs of texts that differ in a word: passages in which one is exchanged, and the shipped pairs
of `check`."""

import random
from collections.abc import Iterator
from functools import cache, lru_cache

from wordsens.errors import InputError
from wordsens.evaluation.word_lists import Table, antonyms, exchange, negations, synonyms
from wordsens.models.embedding import load_encoder
from wordsens.models.text_model import TextModel
from wordsens.seeds import derive_seed
from wordsens.sweeps.texts import Embedded, documents
from wordsens.text import Document
from wordsens.text.pairs import SYNONYM, Pair, read_pairs
from wordsens.text.whole_words import word_spans

FLIPS = ("antonym", "negation")

# Passages of one text that are tried in a round: about a third of passages of 8 rows hold words of
# both tables.
_PLACES = 12
# Exchanges of one passage and table that are tried: about a fifth of the tables' words have several
# tokens.
_TRIES = 4


def swapped_passages(
    source: Embedded, encoder: str, n: int, count: int, seed: int
) -> tuple[Pair, ...]:
    """Up to `count` passages of n rows, each in two pairs: with a flipped copy, and with one that
    means the same.

    A passage is a run of whole words of a text that an encoder makes n rows of, special tokens left
    out; each exchange is of one word for one word, which leaves n rows. Texts take their turns, so
    that a second passage of one text comes after the first of every other. Which of the two tables
    flips a passage is drawn with equal chances, where both do.

    Args:
        source: of the texts.
        encoder: whose tokens are counted.
        n: rows of a passage.
        count: passages wanted; fewer where the texts have no more.
        seed: of the choice.

    Returns:
        The opposites, then the pairs that mean the same, in the order of the passages.

    Raises:
        InputError: no text has a passage of n rows in which both exchanges can be made.
    """
    texts = documents(source)
    pairs = chosen_passages(texts, encoder, n, count, seed)
    if not pairs:
        raise InputError(
            f"none of the {len(texts)} texts has a passage of `n` (={n}) rows that holds a word "
            "with an antonym or negation and one with a synonym, of as many tokens, in the lists "
            "of the package; give English texts of that length, or a smaller n"
        )
    return pairs


@lru_cache(maxsize=64)
def chosen_passages(
    texts: tuple[Document, ...], encoder: str, n: int, count: int, seed: int
) -> tuple[Pair, ...]:
    """`swapped_passages` of these texts, none where no text has one; the cells of a draw ask for
    the same ones."""
    reader, chance = load_encoder(encoder), random.Random(derive_seed(seed, "swaps", n))
    order = chance.sample(range(len(texts)), len(texts))
    found: dict[str, tuple[Pair, Pair]] = {}
    before = -1
    while before < len(found) < count:
        before = len(found)
        for place in order:
            pair = _swapped(texts[place].text, reader, n, chance) if len(found) < count else None
            if pair is not None:
                found.setdefault(pair[0].first, pair)
    return tuple(pair for side in zip(*found.values(), strict=True) for pair in side)


def _swapped(
    text: str, reader: TextModel, n: int, chance: random.Random
) -> tuple[Pair, Pair] | None:
    for passage in _passages(text, reader, n, chance):
        kinds = chance.sample(FLIPS, len(FLIPS))
        flips = ((kind, _exchanged(passage, kind, reader, n, chance)) for kind in kinds)
        flipped = next((Pair(kind, passage, other, False) for kind, other in flips if other), None)
        same = _exchanged(passage, SYNONYM, reader, n, chance)
        if flipped and same:
            return flipped, Pair(SYNONYM, passage, same, True)
    return None


def _passages(text: str, reader: TextModel, n: int, chance: random.Random) -> Iterator[str]:
    """A few runs of whole words with n tokens, at random places."""
    tokens = reader.tokenize(text)
    if tokens.words < n or tokens.whole_words is None:
        return
    spans, rows = word_spans(text), {word.rows[0]: len(word.rows) for word in tokens.whole_words}
    starts = sorted(rows)
    if len(starts) != len(spans):  # a word without a token of its own: places are unknown
        return
    ends = {row + rows[row]: at for at, row in enumerate(starts)}
    places = [(at, ends[row + n]) for at, row in enumerate(starts) if row + n in ends]
    for first, last in chance.sample(places, min(_PLACES, len(places))):
        passage = text[spans[first][0] : spans[last][1]]
        if reader.tokenize(passage).words == n:
            yield passage


def _exchanged(
    passage: str, kind: str, reader: TextModel, n: int, chance: random.Random
) -> str | None:
    """The passage with one word of a table exchanged, of n rows like itself; None where no try
    gives one."""
    for _ in range(_TRIES):
        swapped = exchange(passage, single_words(kind), chance)
        if swapped is None:
            return None
        if swapped != passage and reader.tokenize(swapped).words == n:
            return swapped
    return None


@cache
def single_words(kind: str) -> Table:
    """The part of a table that replaces one word by one word.

    >>> single_words("negation")["with"], "at least" in single_words("antonym")
    (('without',), False)
    """
    table = {"antonym": antonyms, "negation": negations, SYNONYM: synonyms}[kind]()
    single = {word: tuple(filter(str.isalpha, others)) for word, others in table.items()}
    return {word: others for word, others in single.items() if word.isalpha() and others}


@cache
def shipped_pairs(length: str) -> tuple[Pair, ...]:
    """Every shipped pair of that length, in their order."""
    return tuple(pair for pair in read_pairs() if pair.length == length)


def some_pairs(length: str, count: int, seed: int) -> tuple[Pair, ...]:
    """At most `count` shipped pairs of each kind, at random by the seed."""
    chance, kinds = random.Random(derive_seed(seed, "pairs", length)), dict[str, list[Pair]]()
    for pair in shipped_pairs(length):
        kinds.setdefault(pair.kind, []).append(pair)
    samples = (chance.sample(pairs, min(count, len(pairs))) for pairs in kinds.values())
    return tuple(pair for sample in samples for pair in sample)
