"""What a report says of records: of texts that were given, of studies and audits, of runs side by
side."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

from wordsens.certificates.base import CERTIFIED
from wordsens.display.content import Finding, times
from wordsens.display.numbers import Estimate
from wordsens.errors import InputError
from wordsens.findings.audit import findings_of_records
from wordsens.findings.sensitivity import contrast, searches_running
from wordsens.intervals import behaviour, difference, ends, power_law, unfit_for_power_law
from wordsens.maps.registry import map_title, plain_name
from wordsens.report.load import Part, Run
from wordsens.studies.sensitivity.series import Series, sensitivity_series
from wordsens.studies.sensitivity.summary import FITTED, text_and_keys
from wordsens.sweeps.experiment import grouped
from wordsens.sweeps.measurement import GIVEN
from wordsens.sweeps.store import Record

ATTAINED, SURE, PREDICTED, INTERVAL = "attained", "certified", "predicted", "95 % interval"


def run_findings(run: Run) -> list[Finding]:
    """The sentences of a run: its parts', then the cells that failed."""
    findings = [
        finding for part in run.parts if part.done for finding in _of_part(part, run.folder)
    ]
    if run.failed:
        first = run.failed[0].error or "no reason given"
        count, total = len(run.failed), len(run.records)
        sentence = (
            f"{count:,} of {total:,} measurements failed, and no number here stands for "
            f"them. The first: {first}"
        )
        number = f"{count:,} of {total:,}"
        findings.append(
            Finding(number, sentence, "Counted; every one is listed in the tables.", ())
        )
    return findings


def _of_part(part: Part, folder: Path) -> list[Finding]:
    if part.name == "audit":
        groups = grouped(part.done, lambda record: record.columns.get("audit"))
        return [
            one
            for (name,), group in groups.items()
            for one in findings_of_records(str(name), group, folder)
        ]
    try:
        summary = part.summary
    except InputError as error:  # records that differ in more than these sentences tell
        return [
            Finding(
                "",
                f"These records are not summarized in sentences: {error}.",
                "See the tables.",
                (),
            )
        ]
    if summary is None:
        values = [record.value for record in part.done]
        sentence = (
            f"{len(values):,} cells were measured; their values lie from {min(values):.3g} "
            f"to {max(values):.3g}."
        )
        return [Finding(f"{len(values):,} cells", sentence, "Counted.", ())]
    given = [record for record in part.done if part.name == "sensitivity" and record.text == GIVEN]
    (first, rest) = given_findings(given) if given else ((), ())
    return [*first, *summary.findings, *rest]


def given_findings(records: Sequence[Record]) -> tuple[list[Finding], list[Finding]]:
    """Texts that a user gave: attention beside a fully connected layer; and each map, the most
    sensitive first."""
    groups = sorted(
        grouped(records, "map").values(),
        key=lambda group: -median(one.value or 0.0 for one in group),
    )
    return _contrast(records), list(map(_of_map, groups))


def _contrast(records: Sequence[Record]) -> list[Finding]:
    """Attention beside a fully connected layer, text by text; none where a text lacks either, or
    they differ in d."""
    texts = grouped(records, lambda record: record.columns.get("text_content")).values()
    beside = contrast([[(one.map, one.value or 0.0) for one in group] for group in texts])
    if beside is None or len({record.d for record in records}) > 1:
        return []
    searched = (
        "every word searched"
        if all(map(_whole, records))
        else "of some maps only a sample of words searched"
    )
    return [replace(beside, known=f"Lower bounds on both sides, d = {records[0].d}; {searched}.")]


def _whole(record: Record) -> bool:
    return record.words == record.n


def word_of(record: Record) -> str:
    """The most sensitive word as it is written: the whole word that its token is of."""
    whole = json.loads(record.whole_words) if record.whole_words else ()
    return next(
        (word for word, rows in whole if record.word in rows), record.token or f"#{record.word}"
    )


