"""From a text to tokens: numbers with units, times and dates, names, negations, and words without their inflection."""

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from wordsens.evaluation.guard.language import Language

NEGATION = "not"
WORD, NUMBER, TIME, DATE, NAME = "word", "number", "time", "date", "name"
_QUOTES = str.maketrans(
    {"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u2013": "-", "\u2014": "-", "\u00a0": " ", "\u202f": " "}
)


class Token(NamedTuple):
    """A word, or what several words stand for.

    Attributes:
        key: equal for tokens that mean the same: a stem; (dimension, amount) of a number; minutes after midnight that a
            time may be; (year or None, month, day) that a date may be.
        kind: WORD, NUMBER, TIME, DATE or NAME.
        text: as it is written.
        start, end: its characters.
        marker: the preposition or conjunction before it; "" for none.
        passive: whether a form of "be" stands before it.
    """

    key: object
    kind: str
    text: str
    start: int
    end: int
    marker: str = ""
    passive: bool = False


class _Raw(NamedTuple):
    word: str
    start: int
    end: int
    initial: bool
    kind: str = WORD
    key: object = None


def read(text: str, language: Language) -> list[Token]:
    """The tokens that matter: fillers are left out, negations are there as NEGATION."""
    raw = _numbered(_phrased(_scanned(text, language), language), language)
    tokens, marker, passive = [], "", False
    fillers, markers, months = language.fillers, language.markers, language.month_numbers
    for each in raw:
        word, written = each.word, text[each.start : each.end]
        if each.kind is not WORD:
            tokens.append(Token(each.key, each.kind, written, each.start, each.end, marker))
            marker, passive = "", False
            continue
        if word == NEGATION:
            tokens.append(Token(NEGATION, WORD, written, each.start, each.end))
            continue
        key = language.key(word)
        known = key in language.opposites or key in language.choices
        if word in markers:
            marker = word
            if not known:
                continue
        if key == "be":
            passive = True
        if key in fillers:
            continue
        capital = written[:1].isupper() and not each.initial and language.capitals_are_names
        name = capital and not known and key not in language.synonyms and word not in months
        tokens.append(Token(key, NAME if name else WORD, written, each.start, each.end, marker, passive))
        passive = False
        if word not in markers:
            marker = ""
    return tokens


@cache
def _pattern(language: Language) -> re.Pattern[str]:
    months = "|".join(language.months)
    return re.compile(
        rf"""(?P<iso>\b(\d{{4}})-(\d\d)-(\d\d)\b)
        |(?P<daymonth>\b(\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:of\s+)?({months})\b\.?(?:,?\s+(\d{{4}}))?)
        |(?P<monthday>\b({months})\b\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?\b(?!:)(?:,?\s+(\d{{4}}))?)
        |(?P<slashed>\b(\d{{1,2}})[/.](\d{{1,2}})[/.](\d{{4}}|\d\d)\b)
        |(?P<half>\b(\d{{1,2}})(?:[:.](\d\d))?\s?([ap])\.?m\b\.?)
        |(?P<clock>\b(\d{{1,2}}):(\d\d)(?:\s?(?:h|uhr))?\b)
        |(?P<hour>\b(\d{{1,2}})\s?(?:o'clock|uhr)\b)
        |(?P<id>\b(?=\w*[^\W\d_])(?=\w*\d)(?!\d+(?:[.,]\d+)*(?:st|nd|rd|th|[kmgt]?b|[kmc]?m|k?g|k|m|bn|h|s|l|ml|mg|min|kw|w)\b)\w+(?:[-.]\w+)*)
        |(?P<version>\bv?\d+\.\d+\.\d+(?:\.\d+)*\b)
        |(?P<fraction>(?<![\w/.])(\d{{1,2}})/(\d{{1,2}})(?![\w/]))
        |(?P<number>[-−]?(?<![\w.])\d+(?:[.,]\d+)*)(?P<ordinal>(?:st|nd|rd|th)\b)?
        |(?P<nr>\bno\.(?=\s*[\d,]))
        |(?P<word>[^\W\d_]+(?:'[^\W\d_]+)*'?(?:-[^\W\d_]+)*)
        |(?P<sign>[%$€£&°]c?)
        |(?P<stop>[.!?:\n])""",
        re.VERBOSE,
    )


