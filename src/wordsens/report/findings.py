"""The sentences of every report, terminal and page: from records to findings, each with how sure it is."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from wordsens.certificates.base import CERTIFIED
from wordsens.display.content import Finding, times
from wordsens.errors import InputError
from wordsens.evaluation.audit.cell import audited
from wordsens.evaluation.audit.comparison import AuditChange
from wordsens.evaluation.audit.summary import PLACES, AuditSummary, Reaction, place_of, summarise_audit
from wordsens.evaluation.audit.text import AuditedText, AuditedWord
from wordsens.evaluation.length import LengthAdvice
from wordsens.findings.sensitivity import contrast
from wordsens.maps.registry import map_title, plain_name
from wordsens.report.load import Part, Run
from wordsens.statistics.mean import student
from wordsens.statistics.power_law import LEAST_RANGE, LEAST_TEXTS, Trend, exponent_interval, fit_power_law
from wordsens.studies.sensitivity.series import Series, sensitivity_series
from wordsens.studies.sensitivity.summary import text_and_keys
from wordsens.sweeps.experiment import grouped
from wordsens.sweeps.measurement import GIVEN
from wordsens.sweeps.store import Record
from wordsens.text.english import KINDS, kind_of

FEWEST_DRAWS = 3
"""Fewer draws say too little of their spread."""

RESAMPLES = 2000
"""The ends of a 95 % interval are then the 50th and the 1950th of them."""

FILE = "findings.json"
"""In the folder of an audit: the findings that its command printed, by the audit's name."""

ATTAINED, SURE, PREDICTED, INTERVAL = "attained", "certified", "predicted", "95 % interval"


def run_findings(run: Run) -> list[Finding]:
    """The sentences of a run: its parts', then the cells that failed."""
    findings = [finding for part in run.parts if part.done for finding in _of_part(part, run.folder)]
    if run.failed:
        first = run.failed[0].error or "no reason given"
        count, total = len(run.failed), len(run.records)
        sentence = f"{count:,} of {total:,} measurements failed, and no number here stands for them. The first: {first}"
        findings.append(Finding(f"{count:,}", sentence, "Counted; every one is listed in the tables.", ()))
    return findings


def _of_part(part: Part, folder: Path) -> list[Finding]:
    if part.name == "audit":
        groups = grouped(part.done, lambda record: record.columns.get("audit"))
        return [one for (name,), group in groups.items() for one in _of_audit(str(name), group, folder)]
    try:
        summary = part.summary
    except InputError as error:  # records that differ in more than these sentences tell
        return [Finding("", f"These records are not summarized in sentences: {error}.", "See the tables.", ())]
    if summary is None:
        values = [record.value for record in part.done]
        sentence = f"{len(values):,} cells were measured; their values lie from {min(values):.3g} to {max(values):.3g}."
        return [Finding(f"{len(values):,}", sentence, "Counted.", ())]
    given = [record for record in part.done if part.name == "sensitivity" and record.text == GIVEN]
    (first, rest) = given_findings(given) if given else ((), ())
    return [*first, *summary.findings, *rest]


def given_findings(records: Sequence[Record]) -> tuple[list[Finding], list[Finding]]:
    """Texts that a user gave: attention beside a fully connected layer; and each map, the most sensitive first."""
    groups = sorted(grouped(records, "map").values(), key=lambda group: -median(one.value or 0.0 for one in group))
    return list(_contrasts(records)), [_of_one(group[0]) if len(group) == 1 else _of_many(group) for group in groups]


def _contrasts(records: Sequence[Record]) -> Iterator[Finding]:
    """The most and the least sensitive family on one text and one d, where it is one text."""
    texts = grouped(records, lambda record: record.columns.get("text_content"), "d")
    if len(texts) != 1:
        return
    (group,) = texts.values()
    if (beside := contrast([(one.map, one.value or 0.0) for one in group])) is not None:
        searched = "every word searched" if all(map(_whole, group)) else "of some maps only a sample of words searched"
        sentence = f"{beside.sentence.removesuffix('.')}, in the given text of {group[0].n} words."
        known = f"Attained, on one text, d = {group[0].d}; {searched}."
        yield replace(beside, sentence=sentence, known=known)


def _whole(record: Record) -> bool:
    return record.words == record.n


