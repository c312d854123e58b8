"""Number words and numbers with their units: how they are read from the tokens of a text, and how
two of them compare."""

import re
from collections.abc import Callable

from wordsens.evaluation.guard.lexicon import Lexicon
from wordsens.evaluation.guard.tokens import AMBIGUOUS, ONE, Amount, Token

# A quantity in another unit that differs by less than this share may be the same, rounded.
_ROUNDED = 0.02

# Where the tokens stop that are read as others, and these.
Rule = Callable[[list[Token], int, Lexicon], tuple[int, list[Token]] | None]


def rewritten(tokens: list[Token], rule: Rule, lexicon: Lexicon) -> list[Token]:
    """The tokens with those read as others that a rule knows."""
    read: list[Token] = []
    at = 0
    while at < len(tokens):
        at, new = rule(tokens, at, lexicon) or (at + 1, [tokens[at]])
        read += new
    return read


def quantified(tokens: list[Token], lexicon: Lexicon) -> list[Token]:
    """The tokens with number words read as numbers, and numbers together with their units."""
    tokens = rewritten(tokens, _quantity, lexicon)
    measured = any(token.unit for token in tokens)
    return rewritten(tokens, _compound, lexicon) if measured else tokens


def decimal(written: str) -> float:
    """The value of a number with marks of thousands or decimals: 1,234.5; 1.234,5; 2,000; 1 000;
    1e5; 3*10^5."""
    factor, power, exponent = re.sub("[ '_]", "", written).partition("10^")
    if power:
        return float(f"{factor.rstrip('×x*') or '1'}e{exponent}".replace("-e", "-1e"))
    grouped = re.fullmatch(r"-?[^,-]{1,3}(,\d{3})*", factor)
    if factor.rfind(",") > factor.rfind(".") and not grouped:
        factor = factor.translate(str.maketrans(",.", ".,"))
    whole, point, part = factor.replace(",", "").rpartition(".")
    return float(f"{whole.replace('.', '')}{point}{part}")


def amount_relation(one: Token, other: Token, lexicon: Lexicon) -> str | None:
    """Of two numbers: "same", "quantity", ambiguous in units that may be the same, or None."""
    first, second = one.amount or ONE, other.amount or ONE
    dimensions = {first.dimension, second.dimension}
    if first.value == second.value and "ordinal" in dimensions != {"ordinal"}:
        return None  # the first day, day one
    if len(dimensions) > 1 and not dimensions <= {"", "percent"}:
        return AMBIGUOUS if lexicon.linked("loose", *dimensions) else "quantity"
    if _share(first) == _share(second):
        slashed = "/" in first.written + second.written and (one.unit or other.unit)
        return "same" if first.written == second.written or slashed else AMBIGUOUS
    near = abs(first.value - second.value) < _ROUNDED * abs(first.value)
    rounded = near and one.unit != other.unit and first.dimension in lexicon.grammar["rounded"]
    return AMBIGUOUS if rounded else "quantity"


def _share(amount: Amount) -> float:
    """50 % and one half are the same."""
    value = amount.value / 100 if amount.dimension == "percent" else amount.value
    return round(value, 9) if value < 1 else value


def _word(tokens: list[Token], at: int) -> str:
    return tokens[at].word if at < len(tokens) else ""


def _amount(tokens: list[Token], at: int) -> Amount | None:
    return tokens[at].amount if at < len(tokens) else None


def _joined(
    tokens: list[Token],
    at: int,
    stop: int,
    amount: Amount,
    unit: str,
) -> list[Token]:
    first, last = tokens[at], tokens[stop - 1]
    number = Token("", first.start, last.end, "number", first.initial, amount=amount, unit=unit)
    return [number]


def _quantity(
    tokens: list[Token],
    at: int,
    lexicon: Lexicon,
) -> tuple[int, list[Token]] | None:
    """A number with its unit: two hundred GB, $5 million, half a litre, 30 %, third."""
    if tokens[at].amount is None and tokens[at].word not in lexicon.numeric:
        return None
    currency = lexicon.units.get(tokens[at].word, ("", 0.0, 0.0))[0]
    begin = at + (currency in lexicon.grammar["currencies"])
    number = _value(tokens, begin, lexicon)
    if number is None:
        return None
    amount, stop = number
    name, written = _word(tokens, stop), amount.written
    if begin > at:
        million = name == "m" and tokens[stop].start == tokens[stop - 1].end
        stop += million or lexicon.units.get(name, ("",))[0] == currency
        value = float(f"{amount.value * (1e6 if million else 1):.12g}")
        return stop, _joined(tokens, at, stop, Amount(currency, value), currency)
    if name.startswith("degree") and _word(tokens, stop + 1) in lexicon.units:
        stop, name = stop + 1, _word(tokens, stop + 1)
    if name not in lexicon.units or amount.dimension == "ordinal":
        sure = name == "of" and "/" in written
        return stop, _joined(tokens, at, stop, amount._replace(written="" if sure else written), "")
    dimension, factor, offset = lexicon.units[name]
    value = float(f"{(amount.value - offset) * factor:.12g}")
    behind = _word(tokens, stop + 1)  # "3 100 W bulbs" may be three
    counted = " " in written and behind and behind not in lexicon.grammar["light"]
    amount = Amount(dimension, value, written if counted or written[:1] in ("0", "-") else "")
    return stop + 1, _joined(tokens, at, stop + 1, amount, name)


