"""Training triples of `tune`: a text, the same in other words, and a text that one change turned
around."""

import random
import re
from collections.abc import Callable, Iterable, Sequence

from wordsens.evaluation.near_misses import RULES, SENTENCE_END
from wordsens.evaluation.word_lists import NEGATED, exchange, synonyms
from wordsens.text.document import Document
from wordsens.text.pairs import Pair

Triple = tuple[str, str, str]
"""A text, one of the same meaning, and one of another meaning."""

_LENGTHS = range(4, 21)
"""Words of a sentence: a shorter one has no room for a change, a longer one costs time."""

_CONTRACTED = {
    "i'm": "i am",
    "it's": "it is",
    "that's": "that is",
    "there's": "there is",
    "i've": "i have",
    "i'll": "i will",
    "we're": "we are",
    "they're": "they are",
    "you're": "you are",
    "we've": "we have",
    "you'll": "you will",
    **{short: f"{verb} not" for short, verb in NEGATED.items() if short != "cannot"},
}
_NUMBERS = [
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
_SPELLED = {**_CONTRACTED, **{word: str(value) for value, word in enumerate(_NUMBERS, start=2)}}
_SPELLINGS = {one: (other,) for pair in _SPELLED.items() for one, other in (pair, pair[::-1])}

_OPENINGS = ("Well, ", "In fact, ", "By the way, ", "Just so you know, ", "As it happens, ")
_ENDINGS = (", please", ", as far as I know", ", by the way", ", in any case")
_JOINING = "when|because|if|although|while|after|before|until|once"
_CLAUSES = re.compile(rf"^([^,;:]{{12,}}?),? ({_JOINING}) ([^,;:]{{8,}})([.!])$")
_FRONTED = re.compile(
    rf"^({_JOINING}|on|in|at|during) ([^,;:]{{2,}}), ([^,;:]{{12,}})([.!])$", re.IGNORECASE
)
_CAPITAL = re.compile(r"(I|I'\w+|[A-Z]\w*[A-Z]\w*|(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day)\b")


def make_triples(
    pairs: Sequence[Pair], near_misses: Sequence[Pair], chance: random.Random
) -> list[Triple]:
    """Triples from all opposites, in both directions, and from near-duplicates that a rule turns
    into an opposite.

    Args:
        pairs: opposites and near-duplicates; what means the same in few common words is left out.
        near_misses: opposites made by rule; only one direction of each is used.
        chance: of the rewordings, and of that direction.
    """
    triples: list[Triple] = []
    for pair in pairs:
        for first, second in ((pair.first, pair.second), (pair.second, pair.first)):
            if pair.near:
                triples += [
                    (first, second, other) for rule in RULES.values() if (other := rule(first))
                ]
            elif not pair.same:
                triples.append((first, reword(first, chance), second))
    for pair in near_misses:
        first, second = chance.sample((pair.first, pair.second), 2)
        triples.append((first, reword(first, chance), second))
    return list(dict.fromkeys(triple for triple in triples if triple[0] != triple[2] != triple[1]))


def sentences_of(texts: Iterable[str | Document]) -> list[str]:
    """Their sentences of 4 to 20 words, each once."""
    parts = (
        part
        for text in texts
        for part in SENTENCE_END.split(text.text if isinstance(text, Document) else text)
    )
    return list(
        dict.fromkeys(" ".join(part.split()) for part in parts if len(part.split()) in _LENGTHS)
    )


def reword(sentence: str, chance: random.Random, *, changes: int = 2) -> str:
    """The sentence after so many changes that keep its meaning; after fewer where no more rules
    apply.

    >>> "It is not ready." in {reword("It isn't ready.", random.Random(seed), changes=1) for seed in range(60)}
    True
    """  # noqa: E501
    applied = 0
    for rule in chance.sample(_REWORDINGS, k=len(_REWORDINGS)):
        reworded = rule(sentence, chance) or sentence
        applied += reworded != sentence
        sentence = reworded
        if applied == changes:
            break
    return sentence


def _synonym(sentence: str, chance: random.Random) -> str | None:
    return exchange(sentence, synonyms(), chance)


def _spelling(sentence: str, chance: random.Random) -> str | None:
    """A contraction written out or made, a number word in digits or the other way round."""
    return exchange(sentence, _SPELLINGS, chance)


def _filler(sentence: str, chance: random.Random) -> str | None:
    if chance.random() < 0.5:
        return chance.choice(_OPENINGS) + _lower(sentence)
    return (
        f"{sentence[:-1]}{chance.choice(_ENDINGS)}{sentence[-1]}"
        if sentence[-1:] in (".", "!")
        else None
    )


def _order(sentence: str, chance: random.Random) -> str | None:
    """Two clauses in the other order."""
    if match := _FRONTED.match(sentence):
        return f"{_upper(match[3])} {match[1].lower()} {match[2]}{match[4]}"
    if match := _CLAUSES.match(sentence):
        return f"{_upper(match[2])} {match[3]}, {_lower(match[1])}{match[4]}"
    return None


def _typo(sentence: str, chance: random.Random) -> str | None:
    """Two letters inside a long word exchanged, or the sentence in small letters."""
    if chance.random() < 0.3:
        return sentence.lower().rstrip(".")
    words = list(re.finditer(r"[a-z]{6,}", sentence))
    if not words:
        return None
    at = chance.choice(words).start() + chance.randint(1, 3)
    return sentence[:at] + sentence[at + 1] + sentence[at] + sentence[at + 2 :]


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lower(text: str) -> str:
    return text if _CAPITAL.match(text) else text[:1].lower() + text[1:]


_REWORDINGS: tuple[Callable[[str, random.Random], str | None], ...] = (
    _synonym,
    _synonym,
    _spelling,
    _spelling,
    _filler,
    _order,
    _typo,
)
