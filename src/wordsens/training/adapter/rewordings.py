"""Sentences in other words or another order, by rules that keep the meaning."""

import random
import re
from collections.abc import Callable

from wordsens.evaluation.near_misses.lists import NEGATED
from wordsens.training.adapter.word_lists import DAYS, MONTHS, NUMBERS, exchange, synonyms

_FULL = {short: f"{verb} not" for short, verb in NEGATED.items()}
_SHORT = {full: short for short, full in _FULL.items() if short != "cannot"}
_WHOLE = {
    "I'm": "I am", "it's": "it is", "that's": "that is", "there's": "there is", "I've": "I have", "they're": "they are",
    "we're": "we are", "you're": "you are", "I'd": "I would", "I'll": "I will", "he's": "he is", "she's": "she is",
}  # fmt: skip
_DIGITS = {name: str(number) for number, name in enumerate(NUMBERS, start=1) if number > 1}
_SPELLED = {**_SHORT, **_FULL, **_WHOLE, **{full: short for short, full in _WHOLE.items()}, **_DIGITS}
_SPELLED |= {digits: name for name, digits in _DIGITS.items()}
SPELLINGS = {one.lower(): (other,) for one, other in _SPELLED.items()}

_OPENINGS = (
    "Well, ",
    "In fact, ",
    "To be fair, ",
    "As it happens, ",
    "I must say, ",
    "You see, ",
    "Actually, ",
    "By the way, ",
)
_ENDINGS = (", you know", ", I think", ", if you ask me", ", in any case", ", as I said", ", of course")
_KEPT_CAPITALS = re.compile(rf"(I|I'\w+|{'|'.join([*DAYS, *MONTHS])})\b")
_CLAUSES = re.compile(
    r"^([^,;:]{12,}?),? (when|because|if|although|since|while|after|before|until|as soon as|once) ([^,;:]{8,}?)([.!?])$"
)
_FRONTED = re.compile(
    r"^(When|Because|If|Although|Since|While|After|Before|Until|As soon as|Once|On|In|At|During) "
    r"([^,;:]{5,}?), ([^,;:]{12,}?)([.!?])$"
)

Maker = Callable[[str, random.Random], str | None]


def reword(sentence: str, chance: random.Random, *, changes: int = 3) -> str:
    """The sentence after up to so many changes that keep its meaning; as it is where none can be made.

    >>> reword("The lift stopped when we got in.", random.Random(1), changes=1) != "The lift stopped when we got in."
    True
    """
    for maker in chance.sample(_MAKERS, k=min(changes, len(_MAKERS))):
        sentence = maker(sentence, chance) or sentence
    return sentence


def capital(text: str) -> str:
    """The text with a capital at its start."""
    return text[:1].upper() + text[1:]


def small(text: str) -> str:
    """The text with a small letter at its start, where that word is not always written large."""
    return text if _KEPT_CAPITALS.match(text) or text[:2].isupper() else text[:1].lower() + text[1:]


def _synonym(sentence: str, chance: random.Random) -> str | None:
    return exchange(sentence, synonyms(), chance)


def _spelling(sentence: str, chance: random.Random) -> str | None:
    return exchange(sentence, SPELLINGS, chance)


def _filler(sentence: str, chance: random.Random) -> str | None:
    if chance.random() < 0.5:
        return chance.choice(_OPENINGS) + small(sentence)
    return f"{sentence[:-1]}{chance.choice(_ENDINGS)}{sentence[-1]}" if sentence[-1:] in ".!?" else None


def _reordered(sentence: str, chance: random.Random) -> str | None:
    if found := _CLAUSES.match(sentence):
        return f"{capital(found[2])} {found[3]}, {small(found[1])}{found[4]}"
    if found := _FRONTED.match(sentence):
        return f"{capital(found[3])} {small(found[1])} {found[2]}{found[4]}"
    return None


_MAKERS: tuple[Maker, ...] = (_synonym, _synonym, _synonym, _spelling, _filler, _reordered)