def word_of(record: Record) -> str:
    """The most sensitive word as it is written: the whole word that its token is of."""
    whole = json.loads(record.whole_words) if record.whole_words else ()
    return next((word for word, rows in whole if record.word in rows), record.token or f"#{record.word}")


def _of_one(record: Record) -> Finding:
    value = record.value or 0.0
    subject = "The word" if _whole(record) else f"Of the {record.words} words searched (of {record.n}) the one"
    sentence = (
        f"{subject} that moves {plain_name(record.map)} most is “{word_of(record)}”: by {times(value)} times the size "
        f"of the output."
    )
    known = f"In a text of {record.n} words; {'every word' if _whole(record) else f'{record.words} words'} searched"
    surety = [ATTAINED]
    if record.upper is not None:
        sure = "certified" if record.rigor == CERTIFIED else record.rigor
        known += f"; {'no word' if _whole(record) else 'none of these words'} can move it by more than "
        known += f"{times(record.upper)} ({sure})"
        surety += [SURE] if record.rigor == CERTIFIED else []
    if record.predicted is not None:
        known += f"; predicted for {record.predicted_of}: {times(record.predicted)}"
        known += "" if record.predicted_in_range else " (not compared with measurements at such sizes)"
        surety.append(PREDICTED)
    return Finding(f"{times(value)}×", sentence, f"{known}.", tuple(surety))


def _of_many(records: Sequence[Record]) -> Finding:
    values = sorted(record.value or 0.0 for record in records)
    middle = median(values)
    which = "most sensitive word" if all(map(_whole, records)) else "most sensitive of the words searched"
    sentence = (
        f"Over {len(records)} texts, the {which} moves {plain_name(records[0].map)} by {times(middle)} times the size "
        f"of its output in the median text; by {times(values[0])} in the least and {times(values[-1])} in the most "
        "sensitive."
    )
    known = "Each true number is at least this"
    surety = [ATTAINED]
    uppers = [record.upper for record in records if record.upper is not None]
    if len(uppers) == len(records):
        sure = "certified" if all(record.rigor == CERTIFIED for record in records) else str(records[0].rigor)
        known += f"; upper bounds have the median {times(median(uppers))} ({sure})"
        surety += [SURE] if sure == "certified" else []
    law = _trend(records)
    if law is not None:
        sizes = [record.n for record in records]
        sentence += f" From {min(sizes)} to {max(sizes)} words it {law.behaviour}: {law.text}."
        known += f"; exponent: {law.how}"
        surety += [INTERVAL]
    return Finding(f"{times(middle)}×", sentence, f"{known}.", tuple(surety))


def _trend(records: Sequence[Record]) -> Trend | None:
    """None for few texts, or texts of nearly one length: their slope would be all noise."""
    sizes, values = [record.n for record in records], [record.value or 0.0 for record in records]
    if len(records) < LEAST_TEXTS or max(sizes) < LEAST_RANGE * min(sizes) or min(values) <= 0:
        return None
    interval = exponent_interval(sizes, values, [record.source or record.cell for record in records])
    return Trend.of(fit_power_law(sizes, values), interval)


def comparison(runs: Sequence[Run], most: int = 8) -> list[Finding]:
    """For each series that two runs or more have: how they differ at the longest length they share, if they do."""
    series = {run.name: _series(run) for run in runs}
    findings = []
    for key in dict.fromkeys(key for group in series.values() for key in group):
        group = [(name, one[key]) for name, one in series.items() if key in one]
        for at, (first, one) in enumerate(group):
            findings += [_difference(first, one, second, other) for second, other in group[at + 1 :]]
    return [one for one in findings if one is not None][:most]


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
    squares = [point.standard_deviation**2 / point.draws for point in (a, b)]
    # Welch and Satterthwaite's degrees of freedom.
    parts = sum(square**2 / (point.draws - 1) for square, point in zip(squares, (a, b), strict=True))
    error = student(sum(squares) ** 2 / parts) * math.sqrt(sum(squares)) if parts else 0.0
    if gap == 0:
        verdict = "they are equal"
    elif abs(gap) <= error:
        verdict = f"no difference can be told ({gap:+.2g} ± {error:.2g})"
    else:
        verdict = f"{second} is {'higher' if gap > 0 else 'lower'} by {abs(gap):.2g} ± {error:.2g}"
    sentence = (
        f"{map_title(one.map)} on {text_and_keys(one)}, {a.n} words: {times(a.mean)} in {first}, {times(b.mean)} in "
        f"{second}; {verdict}."
    )
    known = f"Means of {a.draws} and {b.draws} draws; ±: 95 % interval of the difference, Student's t."
    return Finding(f"{gap:+.2g}", sentence, known, (ATTAINED, INTERVAL))


