"""Words that a writer could have meant in the place of another: its opposite, and words of its kind and ending."""

import random
from collections.abc import Iterable

from wordsens.evaluation.near_misses.lists import ANTONYMS, QUANTITIES, TIMES
from wordsens.seeds import Seed, derive_seed
from wordsens.text.alternatives import SameKind
from wordsens.text.english import kind_of

MOST = 24
"""Words that are offered for one: a batch of most models."""

_ENDINGS = ("ing", "ed", "ly", "est", "ness", "ion", "s")
"""Of content words: they tell verb forms, adverbs and plurals apart well enough for a sentence to stay one."""


class Replacements:
    """From a word to at most MOST words that may stand in its place: opposites by list first, then random words of the
    texts, of its kind (negation, function word, ...) and ending, capitalised where it is.

    >>> offered = Replacements(["They disable the sound, enabled once; a walked mile"])
    >>> offered("enable")[0], "walked" in offered("enable"), "walked" in offered("enabled")
    ('disable', False, True)
    """

    def __init__(self, texts: Iterable[str], *, seed: Seed = 0):
        self._alike, self._seed = SameKind(texts), seed

    def __call__(self, word: str) -> tuple[str, ...]:
        plain = word.lower()
        opposites = [listed[plain] for listed in (ANTONYMS, QUANTITIES, TIMES) if plain in listed]
        named = [_cased(word, other) for other in dict.fromkeys(opposites) if " " not in other]
        ending = _ending(plain)
        others = [
            other
            for other in self._alike(word)
            if other.lower() != plain and _ending(other.lower()) == ending and other not in named
        ]
        chance = random.Random(derive_seed(self._seed, "replacements", word))
        return (*named, *chance.sample(others, min(MOST - len(named), len(others))))


def _ending(word: str) -> str:
    if kind_of(word) != "content word":
        return ""
    return next((ending for ending in _ENDINGS if word.endswith(ending)), "")


def _cased(pattern: str, word: str) -> str:
    return word[0].upper() + word[1:] if pattern[0].isupper() else word
