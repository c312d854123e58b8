"""Whether two near-duplicates mean the same: their words are aligned, and each edit that is left
keeps the meaning by a relation, changes it by one, or is unexplained."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache
from itertools import product
from numbers import Real
from typing import Any, Literal

from wordsens.errors import InputError
from wordsens.evaluation.guard.amounts import amount_relation
from wordsens.evaluation.guard.clauses import (
    MANY,
    Edit,
    Sides,
    alone,
    comma_edits,
    disjoint,
    light_edits,
    negation_edits,
    tense_edits,
)
from wordsens.evaluation.guard.labels import are_labels, doubt, same_label
from wordsens.evaluation.guard.lexer import read
from wordsens.evaluation.guard.lexicon import Lexicon, english
from wordsens.evaluation.guard.order import aligned, order_edits
from wordsens.evaluation.guard.times import time_relation
from wordsens.evaluation.guard.tokens import AMBIGUOUS, ONE, Reading, Token
from wordsens.results import Result

Verdict = Literal["same", "different", "unsure"]
# From two texts to the probability that they mean the same, such as an NLI model's entailment both
# ways.
SecondOpinion = Callable[[str, str], float]

# The strongest evidence first; "" for words that nothing explains.
_KINDS = ("negation", "antonym", "quantity", "time", "modality", "role", "entity", "")

# Characters of a token that a reason quotes.
_SHOWN = 60


ADVICE = {
    "same": "a cache may reuse the answer to either text for the other",
    "different": "a cache should miss, and call the language model",
    "unsure": "a cache should miss, ask for a second opinion, or use a threshold that was found "
    "for such pairs (wordsens calibrate --guard)",
}
"""What a cache should do at each verdict."""

CHANGES = "a negation, an opposite, a number, a time, a name or a role exchanged"
"""What makes a pair mean something else, which is an opposite for short."""

MEASURED = (
    "on 300 pairs written by someone who had not seen the rules, it flags 108 of 150 opposites "
    "and, wrongly, 7 of 150 near-duplicates as different"
)
"""How often the guard is right, on pairs that it was not made with (docs/guard.md)."""


@dataclass(frozen=True)
class Judgement(Result):
    """Whether two near-duplicates may be treated as the same.

    Attributes:
        verdict: "same", "different" or "unsure".
        kind: for "different": negation, antonym, quantity, time, modality, role or entity. For
            "unsure": replaced (one word stands for another, the rest agrees), added (one text says
            more), ambiguous (a reading, form or order that may mean another thing), reworded (more
            differs). None for "same", and where a second opinion decided.
        reason: a phrase, such as "quantity: 2 GB / 3 GB".
        first, second: the (start, end) of the characters that the verdict rests on, in each text.
    """

    verdict: Verdict
    kind: str | None
    reason: str
    first: tuple[tuple[int, int], ...] = ()
    second: tuple[tuple[int, int], ...] = ()

    @property
    def headline(self) -> str:
        """The verdict with its reason."""
        return f"{self.verdict}: {self.reason}"

    def columns(self) -> dict[str, Any]:
        """One row: the verdict, its kind and its reason."""
        return {name: [getattr(self, name)] for name in ("verdict", "kind", "reason")}

    def __bool__(self) -> bool:
        """Refused: "different" would be true as well."""
        raise InputError("a Judgement is neither true nor false; compare its `verdict`")


class Guard:
    """Judges pairs of near-duplicates in English by rules: deterministic, without a model.

    Args:
        second_opinion: called with two texts for which the rules are unsure; returns the
            probability that they mean the same.
        sure: a probability of at least this is "same", of at most 1 - sure "different".

    Raises:
        InputError: a `sure` that is not between .5 and 1; when called, texts that are not strings,
            or a second opinion that is not a probability.

    >>> Guard()("The lift is working.", "The lift is not working.").reason
    "negation: 'not'"
    >>> Guard()("Send 2 GB by 5 pm", "send two gigabytes by 17:00").verdict
    'same'
    """

    def __init__(self, *, second_opinion: SecondOpinion | None = None, sure: float = 0.9):
        if second_opinion is not None and not callable(second_opinion):
            raise InputError(
                f"`second_opinion` (={second_opinion!r}) must be a function of two texts"
            )
        if not 0.5 < sure <= 1:
            raise InputError(f"`sure` (={sure!r}) must be more than .5 and at most 1")
        self._lexicon, self._second_opinion, self._sure = english(), second_opinion, sure

    def __call__(self, first: str, second: str) -> Judgement:
        for name, text in (("first", first), ("second", second)):
            if not isinstance(text, str):
                raise InputError(f"`{name}` (={type(text).__name__}) must be a text")
        judgement = _judge(first, second, self._lexicon)
        if judgement.verdict != "unsure" or self._second_opinion is None:
            return judgement
        probability = self._second_opinion(first, second)
        if not isinstance(probability, Real) or not 0 <= probability <= 1:
            raise InputError(
                f"`second_opinion` (={probability!r}) must return a probability, between 0 and 1"
            )
        same, different = probability >= self._sure, 1 - probability >= self._sure
        verdict: Verdict = "same" if same else "different" if different else "unsure"
        reason = f"{judgement.reason}; second opinion {probability:.2f}"
        kind = judgement.kind if verdict == "unsure" else None
        return Judgement(verdict, kind, reason, judgement.first, judgement.second)


def guard(first: str, second: str) -> Judgement:
    """`Guard()` of one pair of English texts.

    >>> guard("How do I enable the alarm?", "How do I disable the alarm?")
    Judgement(verdict='different', kind='antonym', reason='antonym: enable / disable', first=..., second=...)
    """  # noqa: E501
    return _english()(first, second)


_english = cache(Guard)

# A text meets several others where the nearest neighbours of a cache or a memory are judged.
_read = lru_cache(maxsize=256)(read)

# Names of which more of the letters agree, and one of which no dictionary has, may be slips.
_NEAR_NAMES = 0.85

_QUOTED = re.compile(r'["“]([a-z]+)["”]')

# Letters of Thai, Lao, Burmese and Khmer, which part no words.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")

_TWO_SCRIPTS = re.compile(
    r"[a-z][\u0370-\u03bb\u03bd-\u03c8\u0400-\u04ff]|[\u0370-\u03bb\u03bd-\u03c8\u0400-\u04ff][a-z]"
)
"""A word in letters of two scripts, which may be made to look like another."""

# What a token that only one text has may change.
_LABELS = {"number": "quantity", "time": "time", "date": "time", "name": "entity"}

_SAME = Judgement("same", None, "no difference of meaning was met")


def _judge(first: str, second: str, lexicon: Lexicon) -> Judgement:
    """The judgement of two texts, of which names of things are compared by how such names are
    written first. Both orders are judged as one of them is."""
    labels = are_labels(first, second)
    if first == second or (labels and same_label(first, second, lexicon)):
        return _SAME
    judgement = _judge_texts(*sorted((first, second)), swap=first > second, lexicon=lexicon)
    doubts = labels and judgement.verdict != "unsure" and doubt(first, second, judgement.verdict)
    if not doubts:
        return judgement
    return Judgement("unsure", "ambiguous", f"{doubts}: {_quoted(first)} / {_quoted(second)}")


def _judge_texts(
    first: str,
    second: str,
    swap: bool,
    lexicon: Lexicon,
) -> Judgement:
    if _UNSPACED.search(first + second):
        return Judgement("unsure", "ambiguous", "this script writes no spaces between words")
    readings = _read(first, lexicon), _read(second, lexicon)
    contents = [reading.content for reading in readings]
    pairs = aligned(*contents)
    paired = [{pair[side] for pair in pairs} for side in (0, 1)]
    left = [
        [token for token in content if token.place not in paired[side]]
        for side, content in enumerate(contents)
    ]
    if max(map(len, left)) > MANY:
        return _judgement(Edit("", "too much differs", *left), "reworded", swap)
    matches, used = _matches(*readings, left, lexicon)
    pairs += [(a.place, b.place) for _, a, b in matches if not (a.light or b.light)]
    sides = Sides(*readings, pairs, lexicon)
    left = [
        [token for token in left[side] if not _says_nothing(token, side, sides, used, lexicon)]
        for side in (0, 1)
    ]
    edits = [
        Edit(relation if relation != AMBIGUOUS else "", relation, [a], [b])
        for relation, a, b in matches
        if relation != "same"
    ]
    if len(left[0]) == len(left[1]) == 1:
        edits.append(Edit("", "unexplained", *left))
    else:
        edits += [
            alone(token, side, lexicon.kind(token.key) or _LABELS.get(token.kind, "unexplained"))
            for side in (0, 1)
            for token in left[side]
        ]
    edits += tense_edits(sides, lexicon) + light_edits(sides, used, lexicon)
    edits += comma_edits(sides, lexicon)
    differ = {
        "question beside statement": readings[0].asks != readings[1].asks,
        "quotation marks or hyphens": _marks(first, lexicon) != _marks(second, lexicon),
        "one text is empty": bool(contents[0]) != bool(contents[1]),
    }
    edits += [Edit("", label, [], []) for label, differs in differ.items() if differs]
    edits = negation_edits(sides, edits, lexicon) + order_edits(sides, lexicon)
    if not edits:
        return _SAME
    strongest = min(edits, key=lambda edit: _KINDS.index(edit.kind))
    apart = len(left[0]) + len(left[1]) > max(2, min(map(len, contents)))
    if apart or _TWO_SCRIPTS.search(f"{first}\n{second}".lower()):
        strongest = strongest._replace(kind="")
    return _judgement(strongest, _sort_of_doubt(left, edits), swap)


def _marks(text: str, lexicon: Lexicon) -> list[str]:
    """Words that quotation marks may deny, and beside a number compounds that its hyphens make: two
    year-old horses, two-year-old horses."""
    if not {*text} & {'"', "“", "-"}:
        return []
    words = re.findall("[a-z]+(?:-[a-z]+)*", text.lower())
    numbers = lexicon.numbers.keys() | lexicon.fractions.keys()
    counted = not numbers.isdisjoint("-".join(words).split("-"))
    compounds = [word for word in words if "-" in word and not numbers >= {*word.split("-")}]
    compounds = [word for word in compounds if counted or word.endswith(("ing", "ed"))]
    return _QUOTED.findall(text) + compounds


def _sort_of_doubt(left: list[list[Token]], edits: list[Edit]) -> str:
    """What is left where the guard is unsure."""
    counts = [len(tokens) for tokens in left]
    if sum(counts) > 2 or len(edits) > 3:
        return "reworded"
    return "replaced" if counts == [1, 1] else "added" if any(counts) else "ambiguous"


def _judgement(edit: Edit, doubt: str, swap: bool) -> Judgement:
    sides = [edit.second, edit.first] if swap else [edit.first, edit.second]
    texts = [_quoted(side[0].text) for side in sides if side]
    alike = len({text.lower() for text in texts}) == 1
    words = texts[0] if alike else " / ".join(texts)
    if alike:
        words = f"'{words}'" if words else ""
    reason = f"{edit.label}: {words}" if words else edit.label
    spans = (tuple((token.start, token.end) for token in side) for side in sides)
    return Judgement("different" if edit.kind else "unsure", edit.kind or doubt, reason, *spans)


def _quoted(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def _matches(
    one: Reading, other: Reading, left: list[list[Token]], lexicon: Lexicon
) -> tuple[list[tuple[str, Token, Token]], set[int]]:
    """Words left of both texts that stand for each other or exclude each other, with the relation,
    each in one match: the same first, then the nearest. A function word may stand for one with
    content: "on" for "off", "will" for "may"."""
    for short, long in (left, left[::-1]):
        take_acronyms(short, long, least=3)
    words = [Counter(token.word for token in reading.light) for reading in (one, other)]
    light = [
        [t for t in reading.light if words[side][t.word] > words[1 - side][t.word]]
        for side, reading in enumerate((one, other))
    ]
    pairs = [*product(*left), *product(left[0], light[1]), *product(light[0], left[1])]
    related = [(relation, a, b) for a, b in pairs if (relation := token_relation(a, b, lexicon))]
    related.sort(key=lambda match: (match[0] != "same", abs(match[1].place - match[2].place)))
    return disjoint(related)


def token_relation(one: Token, other: Token, lexicon: Lexicon) -> str | None:
    """Of two tokens: "same", ambiguous, the kind of the change, or None."""
    if one.moments or other.moments:
        return time_relation(one, other)
    if one.amount and other.amount:
        return amount_relation(one, other, lexicon)
    kinds = {one.kind, other.kind}
    if not kinds <= {"word", "name"}:
        return None
    listed = lexicon.relation(str(one.key), str(other.key))
    if listed or one.key == other.key:
        return listed or "same"
    slip = lexicon.is_slip(one.word, other.word) or lexicon.is_slip(other.word, one.word)
    if one.light or other.light:
        return "same" if slip and abs(one.place - other.place) <= 1 else None
    if slip and kinds == {"word"}:
        return "same"
    known = lexicon.is_word(one.word) and lexicon.is_word(other.word)
    alike = SequenceMatcher(None, one.word, other.word).ratio() > _NEAR_NAMES
    near = alike and (one.word + other.word).isalpha()
    cased = one.text.lower() == other.text.lower()
    if slip or cased or (kinds == {"name"} and near and not known):
        return AMBIGUOUS
    capitals = all(token.text[:1].isupper() for token in (one, other))
    return "entity" if kinds == {"name"} or (capitals and "name" in kinds) else None


def take_acronyms(short: list[Token], long: list[Token], least: int) -> None:
    """Takes 'GUI' out of one side and 'graphical user interface' out of the other."""
    for token in list(short):
        size = len(token.text)
        initials = "".join(word.text[:1].upper() or " " for word in long)
        at = initials.find(token.text) if token.text.isupper() and token.text.isalpha() else -1
        zone = any(word.word == "time" for word in long)  # CST, of which there are several
        if at >= 0 and least <= size < 7 and not zone:
            short.remove(token)
            del long[at : at + size]


def _says_nothing(
    token: Token,
    side: int,
    sides: Sides,
    used: set[int],
    lexicon: Lexicon,
) -> bool:
    """Whether a word with content stands for another, or adds no meaning where it stands: the
    opening of a question, "please", "one" for "a"."""
    fillers = lexicon.fillers
    articles = [sum(t.word in ("a", "an") for t in reading.light) for reading in sides.readings]
    one = articles[1 - side] > articles[side] or not token.text.isdigit()
    says_nothing = {
        "start": token.initial or token.before in lexicon.grammar["openers"],
        "end": token.after in ("", *fillers["end"]),
        "asking": token.before in lexicon.grammar["plain"],
        "anywhere": token.after not in ("", "#") and token.before not in ("to", "not", "the", "a"),
    }
    return (
        id(token) in used
        or token.kind == "filler"
        or (token.amount == ONE and one)
        or any(token.word in fillers[place] and here for place, here in says_nothing.items())
    )
