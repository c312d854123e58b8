"""What the records of the generalization study say: series, a table, a sentence a map."""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from wordsens.display.numbers import number as decimal
from wordsens.display.view import Finding, Table
from wordsens.intervals import ends, share_estimate
from wordsens.maps.registry import map_title, plain_name
from wordsens.studies.generalization.cell import FRONTIER
from wordsens.studies.sensitivity import SYNTHETIC
from wordsens.sweeps.experiment import (
    Summary,
    finding,
    grouped,
    require_alike,
    text_title,
)
from wordsens.sweeps.store import Record, as_records

LIMIT = 0.5
"""The limit on gamma at which tables and sentences compare the maps."""

THEOREM = (2 - LIMIT) ** 2
"""The error that Theorems 4 and 5 leave random features there, in the limit."""

NOTICED = 1.0
"""Err below 1: the model's answer on the changed text has the sign of its new label."""


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
        below_bound: records whose Err is below their finite-sample bound by more than rounding:
            should be 0.
        cells: the keys of its records.
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
    cells: tuple[str, ...]

    @property
    def errors(self) -> tuple[float, ...]:
        """The least errors with gamma below LIMIT; none where the frontier was not measured
        there."""
        return (
            self.least_errors[self.limits.index(LIMIT)]
            if LIMIT in self.limits and self.least_errors
            else ()
        )

    def median(self) -> float | None:
        """Their median."""
        return statistics.median(self.errors) if self.errors else None

    @property
    def noticed(self) -> float | None:
        """The share of them below NOTICED."""
        return self.hits(NOTICED) / len(self.errors) if self.errors else None

    def hits(self, error: float) -> int:
        """How many of them lie below `error`."""
        return sum(one < error for one in self.errors)


def generalization_series(records: Any) -> list[GeneralizationSeries]:
    """The series of the finished records, in the order they first appear; those that differ in N
    alone by N.

    Raises:
        InputError: records of one kind of text, map and n differ in more than N, training,
            objective and seeds.
    """
    done = [record for record in as_records(records, "generalization") if record.done]
    for group in grouped(done, "text", "map", "n").values():
        require_alike(group, besides=("training", "texts", "objective"))
    groups = grouped(done, "text", "map", "n", "training", "texts")
    order = list(grouped(done, "text", "map", "n", "training"))
    return [
        _series(key, groups[key])
        for key in sorted(groups, key=lambda key: (order.index(key[:4]), key[4]))
    ]


def _series(key: tuple[str, str, int, str, int], records: Sequence[Record]) -> GeneralizationSeries:
    frontiers = [record for record in records if record.objective == FRONTIER]
    limits = frontiers[0].limits if frontiers else ()
    same = [record for record in frontiers if record.limits == limits]
    return GeneralizationSeries(
        *key,
        samples=len({(record.draw, record.sample) for record in records}),
        accuracy=statistics.fmean(record.accuracy for record in records),
        limits=limits,
        least_errors=tuple(
            tuple(record.least_errors[at] for record in same) for at in range(len(limits))
        ),
        least_alignment=min(record.alignment for record in records),
        below_bound=sum(record.value < record.bound * (1 - 1e-6) - 1e-6 for record in records),
        cells=tuple(record.cell for record in records),
    )


def summarize(records: Sequence[Record]) -> Summary:
    """The least errors of each map and training set; a sentence a map, about all of its rows."""
    series = generalization_series(records)
    headings = (
        "map",
        "texts",
        "n",
        "N",
        "training",
        "samples",
        "accuracy",
        "least F",
        "Err",
        "Err < 1",
    )
    rows = tuple(
        (
            *(
                map_title(one.map),
                one.text,
                one.n,
                one.texts,
                one.training,
                one.samples,
                one.accuracy,
            ),
            *(one.least_alignment, one.median(), one.noticed),
        )
        for one in series
    )
    below = sum(one.below_bound for one in series)
    note = (
        "N: texts learned. F: feature alignment. Err: the median least error with γ below "
        f"{LIMIT:g}, attained. "
        + (
            f"{below} errors lie below their finite-sample bound."
            if below
            else "None lies below its finite-sample bound."
        )
    )
    measured = sorted((one for one in series if one.errors), key=lambda one: one.text in SYNTHETIC)
    groups = sorted(
        grouped(measured, "map").values(),
        key=lambda group: -min(one.noticed or 0.0 for one in group),
    )
    claims = tuple(map(_about, groups)) + ((_theory(groups),) if groups else ())
    table = Table.of_rows("One word changed, the label flipped", headings, rows)
    return Summary((table,), note, claims, leading=max(1, len(groups)))