# Audits


def save_findings(folder: Path, audit: str, findings: Sequence[Finding]) -> None:
    """Write an audit's findings, advice included, for its report."""
    path = folder / FILE
    saved = _saved(folder) | {audit: [asdict(one) for one in findings]}
    path.write_text(json.dumps(saved, ensure_ascii=False, indent=1), encoding="utf-8")


def _saved(folder: Path) -> dict[str, list[dict[str, Any]]]:
    try:
        return json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _of_audit(audit: str, records: Sequence[Record], folder: Path) -> list[Finding]:
    """The findings that the audit's command printed, where it wrote them down; else those of its records."""
    saved = _saved(folder).get(audit)
    if saved is not None:
        rows: list[dict[str, Any]] = [
            {name: tuple(value) if isinstance(value, list) else value for name, value in finding.items()}
            for finding in saved
        ]
        return [Finding(**row) for row in rows]
    texts = [audited(record) for record in records]
    return audit_findings(texts, summarise_audit(texts, Counter()))


def audit_findings(
    texts: Sequence[AuditedText],
    summary: AuditSummary,
    *,
    advice: LengthAdvice | None = None,
    changes: Sequence[AuditChange] | None = None,
) -> list[Finding]:
    """What an audit says, the most important first, each with what to do; none whose interval includes its opposite."""
    return [
        *_changed(changes),
        *_advice(advice),
        *_negations(texts),
        *_reactions(summary),
        *_places(texts),
        *_lengths(summary),
        *_cut(texts),
        *_swaps(texts),
        *_reach(texts),
        *_kinds(texts),
    ]


def mean_intervals(*samples: Sequence[Sequence[float]]) -> list[tuple[float, float]] | None:
    """95 % intervals of the means over words, and of the first less each other: bootstrap over texts.

    Every sample has a list a text, in one order of texts, which does not matter. None where fewer than five texts have
    words of each.

    >>> mean_intervals([[1.0]] * 5, [[0.5]] * 5)
    [(1.0, 1.0), (0.5, 0.5), (0.5, 0.5)]
    """
    if min(sum(map(bool, sample)) for sample in samples) < LEAST_TEXTS:
        return None
    ordered = zip(*sorted(zip(*samples, strict=True)), strict=True)
    drawn = np.random.default_rng(0).integers(len(samples[0]), size=(RESAMPLES, len(samples[0])))
    means = []
    for sample in ordered:
        sums, counts = np.array([math.fsum(values) for values in sample]), np.array([len(values) for values in sample])
        with np.errstate(invalid="ignore", divide="ignore"):  # a draw may have no word of a kind
            means.append(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1))
    means += [means[0] - other for other in means[1:]]
    return [(float(low), float(high)) for low, high in (np.nanquantile(one, (0.025, 0.975)) for one in means)]


def _by_text(texts: Sequence[AuditedText], measure: str, kind: str = "", place: str = "") -> list[list[float]]:
    """A measure of the words of a kind or place, a list a text."""

    def fits(word: AuditedWord) -> bool:
        return kind in ("", kind_of(word.word)) and place in ("", place_of(word.place))

    return [
        [value for word in text.measured if fits(word) and not math.isnan(value := getattr(word, measure))]
        for text in texts
    ]


def _mean(sample: Sequence[Sequence[float]]) -> float:
    values = [value for group in sample for value in group]
    return math.fsum(values) / len(values)


def _bootstrap(*samples: Sequence[Sequence[float]]) -> str:
    counts = " and ".join(str(sum(map(len, sample))) for sample in samples)
    return f"Measured on {counts} words of {len(samples[0])} texts; 95 % interval, bootstrap over texts."


