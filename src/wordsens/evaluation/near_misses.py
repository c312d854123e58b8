"""Near misses: pairs of opposites made from texts by one changed word, by rule."""

import random
import re
from collections.abc import Callable, Iterable, Mapping

from wordsens.errors import InputError, require_count
from wordsens.evaluation.word_lists import (
    ANTONYMS,
    ASKING,
    AUXILIARIES,
    MOVING_VERBS,
    NEGATED,
    PRONOUNS,
    QUANTITIES,
    TIMES,
)
from wordsens.seeds import Seed, derive_seed
from wordsens.text.document import Document
from wordsens.text.pairs import DRAFT, ORIGIN, Pair

MOST_OF_A_KIND = 100
"""Pairs of a kind: the interval of an AUC is then at most .2 wide, and every pair can be read."""

_WORDS = range(3, 61)
"""Of a sentence: shorter ones have no room for a change, longer ones are hardly ever one
sentence."""

SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'])|\n+")


def near_misses(
    texts: Iterable[str | Document], *, most: int = MOST_OF_A_KIND, seed: Seed = 0
) -> list[Pair]:
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
    sentences: dict[str, str] = {}
    count = 0
    for count, text in enumerate(texts, start=1):
        document = text if isinstance(text, Document) else Document(text)
        for part in SENTENCE_END.split(document.text):
            sentences.setdefault(" ".join(part.split()), document.source or f"text {count - 1}")
    chosen: list[Pair] = []
    for kind, rule in RULES.items():
        # A sentence and its opposite may both be among the texts: they make one pair.
        pairs: dict[frozenset[str], Pair] = {}
        for sentence, source in sentences.items():
            opposite = rule(sentence) if len(sentence.split()) in _WORDS else None
            if opposite not in (None, sentence):
                pair = Pair(kind, sentence, opposite, False, {"source": source, ORIGIN: DRAFT})
                pairs.setdefault(frozenset((sentence, opposite)), pair)
        places = range(len(pairs))
        if len(pairs) > most:
            places = sorted(
                random.Random(derive_seed(seed, "near misses", kind)).sample(places, most)
            )
        listed = list(pairs.values())
        chosen += [listed[place] for place in places]
    if not chosen:
        raise InputError(
            f"no near miss can be made from {count} texts: no sentence of {_WORDS.start} to "
            f"{_WORDS.stop - 1} words "
            "holds a word of the lists; give other texts, or pairs of your own"
        )
    return chosen


Rule = Callable[[str], str | None]
"""From a sentence to its opposite, or None where the rule finds nothing."""


_WORD = re.compile(r"\w[\w'-]*")


def _any_of(words: Mapping[str, str] | tuple[str, ...]) -> str:
    return "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))


def _exchange(words: Mapping[str, str]) -> Rule:
    """The rule that exchanges the first listed word, or two words."""

    def rule(sentence: str) -> str | None:
        words_of_sentence = list(_WORD.finditer(sentence))
        for place, first in enumerate(words_of_sentence):
            for last in words_of_sentence[place : place + 2][::-1]:
                start, stop = first.start(), last.end()
                opposite = words.get(sentence[start:stop].lower())
                if opposite is not None:
                    return (
                        sentence[:start] + _like(sentence[start:stop], opposite) + sentence[stop:]
                    )
        return None

    return rule


def _like(pattern: str, word: str) -> str:
    """The word in the pattern's case."""
    if pattern.isupper() and len(pattern) > 1:
        return word.upper()
    return word[0].upper() + word[1:] if pattern[0].isupper() else word


_NOT = re.compile(
    rf"(?<![\w'-])({_any_of(AUXILIARIES)}|do|does|did|has|have|had) not(?![\w'-])", re.IGNORECASE
)
_SHORT_NOT = re.compile(rf"(?<![\w'-])({_any_of(NEGATED)})(?![\w'-])", re.IGNORECASE)
_TAG = re.compile(
    rf"^(?!(?:why|how|what|when|where|who|which)\b).*\w,? ({_any_of(NEGATED)}) "
    rf"({_any_of(PRONOUNS)})\s*\?\W*$",
    re.IGNORECASE,
)
"""A tag at the end of a statement, which asks the same with and without its negation."""

_STATEMENT = re.compile(rf"(?<=\w )({_any_of(AUXILIARIES)})(?= [a-z])(?! not\b)")
_QUESTION = re.compile(
    rf"^({_any_of(ASKING)}) ({_any_of(PRONOUNS)})(?= [a-z])(?! not\b)", re.IGNORECASE
)


def negate(sentence: str) -> str | None:
    """Take the sentence's "not" away, or put one behind its first auxiliary verb. A sentence whose
    only negation is a tag (", isn't it?") is left alone.

    >>> negate("The refund will arrive in May."), negate("It doesn't start."), negate("Can I pay by card?")
    ('The refund will not arrive in May.', 'It does start.', 'Can I not pay by card?')
    """  # noqa: E501
    if _NOT.search(sentence):
        return _NOT.sub(r"\1", sentence, count=1)
    if short := _SHORT_NOT.search(sentence):
        if (tag := _TAG.search(sentence)) and tag.start(1) == short.start():
            return None
        return _SHORT_NOT.sub(
            lambda match: _like(match[1], NEGATED[match[1].lower()]), sentence, count=1
        )
    pattern = _QUESTION if sentence.endswith("?") else _STATEMENT
    changed, count = pattern.subn(
        lambda match: "cannot" if match[0] == "can" else f"{match[0]} not", sentence, count=1
    )
    return changed if count else None


# Neither part of a date, a version, a time or a code.
_NUMBER = re.compile(r"(?<![\w.,:/#-])([1-9]\d{0,5})(?![\w:/-]|[.,]\d)")
_YEARS = range(1900, 2101)


def renumber(sentence: str) -> str | None:
    """Change the first number: a year by ten, any other to its triple; else the first listed word
    of quantity.

    >>> renumber("Returns within 30 days are free."), renumber("Back it up daily.")
    ('Returns within 90 days are free.', 'Back it up weekly.')
    """

    def other(match: re.Match[str]) -> str:
        number = int(match[1])
        return str(number - 10 if number in _YEARS else 3 * number)

    changed, count = _NUMBER.subn(other, sentence, count=1)
    return changed if count else _QUANTITY(sentence)


_DIRECTIONS = (
    re.compile(r"(\bfrom )([\w'-]+)( to )([\w'-]+)", re.IGNORECASE),
    re.compile(
        rf"(\b(?:{_any_of(MOVING_VERBS)})\w* )([\w'-]+)( to )(?!the\b|an?\b|my\b|your\b)([\w'-]+)",
        re.IGNORECASE,
    ),
)


def reverse(sentence: str) -> str | None:
    """Exchange where something comes from and where it goes.

    >>> reverse("How do I convert PDF to Word?")
    'How do I convert Word to PDF?'
    """
    for pattern in _DIRECTIONS:
        match = pattern.search(sentence)
        if match and match[2].lower() != match[4].lower():
            return pattern.sub(r"\1\4\3\2", sentence, count=1)
    return None


_QUANTITY = _exchange(QUANTITIES)

RULES: dict[str, Rule] = {
    "negation": negate,
    "antonym": _exchange(ANTONYMS),
    "quantity": renumber,
    "time": _exchange(TIMES),
    "role": reverse,
}
"""By the kind of opposite that they make."""
