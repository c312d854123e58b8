"""What the records say: how S scales with the length of the text, series by series."""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from wordsens.certificates.contract import CERTIFIED
from wordsens.errors import InputError
from wordsens.experiments.record import SensitivityRecord
from wordsens.power_law import PowerLaw, fit_power_law


@dataclass(frozen=True)
class SizePoint:
    """The draws at one size: their mean, their standard deviation (of the sample; 0 for one draw), how many.

    `upper` and `predicted` are the means of the draws' upper bounds and predictions; None unless every draw has one.
    """

    n: int
    mean: float
    standard_deviation: float
    draws: int
    upper: float | None = None
    predicted: float | None = None


@dataclass(frozen=True)
class Series:
    """One curve of S against n.

    Attributes:
        map: rf, drf4, raf, relu-raf, ...
        text: the kind of the texts.
        d: coordinates of a word.
        points: by size.
        fit: the power law, or None when there are too few points.
        texts: how many distinct texts the draws used.
        searched: the most words searched in a text; `all_words` says whether that was every word.
        converged: the mean share of words whose search had stopped gaining.
        rigor: what stands behind the upper bounds: "certified", or "with probability 1 - x" if one of them needs it.
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

    @property
    def bracket_ratio(self) -> float | None:
        """The median over the sizes of mean upper bound / mean attained value; None without bounds."""
        ratios = [point.upper / point.mean for point in self.points if point.upper is not None]
        return median(ratios) if ratios else None

    @property
    def prediction_ratio(self) -> float | None:
        """The median over the sizes of mean prediction / mean attained value; None without predictions."""
        ratios = [point.predicted / point.mean for point in self.points if point.predicted is not None]
        return median(ratios) if ratios else None

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, for `--json`."""
        return asdict(self)


def summarise(records: Iterable[SensitivityRecord]) -> list[Series]:
    """The series of the finished records, one for each map, kind of text and d; maps in the order they first appear."""
    groups: dict[tuple[str, str, int], list[SensitivityRecord]] = defaultdict(list)
    for record in records:
        if record.done:
            groups[record.map, record.text, record.d].append(record)
    maps = list(dict.fromkeys(name for name, _, _ in groups))
    return [_series(key, groups[key]) for key in sorted(groups, key=lambda key: maps.index(key[0]))]


def _series(key: tuple[str, str, int], records: list[SensitivityRecord]) -> Series:
    values = [_number(record.value) for record in records]
    sizes = [record.n for record in records]
    fit = fit_power_law(sizes, values) if len(set(sizes)) > 1 and len(values) > 2 else None
    return Series(
        *key,
        points=tuple(_point(n, [record for record in records if record.n == n]) for n in sorted(set(sizes))),
        fit=fit,
        texts=len({record.source for record in records}),
        searched=max(record.words or 0 for record in records),
        all_words=all(record.words == record.n for record in records),
        converged=math.fsum(_number(record.converged) for record in records) / len(records),
        rigor=_weakest([record.rigor for record in records if record.rigor is not None]),
    )


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
    )


def _mean(values: list[float | None]) -> float | None:
    """None unless every value is there."""
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if len(known) == len(values) else None


def _weakest(rigors: list[str]) -> str | None:
    """A rigor that is less than certified, where there is one."""
    return next((rigor for rigor in rigors if rigor != CERTIFIED), rigors[0] if rigors else None)


def _number(value: float | None) -> float:
    if value is None:
        raise InputError("a finished record has no value; read the store again with wordsens.experiments.store")
    return value
