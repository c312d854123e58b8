"""Names of things, such as `mw-3`, `plan-2023-2024`, `--max-heads`, `5 kW` or `x >= 3`: what is
formatting in them."""

import re
from collections.abc import Callable, Iterable
from itertools import zip_longest

from wordsens.evaluation.guard.lexicon import Lexicon

# A longer text, or one of more pieces between blanks, is prose.
_MOST_CHARACTERS, _MOST_PIECES = 80, 5

_SAME_SIGN = str.maketrans({**dict.fromkeys("‐‑‒–−", "-"), "≥": ">=", "≤": "<=", "≠": "!="})

# Signs with which hyphens, underscores, blanks and capitals may count: in paths, addresses,
# expressions.
_CODE = re.compile(r"""[/\\@=<>+*^%()\[\]{}|&$€£~!?"';,]|\.[^\W\d]""")

# An operator between two operands, with or without blanks: x>=3, x >= 3.
_COMPARISON = re.compile(
    r"(?<=[\w)\]]) ?(>=|<=|==|!=|&&|\|\||[=<>]) ?(?=[\w(\[-])|(?<=[\w)\]]) ([+*]) (?=[\w(\[])"
)

# A URL, a path, an e-mail address or the name of a file.
_ADDRESS = re.compile(
    r"\w+://\S*|[.~]{0,2}[/\\]\S+|\S+[/\\]\S*[/\\.]\S*|\S+@\S+\.\S+|[\w.-]{2,}\.[^\W\d]\w{1,4}"
)

# Only hyphens and underscores inside an option are formatting: -d is not -D, and --head not
# --heads.
_OPTION = re.compile(r"(?<!\S)--?[^\W\d]")

_NO_WORD = re.compile(r"[\d_-]|[a-z]{2}[A-Z][a-z]")

_RANGE = re.compile(r"\d-\d")

# The letters A and I where they are no article and no pronoun: at a hyphen, or last.
_LETTER = re.compile(
    r"(?:(?<=[-_])|(?<![\w'])(?=.[-_])|(?<=\s)(?=.$))[ai](?![^\W_])", re.IGNORECASE
)

# What is another substance in other letters: n-butane and N-butane, CO and Co.
_PREFIX = re.compile(r"\b[nos]-(?=[a-z]{3})", re.IGNORECASE)
_SYMBOL = re.compile(r"\b[A-Z][A-Za-z]\b")

# An operator between blanks; a hyphen there is a dash unless a single letter or digit stands beside
# it, as in i - 1.
_OPERATOR = re.compile(r"(?<=\S )(?:[+*/%^<>=]|[<>=!]=|&&|\|\||(?<=\b\w )-|-(?= \w\b))(?= \S)")

# n-1, which is not n_1.
_DIFFERENCE = re.compile(r"[^\W\d]-\d+(?:\.\d+)?")

_VERSION = re.compile(r"(?<![^\W\d_])(?:version|ver|v)[ ._-]?(?=\d)", re.IGNORECASE)

_SEPARATOR = re.compile(r"(?<=[^\W_])[ _-](?=[^\W_])")

# Runs of digits, of letters, and signs; a letter alone keeps the digits that it touches: x3 is no
# x-3, and 1e5 no 1e-5.
_DIGIT_LETTER = re.compile(r"(?<=\d)(?=[^\W\d_](?![^\W\d_]))")
_LETTER_DIGIT = re.compile(r"(?<![^\W\d_])([^\W\d_])(?=\d)")
_PART = re.compile(r"\d+|<?[^\W\d_]+>?|[ ]?[^\s\0][ ]?")

_HUMP = re.compile(r"(?<=[a-z]{2})(?=[A-Z][a-z])")

# "News" and "https" look like plurals.
_NO_PLURALS = ("ss", "us", "is", "https", "news")

# Units in lower case: behind a number, and alone or beside a slash, where "us" is none.
_PREFIXED = "[kmgnuµ](?:g|m|s|a|hz|n|pa|j|w|v|l|b|bit|bps|wh|ev|ω|ohm)|tb|[hk]?pa|hz|bps|wh|ev|db"
_UNIT = rf"[a-z]|t[gmw]|va|bit|{_PREFIXED}"
_QUANTITY = re.compile(
    rf"(?:(?<![^\W_])\d+(?:[.,]\d+)? ?(?!\w\b)|(?<![\w-])\d+(?:[.,]\d+)? ?(?=\w\b))({_UNIT})"
    rf"(?![\w-])|(?:^|(?<=/))({_PREFIXED})(?=/|$)",
    re.IGNORECASE,
)
_BEFORE_UNIT = re.compile(rf"(?<=\d) (?=(?:{_UNIT})(?![^\W\d_]))", re.IGNORECASE)


def are_labels(first: str, second: str) -> bool:
    """Whether both texts are short enough to be names of things."""
    texts = first, second
    few = all(len(text.split()) <= _MOST_PIECES for text in texts)
    return few and max(map(len, texts)) <= _MOST_CHARACTERS