def _changed(changes: Sequence[AuditChange] | None) -> Iterator[Finding]:
    if changes is None:
        return
    certain = [change for change in changes if change.certain]
    for change in certain[:3]:
        way = "grew" if change.difference.value > 0 else "fell"
        sentence = (
            f"Since the earlier audit the {change.measure} of {change.kind}s {way} from {times(change.before)} to "
            f"{times(change.after)}. Look at what changed in the model before you compare its scores with earlier ones."
        )
        known = f"Change {change.difference}, 95 % over {change.texts} texts."
        yield Finding(times(change.difference.value), sentence, known, (INTERVAL,))
    if not certain:
        texts = max((change.texts for change in changes), default=0)
        sentence = f"Since the earlier audit no kind of word changed beyond chance ({texts} texts in both)."
        yield Finding("0", sentence, "95 % intervals over texts.", ())


def _advice(advice: LengthAdvice | None) -> Iterator[Finding]:
    if advice is None:
        return
    sentence = advice.advice[0].upper() + advice.advice[1:]
    known = f"95 %, {advice.changes} changed sentences."
    if advice.length is not None and advice.decisive:
        sentence = f"{sentence}. Cut longer texts into passages of that length."
        yield Finding(f"{advice.length}", sentence, known, (INTERVAL,))
    elif advice.length is None and advice.high is not None and advice.low is None:
        sentence = (
            f"Even passages of {advice.high} {advice.unit} lose a {advice.kind}: its cosine stays over "
            f"{advice.threshold:g}. Decide such cases by a reranker or a classifier; only single short sentences could "
            "keep it."
        )
        yield Finding(f"{advice.high}", sentence, known, (INTERVAL,))
    elif advice.length is None and advice.low is not None:
        sentence = (
            f"A {advice.kind} brings the cosine under {advice.threshold:g} in passages of {advice.low} {advice.unit}. "
            "Passages of that length keep it."
        )
        yield Finding(f"{advice.low}", sentence, known, (INTERVAL,))


def _negations(texts: Sequence[AuditedText]) -> Iterator[Finding]:
    """The weight of a "not" beside that of a word of content, where an interval of the difference is known."""
    first, second = _by_text(texts, "removal", "negation"), _by_text(texts, "removal", "content word")
    if not any(first) or not any(second) or (intervals := mean_intervals(first, second)) is None:
        return
    low, high = intervals[2]
    gap = f"difference {times(_mean(first) - _mean(second))} ({times(low)} to {times(high)})"
    means = f"{times(_mean(first))} of its size", times(_mean(second))
    if low <= 0 <= high:
        sentence = (
            f"Taking out a “not” or its like moves the output by {means[0]}, a word of content by {means[1]}; these "
            f"texts do not tell which counts for more: {gap}."
        )
    else:
        do = (
            "Do not trust a similarity to tell a statement from its opposite; `wordsens check` measures it."
            if high < 0
            else "Look at how texts are cut: a lost “not” is felt."
        )
        sentence = (
            f"Taking out a “not” or its like moves the output {'less' if high < 0 else 'more'} than taking out a word "
            f"of content: by {means[0]} against {means[1]}; {gap}. {do}"
        )
    yield Finding(times(_mean(first)), sentence, _bootstrap(first, second), (INTERVAL,))


def _reactions(summary: AuditSummary) -> Iterator[Finding]:
    groups = (
        ("moves its texts more than their other words do", summary.overreacts, "Drop it, or write it in one way."),
        ("moves them less", summary.ignores, "Do not rely on it to tell texts apart."),
    )
    for how, listed, do in groups:
        for one in listed[:2]:
            sentence = f"“{one.word}” {how}: {times(one.ratio)} times as far ({_ends(one)}), in {one.texts} texts. {do}"
            known = (
                f"95 % interval of the median, by order statistics; of {summary.compared} words compared, about one in "
                "forty is listed by chance."
            )
            yield Finding(f"{times(one.ratio)}×", sentence, known, (INTERVAL,))


def _ends(one: Reaction) -> str:
    return f"{times(one.low)} to {'any' if math.isinf(one.high) else times(one.high)}"


