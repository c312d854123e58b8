"""From a text to tokens: numbers with units, times and dates, names, negations, and words without
their inflection."""

import re
import unicodedata
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Literal, NamedTuple

from wordsens.evaluation.guard.language import NEGATION, Language

Kind = Literal["word", "name", "negation", "number", "time", "date", "symbol"]

Moment = tuple[int | None, int, int]
"""A date as (year or None, month, day), a time as (None, hour, minute)."""

_EXACT_DIGITS = 15
"""A number with more digits than a float64 holds is compared as it is written, like a name."""


class Amount(NamedTuple):
    """A number in the first unit of its dimension ("" for none). `written` keeps the versions 2.1
    and 2.10 apart."""

    dimension: str
    value: float
    written: str = ""


ONE = Amount("", 1.0)
"""'One ticket' is 'a ticket', and '1 ticket' is, but 'part 1' is not 'part'."""


@dataclass(slots=True)
class Token:
    """A word, or what several characters or words stand for.

    `word` is in lower case, with contractions written out; `start` and `end` are its characters in
    the text; `key` is equal for tokens that mean the same; `initial` says whether it begins a
    sentence; `moments` is all that a time or a date may mean; `marker` is the preposition or
    conjunction before it; `comma` says whether a comma, `passive` whether a form of "be" stands
    before it; `place` counts the tokens with content before it.
    """

    word: str
    start: int
    end: int
    kind: Kind = "word"
    initial: bool = False
    key: Hashable = ""
    amount: Amount | None = None
    moments: tuple[Moment, ...] = ()
    text: str = ""
    marker: str = ""
    comma: bool = False
    passive: bool = False
    place: int = 0


class ReadText(NamedTuple):
    """The tokens of a text: with content, negations, and light words such as articles and
    auxiliaries."""

    content: list[Token]
    negations: list[Token]
    light: list[Token]


def read(text: str, language: Language) -> ReadText:
    """The tokens of a text, with spans of the text as it was given."""
    plain, origin = _plain(text)
    tokens = _quantified(_phrased(_scanned(plain, language), language), language)
    content, negations, light = ReadText([], [], [])
    marker, passive = "", False
    capitals = not text.isupper()
    for before, token in zip([Token("", 0, -1), *tokens], tokens, strict=False):
        if origin:
            token.start, token.end = origin[token.start][0], origin[token.end - 1][1]
        token.text, token.place = text[token.start : token.end], len(content)
        if token.word == NEGATION:
            token.kind = "negation"
            negations.append(token)
            continue
        if (
            before.kind != "word"
            and token.kind in ("word", "name")
            and _case_counts(before, token, text)
        ):
            token.key = token.word = token.text
        elif token.kind == "word":
            token.key, is_light, is_marker, listed = language.word(token.word)
            if is_marker:
                marker = token.word
            if (
                is_light
                and capitals
                and token.text.isupper()
                and not token.initial
                and token.word != "i"
            ):
                token.key, is_light, listed = token.text, False, False  # "plan A", "US", "IT"
            if is_light:
                passive = passive or token.word in language.be
                light.append(token)
                continue
            if not token.initial and not listed and token.text[:1].isupper():
                token.kind = "name"
            token.passive = passive
        elif token.kind == "number":
            if token.amount and token.amount.dimension and _OTHER_UNIT.search(token.text):
                token.amount = token.amount._replace(written=token.amount.written + token.text[-2:])
            token.key = token.amount
        elif token.moments:
            token.key = token.kind, token.moments
        elif token.kind == "name" and _CAPITAL_UNIT_AFTER_DIGIT.search(token.text):
            token.key = token.word = token.text
        elif token.kind == "symbol":
            if _is_prose(token, text):
                continue
            token.key = token.key or token.text  # an option: -d is not -D
        token.marker, marker, passive = marker, "", False
        token.comma = bool(content) and "," in text[content[-1].end : token.start]
        content.append(token)
    return ReadText(content, negations, light)


_OTHER_UNIT = re.compile(r"(?<![A-Za-z])(?:[KMGT]b|M[glms])$")
"""Gb counts bits, Mg is a million grams and Ms a million seconds; "gb" and "MG" are taken for GB
and mg."""

