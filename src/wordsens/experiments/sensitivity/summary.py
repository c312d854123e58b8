"""The scaling of S with the length of the text, series by series, from the records."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any

from wordsens.certificates.contract import CERTIFIED
from wordsens.errors import InputError
from wordsens.experiments.sensitivity.record import SensitivityRecord
from wordsens.experiments.store.spec_columns import columns_of, key_text, rank, varying_columns
from wordsens.maps.registry import base_name
from wordsens.statistics.power_law import PowerLaw, exponent_interval, fit_power_law
from wordsens.theory.prediction import TYPICAL

_OF_A_TEXT = ("text_content", "word_choice")
"""Keys that tell given texts apart: they are draws of one series."""


@dataclass(frozen=True)
class SizePoint:
    """The draws at one size: their mean, their standard deviation (of the sample; 0 for one draw), how many.

    `words` are the least, the quartiles and the largest over the searched words of what each attains, means over the
    draws; `upper`, `predicted` and `compared` are the means over the draws of the upper bounds, of the predictions, and
    of the measured numbers that the predictions are about; None unless every draw has one. `in_range`: whether every
    prediction is at sizes where it was compared with measurements.
    """

    n: int
    mean: float
    standard_deviation: float
    draws: int
    upper: float | None = None
    predicted: float | None = None
    compared: float | None = None
    in_range: bool = False
    words: tuple[float, float, float, float] | None = None


@dataclass(frozen=True)
class Series:
    """One curve of S against n: draws that differ in their seeds alone.

    Attributes:
        map: rf, drf4, raf, relu-raf, ...
        text: the kind of the texts.
        d: coordinates of a word.
        points: by size.
        fit: the power law, or None when there are too few points.
        interval: a 95 % interval of its exponent, bootstrap over texts; None for fewer than five.
        texts: how many distinct texts the draws used.
        searched: the most words searched in a text; `all_words` says whether that was every word, and `raced` whether
            only those that lead, and a sample, were searched to the end.
        converged: the mean share of words whose search had stopped at a stationary point.
        rigor: what stands behind the upper bounds: "certified", or "with probability 1 - x over the weights, ..."
            if one of them needs it; x is one cell's.
        varied: what tells the series from others of its map: "temperature = 0.5", for each key of the spec that varies.
        predicted_of: what the predictions are of: "a typical word" or "the largest searched word"; None without any.
    """

    map: str
    text: str
    d: int
    points: tuple[SizePoint, ...]
    fit: PowerLaw | None
    texts: int
    searched: int
    all_words: bool
    converged: float
    rigor: str | None = None
    varied: tuple[str, ...] = ()
    predicted_of: str | None = None
    interval: tuple[float, float] | None = None
    raced: bool = False

    @property
    def bracket_ratio(self) -> float | None:
        """The median over the sizes of mean upper bound / mean attained value; None without bounds."""
        ratios = [point.upper / point.mean for point in self.points if point.upper is not None]
        return median(ratios) if ratios else None

    @property
    def prediction_ratio(self) -> float | None:
        """The median over the sizes of mean prediction / mean of what it is of; None where either is not known."""
        ratios = [point.predicted / point.compared for point in self.points if point.predicted and point.compared]
        return median(ratios) if ratios else None

    @property
    def in_range(self) -> bool:
        """True where every prediction is at sizes where it was compared with measurements."""
        return all(point.in_range for point in self.points if point.predicted is not None)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, for `--json`."""
        return asdict(self)


def summarise(records: Iterable[SensitivityRecord]) -> list[Series]:
    """The series of the finished records: one for each map, kind of text and d, and each value of every other key of
    their specs that varies among the records of a map, seeds and draws aside. Maps in the order they first appear,
    those of one name by their depth.
    """
    by_map: dict[str, list[SensitivityRecord]] = defaultdict(list)
    for record in records:
        if record.done:
            by_map[record.map].append(record)
    names = list(dict.fromkeys(map(base_name, by_map)))
    order = sorted(by_map, key=lambda name: (names.index(base_name(name)), len(name), name))
    return [one for name in order for one in _series_of_map(by_map[name])]


