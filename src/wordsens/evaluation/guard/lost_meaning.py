"""What a rewriting lost: negations, quantities, dates, conditions, "only", modals and names without
a counterpart."""

import re
from bisect import bisect_right
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from wordsens.errors import InputError
from wordsens.evaluation.guard.judge import token_relation, without_acronyms
from wordsens.evaluation.guard.language import NEGATION, Language, english
from wordsens.evaluation.guard.tokens import ONE, Moment, Token, read

LostKind = Literal["negation", "quantity", "time", "condition", "only", "modality", "name"]

_KINDS: tuple[LostKind, ...] = (
    "condition",
    "negation",
    "only",
    "quantity",
    "time",
    "modality",
    "name",
)
"""Of two losses in one place, as of "unless", which is read as "if not", the first of these kinds
is reported."""

_CONTEXTS = ((2, 2), (1, 1), (0, 1), (1, 0), (0, 0))
"""Which "not" of the original a "not" of the rewriting is: so many words with content before and
behind it are equal; the first that fits."""

_SENTENCE_END = re.compile(r"""[.!?]["'”’)\]]*\s+|\n+(?=\s*(?:\n|[-*#•]|\d+[.)]\s))""")
"""Also a blank line, and the entry of a list."""


@dataclass(frozen=True)
class LostPart:
    """A part of the original that changes its meaning and has no counterpart in the rewritten text.

    Attributes:
        kind: negation, quantity (a number with its unit), time (a date, time of day, weekday or
            month, "today", "daily"), condition ("if", "unless", "until", "except", "at most"; "up
            to", "within", "over" before a number), only, modality or name. "Avoid" is a negation,
            and so is "unless" that has become "if".
        text: as the original has it.
        start, stop: its characters in the original.
        sentence: the sentence of the original that it stands in.
    """

    kind: LostKind
    text: str
    start: int
    stop: int
    sentence: str


def lost_meaning(original: str, rewritten: str) -> tuple[LostPart, ...]:
    """What of an English text has no counterpart in a rewriting, such as a compressed prompt or a
    summary.

    Sentences may change places and words may be others: "isn't" is "is not", "two" is "2", 2000 ms
    are 2 seconds, "not allowed" is "forbidden". Every negation, number, condition and modal counts,
    two of three as one loss; of a name one mention is enough. By rules, without a model; exchanged
    arguments show what the rewriting added.

    Returns:
        The losses in the order of the original, none where all is kept.

    Raises:
        InputError: an argument that is not a string.

    >>> lost_meaning("Refund only if the seal isn't broken.", "Refund if the seal is broken.")
    (LostPart(kind='only', text='only', start=7, ...), LostPart(kind='negation', text="isn't", start=24, ...))
    """  # noqa: E501
    for name, text in (("original", original), ("rewritten", rewritten)):
        if not isinstance(text, str):
            raise InputError(f"`{name}` (={type(text).__name__}) must be a text")
    language = english()
    marks, others = _marks(original, language), _marks(rewritten, language)
    missing, spare = _without_counterpart(marks, others)
    # Words that only the rewriting has may mean the same in another way.
    known = {token.key for token in marks.tokens}
    spares = {id(mark.token) for mark in spare}
    new = [token for token in others.tokens if token.key not in known or id(token) in spares]
    names = sorted(
        (mark.token for mark in missing if mark.kind == "name"), key=lambda token: token.start
    )
    without_acronyms(new, names)
    unabbreviated = {id(token) for token in names}
    kinds: dict[tuple[int, int], LostKind] = {}
    said_otherwise: list[Token] = []
    for mark in missing:
        if mark.kind == "name" and id(mark.token) not in unabbreviated:
            continue
        meant = marks.content[mark.token.place :][:2] if mark.kind == "negation" else [mark.token]
        pairs = (
            (token, word)
            for token in new
            for word in meant
            if _stands_for(token, word, mark, language)
        )
        if pair := next(pairs, None):
            new.remove(pair[0])
            said_otherwise.append(pair[1])
            continue
        place = mark.token.start, mark.token.end
        if place not in kinds or _KINDS.index(mark.kind) < _KINDS.index(kinds[place]):
            kinds[place] = mark.kind
    for token in said_otherwise:  # of "not allowed", which is "forbidden", both words are kept
        kinds.pop((token.start, token.end), None)
    sentences = [0, *(match.end() for match in _SENTENCE_END.finditer(original)), len(original)]
    losses: list[LostPart] = []
    for (start, stop), kind in sorted(kinds.items()):
        at = bisect_right(sentences, start, hi=len(sentences) - 1)
        sentence = original[sentences[at - 1] : sentences[at]].strip()
        losses.append(LostPart(kind, original[start:stop], start, stop, sentence))
    return tuple(losses)


class _Mark(NamedTuple):
    """A token that must be kept; `key` is equal for those that mean the same, `nearby` holds two
    words before it and two behind it, with content."""

    kind: LostKind
    key: Hashable
    token: Token
    nearby: tuple[Hashable, ...]


