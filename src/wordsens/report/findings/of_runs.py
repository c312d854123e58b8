"""The findings of each run, and what two runs say of the same thing."""

import math
from collections.abc import Sequence
from typing import Any

from wordsens.errors import InputError
from wordsens.experiments.sensitivity import GIVEN, Series, sensitivity_series, text_and_keys
from wordsens.experiments.sweep import experiment_named
from wordsens.maps.registry import map_title
from wordsens.report.findings.audit import audit_findings
from wordsens.report.findings.finding import ATTAINED, INTERVAL, Finding, minus, times
from wordsens.report.findings.measured import measured_findings
from wordsens.report.load import Part, Run

MOST = 8
"""So many sentences of a kind of record are shown; the tables have the rest."""

FEWEST_DRAWS = 3
"""Fewer draws say too little of their spread."""


def run_findings(run: Run) -> list[Finding]:
    """The sentences of a run: its parts', then the cells that failed."""
    found = [finding for part in run.parts for finding in _of_part(part)]
    if run.failed:
        first = run.failed[0].error or "no reason given"
        count, total = len(run.failed), len(run.records)
        sentence = f"{count:,} of {total:,} measurements failed, and no number here stands for them. The first: {first}"
        found.append(Finding(f"{count:,}", sentence, "Counted; every one is listed under the tables.", ()))
    return found


def _of_part(part: Part) -> list[Finding]:
    if not part.done:
        return []
    found = _findings(part)
    left = len(found) - MOST
    if left > 0:
        more = Finding(f"+{left}", f"{left} more series like these are in the tables.", "", ())
        return [*found[:MOST], more]
    return found


def _findings(part: Part) -> list[Finding]:
    if part.name == "audit":
        return audit_findings(part.done)
    function = experiment_named(part.name).summarize
    if function is None:
        return _counted(part.done)
    given = [record for record in part.done if part.name == "sensitivity" and record.text == GIVEN]
    try:
        claims = function(part.done).claims
    except InputError as error:  # records that differ in more than these sentences tell
        return [Finding("", f"These records are not summarized in sentences: {error}.", "See the tables.", ())]
    found = [Finding(minus(one.number), minus(one.sentence), one.known, one.kinds) for one in claims]
    return [*(measured_findings(given) if given else ()), *found]


def _counted(records: Sequence[Any]) -> list[Finding]:
    values = [record.value for record in records]
    sentence = (
        f"{len(records):,} cells were measured; their values lie between {min(values):.3g} and {max(values):.3g}."
    )
    return [Finding(f"{len(records):,}", sentence, "Counted.", ())]


def comparison(runs: Sequence[Run]) -> list[Finding]:
    """For each series that two runs or more have: how they differ at the longest length they share, if they do."""
    series = {run.name: _series(run) for run in runs}
    keys = list(dict.fromkeys(key for own in series.values() for key in own))
    found = []
    for key in keys:
        own = [(name, one[key]) for name, one in series.items() if key in one]
        for at, (first, one) in enumerate(own):
            found += [_difference(first, one, second, other) for second, other in own[at + 1 :]]
    return [one for one in found if one is not None][:MOST]


def _series(run: Run) -> dict[tuple[Any, ...], Series]:
    records = [
        record for part in run.parts if part.name == "sensitivity" for record in part.done if record.text != GIVEN
    ]
    return {(one.map, one.text, one.d, one.varied): one for one in sensitivity_series(records)}


def _difference(first: str, one: Series, second: str, other: Series) -> Finding | None:
    points = {point.n: point for point in other.points}
    common = [(point, points[point.n]) for point in one.points if point.n in points]
    common = [pair for pair in common if min(point.draws for point in pair) >= FEWEST_DRAWS]
    if not common:
        return None
    a, b = common[-1]
    gap = b.mean - a.mean
    error = 2 * math.sqrt(sum(point.standard_deviation**2 / point.draws for point in (a, b)))
    if gap == 0:
        told = "they are equal"
    elif abs(gap) <= error:
        told = f"no difference can be told ({gap:+.2g} ± {error:.2g})"
    else:
        told = f"{second} is {'higher' if gap > 0 else 'lower'} by {abs(gap):.2g} ± {error:.2g}"
    sentence = (
        f"{map_title(one.map)} on {text_and_keys(one)}, {a.n} words: {times(a.mean)} in {first}, {times(b.mean)} in "
        f"{second}; {told}."
    )
    known = f"Means of {a.draws} and {b.draws} draws; ± 2 standard errors of the difference."
    return Finding(f"{gap:+.2g}".replace("-", "\N{MINUS SIGN}"), sentence, known, (ATTAINED, INTERVAL))