_CAPITAL_UNIT = re.compile(r"(?:[MPp][A-ZΩ]|[kKGT]B)[a-z]*|Nm|Ms")
"""MW is no mW, MHz no mHz, kBps no kbps, pA no Pa and Nm no nm."""

_CAPITAL_UNIT_AFTER_DIGIT = re.compile(rf"\d(?:{_CAPITAL_UNIT.pattern})$")

_QUOTATION_MARKS = {"'": "'‘’‚`´", '"': '"“”„«»'}

_PARTED_COMMA = re.compile(r"(?<!\S),(?!\S)")


def _is_prose(token: Token, text: str) -> bool:
    """Whether a sign is punctuation after all: of "pre- and postwar", not of "rated AA-"; of "It
    works.Thanks"; marks with a blank before them, as in "Stop ! Go on , then .", not in "if ! grep
    x" and "git add ."; a quotation mark behind a number, as in "He said 'at 5'", not in "6' long";
    an asterisk before the entry of a list."""
    if token.word in _QUOTATION_MARKS and text[token.start - 1 : token.start].isdigit():
        return any(mark in _QUOTATION_MARKS[token.word] for mark in text[: token.start])
    if token.word == "*" and text[token.end : token.end + 1].isspace():
        return not text[: token.start].rpartition("\n")[2].strip()
    before, after = text[token.start - 1 : token.start], text[token.end : token.end + 2]
    if token.key == "- ":
        return not before.isupper()
    if token.key == "-- ":
        return text[token.start - 2 : token.start].isalpha() and after.strip().isalpha()
    if not before.strip():
        capital_after = token.key in ("!", " .") and after.strip()[:1].isupper()
        return capital_after or (
            token.key == "."
            and _PARTED_COMMA.search(text, max(0, token.start - 200), token.start) is not None
        )
    return token.word in (".", "!", "?") and before.islower() and after[:1].isupper()


def _case_counts(before: Token, token: Token, text: str) -> bool:
    """Whether a word is written in these letters alone: 5 MW; after a sign of code, as in $HOME,
    [A-Z], x=Y."""
    if before.kind == "number":
        return (
            not text[before.end : token.start].strip()
            and _CAPITAL_UNIT.fullmatch(token.text) is not None
        )
    return before.end == token.start and (
        before.word[:1] in tuple("\\[{=^|~$%") or before.key == " /"
    )


_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufe0f\ufeff"
_SAME_SIGN = {
    **str.maketrans(
        "\u2019\u2018\u02bc`\u00b4\u2032\u201c\u201d\u201e\u00ab\u00bb\u2033\u2010\u2011\u2012\u2013\u2212\u2044\u00ba",
        "'" * 6 + '"' * 6 + "-----/°",
        _INVISIBLE,
    ),
    **str.maketrans({"\u2014": " - ", "\u2015": " - ", "\u2116": " number "}),
}
_SUPERSCRIPTS = frozenset("²³¹⁰ⁱ⁴⁵⁶⁷⁸⁹⁺⁻ⁿ")
_BLANK_IN_NUMBER = re.compile(r"(?<=\d)[\u00a0\u2007\u2009\u202f](?=\d{3}(?!\d))")