def _about(series: Sequence[GeneralizationSeries]) -> Finding:
    """One map: every kind of text, length, training and N."""
    sentence = (
        f"With {plain_name(series[0].map)}, one word could be changed so that a model that had "
        "just learned the text "
        "notices, and gives the new label, "
    )
    parts = [
        f"{' and '.join(map(_shares, grouped(part, 'training').values()))}: {text_title(text)} of "
        f"{n} words, "
        f"N = {max(one.texts for one in part):,}"
        for (text, n), part in grouped(series, "text", "n").items()
    ]
    medians = [
        ", ".join(f"{decimal(one.median() or 0.0)} {one.training}" for one in part)
        + (f" ({n} words, N = {texts:,}, {text_title(text)})" if len(parts) > 1 else "")
        for (text, n, texts), part in grouped(series, "text", "n", "texts").items()
    ]
    known = (
        f"Attained with γ below {LIMIT:g}: the model before hardly told the two texts apart. "
        f"N: texts learned; median least errors {'; '.join(medians)}. In brackets: 95 %, exact "
        "binomial."
    )
    largest = [group[-1] for group in grouped(series, "text", "n", "training").values()]
    fewest = min(largest, key=lambda one: one.noticed or 0.0)
    number = f"{fewest.hits(NOTICED)} of {len(fewest.errors)} texts"
    cells = [cell for one in series for cell in one.cells]
    return finding(number, f"{sentence}{'; '.join(parts)}.", known, fewest.noticed or 0.0, cells)


def _shares(series: Sequence[GeneralizationSeries]) -> str:
    """How often one training notices at the largest N, and between what shares at the others where
    these differ."""
    *fewer, one = series
    share = f"in {one.hits(NOTICED)} of {len(one.errors)} texts {one.training} ({_interval(one)}"
    if any(other.noticed != one.noticed for other in fewer):
        shares = _from_to([other.noticed or 0.0 for other in fewer], "{:.0%}".format)
        share += f"; {shares} with N = {_from_to([other.texts for other in fewer], '{:,}'.format)}"
    return f"{share})"


def _from_to(values: Sequence[Any], shown: Callable[[Any], str]) -> str:
    low, high = shown(min(values)), shown(max(values))
    return low if low == high else f"{low} to {high}"


def _interval(one: GeneralizationSeries) -> str:
    low, high = ends(share_estimate(one.hits(NOTICED), len(one.errors)))
    return f"{low:.0%} to {high:.0%}"


def _theory(groups: Sequence[Sequence[GeneralizationSeries]]) -> Finding:
    """What the theorems leave random features, and who keeps or breaks it in most samples, where an
    interval says so.
    """
    obeyed, broken, rows = [], [], [one for group in groups for one in group]
    for one in rows:
        low, high = ends(share_estimate(one.hits(THEOREM), len(one.errors)))
        name = (
            f"{map_title(one.map)} (n = {one.n}, N = {one.texts:,}, {text_title(one.text)}, "
            f"{one.training})"
        )
        obeyed += [name] if high < 0.5 else []
        broken += [name] if low > 0.5 else []
    sentence = (
        f"Theory leaves fully connected random features an error of at least {THEOREM:.2f}, (2 − "
        f"{LIMIT:g})², "
        "there, in the limit of wide layers and many words: they do not notice the change."
    )
    sentence += f" In most samples this is kept by {'; '.join(obeyed)}." if obeyed else ""
    sentence += f" In most samples it is broken by {'; '.join(broken)}." if broken else ""
    if left := len(rows) - len(obeyed) - len(broken):
        sentence += f" Of {left} of the {len(rows)} rows the samples tell neither."
    known, cells = (
        "Predicted: Theorems 4 and 5, a limit.",
        [cell for one in rows for cell in one.cells],
    )
    return finding(
        f"at least {THEOREM:.2f}", sentence, known, THEOREM, cells, ("predicted", "95 % interval")
    )
