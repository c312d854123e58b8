"""Numbers as text: an estimate with its interval, and the columns of a table."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

MINUS = "\N{MINUS SIGN}"
# Significant digits of a number without an interval; decimals of a column at most.
_DIGITS, _MOST_DECIMALS = 3, 6


@dataclass(frozen=True)
class Estimate:
    """A number with its uncertainty.

    Attributes:
        value: the number.
        low, high: the ends of its interval; None where the method gives none.
        p: of a test; joint over the rows of a table.
        n: how many texts, draws or pairs it rests on.
        method: how the interval was made, such as "t over draws".

    >>> print(Estimate(0.4567, 0.4212, 0.5008), Estimate(3.14159), sep="; ")
    0.46 [0.42, 0.50]; 3.14
    """

    value: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    n: int | None = None
    method: str = ""

    def __str__(self) -> str:
        return self.text(_decimals_of(self))

    def text(self, decimals: int, factor: int = 1, unit: str = "") -> str:
        """The value, its unit and the interval, times the factor, with this many decimals."""
        numbers = (self.value, self.low, self.high)
        known = [factor * each for each in numbers if each is not None]
        # Beside an interval a zero is no small number.
        known = [round(each, decimals) for each in known] if len(known) == 3 else known
        value, *ends = (fixed(each, decimals) for each in known)
        interval = f" [{', '.join(ends)}]" if len(ends) == 2 else ""
        return f"{value}{unit}{interval}"


def _decimals_of(estimate: Estimate, factor: int = 1) -> int:
    """Decimals that show half the width of an interval to one digit, to two where it starts with
    1; without an interval three digits of the value."""
    half = math.nan
    if estimate.low is not None and estimate.high is not None:
        half = factor * (estimate.high - estimate.low) / 2
    if not half < math.inf or half < 10**-_MOST_DECIMALS:
        return column_decimals([factor * estimate.value])
    power = math.floor(math.log10(half))
    return min(_MOST_DECIMALS, max(0, (1 if half / 10**power < 2 else 0) - power))


def minus(text: str) -> str:
    """The text with a true minus sign before its numbers.

    >>> minus("n^-0.5 of two-word texts")
    'n^−0.5 of two-word texts'
    """
    return re.sub(r"-(?=\d|\.\d)(?<![\w]-)", MINUS, text)


def fixed(value: float, decimals: int) -> str:
    """The number with this many decimals; a number that would show as 0 shows one digit and its
    power of ten.

    >>> fixed(-0.4567, 2), fixed(12345.6, 0), fixed(0.00012, 2), fixed(-0.0, 1)
    ('−0.46', '12,346', '1e−04', '0.0')
    """
    if not math.isfinite(value):
        return "" if math.isnan(value) else minus(f"{value:.0f}").replace("-", MINUS)
    if value != 0 and round(value, decimals) == 0:
        return f"{value:.0e}".replace("-", MINUS)
    return f"{value + 0.0:,.{decimals}f}".replace("-", MINUS)


def number(value: float) -> str:
    """The number in a sentence: three significant digits, without zeros at the end.

    >>> number(0.04567), number(1234.5), number(0.99962), number(7.5)
    ('0.0457', '1,234', '0.9996', '7.5')
    """
    text = fixed(value, column_decimals([value]))
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(share: float) -> str:
    """The share in percent.

    >>> percent(0.02), percent(0.005), percent(0.6123), percent(0.9996)
    ('2 %', '0.5 %', '61.2 %', '99.96 %')
    """
    digits = _DIGITS if share in (0, 1) or round(share, _DIGITS) < 1 else 4
    return minus(f"{100 * share:.{digits}g} %")


def plural(count: int, noun: str) -> str:
    """A count with its noun.

    >>> plural(1, "pair"), plural(1200, "pair")
    ('1 pair', '1,200 pairs')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


def as_sentences(*clauses: str) -> str:
    """The clauses as sentences.

    >>> as_sentences("2 rows left out", "the rest counts")
    '2 rows left out. The rest counts.'
    """
    return " ".join(f"{clause[0].upper()}{clause[1:]}." for clause in clauses)


def decimals(value: float) -> str:
    """All digits of a threshold or a distance, which has few.

    >>> decimals(0.83), decimals(1 - 0.83), decimals(1.0)
    ('.83', '.17', '1')
    """
    return f"{value:.15g}".replace("0.", ".", 1) if 0 < abs(value) < 1 else f"{value:.15g}"


def column_decimals(values: Iterable[float]) -> int:
    """The decimals of a column: three digits of its largest number, and as many more as keep a
    number from showing as 1 that is not 1.

    >>> column_decimals([0.5, 0.25]), column_decimals([0.9996, 0.5]), column_decimals([12.3, 4.0])
    (3, 4, 1)
    """
    known = [abs(value) for value in values if math.isfinite(value)]
    power = math.floor(math.log10(max(known, default=0.0) or 1.0))
    decimals = min(_MOST_DECIMALS, max(0, _DIGITS - 1 - power))
    while decimals < _MOST_DECIMALS and any(
        value != 1 and round(value, decimals) == 1 for value in known
    ):
        decimals += 1
    return decimals


def column(values: Sequence[Any], unit: str = "") -> list[str]:
    """The cells of a column as text: numbers with one count of decimals, shares in percent where
    the unit is "%", changes with their sign where it is "+", estimates with their intervals, ""
    where there is no value.

    >>> column([0.123456, None, -2.5]), column([0.72, 0.055], "%"), column([True, "raf", 12])
    (['0.12', '', '−2.50'], ['72 %', '5.5 %'], ['yes', 'raf', '12'])
    >>> column([Estimate(0.85, 0.78, 0.9)], "%")
    ['85 % [78, 90]']
    """
    values = [value.item() if hasattr(value, "item") else value for value in values]
    floats = [value for value in values if isinstance(value, float)]
    estimates = [value for value in values if isinstance(value, Estimate)]
    factor = 100 if unit == "%" else 1
    if estimates:
        each = sorted(_decimals_of(estimate, factor) for estimate in estimates)
        decimals = each[2 * len(each) // 3]
    else:
        decimals = column_decimals(floats)
    return [_cell(value, decimals, unit) for value in values]


def _cell(value: Any, decimals: int, unit: str) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Estimate):
        return value.text(decimals, 100, " %") if unit == "%" else value.text(decimals)
    if isinstance(value, int | float) and unit == "%":
        return percent(value)
    if isinstance(value, float):
        return f"{'+' * (unit == '+' and value > 0)}{fixed(value, decimals)}"
    return fixed(value, 0) if isinstance(value, int) else str(value)