def _value(
    tokens: list[Token],
    at: int,
    lexicon: Lexicon,
) -> tuple[Amount, int] | None:
    """The number that begins here and where it stops: two hundred and five, 1.5 million,
    twenty-first, one and a half million, a quarter of a million; of a unit, half a."""
    if _word(tokens, at) not in lexicon.numeric and _amount(tokens, at) is None:
        return None
    amount, stop = _amount(tokens, at) or Amount("", 0.0), at + (_amount(tokens, at) is not None)
    if amount.dimension:
        return amount, stop
    total, current, digits, scaled = 0.0, amount.value, stop > at, False
    while stop < len(tokens):
        skipped = scaled and tokens[stop].word == "and"
        sort, value = lexicon.numbers.get(_word(tokens, stop + skipped), ("", -1.0))
        fits = value < 10 and current % 100 >= 20 and current % 10 == 0
        parted = stop > at and tokens[stop].start > tokens[stop - 1].end + 1  # twenty, five
        if value < 0 or parted or (sort != "x" and (digits or (current % 100 and not fits))):
            break
        if sort == "x" and value >= 1000:
            total, current = total + (current or 1.0) * value, 0.0
        else:
            current = (current or 1.0) * value if sort == "x" else current + value
        scaled = sort == "x"
        stop += 1 + skipped
        if sort == "#":
            return Amount("ordinal", total + current), stop
    summed = total + current
    name, after = _word(tokens, stop), _amount(tokens, stop)
    part, end = _part(tokens, stop + 1, lexicon) if name == "and" else (0.0, stop + 1)
    if stop > at and part:
        summed += part
    elif name in lexicon.fractions and (stop == at or name not in lexicon.numbers):
        summed = (summed if stop > at else 1.0) * lexicon.fractions[name]
    elif digits and after and 0 < after.value < 1 <= summed:
        summed += after.value
    else:
        written = amount.written if summed == amount.value else ""
        return Amount("", summed, written), stop
    behind = end
    while _word(tokens, behind) in ("of", "a", "an") or _amount(tokens, behind) == ONE:
        behind += 1  # "half a year" was read as "half 1 years"
    sort, factor = lexicon.numbers.get(_word(tokens, behind), ("", 1.0))
    if sort == "x":
        return Amount("", summed * factor), behind + 1
    unit = _word(tokens, behind) in lexicon.units
    sure = unit or stop > at or _word(tokens, end) == "of"
    return (Amount("", summed), behind if unit else end) if sure else None


def _part(tokens: list[Token], at: int, lexicon: Lexicon) -> tuple[float, int]:
    """A half, a quarter, three quarters, and where it stops; 0 for none."""
    count = lexicon.numbers.get(_word(tokens, at), ("", 1.0))[1]
    at += _word(tokens, at) in ("a", "an", *lexicon.numbers)
    return count * lexicon.fractions.get(_word(tokens, at), 0.0), at + 1


def _compound(
    tokens: list[Token],
    at: int,
    lexicon: Lexicon,
) -> tuple[int, list[Token]] | None:
    """A quantity in two units, or with a part of its unit: 2 hours 15 minutes, an hour and a
    quarter."""
    amount, factor = tokens[at].amount, lexicon.units.get(tokens[at].unit, ("", 0.0))[1]
    if amount is None or not factor:
        return None
    joined = _word(tokens, at + 1) == "and"
    stop = at + 1 + joined
    more = _amount(tokens, stop)
    if more and more.dimension == amount.dimension:
        smaller = lexicon.units.get(tokens[stop].unit, ("", factor))[1] < factor
        added, stop = more.value * smaller, stop + 1
    else:
        part, stop = _part(tokens, stop, lexicon) if joined else (0.0, stop)
        added = part * factor
    summed = Amount(amount.dimension, float(f"{amount.value + added:.12g}"))
    return (stop, _joined(tokens, at, stop, summed, tokens[at].unit)) if added else None
