"""Names of things, such as `mw-3`, `plan-2023-2024`, `--max-heads`, `5 kW` or `x >= 3`: what is
formatting in them."""

import re
from itertools import zip_longest
from typing import NamedTuple

from wordsens.evaluation.guard.language import Language

_MOST_CHARACTERS, _MOST_PIECES = 80, 5
"""A longer text, or one of more pieces between blanks, is prose."""

_QUANTITY_PIECES = 2
"""In "5 KG" the case of every unit counts; "Send 5 KG" may be shouted: there that of KG and KM does
not."""

_SAME_SIGN = str.maketrans({**dict.fromkeys("‐‑‒–−", "-"), "≥": ">=", "≤": "<=", "≠": "!="})

_CODE = re.compile(r"""[/\\@=<>+*^%()\[\]{}|&$€£~!?"';,]|\.[^\W\d]""")
"""Signs with which hyphens, underscores, blanks and capitals may count: in paths, addresses,
expressions."""

_COMPARISON = re.compile(
    r"(?<=[\w)\]]) ?(>=|<=|==|!=|&&|\|\||[=<>]) ?(?=[\w(\[-])|(?<=[\w)\]]) ([+*]) (?=[\w(\[])"
)
"""An operator between two operands, with or without blanks: x>=3, x >= 3."""

_ADDRESS = re.compile(
    r"\w+://\S*|[.~]{0,2}[/\\]\S+|\S+[/\\]\S*[/\\.]\S*|\S+@\S+\.\S+|[\w.-]{2,}\.[^\W\d]\w{1,4}"
)
"""A URL, a path, an e-mail address or the name of a file."""

_HOST = re.compile(r"^\w+://[^/]*")

_OPTION = re.compile(r"(?<!\S)--?[^\W\d]")
"""Only hyphens and underscores inside it are formatting: -d is not -D, and --head not --heads."""

_NO_WORD = re.compile(r"[\d_-]|[a-z]{2}[A-Z][a-z]")

_RANGE = re.compile(r"\d-\d")

_LETTER = re.compile(
    r"(?:(?<=[-_])|(?<![\w'])(?=.[-_])|(?<=\s)(?=.$))[ai](?![^\W_])", re.IGNORECASE
)
"""The letters A and I where they are no article and no pronoun: at a hyphen, or last."""

_OPERATOR = re.compile(r"(?<=\S )(?:[+*/%^<>=]|[<>=!]=|&&|\|\||(?<=\b\w )-|-(?= \w\b))(?= \S)")
"""Between blanks; a hyphen there is a dash unless a single letter or digit stands beside it, as in
i - 1."""

_DIFFERENCE = re.compile(r"[^\W\d]-\d+(?:\.\d+)?")
"""n-1, which is not n_1."""

_VERSION = re.compile(r"(?<![^\W\d_])(?:version|ver|v)[ ._-]?(?=\d)", re.IGNORECASE)
_DOTTED_VERSION = re.compile(r"v(?=\d+\.\d)")

_PART = re.compile(
    r"(?P<digits>\d+)|(?P<letters>[^\W\d_]+)|(?P<separator>(?<=[^\W_])[ _-](?=[^\W_]))|(?P<sign>[ "
    r"]?\S[ ]?)"
)

_HUMP = re.compile(r"(?<=[a-z]{2})(?=[A-Z][a-z])")

_SHORTEST_SINGULAR = 3
_NO_PLURALS = frozenset(("https", "news"))

_QUANTITY = re.compile(
    r"(?<![^\W_])\d+(?:[.,]\d+)? ?([^\W\d_]{2,})(?![\d_-])|(?<![\w-])\d+(?:[.,]\d+)? "
    r"?([^\W\d_])(?![\w-])"
)
_ALONE = re.compile(r"(?:^|(?<=/))([^\W\d_]+)(?=/|$)")

_PREFIXED = "[kmgnuµ](?:g|m|s|a|hz|n|pa|j|w|v|l|b|bit|bps|wh|ev|ω|ohm)|tb|[hk]?pa|hz|bps|wh|ev|db"
_UNIT = re.compile(rf"[a-z]|t[gmw]|va|bit|{_PREFIXED}")
_LONE_UNIT = re.compile(_PREFIXED)
"""Units in lower case: behind a number, and alone or beside a slash, where "us" is none."""

_BEFORE_UNIT = re.compile(rf"(?<=\d) (?=(?:{_UNIT.pattern})(?![^\W\d_]))", re.IGNORECASE)


class _Label(NamedTuple):
    """What counts of a label.

    `parts` are its runs of letters, digits and signs; `between` says for each two runs of digits
    whether a blank or a hyphen parts them; `uniform`, whether it begins with a letter and one sign
    parts all its runs, as in `plan-2023-24`.
    """

    parts: list[str]
    between: list[str]
    uniform: bool


def are_labels(first: str, second: str) -> bool:
    """Whether both texts are short enough to be names of things."""
    return max(len(first), len(second)) <= _MOST_CHARACTERS and all(
        len(text.split()) <= _MOST_PIECES for text in (first, second)
    )


