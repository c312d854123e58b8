"""English words that may stand for one another, compiled for this package: antonyms, negations, synonyms, numbers."""

import random
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from wordsens.files import packaged_text

_REGULAR_VERBS = """
    enable disable, increase decrease, accept reject, approve deny, open close, add remove, include exclude,
    install uninstall, lock unlock, connect disconnect, subscribe unsubscribe, activate deactivate, encrypt decrypt,
    upload download, import export, attach detach, mute unmute, publish unpublish, push pull,
    allow block, raise lower, grant revoke, expand collapse, lend borrow, confirm cancel
"""
_OTHER_PAIRS = """
    start stop, starts stops, started stopped, starting stopping, show hide, shows hides, shown hidden, showing hiding,
    buy sell, buys sells, bought sold, buying selling, win lose, wins loses, won lost, love hate, loved hated,
    passed failed, arrive depart, arrived departed, send receive, sent received, sends receives, sending receiving,
    valid invalid, available unavailable, public private, possible impossible, true false, maximum minimum, max min,
    always never, high low, higher lower, highest lowest, safe dangerous, legal illegal, inside outside,
    success failure, successful unsuccessful, positive negative, internal external, incoming outgoing, good bad,
    better worse, best worst, full empty, paid unpaid, online offline, cheap expensive, hot cold, warm cool, fast slow,
    faster slower, easy difficult, easier harder, long short, longer shorter, strong weak, happy unhappy,
    visible hidden, required optional, active inactive, complete incomplete, correct incorrect, known unknown,
    refundable non-refundable, taxable tax-free, guilty innocent, benign malignant, gain loss,
    gains losses, profit loss, credit debit, deposit withdrawal, upper lower, everybody nobody, everyone nobody,
    everything nothing, interesting boring, brilliant dreadful, beautiful ugly, rich poor, young old
"""
_PHRASES = """
    turn on/turn off, turns on/turns off, turned on/turned off, turning on/turning off, switch on/switch off,
    switched on/switched off, is on/is off, sign in/sign out, log in/log out, opt in/opt out
"""
_QUANTITIES = """
    two/ten, three/thirty, four/forty, five/fifty, once/twice, at least/at most, more than/less than, daily/weekly,
    monthly/yearly, hours/days, minutes/hours, weeks/months, hundred/thousand,
    million/billion, double/half
"""
_TIMES = "before/after, yesterday/tomorrow, earlier/later, morning/evening, last week/next week, last year/next year"


def _exchanged(listed: str, between: str) -> dict[str, str]:
    """Both directions of every listed pair; the first that names a word decides what it turns into."""
    result: dict[str, str] = {}
    for pair in " ".join(listed.split()).split(","):
        one, other = pair.strip().split(between)
        result.setdefault(one, other)
        result.setdefault(other, one)
    return result


def _inflected(verb: str) -> list[str]:
    """Base, third person, past and -ing form of a regular verb."""
    stem = verb.removesuffix("e")
    if verb.endswith("y"):
        return [verb, stem[:-1] + "ies", stem[:-1] + "ied", verb + "ing"]
    third = verb + ("es" if verb.endswith(("s", "sh")) else "s")
    doubled = {"cancel": "cancell"}.get(verb, stem)
    return [verb, third, doubled + "ed", doubled + "ing"]


_IRREGULAR = {"lend": ["lend", "lends", "lent", "lending"]}
_VERB_FORMS = ", ".join(
    f"{one} {other}"
    for pair in " ".join(_REGULAR_VERBS.split()).split(", ")
    for one, other in zip(*(_IRREGULAR.get(verb) or _inflected(verb) for verb in pair.split()), strict=True)
)

ANTONYMS = {**_exchanged(_VERB_FORMS, " "), **_exchanged(_OTHER_PAIRS, " "), **_exchanged(_PHRASES, "/")}
QUANTITIES = _exchanged(_QUANTITIES, "/")
TIMES = _exchanged(_TIMES, "/")

