"""Records of any kind along any axis: the mean of one column against another, series by series, and power laws."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wordsens.errors import InputError, require_choice
from wordsens.experiments.store.record import Record
from wordsens.experiments.store.spec_columns import columns_of, key_text, rank, varying_columns
from wordsens.statistics.power_law import PowerLaw, exponent_interval, fit_power_law


@dataclass(frozen=True)
class AxisPoint:
    """The records at one place of the axis: the mean of y, its standard deviation (0 for one), how many."""

    x: Any
    mean: float
    standard_deviation: float
    count: int


@dataclass(frozen=True)
class AxisSeries:
    """One curve of y against x.

    Attributes:
        keys: the columns that tell it from the others, with their values.
        points: sorted by x.
        along: columns that change with x: n and d that move together, for one.
        texts: how many different texts.
        fit: y = constant x^exponent over all records, or None where there is none: x is no number, say.
        interval: a 95 % interval of the exponent, bootstrap over texts; None for fewer than five.
    """

    keys: tuple[tuple[str, Any], ...]
    points: tuple[AxisPoint, ...]
    along: tuple[str, ...]
    texts: int
    fit: PowerLaw | None
    interval: tuple[float, float] | None

    @property
    def label(self) -> str:
        """The values of its keys in a few words."""
        return ", ".join(str(value) if name in ("map", "text") else key_text(name, value) for name, value in self.keys)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, for `--json`."""
        return {**asdict(self), "keys": dict(self.keys), "label": self.label}


def series_along(
    records: Iterable[Record], x: str, y: str = "value", by: Sequence[str] | None = None
) -> list[AxisSeries]:
    """The finished records as series of y against x.

    A column is one of the records, or a key of their specs. Records that share x and the keys of a series are averaged:
    they may differ in seed, draw and sample only.

    Args:
        records: of one kind; those without x or y are left out.
        x, y: columns; y has numbers.
        by: the columns that tell series apart; None for every key of the specs that would else be averaged over.

    Raises:
        InputError: no such column, nothing to show, or records that differ in more would be averaged.
    """
    done = [record for record in records if record.done]
    rows = [_row(record) for record in done]
    known = list(dict.fromkeys(name for row in rows for name in row))
    for name, column in (("x", x), ("y", y), *(("by", one) for one in by or ())):
        require_choice(name, column, known)
    told_by_map = ("depth",)  # a record's map is drf4
    if by is None:
        keys = varying_columns((record.spec for record in done), besides=(x, *told_by_map))
        by = [name for name in keys if not _moves_along(rows, name, x)]
    groups: dict[tuple[Any, ...], list[tuple[Record, dict[str, Any]]]] = defaultdict(list)
    for record, row in zip(done, rows, strict=True):
        if row.get(x) is not None and isinstance(row.get(y), int | float):
            groups[tuple(row.get(name) for name in by)].append((record, row))
    if not groups:
        raise InputError(f"`y` (={y!r}) is no number of any finished record that has {x}; run the sweep first")
    order = sorted(groups, key=lambda values: [rank(value) for value in values])
    besides = (x, *by, *(told_by_map if "map" in by else ()))
    return [_series(tuple(zip(by, values, strict=True)), groups[values], x, y, besides) for values in order]


def _row(record: Record) -> dict[str, Any]:
    return {**columns_of(record.spec), **{name: value for name, value in record.to_dict().items() if value is not None}}


def _moves_along(rows: Sequence[dict[str, Any]], name: str, x: str) -> bool:
    """True where each value of x has one value of the column."""
    seen: dict[Any, set[Any]] = defaultdict(set)
    for row in rows:
        seen[row.get(x)].add(row.get(name))
    return all(len(values) == 1 for values in seen.values())


def _series(
    keys: tuple[tuple[str, Any], ...],
    found: Sequence[tuple[Record, dict[str, Any]]],
    x: str,
    y: str,
    besides: Sequence[str],
) -> AxisSeries:
    places: dict[Any, list[tuple[Record, dict[str, Any]]]] = defaultdict(list)
    for one in found:
        places[one[1][x]].append(one)
    for place, group in places.items():
        for name, values in varying_columns((record.spec for record, _ in group), besides=besides).items():
            listed = ", ".join(str(value) for value in values[:4])
            raise InputError(
                f"`by` leaves out {name}, which has several values at {x} = {place} ({listed}), and they would be "
                f"averaged; add {name} to it, or choose some with {name}=..."
            )
    sizes, values = [row[x] for _, row in found], [float(row[y]) for _, row in found]
    texts = [row.get("source") or record.cell for record, row in found]
    fit, interval = _law(sizes, values, texts)
    return AxisSeries(
        keys,
        tuple(_point(place, [float(row[y]) for _, row in places[place]]) for place in sorted(places, key=rank)),
        tuple(varying_columns((record.spec for record, _ in found), besides=besides)),
        len(set(texts)),
        fit,
        interval,
    )


def _law(
    sizes: Sequence[Any], values: Sequence[float], texts: Sequence[Any]
) -> tuple[PowerLaw | None, tuple[float, float] | None]:
    numbers = all(isinstance(size, int | float) and size > 0 for size in sizes)
    if not numbers or len(set(sizes)) < 2 or len(values) < 3 or min(values) <= 0:
        return None, None
    return fit_power_law(sizes, values), exponent_interval(sizes, values, texts)


def _point(x: Any, values: Sequence[float]) -> AxisPoint:
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return AxisPoint(x, mean, math.sqrt(squares / (len(values) - 1)) if len(values) > 1 else 0.0, len(values))