def _plain(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text in lower case, composed and compatible; and of each of its characters the span in
    the text as given, which is left out where it is the character itself."""
    if text.isascii():
        return text.lower(), []
    text = _BLANK_IN_NUMBER.sub("'", text)
    plain, origin, at = [], [], 0
    while at < len(text):
        stop = at + 1
        while stop < len(text) and unicodedata.combining(text[stop]):
            stop += 1
        letters = (
            unicodedata.normalize("NFKC", text[at:stop].translate(_SAME_SIGN))
            .lower()
            .translate(_SAME_SIGN)
        )
        if unicodedata.category(text[at]) == "No" and "/" in letters:
            letters = f" {letters}"
        if text[at] in _SUPERSCRIPTS and text[at - 1 : at] not in _SUPERSCRIPTS:
            letters = f"^{letters}"
        plain.append(letters)
        origin += [(at, stop)] * len(letters)
        at = stop
    return "".join(plain), origin


_LETTER = (
    r"[^\s\d\x00-@\[-`{-\xbf\xd7\xf7\u2000-\u2bff\u3000-\u303f\uff00-\uff0f\U0001f000-\U0001faff]"
)


_SIGN = rf"""°[cf]
    |(?P<repeated>[^\s\w!"'(),.:;?`~\xa1\xab\xb4\xb7\xbb\xbf\u2000-\u206f\u3000-\u303f-])(?P=repeated)*+
    |~(?!\s?\d)|(?<=\w)\xb7(?=\w)
    |(?<![^\s(\[{{=*/])\.{{1,2}}(?![.\d])|(?<!\.)\.(?=[*+^$|\\/\[{{])|(?<=[^\s.])\.\.(?=\w)|(?:(?<=[\[{{])|(?<=\w\())\.{{3}}(?=\w)
    |(?<=[^\s.(])\.(?={_LETTER})(?!(?<=\b{_LETTER}\.){_LETTER}\b)
    |(?<![:;!?])[:;!?]++(?![-.,"')]*(?:\s|$))|(?<!\S)!(?=\s+\w)|,(?=[)\]}}])
    |\((?:(?<=[^\s"'(\[{{,;:-]\()|(?<=[\w)\]]-\()|(?<=[+*/^=<>|]\s\()|(?<=\b\w\s-\s\()|(?<=[\d)\]]\s-\s\())
    |\)(?=[\w(\[{{]|\s?(?:[+*/^=<>|]|&&)|\s?-\s?(?:\w\b|\d|\())
    |["'](?:(?<=[=+*|\[{{]["'])|(?<=[=+*|]\s["'])|(?<=\w\(["']))(?=[^\s.,:;!?)])|(?<=\w)'(?=\()|(?<=\d)["'](?!\w)
    |(?<={_LETTER})--?(?=[.,:;!?"')]*(?:\s|$))|-(?=>)|(?<=<)-"""
"""A sign that counts. Line by line: every sign that prose has no use for; about 5 is ~5, and no
other tilde; dots of paths, patterns and names; marks not at the end of a word; brackets beside what
they are not parted from by a blank, or beside an operator; quotation marks after an operator or an
opening bracket, or of feet and inches; hyphens after a grade and in arrows."""


@cache
def _pattern(language: Language) -> re.Pattern[str]:
    """The tokens of a text; what it passes over is the punctuation of prose. That no token begins
    with a blank is said first, for speed."""
    glued = {*language.units, *language.numbers, *language.grammar["ordinals"], "m"}
    suffixes = "|".join(sorted((word for word in glued if word.isalpha()), key=len, reverse=True))
    return re.compile(
        rf"""(?![ ])(?:(?P<nr>\#(?=\d)|no\.(?=\s*\d|,)|n°\.?(?=\s*\d))
        |(?P<area>(?=[kcdm])(?:(?<=\d)|(?<=\d\s))[kcdm]?m\^?[23](?!\w))
        |(?P<word>(?!w/o\b){_LETTER}++(?:'{_LETTER}++)*+(?![\d_])|w/o\b
            |&(?:(?<=\w&)|(?<=[\w,)"']\s&))(?=\s?\w)|@(?<!\S@)(?![^\s\d])|<(?<!<<)(?!<)|>(?<!>>)(?!>))
        |(?P<iso>\d{{4}}-\d\d-\d\d(?!\d))
        |(?P<european>\d{{1,2}}\.\s?\d{{1,2}}\.\s?\d{{4}}(?!\w))
        |(?P<slashed>\d{{1,2}}/\d{{1,2}}/(?:\d{{4}}|\d\d)(?![\w/]))
        |(?P<clock>\d{{1,2}}(?:[:.]\d\d)?\s?(?:[ap]\.?m(?!\w)\.?)|\d{{1,2}}:\d\d(?::00)?(?:\s?h)?(?![\w:])
            |\d{{1,2}}(?:\.\d\d)?\s?o'clock(?!\w))
        |(?P<version>\d+(?:\.\d+){{2,}}(?!\w))
        |(?P<fraction>\d{{1,2}}/[1-9]\d?(?![\w/]))
        |(?P<number>(?:(?<![^\s(\[{{=*/+^<>,:|$€£])-|(?<=[=<>]\ )-\ )?
            (?:(?:\d++(?:\.\d++)?\s?[×x*]\s?)?10\^[+-]?\d{{1,2}}
            |(?<![\d)][ '_])(?<!\w-)
                [1-9]\d{{0,2}}(?:(?:\ \d{{3}})++|(?:'\d{{3}})++|(?:_\d{{3}})++)(?![ '_]?\d|-\w)(?:[.,]\d++)?
            |(?:\d++(?:[.,]\d++)*+|(?<![\w.])\.\d++)(?:e[+-]?\d+)?)(?=(?:{suffixes}|[kcdm]?m\^?[23])?(?!\w)))
        |(?P<minus>(?<![^\s(\[{{=*/+<>,:|])-(?=[$\xa2-\xa5\u20a0-\u20cf]\s?[\d.]))
        |(?P<option>(?:(?<![^\s(\[{{=*/+^<>,:|&])|(?<=["'])(?<!\S["']))--?{_LETTER}[\w-]*)
        |(?P<identifier>\w+(?:[-.]\w*\d\w*)*)
        |(?P<sign>{_SIGN})
        |(?P<stop>[.!?:](?=\s|$)|\n))""",  # noqa: E501
        re.VERBOSE,
    )


def _scanned(plain: str, language: Language) -> list[Token]:
    tokens: list[Token] = []
    initial, negative, contractions = True, False, language.contractions
    for match in _pattern(language).finditer(plain):
        (start, end), kind, written = match.span(), match.lastgroup, match[0]
        if (
            kind == "word"
            and tokens
            and tokens[-1].end == start
            and written in language.grammar["ordinals"]
        ):
            if amount := tokens[-1].amount:
                tokens[-1].amount, tokens[-1].end = amount._replace(dimension="ordinal"), end
        elif kind == "word":
            words = (
                language.expanded(written)
                if "'" in written or written in contractions
                else (written,)
            )
            for word in words:
                tokens.append(Token(word, start, end, "word", initial))
                initial = False
        elif kind == "stop":
            initial = True
            continue
        elif kind == "nr":
            tokens.append(Token("number", start, end))
        elif kind == "option":
            tokens.append(Token(written, start, end, "symbol"))
        elif kind == "minus":
            negative = True
        elif kind == "sign":
            known = written in language.units and (
                plain[start - 1 : start].isdigit() or not plain[end : end + 1].isalpha()
            )
            tokens.append(
                Token(
                    written,
                    start,
                    end,
                    "word" if known else "symbol",
                    key=_placed(plain, start, end),
                )
            )
        else:
            tokens.append(_measured(kind or "", written, start, end, language))
            if negative and (amount := tokens[-1].amount):
                tokens[-1].amount = amount._replace(value=-amount.value)
            negative = False
        initial = False
    return tokens


_GOES_ON = re.compile(r"""[.,:;!?"')\]}]{0,9}[^\s.,:;!?"')\]}]""")


def _placed(plain: str, start: int, end: int) -> str:
    """A sign, with a blank on the side where it ends what it belongs to: " -" and "- ", but "=" in
    "x = 5"."""
    sign = plain[start:end]
    if not sign.isascii() or (sign in _QUOTATION_MARKS and plain[start - 1].isdigit()):
        return sign
    sign = sign.replace('"', "'")
    before = start > 0 and not plain[start - 1].isspace() and plain[start - 1] not in "([{\"'"
    after = _GOES_ON.match(plain, end) is not None
    return sign if before == after else f"{sign} " if before else f" {sign}"


_LEADING_ZERO = re.compile(r"-?0\d")

_LIST = re.compile(
    r"(?!-?\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?$|-?\d{1,3}(?:\.\d{3})+,\d+$)-?(?:\d+[.,]\d+,.*|\d+,\d+\..*)"
)
"""1,2,3 and the like: two marks that are not those of thousands and a decimal."""

_DATES = {"iso": ((0, 1, 2),), "european": ((2, 1, 0),), "slashed": ((2, 1, 0), (2, 0, 1))}
"""Where year, month and day stand in each way to write a date."""


def _measured(kind: str, written: str, start: int, end: int, language: Language) -> Token:
    """A number, a time, a date or an identifier; what cannot be one of the first three is an
    identifier."""
    parts = (
        [int(part) for part in re.findall(r"\d+", written)[:3]]
        if kind in (*_DATES, "clock", "fraction")
        else []
    )
    if kind == "fraction":
        return Token("", start, end, "number", amount=Amount("", parts[0] / parts[1]))
    if kind == "clock":
        half = next((half for half in "ap" if half in written), "")
        return _time(start, end, parts[0], (*parts, 0)[1], half, written)
    if kind == "area":
        return Token(written, start, end, "name", key=written.replace("^", ""))
    if kind == "number" and not _LIST.fullmatch(written):
        value = _decimal(written)
        if sum(map(str.isdigit, written)) <= _EXACT_DIGITS and abs(value) < float("inf"):
            versionlike = (written.endswith("0") and "." in written) or _LEADING_ZERO.match(written)
            doubtful = (
                written[-4:-3] == " " and written.count(" ") == 1 and not written.endswith("000")
            )
            as_written = (
                written if doubtful else re.sub("[ '_,]", "", written) if versionlike else ""
            )
            return Token(written, start, end, "number", amount=Amount("", value, as_written))
    century = 0 if re.search(r"\d{4}", written) else 2000
    readings = [(parts[y] + century, parts[m], parts[d]) for y, m, d in _DATES.get(kind, ())]
    if moments := [moment for moment in readings if moment[1] <= 12 and moment[2] <= 31]:
        return Token("", start, end, "date", moments=tuple(dict.fromkeys(moments)))
    return Token(written, start, end, "name", key=written)


def _time(start: int, end: int, hour: int, minute: int, half: str, written: str) -> Token:
    """The time of day, or both that it may be where the half of the day is not said."""
    if hour > 24 or minute > 59:
        return Token(written, start, end, "name", key=written)
    both = {hour % 24, (hour + 12) % 24} if 0 < hour <= 12 else {hour % 24}
    hours = [hour % 12 + 12 * (half == "p")] if half else sorted(both)
    return Token("", start, end, "time", moments=tuple((None, each, minute) for each in hours))


def _decimal(written: str) -> float:
    """The value of a number with marks of thousands or decimals: 1,234.5; 1.234,5; 2,000; 1 000;
    1e5; 3*10^5."""
    if "^" in written:
        factor, _, exponent = written.rpartition("10^")
        factor = factor.rstrip(" ×x*")
        written = f"{factor if factor.strip('-') else factor + '1'}e{exponent}"
    written = re.sub("[ '_]", "", written)
    thousands, decimal = ",", "."
    if written.rfind(",") > written.rfind(".") and not re.fullmatch(
        r"-?[^,-]{1,3}(,\d{3})*", written
    ):
        thousands, decimal = ".", ","
    whole, _, part = written.replace(thousands, "").rpartition(decimal)
    return float(f"{whole.replace(decimal, '')}.{part}" if whole or decimal in written else part)


Rewriting = tuple[int, list[Token]]
"""Where the tokens stop that are read as others, and these."""

Rule = Callable[[list[Token], int, Language], Rewriting | None]


def _rewritten(
    tokens: list[Token], starts: list[int], rule: Rule, language: Language
) -> list[Token]:
    """The tokens with those read as others that a rule knows, from the first of `starts` on."""
    rewritten, done = [], 0
    for start in starts:
        if start >= done and (rewriting := rule(tokens, start, language)):
            stop, replaced = rewriting
            rewritten += [*tokens[done:start], *replaced]
            done = stop
    return rewritten + tokens[done:] if done else tokens


def _phrased(tokens: list[Token], language: Language) -> list[Token]:
    """The tokens with phrases read as the list says; what a phrase is read as may be part of
    another."""
    for _ in range(3):
        starts = [
            at
            for at, (one, other) in enumerate(pairwise(tokens))
            if (one.word, other.word) in language.phrases
        ]
        before, tokens = tokens, _rewritten(tokens, starts, _phrase, language)
        if tokens is before:
            break
    return tokens


def _phrase(tokens: list[Token], at: int, language: Language) -> Rewriting | None:
    for left, right in language.phrases[tokens[at].word, tokens[at + 1].word]:
        inside = tokens[at : at + len(left)]
        if tuple(token.word for token in inside) == left and not any(
            token.initial for token in inside[1:]
        ):
            start, end, initial = inside[0].start, inside[-1].end, inside[0].initial
            return at + len(left), [
                Token("", start, end, "number", amount=Amount("", float(word)))
                if word.isdigit()
                else Token(word, start, end, "word", initial)
                for word in right
            ]
    return None


def _quantified(tokens: list[Token], language: Language) -> list[Token]:
    """Number words read as numbers, numbers together with their units, and the dates and times that
    they make."""
    numeric, months = language.numeric, language.months
    starts = [at for at, token in enumerate(tokens) if token.amount or token.word in numeric]
    if not starts:
        return tokens
    tokens = _rewritten(tokens, starts, _quantity, language)
    if not any(token.word in months for token in tokens):
        return tokens
    starts = [at for at, token in enumerate(tokens) if token.amount or token.word in months]
    return _rewritten(tokens, starts, _date, language)


def _quantity(tokens: list[Token], at: int, language: Language) -> Rewriting | None:
    """A number with its unit: two hundred GB, $5 million, half a litre, 30 %, third; or a time:
    half past two."""
    if time := _spoken_time(tokens, at, language):
        return time
    currency = language.units.get(tokens[at].word, ("", 0.0))[0]
    begin = at + (currency in language.grammar["currencies"])
    number = _value(tokens, begin, language) or (
        None if begin > at else _fraction(tokens, at, language)
    )
    if number is None:
        return None
    amount, stop = number
    unit = language.units.get(tokens[stop].word, ("", 0.0)) if stop < len(tokens) else ("", 0.0)
    if begin > at:
        million = (
            stop < len(tokens)
            and tokens[stop].word == "m"
            and tokens[stop].start == tokens[stop - 1].end
        )
        stop += million or unit[0] == currency
        unit = currency, 1e6 if million else 1.0
    elif unit[0] and amount.dimension != "ordinal":
        stop += 1
    else:
        unit = amount.dimension, 1.0
    written = "" if unit[0] and not _LEADING_ZERO.match(amount.written) else amount.written
    if " " in amount.written:
        counted = unit[0] and stop < len(tokens) and not language.word(tokens[stop].word).light
        written = amount.written if counted else ""  # "3 100 W bulbs" may be three
    amount = Amount(unit[0], float(f"{amount.value * unit[1]:.12g}"), written)
    return stop, [
        Token(
            "", tokens[at].start, tokens[stop - 1].end, "number", tokens[at].initial, amount=amount
        )
    ]


def _value(tokens: list[Token], at: int, language: Language) -> tuple[Amount, int] | None:
    """The number that begins here and where it stops: two hundred and five, 1.5 million,
    twenty-first."""
    if at == len(tokens):
        return None
    amount, stop = tokens[at].amount or Amount("", 0.0), at + (tokens[at].amount is not None)
    if amount.dimension:
        return amount, stop
    total, current, digits = 0.0, amount.value, stop > at
    while stop < len(tokens):
        sort, value = language.numbers.get(tokens[stop].word, ("", -1.0))
        if value < 0:
            after = tokens[stop + 1].word if stop + 1 < len(tokens) else ""
            scaled = stop > at and language.numbers.get(tokens[stop - 1].word, ("",))[0] == "x"
            if not (scaled and tokens[stop].word in language.joining and after in language.numbers):
                break
        elif sort == "x" and value >= 1000:
            total, current = total + (current or 1.0) * value, 0.0
        elif sort == "x":
            current = (current or 1.0) * value
        elif digits or (
            current % 100 and not (value < 10 and current % 100 >= 20 and current % 10 == 0)
        ):
            break
        else:
            current += value
        stop += 1
        if sort == "#":
            return Amount("ordinal", total + current), stop
    if stop == at:
        return None
    summed = total + current
    if [token.word for token in tokens[stop : stop + 3]] == language.grammar["and-a-half"]:
        return _part(summed + 0.5, tokens, stop + 3, language)
    if (
        stop < len(tokens)
        and tokens[stop].word in language.fractions
        and tokens[stop].word not in language.numbers
    ):
        return _part(summed * language.fractions[tokens[stop].word], tokens, stop + 1, language)
    if (
        stop < len(tokens)
        and digits
        and (after := tokens[stop].amount)
        and 0 < after.value < 1 <= summed
    ):
        return _part(summed + after.value, tokens, stop + 1, language)
    return Amount("", summed, amount.written if summed == amount.value else ""), stop


def _part(value: float, tokens: list[Token], at: int, language: Language) -> tuple[Amount, int]:
    """A number with a part, times the power of ten behind it: one and a half million, a quarter of
    a million."""
    stop = next(
        (k for k in range(at, len(tokens)) if tokens[k].word not in language.grammar["part-of"]), at
    )
    sort, factor = (
        language.numbers.get(tokens[stop].word, ("", 1.0)) if stop < len(tokens) else ("", 1.0)
    )
    return (Amount("", value * factor), stop + 1) if sort == "x" else (Amount("", value), at)


def _fraction(tokens: list[Token], at: int, language: Language) -> tuple[Amount, int] | None:
    """A part of a unit: half a gigabyte, a quarter of a mile."""
    part, stop = language.fractions.get(tokens[at].word), at + 1
    if part and (scaled := _part(part, tokens, stop, language))[1] > stop:
        return scaled
    if part and stop < len(tokens) and tokens[stop].word in language.grammar["genitive"]:
        return Amount("", part), stop
    while (
        part
        and stop < len(tokens)
        and (language.word(tokens[stop].word).light or tokens[stop].amount == ONE)
    ):
        stop += 1  # "half a year" was read as "half 1 years"
    if part and stop < len(tokens) and tokens[stop].word in language.units:
        return Amount("", part), stop
    return None


def _spoken_time(tokens: list[Token], at: int, language: Language) -> Rewriting | None:
    """Half past two, a quarter to eight, ten in the morning."""
    shifts = [
        (int(what), stop) for stop, what in _clock(tokens, at, language) if what not in ("am", "pm")
    ]
    shift, begin = shifts[0] if shifts else (0, at)
    number = _value(tokens, begin, language)
    if number is None or number[0].dimension or number[0].value not in range(1, 25):
        return None
    halves = [
        (what[0], stop)
        for stop, what in _clock(tokens, number[1], language)
        if what in ("am", "pm")
    ]
    if not shifts and not halves:
        return None
    half, stop = halves[0] if halves else ("", number[1])
    hour, minute = divmod((int(number[0].value) * 60 + shift) % 1440, 60)
    return stop, [_time(tokens[at].start, tokens[stop - 1].end, hour or 12, minute, half, "")]


def _clock(tokens: list[Token], at: int, language: Language) -> Iterator[tuple[int, str]]:
    """Where the words of a time of day stop that begin here, and what they say."""
    for words, what in language.clock.items():
        if at < len(tokens) and words[0] == tokens[at].word:
            stop = at + len(words)
            if tuple(token.word for token in tokens[at:stop]) == words:
                yield stop, what


def _date(tokens: list[Token], at: int, language: Language) -> Rewriting | None:
    """A day beside the name of a month: 3 May, May 3rd, the third of May 2024."""
    words = [token for token in tokens[at : at + 4] if token.word != "of" or token is tokens[at]]
    if len(words) < 2:
        return None
    day, month = (0, 1) if words[0].amount else (1, 0)
    number, name = words[day].amount, words[month].word
    if number is None or name not in language.months or number.dimension not in ("", "ordinal"):
        return None
    if number.value not in range(1, 32):
        return None
    last, year = words[1], None
    if (
        len(words) > 2
        and (after := words[2].amount)
        and after.dimension == ""
        and after.value in range(1000, 3000)
    ):
        last, year = words[2], int(after.value)
    stop = next(k for k in range(at, at + 4) if tokens[k] is last) + 1
    moment = year, language.months[name], int(number.value)
    return stop, [
        Token("", tokens[at].start, last.end, "date", tokens[at].initial, moments=(moment,))
    ]
