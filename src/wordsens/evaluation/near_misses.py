"""Near misses: pairs of opposites made from texts by one changed word, by rule."""

import random
import re
from collections.abc import Callable, Iterable, Mapping

from wordsens.display.numbers import plural
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
    any_of,
    pattern_of,
)
from wordsens.seeds import Seed, derive_seed
from wordsens.text.document import Document
from wordsens.text.pairs import DRAFT, ORIGIN, Pair

# Words of a sentence: shorter ones have no room for a change, longer ones are hardly ever one
# sentence.
_WORDS = range(3, 61)

SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9\"'])|\n+")


def near_misses(texts: Iterable[str | Document], *, most: int = 100, seed: Seed = 0) -> list[Pair]:
    """Pairs of opposites from the sentences of the texts, one change each: see `RULES`.

    They are made by rule: read them before you build a gate on them.

    Args:
        texts: English.
        most: the most pairs per kind; if there are more, a random choice. With 100 the interval of
            an AUC is at most .2 wide, and every pair can be read.
        seed: of the choice.

    Raises:
        InputError: no rule finds anything in the texts.

    >>> [(pair.kind, pair.second) for pair in near_misses(["How do I enable sync?"])]
    [('antonym', 'How do I disable sync?')]
    """
    require_count("most", most)
    documents = [text if isinstance(text, Document) else Document(text) for text in texts]
    sources: dict[str, str] = {}
    for number, document in enumerate(documents):
        for part in SENTENCE_END.split(document.text):
            sources.setdefault(" ".join(part.split()), document.source or f"text {number}")
    chosen: list[Pair] = []
    for kind, rule in RULES.items():
        # A sentence and its opposite may both be among the texts: they make one pair.
        pairs: dict[frozenset[str], Pair] = {}
        for sentence, source in sources.items():
            opposite = rule(sentence) if len(sentence.split()) in _WORDS else None
            if opposite not in (None, sentence):
                pair = Pair(kind, sentence, opposite, False, {"source": source, ORIGIN: DRAFT})
                pairs.setdefault(pair.texts, pair)
        chance = random.Random(derive_seed(seed, "near misses", kind))
        listed = list(pairs.values())
        places = sorted(chance.sample(range(len(listed)), min(most, len(listed))))
        chosen += [listed[place] for place in places]
    if not chosen:
        raise InputError(
            f"no near miss can be made from {plural(len(documents), 'text')}: no sentence of "
            f"{_WORDS.start} to {_WORDS.stop - 1} words has a word of the lists; give other texts, "
            "or pairs of your own"
        )
    return chosen


# From a sentence to its opposite, or None where the rule finds nothing.
Rule = Callable[[str], str | None]


def _exchange(words: Mapping[str, str]) -> Rule:
    """The rule that exchanges the first listed word or phrase."""
    # A quotation mark may be before it, but no part of the same word.
    pattern = re.compile(rf"(?<![\w-])(?<!\w')({any_of(words)})(?![\w'-])", re.IGNORECASE)
    return lambda sentence: _first(pattern, lambda match: words[match.lower()], sentence)


def _first(pattern: re.Pattern[str], change: Callable[[str], str], sentence: str) -> str | None:
    """The sentence with the first match of the pattern changed, in its case; None without one."""

    def changed(match: re.Match[str]) -> str:
        other = change(match[0])
        if match[0].isupper() and len(match[0]) > 1:
            return other.upper()
        return other[0].upper() + other[1:] if match[0][0].isupper() else other

    text, count = pattern.subn(changed, sentence, count=1)
    return text if count else None


_NOT = re.compile(
    rf"(?<![\w'-])({any_of(AUXILIARIES)}|do|does|did|has|have|had) not(?![\w'-])", re.IGNORECASE
)
_SHORT_NOT = pattern_of(tuple(NEGATED))

# A tag at the end of a statement, which asks the same with and without its negation.
_TAG = re.compile(
    rf"^(?!(?:why|how|what|when|where|who|which)\b).*\w,? ({any_of(NEGATED)}) "
    rf"({any_of(PRONOUNS)})\s*\?\W*$",
    re.IGNORECASE,
)
_STATEMENT = re.compile(rf"(?<=\w )({any_of(AUXILIARIES)})(?= [a-z])(?! not\b)")
_QUESTION = re.compile(
    rf"^({any_of(ASKING)}) ({any_of(PRONOUNS)})(?= [a-z])(?! not\b)", re.IGNORECASE
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
        return _first(_SHORT_NOT, lambda match: NEGATED[match.lower()], sentence)
    pattern = _QUESTION if sentence.endswith("?") else _STATEMENT
    return _first(pattern, lambda match: "cannot" if match == "can" else f"{match} not", sentence)


# Neither part of a date, a version, a time or a code.
_NUMBER = re.compile(r"(?<![\w.,:/#-])([1-9]\d{0,5})(?![\w:/-]|[.,]\d)")
_YEARS = range(1900, 2101)


def renumber(sentence: str) -> str | None:
    """Change the first number: a year by ten, any other to its triple; else the first listed word
    of quantity.

    >>> renumber("Returns within 30 days are free."), renumber("Back it up daily.")
    ('Returns within 90 days are free.', 'Back it up weekly.')
    """

    def other(digits: str) -> str:
        number = int(digits)
        return str(number - 10 if number in _YEARS else 3 * number)

    return _first(_NUMBER, other, sentence) or _QUANTITY(sentence)


_DIRECTIONS = (
    re.compile(r"(\bfrom )([\w'-]+)( to )([\w'-]+)", re.IGNORECASE),
    re.compile(
        rf"(\b(?:{any_of(MOVING_VERBS)})\w* )([\w'-]+)( to )(?!the\b|an?\b|my\b|your\b)([\w'-]+)",
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

# By the kind of opposite that they make.
RULES: dict[str, Rule] = {
    "negation": negate,
    "antonym": _exchange(ANTONYMS),
    "quantity": renumber,
    "time": _exchange(TIMES),
    "role": reverse,
}