def _scanned(text: str, language: Language) -> list[_Raw]:
    plain = text.translate(_QUOTES)
    if not plain.isascii() and unicodedata.normalize("NFC", plain) != plain:
        plain = plain if len(unicodedata.normalize("NFC", plain)) != len(plain) else unicodedata.normalize("NFC", plain)
    lowered = plain.lower()
    if len(lowered) != len(plain):
        lowered = plain
    result: list[_Raw] = []
    initial = True
    for match in _pattern(language).finditer(lowered):
        kind, (start, end) = match.lastgroup, match.span()
        if kind == "stop":
            initial = True
            continue
        if kind == "word":
            _add_word(result, match[0], start, end, initial, language)
        elif kind in ("number", "ordinal"):
            number = _amount(match["number"])
            key = ("ordinal", number) if match["ordinal"] else number
            result.append(_Raw("", start, end, initial, NUMBER, key))
        elif kind == "fraction":
            at = match.re.groupindex["fraction"]
            result.append(_Raw("", start, end, initial, NUMBER, int(match[at + 1]) / max(1, int(match[at + 2]))))
        elif kind == "nr":
            result.append(_Raw("number", start, end, initial))
        elif kind in ("id", "version"):
            result.append(_Raw(match[0], start, end, initial, NAME, match[0]))
        elif kind == "sign":
            result.append(_Raw(language.contractions.get(match[0], (match[0],))[0], start, end, initial))
        else:
            group = next(name for name in _CLOCKS if match[name])
            kind, key = _moment(group, match, language)
            result.append(_Raw("", start, end, initial, kind, key))
        initial = False
    return result


def _add_word(result: list[_Raw], word: str, start: int, end: int, initial: bool, language: Language) -> None:
    for part in word.split("-") if "-" in word and word not in language.contractions else (word,):
        for read_as in language.expanded(part):
            result.append(_Raw(read_as, start, end, initial))


_CURRENCIES = ("usd", "eur", "gbp")
_AND_A_HALF = (["and", "a", "half"], ["und", "ein", "halb"])
_CLOCKS = ("iso", "daymonth", "monthday", "slashed", "half", "clock", "hour")


def _moment(group: str, match: re.Match[str], language: Language) -> tuple[str, object]:
    """The kind and key of a time or a date: all that it may mean."""
    at = match.re.groupindex[group]
    one, two, three = match[at + 1], *(match[at + k] if at + k <= match.re.groups else None for k in (2, 3))
    if group == "iso":
        return DATE, frozenset({(int(one), int(two), int(three))})
    if group == "daymonth":
        return DATE, frozenset({(int(three) if three else None, language.month_numbers[two], int(one))})
    if group == "monthday":
        return DATE, frozenset({(int(three) if three else None, language.month_numbers[one], int(two))})
    if group == "slashed":
        year = int(three) + (2000 if len(three) == 2 else 0)
        return DATE, frozenset({(year, int(two), int(one)), (year, int(one), int(two))})
    hour, minute = int(one), int(two) if two and two.isdigit() else 0
    if group == "half":
        return TIME, frozenset({hour % 12 * 60 + minute + (720 if three == "p" else 0)})
    both = {hour * 60 + minute} | ({(hour + 12) % 24 * 60 + minute} if 0 < hour <= 12 else set())
    return TIME, frozenset(both)


def _phrased(raw: list[_Raw], language: Language) -> list[_Raw]:
    """The words with phrases read as the list says; what a phrase is read as may be part of another."""
    phrases, words = language.phrases, [each.word for each in raw]
    starts = {at for at, pair in enumerate(pairwise(words)) if pair in phrases}
    if not starts:
        return raw
    result, at = [], 0
    while at < len(raw):
        for left, right in phrases[words[at], words[at + 1]] if at in starts else ():
            if tuple(words[at : at + len(left)]) == left:
                first, last = raw[at], raw[at + len(left) - 1]
                for word in right:
                    kind, key = (NUMBER, float(word)) if word.isdigit() else (WORD, None)
                    result.append(_Raw("" if key else word, first.start, last.end, first.initial, kind, key))
                at += len(left)
                break
        else:
            result.append(raw[at])
            at += 1
    return _phrased(result, language) if len(result) != len(raw) else result


