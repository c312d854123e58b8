"""Sentences about texts that a user gave: the word that moves each map most, and how sure that is."""

import json
from collections import defaultdict
from collections.abc import Sequence
from statistics import median

from wordsens.certificates.base import CERTIFIED as PROVED
from wordsens.experiments.sensitivity import plain_name
from wordsens.experiments.store import Record
from wordsens.report.findings.finding import ATTAINED, CERTIFIED, INTERVAL, PREDICTED, Finding, times
from wordsens.statistics.power_law import LEAST_RANGE, LEAST_TEXTS, exponent_interval, fit_power_law
from wordsens.statistics.trend import BOOTSTRAP, Trend


def measured_findings(records: Sequence[Record]) -> list[Finding]:
    """A sentence for each map, over the given texts; the maps that a word moves most come first."""
    by_map: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_map[record.map].append(record)
    groups = sorted(by_map.values(), key=lambda own: -median(record.value or 0.0 for record in own))
    return [_of_one(own[0]) if len(own) == 1 else _of_many(own) for own in groups]


def word_of(record: Record) -> str:
    """The most sensitive word as it is written: the whole word that its token is of."""
    whole = json.loads(record.whole_words) if record.whole_words else ()
    return next((word for word, rows in whole if record.word in rows), record.token or f"#{record.word}")


def _of_one(record: Record) -> Finding:
    value, whole = record.value or 0.0, record.words == record.n
    sentence = (
        f"The word that moves {plain_name(record.map)} most is “{word_of(record)}”: by {times(value)} times the size "
        f"of the output, in a text of {record.n} words."
    )
    known = f"Attained, {'every word' if whole else f'{record.words} words'} searched: the true number is at least this"
    surety = [ATTAINED]
    if record.upper is not None:
        sure = "certified" if record.rigor == PROVED else record.rigor
        known += f"; {'no word' if whole else 'none of these words'} can move it by more than {times(record.upper)} "
        known += f"({sure})"
        surety += [CERTIFIED] if record.rigor == PROVED else []
    if record.predicted is not None:
        known += f"; predicted for {record.predicted_of}: {times(record.predicted)}"
        known += "" if record.predicted_in_range else " (not compared with measurements at such sizes)"
        surety.append(PREDICTED)
    return Finding(f"{times(value)}×", sentence, known + ".", tuple(surety))


def _of_many(records: Sequence[Record]) -> Finding:
    values = sorted(record.value or 0.0 for record in records)
    middle = median(values)
    sentence = (
        f"Over {len(records)} texts, the most sensitive word moves {plain_name(records[0].map)} by {times(middle)} "
        f"times the size of its output in the median text; by {times(values[0])} in the least and {times(values[-1])} "
        "in the most sensitive."
    )
    known = "Attained: each true number is at least this"
    surety = [ATTAINED]
    uppers = [record.upper for record in records if record.upper is not None]
    if len(uppers) == len(records):
        sure = "certified" if all(record.rigor == PROVED for record in records) else str(records[0].rigor)
        known += f"; upper bounds have the median {times(median(uppers))} ({sure})"
        surety += [CERTIFIED] if sure == "certified" else []
    law = _trend(records)
    if law is not None:
        sizes = [record.n for record in records]
        sentence += f" From {min(sizes)} to {max(sizes)} words it {law.behaviour}: {law.told}."
        known += f"; exponent: {law.how}"
        surety += [INTERVAL] if law.how == BOOTSTRAP else []
    return Finding(f"{times(middle)}×", sentence, known + ".", tuple(surety))


def _trend(records: Sequence[Record]) -> Trend | None:
    """None for few texts, or texts of nearly one length: their slope would be all noise."""
    sizes, values = [record.n for record in records], [record.value or 0.0 for record in records]
    if len(records) < LEAST_TEXTS or max(sizes) < LEAST_RANGE * min(sizes) or min(values) <= 0:
        return None
    interval = exponent_interval(sizes, values, [record.source or record.cell for record in records])
    return Trend.of(fit_power_law(sizes, values), interval)