def _series_of_map(records: Sequence[SensitivityRecord]) -> list[Series]:
    names = list(varying_columns((record.spec for record in records), besides=("n", "d", "text", "depth")))
    groups: dict[tuple[str, int, tuple[tuple[str, Any], ...]], list[SensitivityRecord]] = defaultdict(list)
    for record in records:
        asked = columns_of(record.spec) if names else {}
        own = _OF_A_TEXT if record.text == "given" else ()
        varied = tuple((name, asked[name]) for name in names if name in asked and name not in own)
        groups[record.text, record.d, varied].append(record)
    order = sorted(groups, key=lambda key: ([rank(value) for _, value in key[2]], key[1]))
    return [_series(key, groups[key]) for key in order]


def _series(key: tuple[str, int, tuple[tuple[str, Any], ...]], records: Sequence[SensitivityRecord]) -> Series:
    text, d, varied = key
    values = [_number(record.value) for record in records]
    sizes = [record.n for record in records]
    fit = fit_power_law(sizes, values) if len(set(sizes)) > 1 and len(values) > 2 else None
    return Series(
        records[0].map,
        text,
        d,
        points=tuple(_point(n, [record for record in records if record.n == n]) for n in sorted(set(sizes))),
        fit=fit,
        texts=len({record.source for record in records}),
        searched=max(record.words or 0 for record in records),
        all_words=all(record.words == record.n for record in records),
        converged=math.fsum(_number(record.converged) for record in records) / len(records),
        rigor=_weakest([record.rigor for record in records if record.rigor is not None]),
        varied=tuple(key_text(name, value) for name, value in varied),
        predicted_of=next((_predicted_of(record) for record in records if record.predicted is not None), None),
        interval=None if fit is None else exponent_interval(sizes, values, [_text_of(record) for record in records]),
        raced=any(record.contenders for record in records),
    )


def _text_of(record: SensitivityRecord) -> str:
    return record.source or record.cell


def _predicted_of(record: SensitivityRecord) -> str:
    return TYPICAL if _typical(record) else "the largest searched word"


def _typical(record: SensitivityRecord) -> bool:
    """True where its prediction is of a typical word; records of before they said so are known by their map."""
    return (record.predicted_of or (TYPICAL if record.map == "raf" else "")) == TYPICAL


def _point(n: int, records: list[SensitivityRecord]) -> SizePoint:
    values = [_number(record.value) for record in records]
    mean = math.fsum(values) / len(values)
    squares = math.fsum((value - mean) ** 2 for value in values)
    return SizePoint(
        n,
        mean,
        math.sqrt(squares / (len(values) - 1)) if len(values) > 1 else 0.0,
        len(values),
        upper=_mean([record.upper for record in records]),
        predicted=_mean([record.predicted for record in records]),
        compared=_mean([record.median_word if _typical(record) else record.value for record in records]),
        in_range=all(record.predicted_in_range is True for record in records),
        words=_words([None if record.contenders else record.per_word for record in records]),
    )


def _words(per_word: Sequence[tuple[float, ...] | None]) -> tuple[float, float, float, float] | None:
    """The means over the draws of the words' least, quartiles and largest."""
    known = [sorted(values) for values in per_word if values]
    if len(known) < len(per_word):
        return None
    quarters = [quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3 for values in known]
    rows = [(values[0], low, high, values[-1]) for values, (low, _, high) in zip(known, quarters, strict=True)]
    least, low, high, most = (math.fsum(column) / len(rows) for column in zip(*rows, strict=True))
    return least, low, high, most


def _mean(values: list[float | None]) -> float | None:
    """None unless every value is there."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if len(known) == len(values) else None


def _weakest(rigors: list[str]) -> str | None:
    """A rigor that is less than certified, where there is one."""
    return next((rigor for rigor in rigors if rigor != CERTIFIED), rigors[0] if rigors else None)


def _number(value: float | None) -> float:
    if value is None:
        raise InputError("a finished record has no value; read the store again with wordsens.experiments.store.store")
    return value