def _numbered(raw: list[_Raw], language: Language) -> list[_Raw]:
    """Number words read as numbers, and every number together with its unit."""
    numbers, units = language.numbers, language.units
    if not any(each.kind is NUMBER or each.word in numbers or each.word in language.fractions for each in raw):
        return raw
    result, at = [], 0
    while at < len(raw):
        value, stop = _value(raw, at, language)
        clock = _spoken_clock(raw, at, language)
        if clock is not None:
            key, stop = clock
            result.append(_Raw("", raw[at].start, raw[stop - 1].end, raw[at].initial, TIME, key))
            at = stop
            continue
        if value is None and raw[at].word in language.fractions and raw[at].word != "second":
            value, stop = language.fractions[raw[at].word], at + 1
            if stop + 1 < len(raw) and raw[stop].word in ("a", "an", "of") and raw[stop + 1].word in units:
                stop += 1
            elif stop < len(raw) and raw[stop].word not in units:
                value, stop = None, at
        elif isinstance(value, float) and stop < len(raw) and raw[stop].word in language.fractions:
            value, stop = value * language.fractions[raw[stop].word], stop + 1
        if value is None:
            result.append(raw[at])
            at += 1
            continue
        start = raw[at].start
        dimension, factor = "", 1.0
        if isinstance(value, tuple):
            dimension, value = value
        else:
            before = result[-1] if result else None
            if before is not None and units.get(before.word, ("", 0))[0] in _CURRENCIES:
                dimension, start = units[before.word][0], before.start
                result.pop()
            if (
                stop < len(raw)
                and raw[stop].word in units
                and (dimension == "" or units[raw[stop].word][0] == dimension)
            ):
                dimension, factor = units[raw[stop].word]
                stop += 1
        key = (dimension, round(float(value) * factor, 6))
        initial, at = raw[at].initial, stop
        result.append(_Raw("", start, raw[stop - 1].end, initial, NUMBER, key))
    return result


def _spoken_clock(raw: Sequence[_Raw], at: int, language: Language) -> tuple[frozenset[int], int] | None:
    """'half past two', 'a quarter to eight', 'ten in the morning': the minutes that it may be, and where it stops."""
    words, place, shift = [each.word for each in raw[at : at + 6]], at, None
    if words[:2] in (["half", "past"], ["quarter", "past"], ["quarter", "to"]):
        place, shift = at + 2, {"half": 30, "quarter": 15 if words[1] == "past" else -15}[words[0]]
    hour, stop = _value(raw, place, language)
    if not isinstance(hour, float) or not 0 < hour <= 24 or (shift is None and hour % 1 > 0.59):
        return None
    minutes = int(hour) % 24 * 60 + (round(hour % 1 * 100) if shift is None else shift)
    part = [each.word for each in raw[stop : stop + 3]]
    if part[:2] == ["in", "the"] and part[2:] in (["morning"], ["afternoon"], ["evening"]):
        late = part[2] != "morning" and hour <= 12
        return frozenset({(minutes % 720 + 720 * late) % 1440}), stop + 3
    if shift is None:
        return None
    return frozenset({minutes % 1440, (minutes + 720) % 1440}), stop


def _value(raw: Sequence[_Raw], at: int, language: Language) -> tuple[float | tuple[str, float] | None, int]:
    """The number that begins here and where it stops: 'two hundred and five', '1.5 million', 'twenty-first'."""
    total, current, stop = 0.0, None, at
    while stop < len(raw):
        each = raw[stop]
        if each.kind is NUMBER:
            if isinstance(each.key, tuple):
                return (each.key, stop + 1) if current is None and stop == at else (total + (current or 0), stop)
            if current is not None:
                break
            current = each.key
        else:
            said = language.numbers.get(each.word)
            if said is None:
                joins = each.word in ("and", "und") and current is not None and stop + 1 < len(raw)
                if (
                    joins
                    and stop > at
                    and raw[stop - 1].word in ("hundred", "thousand", "hundert", "tausend")
                    and raw[stop + 1].word in language.numbers
                ):
                    stop += 1
                    continue
                break
            if said.startswith("#"):
                return ("ordinal", total + (current or 0) + float(said[1:])), stop + 1
            if said.startswith("x"):
                if current is None and stop > at:
                    break
                times = float(said[1:])
                current = (1.0 if current is None else current) * times
                if times >= 1000:
                    total, current = total + current, 0.0
            else:
                value = float(said.split()[0])
                if current is not None and not (value < 10 <= current and current % 10 == 0) and current % 100 != 0:
                    break
                if current is not None and current < 20 and current != 0:
                    break
                current = (current or 0.0) + value
        stop += 1
    return (None, at) if current is None else (total + current, stop)


def _amount(written: str) -> float:
    """A number with marks of thousands or decimals: 1,234.5 and 1.234,5; 2,000 and 2.000 are thousands."""
    text = written.replace("\u2212", "-")
    comma, point = text.rfind(","), text.rfind(".")
    if comma >= 0 and point >= 0:
        text = text.replace(",", "") if point > comma else text.replace(".", "").replace(",", ".")
    elif comma >= 0:
        text = text.replace(",", "") if re.fullmatch(r"-?\d{1,3}(,\d{3})+", text) else text.replace(",", ".", 1)
    elif re.fullmatch(r"-?\d{1,3}(\.\d{3}){2,}", text):
        text = text.replace(".", "")
    try:
        return float(text)
    except ValueError:
        return float(re.sub(r"[.,]", "", text) or 0)
