"""Making near misses from texts."""

import random
import re
from collections.abc import Iterable

from wordsens.errors import InputError, require_count
from wordsens.evaluation.near_misses.rules import RULES
from wordsens.seeds import Seed, derive_seed
from wordsens.text.document import Document
from wordsens.text.pairs import Pair

MOST_OF_A_KIND = 100
"""Pairs of a kind: the interval of an AUC is then at most .2 wide, and every pair can be read."""

_WORDS = range(3, 61)
"""Of a sentence: shorter ones have no room for a change, longer ones are hardly ever one sentence."""

SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'])|\n+")


def near_misses(texts: Iterable[str | Document], *, most: int = MOST_OF_A_KIND, seed: Seed = 0) -> list[Pair]:
    """Pairs of opposites from the sentences of the texts, one change each: see `RULES`.

    They are made by rule and want a reader's eye before a gate is built on them.

    Args:
        texts: English.
        most: pairs of a kind; of more, a random choice.
        seed: of the choice.

    Raises:
        InputError: no rule finds anything in the texts.

    >>> [(pair.kind, pair.second) for pair in near_misses(["How do I enable sync?"])]
    [('antonym', 'How do I disable sync?')]
    """
    require_count("most", most)
    # A sentence and its opposite may both be among the texts: they make one pair.
    made: dict[str, dict[frozenset[str], Pair]] = {kind: {} for kind in RULES}
    count = 0
    for count, text in enumerate(texts, start=1):
        document = text if isinstance(text, Document) else Document(text)
        for sentence in SENTENCE_END.split(document.text):
            sentence = " ".join(sentence.split())
            if len(sentence.split()) in _WORDS:
                for kind, rule in RULES.items():
                    opposite = rule(sentence)
                    if opposite is not None and opposite != sentence:
                        columns = {"source": document.source or f"text {count - 1}"}
                        made[kind].setdefault(
                            frozenset((sentence, opposite)), Pair(kind, sentence, opposite, False, columns)
                        )
    pairs = [pair for kind, found in made.items() for pair in _some(list(found.values()), most, seed, kind)]
    if not pairs:
        raise InputError(
            f"no near miss can be made from {count} texts: no sentence of {_WORDS.start} to {_WORDS.stop - 1} words "
            "holds a word of the lists; give other texts, or pairs of your own"
        )
    return pairs


def _some(pairs: list[Pair], most: int, seed: Seed, kind: str) -> list[Pair]:
    """At most so many, in their order."""
    if len(pairs) <= most:
        return pairs
    places = random.Random(derive_seed(seed, "near misses", kind)).sample(range(len(pairs)), most)
    return [pairs[at] for at in sorted(places)]