AUXILIARIES = ("is", "are", "was", "were", "can", "could", "will", "would", "should", "must", "may", "might")
"""Verbs behind which a "not" makes the negation of a statement."""

ASKING = ("can", "could", "will", "would", "should", "must", "may")
"""Of these, the ones that open a question: "Can I not ...?"."""

PRONOUNS = ("I", "you", "we", "they", "he", "she", "it")

NEGATED = {
    "isn't": "is", "aren't": "are", "wasn't": "was", "weren't": "were", "can't": "can", "cannot": "can",
    "couldn't": "could", "won't": "will", "wouldn't": "would", "shouldn't": "should", "mustn't": "must",
    "don't": "do", "doesn't": "does", "didn't": "did", "hasn't": "has", "haven't": "have", "hadn't": "had",
}  # fmt: skip

MOVING_VERBS = ("convert", "migrate", "switch", "move", "upgrade", "change", "translate", "transfer", "copy", "sync")
"""Verbs whose "A to B" has a direction."""

Table = Mapping[str, Sequence[str]]
"""From a word or phrase in lower case to what may stand in its place."""

_NEGATIONS = (
    "with without", "somebody nobody", "someone no-one", "something nothing", "somewhere nowhere", "always never",
    "every no", "a no", "any no", "and/but not", "only/not only", "if unless", "also not", "ever never",
    "still/no longer",
    "anything nothing", "everybody nobody", "everything nothing", "everyone no-one", "both neither", "either neither",
)  # fmt: skip


def groups(listed: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """From every word of a group to the others of it; a word in several groups has the others of all.

    >>> groups(["on off", "at least/at most"])["at least"]
    ('at most',)
    """
    table: dict[str, list[str]] = {}
    for group in listed:
        words = group.strip().split("/" if "/" in group else None)
        for word in words:
            table.setdefault(word, []).extend(other for other in words if other != word)
    return {word: tuple(dict.fromkeys(others)) for word, others in table.items()}


@cache
def antonyms() -> Table:
    """The antonyms of the near misses, and those of antonyms.txt."""
    further = groups(" ".join(_lines("antonyms.txt")).split(","))
    words = dict.fromkeys([*ANTONYMS, *further])
    first = {word: (other,) for word, other in ANTONYMS.items()}
    return {word: tuple(dict.fromkeys((*first.get(word, ()), *further.get(word, ())))) for word in words}


@cache
def synonyms() -> Table:
    """The groups of synonyms.txt."""
    return groups(line.replace(", ", "/") for line in _lines("synonyms.txt"))


@cache
def negations() -> Table:
    """Words whose exchange negates."""
    return groups(_NEGATIONS)


def exchange(sentence: str, table: Table, chance: random.Random) -> str | None:
    """The sentence with one word or phrase of the table for another, in its case; None where it holds none.

    >>> exchange("The lift is open.", {"open": ("shut",)}, random.Random(0))
    'The lift is shut.'
    """
    matches = list(_pattern(table).finditer(sentence))
    if not matches:
        return None
    match = chance.choice(matches)
    other = chance.choice(table[match[0].lower()]).replace("no-one", "no one")
    if match[0][0].isupper():
        other = other[0].upper() + other[1:]
    return sentence[: match.start()] + other + sentence[match.end() :]


def _lines(name: str) -> list[str]:
    content = packaged_text(f"evaluation/words/{name}")
    return [line for line in content.splitlines() if line.strip() and not line.startswith("#")]


_patterns: dict[int, re.Pattern[str]] = {}


def _pattern(table: Table) -> re.Pattern[str]:
    """Of any of the table's words, the longest first. The tables live as long as the process."""
    if id(table) not in _patterns:
        words = "|".join(re.escape(word) for word in sorted(table, key=len, reverse=True))
        _patterns[id(table)] = re.compile(rf"(?<![\w'-])({words})(?![\w'-])", re.IGNORECASE)
    return _patterns[id(table)]
