"""Records of S as curves against the number of words."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any

import numpy as np

from wordsens.certificates.base import CERTIFIED
from wordsens.display.numbers import Estimate
from wordsens.intervals import mean_estimate, power_law
from wordsens.maps.registry import base_name
from wordsens.sweeps.experiment import (
    grouped,
    key_text,
    rank,
    varying_columns,
)
from wordsens.sweeps.measurement import GIVEN
from wordsens.sweeps.store import Record, as_records, spec_columns
from wordsens.theory.prediction import TYPICAL

_OF_A_TEXT = ("text_content", "word_choice")
"""Keys that tell given texts apart: they are draws of one series."""


@dataclass(frozen=True)
class SizePoint:
    """The draws at one size: their mean.

    `words` are the least, the quartiles and the largest over the searched words of what each
    attains, means over the draws; `upper`, `predicted` and `average` are the means over the draws
    of the upper bounds, of the predictions, and of the average case; None unless every draw has
    one. `in_range`: whether every prediction is at sizes where it was compared with measurements.
    """

    n: int
    value: Estimate
    upper: float | None = None
    predicted: float | None = None
    in_range: bool = False
    words: tuple[float, float, float, float] | None = None
    average: float | None = None


@dataclass(frozen=True)
class Series:
    """One curve of S against n: draws that differ in their seeds alone.

    Attributes:
        map: rf, drf4, raf, relu-raf, ...
        text: the kind of the texts.
        d: coordinates of a word.
        points: by size.
        exponent, constant: of the power law; None when there are too few points.
        texts: how many distinct texts the draws used.
        searched: the most words searched in a text; `all_words` says whether that was every word.
        rigor: of the upper bounds: "certified", or "with probability 1 - x over the weights, ..."
            of one cell.
        varied: what tells the series from others of its map: "temperature = 0.5", for each key that
            varies.
        predicted_of: what the predictions are of: "a typical word" or "the largest searched word";
            None without any.
        cells: the keys of its records.
    """

    map: str
    text: str
    d: int
    points: tuple[SizePoint, ...]
    exponent: Estimate | None
    constant: float | None
    texts: int
    searched: int
    all_words: bool
    rigor: str | None = None
    varied: tuple[str, ...] = ()
    predicted_of: str | None = None
    cells: tuple[str, ...] = ()

    @property
    def theory_exponent(self) -> float | None:
        """The slope of the predictions between the first and the last n that have one: theory at
        these n, not in the limit; None without two."""
        known = [(point.n, point.predicted) for point in self.points if point.predicted]
        if len(known) < 2:
            return None
        (first, low), (last, high) = known[0], known[-1]
        return round(math.log(high / low) / math.log(last / first), 2) + 0.0

    @property
    def bracket_ratio(self) -> float | None:
        """The median over the sizes of mean upper bound / mean attained value; None without
        bounds."""
        ratios = [
            point.upper / point.value.value for point in self.points if point.upper is not None
        ]
        return median(ratios) if ratios else None

    @property
    def in_range(self) -> bool:
        """True where every prediction is at sizes where it was compared with measurements."""
        return all(point.in_range for point in self.points if point.predicted is not None)


def sensitivity_series(records: Any) -> list[Series]:
    """The series of the finished records: one for each map, kind of text and d, and each value of
    every other key of their specs that varies among the records of a map, seeds and draws aside.
    Maps in the order they first appear, those of one name by their depth.
    """
    by_map = {
        name: group
        for (name,), group in grouped(
            (one for one in as_records(records, "sensitivity", "correlations") if one.done), "map"
        ).items()
    }
    names = list(dict.fromkeys(map(base_name, by_map)))
    order = sorted(by_map, key=lambda name: (names.index(base_name(name)), len(name), name))
    return [one for name in order for one in _series_of_map(by_map[name])]


def _series_of_map(records: Sequence[Record]) -> list[Series]:
    names = list(varying_columns(records, besides=("n", "d", "text", "depth")))

    def varied(record: Record) -> tuple[tuple[str, Any], ...]:
        spec, ignored = (
            spec_columns(record.spec) if names else {},
            _OF_A_TEXT if record.text == GIVEN else (),
        )
        return tuple((name, spec[name]) for name in names if name in spec and name not in ignored)

    groups = grouped(records, "text", "d", varied)
    order = sorted(groups, key=lambda key: ([rank(value) for _, value in key[2]], key[1]))
    return [_series(key, groups[key]) for key in order]


def _series(key: tuple[str, int, tuple[tuple[str, Any], ...]], records: Sequence[Record]) -> Series:
    text, d, varied = key
    fit = power_law(*zip(*((one.n, one.value, text_of(one)) for one in records), strict=True))
    rigors = [record.rigor for record in records if record.rigor is not None]
    of = [one.predicted_of for one in records if one.predicted is not None]
    return Series(
        *(records[0].map, text, d),
        points=tuple(_point(n, group) for (n,), group in sorted(grouped(records, "n").items())),
        exponent=fit and fit[0],
        constant=fit and fit[1],
        texts=len({record.source for record in records}),
        searched=max(record.words or 0 for record in records),
        all_words=all(record.words == record.n for record in records),
        rigor=max(rigors, key=lambda one: one != CERTIFIED, default=None),
        varied=tuple(key_text(name, value) for name, value in varied),
        predicted_of=None
        if not of
        else TYPICAL
        if of[0] == TYPICAL
        else "the largest searched word",
        cells=tuple(record.cell for record in records),
    )


def text_of(record: Any) -> str:
    """What tells the record's text from others, for a fit over texts."""
    return record.columns.get("source") or record.cell


def _point(n: int, records: Sequence[Record]) -> SizePoint:
    return SizePoint(
        n,
        mean_estimate([record.value for record in records]),
        upper=_mean([record.upper for record in records]),
        predicted=_mean([record.predicted for record in records]),
        in_range=all(record.predicted_in_range is True for record in records),
        words=_words([record.per_word for record in records]),
        average=_mean([record.average for record in records]),
    )


def _words(
    per_word: Sequence[tuple[float, ...] | None],
) -> tuple[float, float, float, float] | None:
    """The means over the draws of the words' least, quartiles and largest; None unless every draw
    has them."""
    known = [np.quantile(values, (0, 0.25, 0.75, 1)) for values in per_word if values]
    if len(known) < len(per_word):
        return None
    least, low, high, most = np.mean(known, axis=0).tolist()
    return least, low, high, most


def _mean(values: list[float | None]) -> float | None:
    """None unless every value is there."""
    return None if None in values else fmean(values)  # pyright: ignore[reportArgumentType]