def same_label(first: str, second: str, lexicon: Lexicon) -> bool:
    """Whether two labels differ in formatting alone: case, separators, plural, British or American
    spelling; of expressions, paths and addresses in the blanks around an operator."""
    texts = [text.strip().translate(_SAME_SIGN) for text in (first, second)]
    if any(map(_CODE.search, texts)):
        return len({_BEFORE_UNIT.sub("", _COMPARISON.sub(r"\1\2", text)) for text in texts}) == 1
    numbers = lexicon.numbers.keys() & re.findall("[a-z]+", f"{first} {second}".lower())
    named = any(map(_NO_WORD.search, texts)) and any(map(str.isalpha, first + second))
    if numbers or not named or _differ(_units, texts) or _differ(_PREFIX.findall, texts):
        return False  # 3-2 is no 3_2
    (ones, between, uniform), (others, other_between, other_uniform) = map(_parts, texts)
    if between != other_between and not (uniform and other_uniform):
        return False
    if any(map(_OPTION.search, texts)):
        return ones == others
    phrases = all(" " in text for text in texts)
    return all(
        _same_part(one, other, phrases, lexicon)
        for one, other in zip_longest(ones, others, fillvalue="")
    )


def doubt(first: str, second: str, verdict: str) -> str:
    """What makes a verdict on two labels uncertain, that prose would take for one: "unit" (5 mW,
    5 MW), "range" (pages 10-20, pages 10 20), "letter" (plan A, plan 1), "address" (two URLs, paths
    or files), "expression" (i - 1, 1 - i); "leading zeros" (mw-03, MW 3); or "" for nothing."""
    texts = [text.strip().translate(_SAME_SIGN) for text in (first, second)]
    if verdict == "different":
        sides = [_parts(text)[0] for text in texts]
        bare = [[p.lstrip("0") if p.isdigit() else p.lower() for p in parts] for parts in sides]
        digits = [[part for part in parts if part.isdigit()] for parts in sides]
        zeros = bare[0] == bare[1] and digits[0] != digits[1] and "." not in first + second
        return "leading zeros" * zeros
    bare = not _differ(lambda text: re.sub("[ _-]", "", text.lower()), texts)
    symbols = [_SYMBOL.findall(text) for text in texts]
    substances = symbols[0] != symbols[1] and not _differ(str.lower, map(" ".join, symbols))
    letters = any(_differ(read, texts) for read in (_PREFIX.findall, _letters))
    differences = {
        "unit": bare and _differ(_units, texts),
        "range": bare and _differ(lambda text: bool(_RANGE.search(text)), texts),
        "letter": substances or letters,
        "address": all(map(_ADDRESS.fullmatch, texts)) and _differ(_address, texts),
        "expression": any(map(_OPERATOR.search, texts))
        and _differ(lambda text: "".join(text.lower().split()), texts),
    }
    return next((name for name, differs in differences.items() if differs), "")


def _letters(label: str) -> list[str]:
    return _LETTER.findall(label.lower())


def _differ(read: Callable[[str], object], texts: Iterable[str]) -> bool:
    first, second = map(read, texts)
    return first != second


def _parts(label: str) -> tuple[list[str], list[str], bool]:
    """Runs of letters, digits and signs; what parts two runs of digits; and whether it begins with
    a letter and one sign parts all its runs, as in `plan-2023-24`."""
    text = _HUMP.sub(" ", re.sub(r"v(?=\d+\.\d)", "", _VERSION.sub("v", label)))
    between = [" " if sign == " " else "-" for sign in re.findall(r"(?<=\d)[ _-](?=\d)", text)]
    uniform = text[:1].isalpha() and len({*_SEPARATOR.findall(text)}) == 1
    if not _DIFFERENCE.fullmatch(text):
        text = _SEPARATOR.sub("\0", text)
    text = _LETTER_DIGIT.sub(r"\1>", _DIGIT_LETTER.sub("<", text))
    return _PART.findall(text), between, uniform


def _same_part(
    one: str,
    other: str,
    phrases: bool,
    lexicon: Lexicon,
) -> bool:
    """Of two runs of letters: whether they are equal, one is the other's plural or its British or
    American spelling. In phrases, "US" is not "us"."""
    cased, one, other = one != other, one.lower(), other.lower()
    if one == other or min(len(one), len(other)) < 3 or not (one + other).isalpha():
        acronym = phrases and cased and len(one) > 1 and one in lexicon.grammar["light"]
        return one == other and not acronym
    short, long = sorted(map(lexicon.spelt, (one, other)), key=len)
    plurals = short, f"{short}s", f"{short}es", f"{short.removesuffix('y')}ies"
    return short == long or (long in plurals and not long.endswith(_NO_PLURALS))


def _units(label: str) -> list[str]:
    """The units of a label, in its own capitals. In "5 KG" the case counts; "Send 5 KG" may be
    shouted: there that of KG and KM does not."""
    units = [unit or alone for unit, alone in _QUANTITY.findall(label)]
    shouted = ("KG", "KM") if len(label.split()) > 2 else ()
    return [unit.lower() if unit in shouted else unit for unit in units]


def _address(label: str) -> str:
    """An address with the parts in lower case whose case never counts."""
    if not re.search(r"[/\\]", label):
        return label.lower()
    return re.sub(r"^\w+://[^/]*", lambda match: match[0].lower(), label)