class _Marks(NamedTuple):
    """The tokens of a text in their order, those with content among them, and what must be kept."""

    tokens: list[Token]
    content: list[Token]
    kept: list[_Mark]


def _marks(text: str, language: Language) -> _Marks:
    content, negations, light = read(text, language)
    tokens = sorted((*content, *negations, *light), key=lambda token: (token.start, token.end))
    for up, to, number in list(zip(tokens, tokens[1:], tokens[2:], strict=False)):
        if (up.word, to.word, number.kind) == ("up", "to", "number"):
            up.word, up.end = "up-to", to.end
            tokens.remove(to)
    keys = [None, None, *(token.key for token in content), None, None, None]
    kept: list[_Mark] = []
    for token, after in zip(tokens, [*tokens[1:], None], strict=False):
        if kind := _kind(token, after, language):
            groups = language.restrictions, language.limits, language.exclusion
            group = next((said[token.word] for said in groups if token.word in said), None)
            behind = token.place + (content[token.place : token.place + 1] == [token])
            around = [*keys[token.place : token.place + 2], *keys[behind + 2 : behind + 4]]
            kept.append(
                _Mark(
                    kind,
                    group or (NEGATION if kind == "negation" else token.key),
                    token,
                    tuple(around),
                )
            )
    return _Marks(tokens, content, kept)


def _kind(token: Token, after: Token | None, language: Language) -> LostKind | None:
    """What a token is that a rewriting must keep; None of other words."""
    if token.kind == "negation" or token.key in language.grammar["negating"]:
        return "negation"
    if token.kind == "number":
        # "One" is a pronoun where no word with content follows: "the one that you sent".
        counts = (
            after is not None
            and not after.initial
            and after.kind in ("word", "name")
            and not language.word(after.word).light
        )
        return "quantity" if counts or token.amount != ONE or token.text.isdigit() else None
    if token.kind in ("time", "date"):
        return "time"
    if token.word in language.restrictions:
        return "condition"
    if token.word in language.limits and after is not None and after.kind == "number":
        return "condition"
    if token.word in language.exclusion:
        return "only"
    meaning = language.kind(str(token.key)) if token.kind == "word" else None
    if token.word in language.grammar["days"]:
        return "time"
    if (
        token.word in language.months
        and token.text[:1].isupper()
        and (meaning == "time" or not token.initial)
    ):
        return "time"
    if meaning == "modality" and (
        not language.word(token.word).light or token.word in language.grammar["obliges"]
    ):
        return "modality"
    return "name" if token.kind == "name" else None


def _without_counterpart(marks: _Marks, others: _Marks) -> tuple[list[_Mark], list[_Mark]]:
    """What either text has and the other has not, or less often: the marks whose neighbours the
    other text lacks."""
    missing: list[_Mark] = []
    spare: list[_Mark] = []
    groups: dict[Hashable, tuple[list[_Mark], list[_Mark]]] = {}
    for side, text in enumerate((marks, others)):
        for mark in text.kept:
            groups.setdefault(mark.key, ([], []))[side].append(mark)
    known = {token.key for token in others.tokens}
    for ours, theirs in groups.values():
        if ours and ours[0].kind == "name":
            missing += [] if ours[0].key in known else ours[:1]
        elif len(ours) > len(theirs):
            missing += _least_alike(ours, theirs)
        else:
            spare += _least_alike(theirs, ours)
    return missing, spare


def _least_alike(more: list[_Mark], fewer: list[_Mark]) -> list[_Mark]:
    """What is left of the longer list when marks with equal neighbours are paired, those with most
    of them first."""
    for before, behind in _CONTEXTS:
        partners: dict[tuple[Hashable, ...], list[_Mark]] = {}
        for mark in reversed(fewer):
            partners.setdefault(mark.nearby[2 - before : 2 + behind], []).append(mark)
        alone: list[_Mark] = []
        for mark in more:
            if same := partners.get(mark.nearby[2 - before : 2 + behind]):
                same.pop()
            else:
                alone.append(mark)
        more, fewer = alone, [mark for marks in partners.values() for mark in reversed(marks)]
    return more


def _stands_for(token: Token, word: Token, mark: _Mark, language: Language) -> bool:
    """Whether a word that only the rewriting has means what a word of the original means, or, where
    that is negated, the opposite; a time or a date must be as precise."""
    if mark.kind == "negation" and word is not mark.token:
        return language.relation(str(word.key), str(token.key)) == "antonym"
    if word.moments:
        return bool(token.moments) and all(
            _within(moment, word.moments) for moment in token.moments
        )
    for said in (language.links, language.limits):
        if word.word in said and said[word.word] == said.get(token.word):
            return True
    if {word.word, token.word} == {"shall", "will"}:
        return True
    return token_relation(word, token, language) == "same"


def _within(moment: Moment, moments: tuple[Moment, ...]) -> bool:
    """Whether a time or a date is one of these, in its year where they have none."""
    return any(moment[1:] == other[1:] and other[0] in (None, moment[0]) for other in moments)
