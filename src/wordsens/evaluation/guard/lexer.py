"""From a text to tokens with their characters: words, names, numbers, times, dates, signs. No token
is left out; punctuation of prose makes none."""

import re
import unicodedata
from functools import cache
from itertools import pairwise

from wordsens.evaluation.guard.amounts import decimal, quantified, rewritten
from wordsens.evaluation.guard.lexicon import NEGATION, Lexicon
from wordsens.evaluation.guard.times import pattern, times
from wordsens.evaluation.guard.tokens import Amount, Kind, Reading, Token

# A number with more digits than a float64 holds is compared as it is written, like a name.
_EXACT_DIGITS = 15

# A question at the end of a sentence that expects its answer: ", isn't it?"
_TAG = re.compile(
    r",\s*(?:(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|wo|ca)(?:n't)?"
    r"\s+(?:i|you|he|she|it|we|they|there)|right|correct)\s*(?=\?\s*$)"
)

# "n't" as tokenizers and hasty typists write it.
_PARTED_NOT = re.compile(r"n(?: ' |`)t\b")

# Gb counts bits, Mg is a million grams and Ms a million seconds; "gb" and "MG" are taken for GB and
# mg.
_OTHER_UNIT = re.compile(r"(?<![A-Za-z])(?:[KMGT]b|M[glms]|[TMG])$")

# MW is no mW, MHz no mHz, kBps no kbps, pA no Pa and Nm no nm.
_CAPITAL_UNIT = re.compile(r"(?:^|.*\d)(?:(?:[MPp][A-ZΩ]|[kKGT]B)[a-z]*|Nm|Ms)")

# What parts words; not a comma before what is quoted.
_COMMA = re.compile(
    r"[,;:](?!\s+[\"“‘'])|[.!?](?:\s|(?=[A-Z]))|\n\s*[-*•\n]|(?<!\d)\s[-\u2013]\s|--|\u2014"
)

_QUOTATION_MARKS = {"'": "'‘’‚`´", '"': '"“”„«»'}

_PARTED_COMMA = re.compile(r"(?<!\S),(?!\S)")


def read(text: str, lexicon: Lexicon) -> Reading:
    """The tokens of a text, with characters of the text as it was given."""
    plain, origin = _plain(text)
    plain = _PARTED_NOT.sub(lambda match: "n't".ljust(len(match[0])), plain)
    plain = _TAG.sub(lambda match: " " * len(match[0]), plain)
    tokens = _scanned(plain, lexicon)
    read_as = rewritten(tokens, _phrase, lexicon)
    if read_as != tokens:  # what a phrase is read as may be part of another
        read_as = rewritten(read_as, _phrase, lexicon)
    tokens = quantified(read_as, lexicon)
    for token in tokens:
        if origin:
            token.start, token.end = origin[token.start][0], origin[token.end - 1][1]
        token.text = text[token.start : token.end]
    tokens = [token for token in tokens if token.kind != "symbol" or not _is_prose(token, text)]
    capitals = _capitals_count(text, tokens)
    for before, token in pairwise([Token("", 0, -1, "symbol"), *tokens]):
        if not token.initial:
            token.before, before.after = before.word or "#", token.word or "#"
        _classify(token, before, text, capitals, lexicon)
    return _placed_words(tokens, text, lexicon)


def _placed_words(tokens: list[Token], text: str, lexicon: Lexicon) -> Reading:
    """The tokens, with what stands before each word with content, and whether they ask."""
    words = [token.word for token in tokens if token.kind != "filler"][:3]
    verbs = [word in lexicon.grammar["asking"] for word in words] + [False]
    inverted = verbs[0] and words[1:2] != [NEGATION]
    asks = "?" in text.rstrip()[-2:] or inverted
    asks = asks or (
        words[:1] != []
        and words[0] in lexicon.grammar["questions"]
        and (any(verbs[1:]) or "to" in words)
    )
    for token in tokens:
        asks = (asks or token.word == "<ask>") and token.word != "<request>"
    content: list[Token] = []
    marker, passive = "", False
    for token in tokens:
        token.place = len(content)
        letter = len(token.after) < 2 and token.after != "#"
        if token.word == "a" and (letter or token.after in lexicon.grammar["light"]):
            token.light, token.kind = False, "name"  # set a to 5
        if token.light:
            passive = passive or token.word in lexicon.grammar["be"]
            marker = token.word if token.word in lexicon.grammar["markers"] else marker
        elif token.kind != "negation":
            last = content[-1].end if content else 0
            if text[last : token.start] not in ("", " "):
                *before, behind = _COMMA.split(text[last : token.end])
                token.comma = (behind.lower().split() or [""])[0] if before else ""
            token.passive = passive and (not inverted or lexicon.form(token.word) == "past")
            token.marker, passive = marker, passive and inverted and not token.passive
            marker = token.word if token.word in lexicon.grammar["markers"] else ""
            content.append(token)
    negations = [token for token in tokens if token.kind == "negation"]
    return Reading(tokens, content, negations, [t for t in tokens if t.light], asks)


