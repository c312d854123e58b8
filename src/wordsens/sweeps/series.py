"""Records of any experiment along any axis: the mean of one column against another, series by
series, and power laws.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from wordsens.display.numbers import Estimate
from wordsens.errors import InputError, require_choice
from wordsens.intervals import mean_estimate, power_law
from wordsens.sweeps.experiment import key_text, rank, varying_columns
from wordsens.sweeps.store import Record, as_records
from wordsens.sweeps.sweep import experiment_named


@dataclass(frozen=True)
class AxisSeries:
    """One curve of y against x.

    Attributes:
        keys: the columns that tell it from the others, with their values.
        points: each x, in order, with the mean of y over its records.
        along: columns that change with x: n and d that move together, for one.
        texts: how many different texts.
        exponent, constant: of y = constant x^exponent over all records; None where there is no fit:
            x is no number, say.
    """

    keys: tuple[tuple[str, Any], ...]
    points: tuple[tuple[Any, Estimate], ...]
    along: tuple[str, ...]
    texts: int
    exponent: Estimate | None
    constant: float | None

    @property
    def label(self) -> str:
        """The values of its keys in a few words; keys without a value are left out."""
        named = [(name, value) for name, value in self.keys if value is not None]
        return ", ".join(
            str(value) if name in ("map", "text") else key_text(name, value)
            for name, value in named
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, for `--json`."""
        points = [
            {"x": x, "mean": mean.value, "low": mean.low, "high": mean.high, "count": mean.n}
            for x, mean in self.points
        ]
        plain = {"keys": dict(self.keys), "label": self.label, "points": points}
        plain |= {"along": list(self.along), "texts": self.texts, "fit": None, "interval": None}
        if (fit := self.exponent) is not None:
            plain["fit"] = {"exponent": fit.value, "constant": self.constant}
            plain["interval"] = [fit.low, fit.high]
        return plain


def series_along(
    records: Any, x: str, y: str = "value", by: Sequence[str] | None = None
) -> list[AxisSeries]:
    """The finished records as series of y against x.

    Records that share x and the keys of a series are averaged: they may differ in seed, draw and
    sample only.

    Args:
        records: of one experiment; those without x or y are left out.
        x, y: columns; y has numbers.
        by: the columns that tell series apart; None for every key of the specs that would else be
            averaged over.

    Raises:
        InputError: no such column, nothing to show, or records that differ in more would be
            averaged.
    """
    done = [record for record in as_records(records) if record.done]
    known = [
        name
        for name in (done[0].columns if done else ())
        if any(one.columns.get(name) is not None for one in done)
    ]
    for name, column in (("x", x), ("y", y), *(("by", one) for one in by or ())):
        require_choice(name, column, known)
    of_map = ("depth",)  # a record's map is drf4
    if by is None:
        varying = varying_columns(done, besides=(x, *of_map))
        by = [name for name in varying if not _moves_along(done, name, x)]
    groups: dict[tuple[Any, ...], list[Record]] = defaultdict(list)
    for record in done:
        if record.columns.get(x) is not None and isinstance(record.columns.get(y), int | float):
            groups[tuple(record.columns.get(name) for name in by)].append(record)
    if not groups:
        raise InputError(
            f"`y` (={y!r}) is no number of any finished record that has {x}; run the sweep first"
        )
    order = sorted(groups, key=lambda values: [rank(value) for value in values])
    besides = (x, *by, *(of_map if "map" in by else ()))
    return [
        _series(tuple(zip(by, values, strict=True)), groups[values], x, y, besides)
        for values in order
    ]


def column_title(records: Sequence[Record], name: str) -> str:
    """A column as a figure names it: "word sensitivity S" for the value of sensitivity."""
    names = {record.experiment for record in records}
    return (
        experiment_named(*names).value
        if name == "value" and len(names) == 1
        else name.replace("_", " ")
    )


def _moves_along(records: Sequence[Record], name: str, x: str) -> bool:
    """True where each value of x has one value of the column."""
    by_place: dict[Any, set[Any]] = defaultdict(set)
    for record in records:
        by_place[record.columns.get(x)].add(record.columns.get(name))
    return all(len(values) == 1 for values in by_place.values())


def _series(
    keys: tuple[tuple[str, Any], ...],
    records: Sequence[Record],
    x: str,
    y: str,
    besides: Sequence[str],
) -> AxisSeries:
    places: dict[Any, list[Record]] = defaultdict(list)
    for record in records:
        places[record.columns[x]].append(record)
    for place, group in places.items():
        for name, values in varying_columns(group, besides=besides).items():
            listed = ", ".join(map(str, values[:4]))
            raise InputError(
                f"`by` leaves out {name}, which has several values at {x} = {place} ({listed}), "
                "and they would be "
                f"averaged; add {name} to it, or choose some with {name}=..."
            )
    texts = [record.columns.get("source") or record.cell for record in records]
    values = {
        place: [float(record.columns[y]) for record in group] for place, group in places.items()
    }
    fit = power_law(
        [record.columns[x] for record in records],
        [float(record.columns[y]) for record in records],
        texts,
    )
    points = (
        (place, mean_estimate(numbers, over="records"))
        for place, numbers in sorted(values.items(), key=lambda item: rank(item[0]))
    )
    return AxisSeries(
        keys,
        tuple(points),
        tuple(varying_columns(records, besides=besides)),
        len(set(texts)),
        *(fit or (None, None)),
    )
