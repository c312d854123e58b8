"""Generalization records, series by series."""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wordsens.experiments.generalization.record import GeneralizationRecord
from wordsens.experiments.generalization.spec import FRONTIER
from wordsens.experiments.sensitivity.findings import text_title
from wordsens.experiments.store.spec_columns import require_alike
from wordsens.maps.registry import map_title
from wordsens.statistics.operating_point import share_interval

Key = tuple[str, str, int, str, int]
"""Text kind, map, n, training, N."""

LIMIT = 0.5
"""The limit on gamma at which tables and sentences compare the maps."""

THEOREM = (2 - LIMIT) ** 2
"""The error that Theorems 4 and 5 leave random features there, in the limit."""


@dataclass(frozen=True)
class GeneralizationSeries:
    """The samples of one map, one n, one kind of text, one training and one N, over all draws.

    Attributes:
        text, map, n, training: the series.
        texts: the size of the training set, N.
        samples: how many (fit, text) pairs.
        accuracy: mean held-out accuracy.
        limits: of the frontier.
        least_errors: one a limit, one a sample: [limit][sample].
        least_alignment: the smallest F that any objective reached.
        below_bound: records whose Err is below their finite-sample bound by more than rounding: should be 0.
    """

    text: str
    map: str
    n: int
    training: str
    texts: int
    samples: int
    accuracy: float
    limits: tuple[float, ...]
    least_errors: tuple[tuple[float, ...], ...]
    least_alignment: float
    below_bound: int

    def median(self, limit: float = LIMIT) -> float | None:
        """The median least Err with gamma below the limit; None where the frontier was not measured there."""
        if limit not in self.limits or not self.least_errors:
            return None
        return statistics.median(self.least_errors[self.limits.index(limit)])

    def share_below(self, error: float, limit: float = LIMIT) -> float | None:
        """The share of samples whose least Err at the limit is below `error`."""
        if limit not in self.limits or not self.least_errors:
            return None
        errors = self.least_errors[self.limits.index(limit)]
        return sum(one < error for one in errors) / len(errors)

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, for `--json`."""
        return asdict(self)


def summarise_generalization(records: Iterable[GeneralizationRecord]) -> list[GeneralizationSeries]:
    """The series of the finished records, in the order they first appear; those that differ in N alone by N.

    Raises:
        InputError: records of one kind of text, map and n differ in more than N, training, objective and seeds.
    """
    groups: dict[Key, list[GeneralizationRecord]] = defaultdict(list)
    for record in records:
        if record.done:
            groups[record.text, record.map, record.n, record.training, record.texts].append(record)
    for text, name, n in dict.fromkeys(key[:3] for key in groups):
        own = (one.spec for key, group in groups.items() if key[:3] == (text, name, n) for one in group)
        require_alike(own, besides=("training", "texts", "objective"))
    order = list(dict.fromkeys(key[:4] for key in groups))
    keys = sorted(groups, key=lambda key: (order.index(key[:4]), key[4]))
    return [_series(key, groups[key]) for key in keys]


def _series(key: Key, records: Sequence[GeneralizationRecord]) -> GeneralizationSeries:
    frontiers = [record for record in records if record.objective == FRONTIER]
    limits = frontiers[0].limits if frontiers else ()
    same = [record for record in frontiers if record.limits == limits]
    accuracies = [record.accuracy for record in records if record.accuracy is not None]
    pairs = {(record.draw, record.sample) for record in records}
    return GeneralizationSeries(
        *key,
        samples=len(pairs),
        accuracy=statistics.fmean(accuracies),
        limits=limits,
        least_errors=tuple(tuple(record.least_errors[at] for record in same) for at in range(len(limits))),
        least_alignment=min(record.alignment for record in records if record.alignment is not None),
        below_bound=sum(
            record.value < record.bound * (1 - 1e-6) - 1e-6
            for record in records
            if record.value is not None and record.bound is not None
        ),
    )


def generalization_findings(series: Sequence[GeneralizationSeries]) -> list[str]:
    """Sentences about the frontiers at the largest N: one for each map, n and kind of text; then who keeps and who
    breaks what the theorems leave random features, where the interval of the share of samples says so."""
    sentences, kept, broken = [], [], []
    for key in dict.fromkeys((one.text, one.map, one.n) for one in series):
        known = [one for one in series if (one.text, one.map, one.n) == key and one.median() is not None]
        if not known:
            continue
        largest = max(one.texts for one in known)
        own = [one for one in known if one.texts == largest]
        text, name, n = key
        listed = " and ".join(f"{_number(one.median())} {one.training} (below 1 in {_below(one, 1.0)})" for one in own)
        sentences.append(
            f"{map_title(name)}, n = {n}, N = {largest:,}, {text_title(text)}: with gamma below {LIMIT}, the median "
            f"least error is {listed}."
        )
        for one in own:
            low, high = share_interval(*_hits(one, THEOREM))
            place = f"{map_title(name)} (n = {n}, {text_title(text)}, {one.training}: below it {_below(one, THEOREM)})"
            kept += [place] if high < 0.5 else []
            broken += [place] if low > 0.5 else []
    if not sentences:
        return []
    theorem = (
        f"In the limit, Theorems 4 and 5 leave random features no error below (2 - {LIMIT})² = {THEOREM:.2f} there."
    )
    sentences.append(theorem)
    sentences += [f"In most samples this is kept by {'; '.join(kept)}."] if kept else []
    return sentences + ([f"In most samples it is broken by {'; '.join(broken)}."] if broken else [])


def _hits(one: GeneralizationSeries, error: float) -> tuple[int, int]:
    """The samples whose least error at the limit is below `error`, and all samples."""
    errors = one.least_errors[one.limits.index(LIMIT)]
    return sum(value < error for value in errors), len(errors)


def _below(one: GeneralizationSeries, error: float) -> str:
    """Such samples, with a 95 % interval of their share."""
    hits, trials = _hits(one, error)
    low, high = share_interval(hits, trials)
    return f"{hits} of {trials} samples, {low:.0%} to {high:.0%}"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