def _of_map(records: Sequence[Record]) -> Finding:
    """One map: on a text the word that moves it most; over several the median, and the most
    sensitive text."""
    ordered = sorted(records, key=lambda record: record.value or 0.0)
    least, most = ordered[0], ordered[-1]
    number = f"{times(median(record.value or 0.0 for record in records))} times"
    which = "word" if all(map(_whole, records)) else "of the words searched"
    pushed = f"its vector pushed by at most {times(most.radius or 0.0)}"
    moves = f"ne {which}, {pushed}, can move {plain_name(most.map)} {number} its size"
    surety = [ATTAINED]
    if len(records) == 1:
        sentence = f"O{moves}: “{word_of(most)}”."
        known = f"At least this; {most.words} of {most.n} words searched"
    else:
        sentence = (
            f"In the median of {len(records)} texts o{moves}; most of all "
            f"“{word_of(most)}” "
            f"in {most.source}, "
        )
        sentence += f"by {times(most.value or 0.0)}."
        known = (
            f"Each true number is at least this; {times(least.value or 0.0)} in the least "
            "sensitive text"
        )
    uppers = [record.upper for record in records if record.upper is not None]
    if len(uppers) == len(records):
        sure = (
            "certified" if all(record.rigor == CERTIFIED for record in records) else str(most.rigor)
        )
        known += (
            f"; {'median of the upper bounds' if len(uppers) > 1 else 'upper bound'} "
            f"{times(median(uppers))} ({sure})"
        )
        surety += [SURE] if sure == "certified" else []
    if len(records) == 1 and most.predicted is not None:
        known += f"; predicted for {most.predicted_of}: {times(most.predicted)}"
        known += (
            "" if most.predicted_in_range else " (not compared with measurements at such sizes)"
        )
        surety.append(PREDICTED)
    running = round(sum((record.words or 0) * (1 - record.converged) for record in records))
    if running:
        known += f"; {searches_running(running, sum(record.words or 0 for record in records))}"
    exponent = _exponent(records)
    if exponent is not None:
        sizes = [record.n for record in records]
        sentence += f" From {min(sizes)} to {max(sizes)} words it {behaviour(exponent)}: "
        sentence += f"exponent {exponent}."
        known += f"; exponent: {FITTED}"
        surety += [INTERVAL]
    return Finding(number, sentence, f"{known}.", tuple(surety))


def _exponent(records: Sequence[Record]) -> Estimate | None:
    """None for texts of few lengths, or of nearly one: their slope would be all noise."""
    sizes, values = [record.n for record in records], [record.value or 0.0 for record in records]
    texts = [record.source or record.cell for record in records]
    fit = None if unfit_for_power_law(sizes) else power_law(sizes, values, texts)
    return fit and fit[0]


def comparison(runs: Sequence[Run], most: int = 8) -> list[Finding]:
    """For each series that two runs or more have: how they differ at the longest length they share,
    if they do."""
    series = {run.name: _series(run) for run in runs}
    findings = []
    for key in dict.fromkeys(key for group in series.values() for key in group):
        group = [(name, one[key]) for name, one in series.items() if key in one]
        for at, (first, one) in enumerate(group):
            findings += [
                _difference(first, one, second, other) for second, other in group[at + 1 :]
            ]
    return [one for one in findings if one is not None][:most]


def _series(run: Run) -> dict[tuple[Any, ...], Series]:
    records = [
        record
        for part in run.parts
        if part.name == "sensitivity"
        for record in part.done
        if record.text != GIVEN
    ]
    return {(one.map, one.text, one.d, one.varied): one for one in sensitivity_series(records)}


def _difference(first: str, one: Series, second: str, other: Series) -> Finding | None:
    points = {point.n: point for point in other.points}
    common = [(point, points[point.n]) for point in one.points if point.n in points]
    common = [pair for pair in common if all(point.value.low is not None for point in pair)]
    if not common:
        return None
    a, b = common[-1]
    gap = difference(b.value, a.value)
    number = str(gap)
    if gap.value == 0:
        verdict = number = "equal"
    elif ends(gap)[0] <= 0 <= ends(gap)[1]:
        verdict = f"no difference can be told ({number})"
    else:
        if gap.value < 0:
            number = str(difference(a.value, b.value))
        verdict = f"{second} is {'higher' if gap.value > 0 else 'lower'} by {number}"
    sentence = (
        f"{map_title(one.map)} on {text_and_keys(one)}, {a.n} words: S is "
        f"{times(a.value.value)} in {first}, {times(b.value.value)} in {second}; {verdict}."
    )
    known = (
        f"Means of {a.value.n} and {b.value.n} draws; [95 % confidence interval] of the difference."
    )
    return Finding(number, sentence, known, (ATTAINED, INTERVAL))