def same_label(first: str, second: str, language: Language) -> bool:
    """Whether two labels differ in formatting alone: case, separators, plural, British or American
    spelling; of expressions, paths and addresses in the blanks around an operator."""
    first, second = first.strip().translate(_SAME_SIGN), second.strip().translate(_SAME_SIGN)
    if any(_CODE.search(text) for text in (first, second)):
        one, other = (
            _BEFORE_UNIT.sub("", _COMPARISON.sub(r"\1\2", text)) for text in (first, second)
        )
        return one == other
    if not any(_NO_WORD.search(text) for text in (first, second)) or _units(first) != _units(
        second
    ):
        return False
    one, other = _label(first), _label(second)
    if one.between != other.between and not (one.uniform and other.uniform):
        return False
    if any(_OPTION.search(text) for text in (first, second)):
        return one.parts == other.parts
    pairs = list(zip_longest(one.parts, other.parts, fillvalue=""))
    if " " in first and " " in second and any(_is_acronym(a, b, language) for a, b in pairs):
        return False
    lettered = any(map(str.isalpha, first + second))  # 3-2 is no 3_2
    return lettered and all(_same_part(a.lower(), b.lower(), language) for a, b in pairs)


def leading_zeros(first: str, second: str) -> bool:
    """Whether two labels differ in leading zeros, and else in formatting at most: mw-03, MW 3."""
    sides = [_label(text.strip().translate(_SAME_SIGN)).parts for text in (first, second)]
    one, other = (
        [part.lstrip("0") if part.isdigit() else part.lower() for part in parts] for parts in sides
    )
    digits = [[part for part in parts if part.isdigit()] for parts in sides]
    return one == other and digits[0] != digits[1] and "." not in first + second


def difference(first: str, second: str) -> str:
    """How two labels differ that prose would take for one: "unit" (5 mW, 5 MW), "range" (pages
    10-20, pages 10 20), "letter" (plan A, plan 1), "address" (two URLs, paths or files),
    "expression" (i - 1, 1 - i), or "" for nothing."""
    first, second = first.strip().translate(_SAME_SIGN), second.strip().translate(_SAME_SIGN)
    if _bare(first) == _bare(second):
        if _units(first) != _units(second):
            return "unit"
        if (_RANGE.search(first) is None) != (_RANGE.search(second) is None):
            return "range"
    if _LETTER.findall(first.lower()) != _LETTER.findall(second.lower()):
        return "letter"
    if all(_ADDRESS.fullmatch(text) for text in (first, second)) and _address(first) != _address(
        second
    ):
        return "address"
    one, other = ("".join(text.lower().split()) for text in (first, second))
    return "expression" if one != other and any(map(_OPERATOR.search, (first, second))) else ""


def _label(text: str) -> _Label:
    text = _HUMP.sub(" ", _DOTTED_VERSION.sub("", _VERSION.sub("v", text)))
    is_difference = _DIFFERENCE.fullmatch(text)
    runs = list(_PART.finditer(text))
    parts, between, separators = [], [], set[str]()
    for before, match, after in zip([None, *runs], runs, [*runs[1:], None], strict=False):
        written = match[0]
        if match["separator"]:
            separators.add(written)
            if is_difference:
                parts.append(written)
            elif before and after and before["digits"] and after["digits"]:
                between.append(" " if written == " " else "-")
            continue
        if match["letters"] and len(written) == 1:
            # "x3" is no "x-3", and "1e5" no "1e-5": a letter alone keeps the digits that it
            # touches.
            left = "<" if before and before["digits"] else ""
            right = ">" if after and after["digits"] else ""
            written = f"{left}{written}{right}"
        parts.append(written)
    return _Label(parts, between, text[:1].isalpha() and len(separators) == 1)


def _is_acronym(one: str, other: str, language: Language) -> bool:
    """Whether a word is another one in capitals, as in "2 for US" and "2 for us"."""
    return (
        one != other
        and one.lower() == other.lower()
        and len(one) > 1
        and language.word(one.lower()).light
    )


def _same_part(one: str, other: str, language: Language) -> bool:
    """Of two runs of letters: whether they are equal, one is the other's plural or its British or
    American spelling."""
    if (
        one == other
        or not (one.isalpha() and other.isalpha())
        or min(len(one), len(other)) < _SHORTEST_SINGULAR
    ):
        return one == other
    one, other = language.spelt(one), language.spelt(other)
    short, long = sorted((one, other), key=len)
    if one == other or long in _NO_PLURALS or long.endswith(("ss", "us", "is")):
        return one == other
    return long in (f"{short}s", f"{short}es", f"{short.removesuffix('y')}ies")


def _units(label: str) -> list[str]:
    """The units of a label, in its own capitals."""
    units = [match[1] or match[2] for match in _QUANTITY.finditer(label)]
    if len(label.split()) > _QUANTITY_PIECES:
        units = [unit.lower() if unit in ("KG", "KM") else unit for unit in units]
    return [unit for unit in units if _UNIT.fullmatch(unit.lower())] + [
        unit for unit in _ALONE.findall(label) if _LONE_UNIT.fullmatch(unit.lower())
    ]


def _bare(label: str) -> str:
    return re.sub("[ _-]", "", label.lower())


def _address(label: str) -> str:
    """An address with the parts in lower case whose case never counts."""
    if "@" in label or not re.search(r"[/\\]", label):
        return label.lower()
    return _HOST.sub(lambda match: match[0].lower(), label)