def _places(texts: Sequence[AuditedText]) -> Iterator[Finding]:
    first, last = (_by_text(texts, "removal", place=place) for place in (PLACES[0], PLACES[2]))
    if not any(first) or not any(last) or (intervals := mean_intervals(first, last)) is None:
        return
    low, high = intervals[2]
    if not low <= 0 <= high:
        side, weak = ("beginning", "end") if low > 0 else ("end", "beginning")
        sentence = (
            f"Words at the {side} of a text count for more: taking one out moves the output by {times(_mean(first))} "
            f"in the first fifth and {times(_mean(last))} in the last (difference {times(low)} to {times(high)}). Do "
            f"not hide what matters at the {weak}."
        )
        yield Finding(times(_mean(first) - _mean(last)), sentence, _bootstrap(first, last), (INTERVAL,))


def _lengths(summary: AuditSummary) -> Iterator[Finding]:
    for kind, measures in summary.exponents.items():
        fit = measures["removal"].fit
        if fit is None or fit.interval[0] <= 0 <= fit.interval[1]:
            continue
        low, high = fit.interval
        do = "Shorter passages tell texts apart by single words." if fit.exponent < 0 else "Longer passages do no harm."
        sentence = (
            f"In a text twice as long {_NAMES[kind]} counts for {'less' if fit.exponent < 0 else 'more'}: "
            f"{times(2**fit.exponent)} times as much ({times(2**low)} to {times(2**high)}). {do}"
        )
        known = f"Exponent {fit.exponent:.2f}; 95 % interval, jackknife over {measures['removal'].texts} texts."
        yield Finding(f"{times(2**fit.exponent)}×", sentence, known, (INTERVAL,))


def _cut(texts: Sequence[AuditedText]) -> Iterator[Finding]:
    lost = sum(text.words_lost for text in texts)
    if lost:
        cut, negations = sum(text.words_lost > 0 for text in texts), sum(text.negations_lost for text in texts)
        sentence = (
            f"{lost:,} words were never read, {negations:,} negation{'' if negations == 1 else 's'} among them: {cut} "
            f"of {len(texts)} texts are longer than what is read. Raise --max-words, or cut the texts."
        )
        yield Finding(f"{lost:,}", sentence, "Counted.", ())


def _swaps(texts: Sequence[AuditedText]) -> Iterator[Finding]:
    swapped = [word for text in texts for word in text.measured if not math.isnan(word.swap)]
    if not swapped:
        return
    best, sample = max(swapped, key=lambda word: word.swap), _by_text(texts, "swap")
    intervals = mean_intervals(sample)
    spread = f" ({times(intervals[0][0])} to {times(intervals[0][1])})" if intervals else ""
    sentence = (
        f"Another word that a writer could have meant moves the output by {times(_mean(sample))} of its size at "
        f"most, on average{spread}; the farthest is “{best.swapped_for}” for “{best.word}”, {times(best.swap)}. Look "
        "at these pairs in the records."
    )
    yield Finding(times(best.swap), sentence, _bootstrap(sample), (ATTAINED, *((INTERVAL,) if intervals else ())))


def _reach(texts: Sequence[AuditedText]) -> Iterator[Finding]:
    sample = _by_text(texts, "sensitivity")
    intervals = mean_intervals(sample) if any(sample) else None
    if intervals is not None:
        low, high = intervals[0]
        sentence = (
            f"Moved freely within its own length, one word reaches {times(_mean(sample))} of the output's size on "
            f"average ({times(low)} to {times(high)}). Odd tokens can do that too: clean the texts of signs and code "
            "that nobody wrote."
        )
        yield Finding(times(_mean(sample)), sentence, _bootstrap(sample), (ATTAINED, INTERVAL))


_NAMES = {
    "negation": "a negation",
    "function word": "a function word",
    "content word": "a content word",
    "number or sign": "a number or sign",
}


def _kinds(texts: Sequence[AuditedText]) -> Iterator[Finding]:
    """The mean effect of every kind of word."""
    samples = {kind: sample for kind in KINDS if any(sample := _by_text(texts, "removal", kind))}
    said = []
    for kind, sample in samples.items():
        intervals = mean_intervals(sample)
        spread = f" ({times(intervals[0][0])} to {times(intervals[0][1])})" if intervals else ""
        said.append(f"{_NAMES[kind]} {times(_mean(sample))}{spread}")
    sentence = f"Taking out a word moves the output by so much of its size, on average: {'; '.join(said)}."
    known = f"In brackets: 95 % intervals, bootstrap over texts, where there are {LEAST_TEXTS} texts or more."
    yield Finding(times(_mean(_by_text(texts, "removal"))), sentence, known, (INTERVAL,))