def _classify(
    token: Token,
    before: Token,
    text: str,
    capitals: bool,
    lexicon: Lexicon,
) -> None:
    """Gives a token its key, and says whether it is a name, a negation or a function word."""
    glued = before.end == token.start and before.kind == "symbol"
    code = glued and (before.word[:1] in tuple("\\[{=^|~$%'\"") or before.key == " /")
    unit = token.kind == "name" or (before.kind == "number" and token.start - before.end < 2)
    if token.word == NEGATION:
        token.kind, token.key = "negation", NEGATION
    elif token.kind == "number" and token.amount:
        if token.amount.dimension and _OTHER_UNIT.search(token.text):
            token.amount = token.amount._replace(written=token.amount.written + token.text[-2:])
        token.key = token.amount
    elif token.kind in ("symbol", "filler") or token.moments:
        token.key = token.key or token.moments or token.text
    elif code or (unit and _CAPITAL_UNIT.fullmatch(token.text)):
        token.key = token.word = token.text
    elif token.kind == "name":
        token.capital = token.text[:1].isupper()
    elif token.kind == "word":
        token.key, token.light = lexicon.key(token.word), token.word in lexicon.grammar["light"]
        opens = token.initial or before.start == token.start
        opens = opens or before.word in lexicon.grammar["openers"]
        if opens or not capitals:
            return
        token.capital = token.text[:1].isupper()
        if not token.capital:
            return
        if token.light and token.word != "i":
            token.key, token.kind, token.light = token.text, "name", False  # US, IT, Will
        elif not token.light and token.key not in lexicon.listed:
            token.kind = "name"


def _capitals_count(text: str, tokens: list[Token]) -> bool:
    """Whether capitals tell names in this text: not where it is shouted or a title."""
    words = [token.text for token in tokens if token.kind == "word" and not token.initial]
    small = sum(word[:1].islower() for word in words)
    return not text.isupper() and (2 * small >= len(words) or len(words) == 1)


def _is_prose(token: Token, text: str) -> bool:
    """Whether a sign is punctuation after all: of "pre- and postwar", not of "rated AA-"; of "It
    works.Thanks"; marks with a blank before them, as in "Stop ! Go on , then .", not in "if ! grep
    x" and "git add ."; a quotation mark behind a number, as in "He said 'at 5'", not in "6' long";
    an asterisk or two slashes before the entry of a list or a comment."""
    before, after = text[token.start - 1 : token.start], text[token.end : token.end + 2]
    capital = after.strip()[:1].isupper()
    if token.word in _QUOTATION_MARKS and before.isdigit():
        return any(mark in _QUOTATION_MARKS[token.word] for mark in text[: token.start])
    if token.word in ("*", "//") and after[:1].isspace():
        return not text[: token.start].rpartition("\n")[2].strip()
    if token.key in ("- ", "-- "):
        dash = text[token.start - 2 : token.start].isalpha() and after.strip().isalpha()
        return dash if token.key == "-- " else not before.isupper()
    if before.strip():
        return token.word in (".", "!", "?") and before.islower() and after[:1].isupper()
    parted = _PARTED_COMMA.search(text, max(0, token.start - 200), token.start)
    return (token.key in ("!", " .") and capital) or (token.key == "." and parted is not None)


_INVISIBLE = "\u00ad\u200c\u200d\u200e\u200f\u2060\ufe0f\ufeff"
_SAME_SIGN = {
    **str.maketrans(
        "\u2019\u2018\u02bc`\u00b4\u2032\u201c\u201d\u201e\u00ab\u00bb\u2033\u2010\u2011\u2012\u2013\u2212\u2044\u00ba",
        "'" * 6 + '"' * 6 + "-----/°",
        _INVISIBLE,
    ),
    **str.maketrans({"\u2014": " - ", "\u2015": " - ", "\u2116": " number "}),
}
# A character with the marks that are composed with it.
_CHARACTER = re.compile(r"(?s).[\u0300-\u036f\u0610-\u065f\u1dc0-\u1dff\u20d0-\u20ff]*")
_SUPERSCRIPTS = frozenset("²³¹⁰ⁱ⁴⁵⁶⁷⁸⁹⁺⁻ⁿ")
_BLANK_IN_NUMBER = re.compile(r"(?<=\d)[\u00a0\u2007\u2009\u202f](?=\d{3}(?!\d))")


