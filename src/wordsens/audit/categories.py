"""Categories of words that need no tagger: by frequency and by place."""

from collections import Counter
from collections.abc import Iterable

PLACES = ("first fifth", "middle", "last fifth")


def place_of(share: float) -> str:
    """One of PLACES, from the word's place as a share of the text: 0 the first word, 1 the last."""
    return PLACES[0] if share < 0.2 else PLACES[2] if share > 0.8 else PLACES[1]


def frequency_bands(counts: Counter[str]) -> dict[str, str]:
    """For each word of the data, "common" if it is among the words that make up half of all running words, else
    "frequent" for the next 40 %, and "rare" for the last tenth.

    >>> frequency_bands(Counter(the=50, film=40, gaffer=10))
    {'the': 'common', 'film': 'frequent', 'gaffer': 'rare'}
    """
    total = sum(counts.values())
    before, bands = 0, {}
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        bands[word] = "common" if before < 0.5 * total else "frequent" if before < 0.9 * total else "rare"
        before += count
    return bands


def counted(words: Iterable[str]) -> Counter[str]:
    """The number of times each word occurs, in lower case."""
    return Counter(word.lower() for word in words)
