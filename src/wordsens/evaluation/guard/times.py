"""Dates and times of day: how they are found and read, and how two of them compare."""

import re

from wordsens.evaluation.guard.lexicon import Lexicon
from wordsens.evaluation.guard.tokens import AMBIGUOUS, Moment, Token

# Where year, month and day stand in each way to write a date in digits.
_DATES = {"iso": ((0, 1, 2),), "european": ((2, 1, 0),), "slashed": ((2, 1, 0), (2, 0, 1))}

# Minutes to add to an hour.
_SHIFTS = {"half past": 30, "quarter past": 15, "quarter to": -15}

_HALF = re.compile(r"(?P<a>a\.?m\b|morning|\A0)|p\.?m\b|afternoon|evening|night")

_HOURS = [("", hour) for hour in range(25)]
_COMPARED = ({"time"}, {"date"}, {"time", "number"})

_RANGE = r"\s?(?:-|to|and|until|through)\s?"


def pattern(lexicon: Lexicon) -> str:
    """A verbose expression with a group for each way to write a date or a time of day."""
    ordinals = [word for word, (sort, _) in lexicon.numbers.items() if sort == "#"]
    words = rf"(?:(?:twenty|thirty)[ -])?(?:{'|'.join(ordinals)})"
    digits = r"\d{1,2}(?:st|nd|rd|th)?"
    names = sorted(lexicon.months, key=len, reverse=True)
    months = rf"(?:{'|'.join(names)})\b(?:(?<=\b\w\w\w)\.|(?<=sept)\.)?(?<!may\.)"
    hours = [word for word, (sort, number) in lexicon.numbers.items() if not sort and number < 13]
    hour = rf"(?:\d{{1,2}}|{'|'.join(hours)})"
    part = r"(?:\sin\sthe\s(?:morning|afternoon|evening)|\sat\snight)"
    weekdays = "|".join(word for word in lexicon.grammar["weekdays"] if not word.endswith("day"))
    dated = rf"(?:the\s)?{digits}(?:\sof)?\s{months}(?!(?<=may)\s(?:be|not|have)\b)"
    return rf"""(?P<weekday>(?:{weekdays})\.?(?=,?\s(?:the\s)?(?:{digits}\s(?:of\s)?)?{months}))
        |(?P<iso>\d{{4}}-\d\d-\d\d(?!\d))
        |(?P<european>\d{{1,2}}\.\s?\d{{1,2}}\.\s?\d{{4}}(?!\w))
        |(?P<slashed>\d{{1,2}}/\d{{1,2}}/(?:\d{{4}}|\d\d)(?![\w/]))
        |(?P<dated>(?:{digits}{_RANGE})?{dated}(?:,?\s\d{{4}}(?!\w))?
            |(?:the\s)?{words}(?:\sof)?\s(?!may){months}(?:,?\s\d{{4}}(?!\w))?
            |{months}\s(?:the\s)?{digits}(?!\w|[.:]\d)(?:{_RANGE}{digits}(?!\w|[.:]\d))?(?:,?\s\d{{4}}(?!\w))?)
        |(?P<clock>\d{{1,2}}(?:[:.]\d\d)?\s?(?:[ap]\.?m(?!\w)\.?)
            |\d{{1,2}}:\d\d(?::00)?(?:\s?h)?(?![\w:]){part}?|\d{{1,2}}(?:\.\d\d)?\s?o'clock(?!\w){part}?
            |(?:half\spast|(?:a\s)?quarter\s(?:past|to))\s{hour}\b{part}?|{hour}{part}
            |\b(?:noon|midday)\b)"""


def times(kind: str, written: str, lexicon: Lexicon) -> list[tuple[Moment, ...]]:
    """All that each date or time of a match may mean: two where a range shares a month; none where
    it cannot be one."""
    numbers = [int(part) for part in re.findall(r"\d+", written)]
    if kind == "clock":
        return [moments] if (moments := _clock(written, numbers, lexicon)) else []
    if kind == "dated":
        month = next(
            lexicon.months[w] for w in re.findall("[a-z]+", written) if w in lexicon.months
        )
        year = numbers.pop() if re.search(r"\d{4}$", written) else None
        words = [
            lexicon.numbers[word]
            for word in re.findall("[a-z]+", written)
            if word in lexicon.numbers
        ]
        days = numbers or [int(sum(value for _, value in words))]
        return [((year, month, day),) for day in days if day < 32]
    century = 0 if re.search(r"\d{4}", written) else 2000
    readings = [(numbers[y] + century, numbers[m], numbers[d]) for y, m, d in _DATES[kind]]
    moments = [moment for moment in readings if moment[1] <= 12 and moment[2] <= 31]
    return [tuple(dict.fromkeys(moments))] if moments else []


def _clock(
    written: str,
    numbers: list[int],
    lexicon: Lexicon,
) -> tuple[Moment, ...]:
    if written in ("noon", "midday"):
        return ((None, 12, 0),)
    words = [lexicon.numbers[word][1] for word in written.split() if word in lexicon.numbers]
    hour, minute, *_ = [*(numbers or map(int, words)), 0]
    shift = next((_SHIFTS[words] for words in _SHIFTS if words in written), 0)
    half = _HALF.search(written)
    hour, minute = divmod((hour * 60 + minute + shift) % 1440, 60) if shift else (hour, minute)
    if hour > 24 or minute > 59:
        return ()
    if half:
        early = half["a"] or (half[0] == "night" and hour % 12 < 6)  # two at night
        return ((None, hour % 12 + 12 * (not early), minute),)
    return of_hour(hour, minute)


def of_hour(hour: int, minute: int = 0) -> tuple[Moment, ...]:
    """The time, or both that it may be where the half of the day is not said."""
    both = {hour % 24, (hour + 12) % 24} if 0 < hour <= 12 else {hour % 24}
    return tuple((None, each, minute) for each in sorted(both))


def time_relation(one: Token, other: Token) -> str | None:
    """Of two times or dates: "same", "time", ambiguous where only some readings agree; None where a
    bare number beside one is no hour."""
    amount = one.amount or other.amount
    hour = of_hour(int(amount.value)) if amount and amount[:2] in _HOURS else ()
    first, second = one.moments or hour, other.moments or hour
    if not (first and second) or {one.kind, other.kind} not in _COMPARED:
        return None
    if one.text.lstrip("0") == other.text.lstrip("0"):
        return "same"
    paired = len(first) == len(second)
    pairs = zip(first, second, strict=True) if paired else [(a, b) for a in first for b in second]
    agree = [a[1:] == b[1:] and (a[0] == b[0] or None in (a[0], b[0])) for a, b in pairs]
    if paired and all(agree):
        return "same"
    return AMBIGUOUS if any(agree) else "time"