def _plain(text: str) -> tuple[str, list[tuple[int, int]]]:
    """The text in lower case, composed and compatible; and of each of its characters the span in
    the text as given, which is left out where it is the character itself."""
    if text.isascii():
        return text.lower(), []
    text = _BLANK_IN_NUMBER.sub("'", text)
    plain: list[str] = []
    origin: list[tuple[int, int]] = []
    for character in _CHARACTER.finditer(text):
        first, before = character[0][0], text[max(0, character.start() - 1) : character.start()]
        letters = unicodedata.normalize("NFKC", character[0].translate(_SAME_SIGN))
        letters = letters.lower().translate(_SAME_SIGN)
        if first == "\u200b":  # a blank of no width parts words, and no digits
            letters = "" if before.isdigit() else " "
        elif unicodedata.category(first) == "No" and "/" in letters:
            letters = f" {letters}"
        elif first in _SUPERSCRIPTS and before not in _SUPERSCRIPTS:
            letters = f"^{letters}"
        plain.append(letters)
        origin += [character.span()] * len(letters)
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
    |\((?:(?<=[^\s"'(\[{{,;:-]\()|(?<=[\w)\]]-\()|(?<=[+*/^=<>|]\s\()|(?<=\b\w\s-\s\()|(?<=[\d)\]]\s-\s\()|(?=[$\u00a3\u20ac]))
    |(?<=\bnot\s)\((?=\w)|\)(?=[\w(\[{{]|\s?(?:[+*/^=<>|]|&&)|\s?-\s?(?:\w\b|\d|\())
    |["'](?:(?<=[=+*|\[{{]["'])|(?<=[=+*|]\s["'])|(?<=\w\(["']))(?=[^\s.,:;!?)])|(?<=\w)'(?=\()|(?<=\d)["'](?!\w)
    |(?<={_LETTER})--?(?=[.,:;!?"')]*(?:\s|$))|-(?=>)|(?<=<)-"""
"""A sign that counts. Line by line: every sign that prose has no use for; about 5 is ~5, and no
other tilde; dots of paths, patterns and names; marks not at the end of a word; brackets beside what
they are not parted from by a blank, beside an operator or an amount of money, or after "not";
quotation marks after an operator or an opening bracket, or of feet and inches; hyphens after a
grade and in arrows."""


@cache
def _pattern(lexicon: Lexicon) -> re.Pattern[str]:
    """The tokens of a text; what it passes over is the punctuation of prose. That no token begins
    with a blank is said first, for speed."""
    glued = {*lexicon.units, *lexicon.numbers, *lexicon.grammar["ordinals"], "m"}
    suffixes = "|".join(sorted((word for word in glued if word.isalpha()), key=len, reverse=True))
    return re.compile(
        rf"""(?![ ])(?:{pattern(lexicon)}
        |(?P<area>(?=[kcdm])(?:(?<=\d)|(?<=\d\s))[kcdm]?m\^?[23](?!\w))
        |(?P<word>\#(?=\d)|no\.(?=\s*\d|,)|n°\.?(?=\s*\d)|(?:(?<=\d)|(?<=\d\ ))-(?=\s?\d)|(?!w/o\b){_LETTER}++(?:'{_LETTER}++)*+(?![\d_])|w/o\b
            |&(?:(?<=\w&)|(?<=[\w,)"']\s&))(?=\s?\w)|@(?<!\S@)(?![^\s\d])|~(?=\s?\d)|<(?<!<<)(?!<)|>(?<!>>)(?!>))
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


def _scanned(plain: str, lexicon: Lexicon) -> list[Token]:
    tokens: list[Token] = []
    initial, negative = True, False
    for match in _pattern(lexicon).finditer(plain):
        (start, end), kind, written = match.span(), match.lastgroup or "", match[0]
        last = tokens[-1].amount if tokens and tokens[-1].end == start else None
        if kind == "stop":
            initial = initial or written != ":"
            continue
        if last and written in lexicon.grammar["ordinals"]:
            tokens[-1].amount, tokens[-1].end = last._replace(dimension="ordinal"), end
        elif kind != "minus":
            new = _made(kind, plain, start, end, lexicon)
            new[0].initial, amount = initial, new[0].amount
            new[0].amount = amount and amount._replace(value=amount.value * (-1) ** negative)
            tokens += new
        negative = kind == "minus" or (negative and kind == "sign")
        initial = initial and kind == "sign"
    return tokens


def _made(
    kind: str,
    plain: str,
    start: int,
    end: int,
    lexicon: Lexicon,
) -> list[Token]:
    """The tokens of what the pattern has found."""
    written = plain[start:end]
    if kind == "word":
        answer = written == "no" and plain[end : end + 1] in ("", ",", ".", ";", "!")
        words = (written,) if answer else lexicon.expanded(written)
        return [Token(word, start, end) for word in words]
    if kind == "weekday":
        return [Token(lexicon.grammar["weekdays"][written.rstrip(".")], start, end)]
    if kind == "option":
        return [Token(written, start, end, "symbol")]
    if kind != "sign":
        return _measured(kind, written, start, end, lexicon)
    digit, letter = plain[start - 1 : start].isdigit(), plain[end : end + 1].isalpha()
    unit = written in lexicon.units and (digit or not letter)
    token = Token(written, start, end, "word" if unit else "symbol", key=written)
    if written.isascii() and not (written in _QUOTATION_MARKS and digit):
        # With a blank on the side where it ends what it belongs to: " -" and "- ", but "=" in
        # "x = 5".
        sign = written.replace('"', "'")
        before = start > 0 and not plain[start - 1].isspace() and plain[start - 1] not in "([{\"'"
        after = _GOES_ON.match(plain, end) is not None
        token.key = sign if before == after else f"{sign} " if before else f" {sign}"
    return [token]


_GOES_ON = re.compile(r"""[.,:;!?"')\]}]{0,9}[^\s.,:;!?"')\]}]""")


_LEADING_ZERO = re.compile(r"-?0\d")

_LIST = re.compile(
    r"(?!-?\d{1,3}(?:,\d{2,3})*,\d{3}(?:\.\d+)?$|-?\d{1,3}(?:\.\d{3})+,\d+$)-?(?:\d+[.,]\d+,.*|\d+,\d+\..*)"
)
"""1,2,3 and the like: two marks that are not those of thousands and a decimal."""


def _measured(
    kind: str,
    written: str,
    start: int,
    end: int,
    lexicon: Lexicon,
) -> list[Token]:
    """A number, times or an identifier; what cannot be one of the first two is an identifier."""
    if kind in ("iso", "european", "slashed", "dated", "clock"):
        sort: Kind = "time" if kind == "clock" else "date"
        found = [Token("", start, end, sort, moments=m) for m in times(kind, written, lexicon)]
        if found:
            return [found[0], *(t for each in found[1:] for t in (Token("to", start, end), each))]
    if kind == "fraction":
        above, below = map(int, written.split("/"))
        return [Token("", start, end, "number", amount=Amount("", above / below, written))]
    if kind == "number" and not _LIST.fullmatch(written):
        value = decimal(written)
        if sum(map(str.isdigit, written)) <= _EXACT_DIGITS and abs(value) < float("inf"):
            amount = Amount("", value, _as_written(written))
            return [Token(written, start, end, "number", amount=amount)]
    key = written.replace("^", "") if kind == "area" else written
    return [Token(written, start, end, "name", key=key)]


def _as_written(number: str) -> str:
    """What of the way to write a number may count: 2.10 and 2.1 are versions, 007 a name, and "3
    100" may be two numbers."""
    if number[-4:-3] == " " and number.count(" ") == 1 and not number.endswith("000"):
        return number
    versionlike = number.endswith("0") and "." in number
    return re.sub("[ '_,]", "", number) if versionlike or _LEADING_ZERO.match(number) else ""


def _phrase(
    tokens: list[Token],
    at: int,
    lexicon: Lexicon,
) -> tuple[int, list[Token]] | None:
    """A phrase, in any inflection of its first word; what begins with "<" must open a sentence."""
    first, second = tokens[at].word, tokens[at + 1].word if at + 1 < len(tokens) else ""
    head = first if (first, second) in lexicon.phrases else lexicon.key(first)
    opens = tokens[at].initial or (at and tokens[at - 1].word in lexicon.grammar["openers"])
    for words, meaning in lexicon.phrases.get((head, second), ()):
        inside = tokens[at : at + len(words)]
        said = (head, *(token.word for token in inside[1:])) == words
        if said and not any(t.initial for t in inside[1:]) and (opens or meaning[0][0] != "<"):
            form = "" if first == head else lexicon.form(first)
            return at + len(words), _read_as(inside, meaning, form)
    return None


def _read_as(
    inside: list[Token],
    meaning: tuple[str, ...],
    form: str,
) -> list[Token]:
    start, end = inside[0].start, inside[-1].end
    read = [Token(word, start, end, form=form) for word in meaning]
    read[0].initial = inside[0].initial
    for token in read:
        if token.word.isdigit():
            token.kind, token.amount = "number", Amount("", float(token.word))
        elif token.word[0] == "<":
            token.kind = "filler"
    return read
