"""Passages of any length around one changed sentence: the words before and after it are the user's own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from wordsens.evaluation.near_misses import SENTENCE_END, negate
from wordsens.text.pairs import Pair

PLACES = {"first": 0.0, "middle": 0.5, "last": 1.0}
"""The place of the changed sentence: the share of the other words that come before it."""

_SENTENCE = range(4, 25)
"""Words of a sentence that is changed: a shorter one is hardly one."""


@dataclass(frozen=True)
class Change:
    """A sentence in two versions, and its place among the words of all texts.

    Attributes:
        first, second: the two versions.
        start, stop: the words of `Surroundings` that it stands in the place of; none where start == stop.
    """

    first: str
    second: str
    start: int
    stop: int


class Surroundings:
    """The words of all texts in their order, the last followed by the first, and how many tokens each has.

    Args:
        texts: not empty.
        count: the number of tokens that a model reads for a text, special ones included.
    """

    def __init__(self, texts: Sequence[str], count: Callable[[str], int]):
        self._count = count
        split = [text.split() for text in texts]
        self._words = [word for words in split for word in words]
        self.starts = [0, *accumulate(map(len, split))][:-1]
        self._known: dict[str, int] = {}

    def own_changes(self, texts: Sequence[str]) -> list[Change]:
        """The shortest sentence of every text in which a "not" can be put in or taken out; the shortest of all first.

        A long sentence leaves no short passage to measure.
        """
        found = []
        for text, start in zip(texts, self.starts, strict=True):
            changes, at = [], start
            for sentence in SENTENCE_END.split(text):
                words = sentence.split()
                plain = " ".join(words)
                if len(words) in _SENTENCE and (opposite := negate(plain)) not in (None, plain):
                    changes.append(Change(plain, str(opposite), at, at + len(words)))
                at += len(words)
            if changes:
                found.append(min(changes, key=self.tokens))
        return sorted(found, key=self.tokens)

    def tokens(self, change: Change) -> int:
        """Of the longer version, special ones included."""
        return max(self._count(change.first), self._count(change.second))

    def placed(self, pairs: Sequence[Pair]) -> list[Change]:
        """Each pair before a text of its own, as far as there are texts; then from the first again."""
        starts = self.starts
        at = [starts[number % len(starts)] for number in range(len(pairs))]
        return [Change(pair.first, pair.second, place, place) for pair, place in zip(pairs, at, strict=True)]

    def passage(self, change: Change, place: str, tokens: int) -> tuple[str, str] | None:
        """Both versions with as many words around them as `tokens` has room for; None where there are not so many.

        The longer version has `tokens` tokens at most.
        """
        most = len(self._words) - (change.stop - change.start)
        share = PLACES[place]
        room = tokens - self.tokens(change)
        if room < 0:
            return None
        before, after, spent = [], [], 0
        while len(before) + len(after) < most:
            # The next word goes to the side that lacks most of its share.
            earlier = len(before) < share * (len(before) + len(after) + 1) and share > 0
            at = change.start - 1 - len(before) if earlier else change.stop + len(after)
            word = self._words[at % len(self._words)]
            spent += self._tokens_of(word)
            if spent > room:
                break
            (before if earlier else after).append(word)
        else:
            return None
        around = " ".join(before[::-1]), " ".join(after)
        first, second = (
            " ".join(part for part in (around[0], own, around[1]) if part) for own in (change.first, change.second)
        )
        return first, second

    def _tokens_of(self, word: str) -> int:
        if word not in self._known:
            self._known[word] = max(1, self._count(f"a {word}") - self._count("a"))
        return self._known[word]
