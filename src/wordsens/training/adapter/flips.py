"""Sentences turned into another meaning by one change, many ways of each kind."""

import random
import re

from wordsens.evaluation.near_misses.rules import RULES
from wordsens.training.adapter.word_lists import antonyms, exchange, negations, quantities, times

KINDS = ("negation", "antonym", "quantity", "time", "role")
"""The kinds that can be made by rule; entities and modal verbs are left for a test of what was never trained."""

_VERBS_LISTED = """
    think know like want need see have get make take go come feel look find give tell use say believe remember expect
    care understand mind agree recommend enjoy love hate watch work help live play seem start end show keep ask pay
"""
_VERBS = _VERBS_LISTED.split()
_PLAIN_VERB = re.compile(rf"\b(I|we|you|they|people)( really| always| still)? ({'|'.join(_VERBS)})\b", re.IGNORECASE)
_THIRD = re.compile(rf"\b(he|she|it|this|that|who|which|\w+) ({'|'.join(verb + 's' for verb in _VERBS)})\b")
_NOUN = re.compile(
    r"\b(the|a|an|my|our|his|her|their|your) ((?!most|best|same|first|last|more|way)[a-z]{3,})\b", re.IGNORECASE
)
_NAME = re.compile(r"(?<=[a-z,;] )([A-Z][a-z]{2,})\b")
_NUMBER = re.compile(r"(?<![\w.,:/#-])(\d{1,4})(?![\w:/-]|[.,]\d)")


def flip(sentence: str, kind: str, chance: random.Random) -> str | None:
    """The sentence with one change of that kind; None where none can be made.

    >>> flip("They won the match.", "antonym", random.Random(0))
    'They lost the match.'
    """
    makers = list(_MAKERS[kind])
    chance.shuffle(makers)
    for maker in makers:
        made = maker(sentence, chance)
        if made is not None and made != sentence:
            return made
    return None


def _plainly(kind: str):
    return lambda sentence, chance: RULES[kind](sentence)


def _negated_verb(sentence: str, chance: random.Random) -> str | None:
    """Do-support: "I like it" to "I don't like it"."""
    changed, count = _PLAIN_VERB.subn(
        lambda found: f"{found[1]}{found[2] or ''} {chance.choice(_DONT)} {found[3]}", sentence, count=1
    )
    if not count:
        changed, count = _THIRD.subn(
            lambda found: f"{found[1]} {chance.choice(_DOESNT)} {found[2][:-1]}", sentence, count=1
        )
    return changed if count else None


_DONT = ("don't", "do not", "never")
_DOESNT = ("doesn't", "does not", "never")


def _swapped_nouns(sentence: str, chance: random.Random) -> str | None:
    """Two nouns, or two names, in each other's place."""
    for pattern, group in ((_NAME, 1), (_NOUN, 2)):
        found = list(pattern.finditer(sentence))
        words = {match[group] for match in found}
        if len(words) > 1:
            one = chance.choice(found)
            other = chance.choice([match for match in found if match[group] != one[group]])
            first, second = sorted((one, other), key=lambda match: match.start())
            a, b = first.span(group), second.span(group)
            return sentence[: a[0]] + second[group] + sentence[a[1] : b[0]] + first[group] + sentence[b[1] :]
    return None


def _renumbered(sentence: str, chance: random.Random) -> str | None:
    """Another number, of about the same size, ten times larger, or of digits in another order."""

    def other(found: re.Match[str]) -> str:
        number = int(found[1])
        if 1900 <= number <= 2100:
            return str(number + chance.choice((-20, -10, -3, -1, 1, 2, 7, 10)))
        return str(
            chance.choice(
                [new for new in (number + 1, 2 * number + 1, 10 * number, 3 * number, number // 2) if new != number]
            )
        )

    changed, count = _NUMBER.subn(other, sentence, count=1)
    return changed if count else None


def _exchanged(table):
    return lambda sentence, chance: exchange(sentence, table(), chance)


_MAKERS = {
    "negation": (_plainly("negation"), _plainly("negation"), _negated_verb, _exchanged(negations)),
    "antonym": (_exchanged(antonyms),),
    "quantity": (_renumbered, _exchanged(quantities)),
    "time": (_exchanged(times),),
    "role": (_plainly("role"), _swapped_nouns),
}
