"""What an audit says: its findings, each with what to do, for terminal, JSON and report; and its
tables."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

from wordsens.display.content import (
    Display,
    Finding,
    Findings,
    Section,
    Strong,
    Table,
    percent,
    times,
)
from wordsens.evaluation.audit.cell import audited
from wordsens.evaluation.audit.result import Audit
from wordsens.evaluation.audit.summary import AuditChange, AuditSummary, Reaction, summarise_audit
from wordsens.evaluation.audit.text import AuditedText, AuditedWord
from wordsens.evaluation.length import LengthAdvice
from wordsens.intervals import least_values
from wordsens.sensitivity.substitution import SubstitutionSensitivity
from wordsens.sweeps.store import Record
from wordsens.text.english import KINDS, PLACES, kind_of, place_of
from wordsens.text.whole_words import TAKEN_APART, takes_apart

LEAST_TEXTS = 5
"""Fewer texts give no bootstrap interval: four have 35 different samples."""

RESAMPLES = 2000
"""The ends of a 95 % interval are then the 50th and the 1950th of them."""

FILE = "findings.json"
"""In the folder of an audit: the findings that its command printed, by the audit's name."""

INTERVAL = ("95 % interval",)

MOST = 10
"""Findings that are shown at once."""

_NAMED = 5
"""Texts that are named where more were cut, left out or failed; the JSON document names all."""


def audit_findings(
    texts: Sequence[AuditedText],
    summary: AuditSummary,
    *,
    advice: LengthAdvice | None = None,
    changes: Sequence[AuditChange] | None = None,
) -> list[Finding]:
    """What an audit says, the most important first, each with what to do; none whose interval
    includes its opposite."""
    return [
        *_changes(changes),
        *_advice(advice),
        *_negations(texts),
        *_reactions(summary),
        *_places(texts),
        *_lengths(summary),
        *_cut(texts),
        *_swaps(texts),
        *_kinds(texts),
    ]


def findings_of(audit: Audit) -> list[Finding]:
    """The findings of an audit in memory."""
    texts = [audited(record) for record in audit.records if record.done]
    return audit_findings(texts, audit.summary, advice=audit.advice, changes=audit.changes)


def save_findings(folder: Path, audit: str, findings: Sequence[Finding]) -> None:
    """Write an audit's findings, advice included, for its report."""
    saved = _saved(folder) | {audit: [asdict(finding) for finding in findings]}
    (folder / FILE).write_text(json.dumps(saved, ensure_ascii=False, indent=1), encoding="utf-8")


def findings_of_records(audit: str, records: Sequence[Record], folder: Path) -> list[Finding]:
    """The findings that the audit's command printed, where it wrote them down; else those of its
    records."""
    saved = _saved(folder).get(audit)
    if saved is None:
        texts = [audited(record) for record in records]
        return audit_findings(texts, summarise_audit(texts, Counter()))
    return [Finding(**_with_tuples(finding)) for finding in saved]


def _with_tuples(finding: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has lists for tuples."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in finding.items()
    }


def _saved(folder: Path) -> dict[str, list[dict[str, Any]]]:
    try:
        return json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def mean_intervals(*samples: Sequence[Sequence[float]]) -> list[tuple[float, float]] | None:
    """95 % intervals of the means over words, and of the first less each other: bootstrap over
    texts.

    Every sample has a list a text, in one order of texts, which does not matter. None where fewer
    than five texts have words of each.

    >>> mean_intervals([[1.0]] * 5, [[0.5]] * 5)
    [(1.0, 1.0), (0.5, 0.5), (0.5, 0.5)]
    """
    if min(sum(map(bool, sample)) for sample in samples) < LEAST_TEXTS:
        return None
    ordered = zip(*sorted(zip(*samples, strict=True)), strict=True)
    drawn = np.random.default_rng(0).integers(len(samples[0]), size=(RESAMPLES, len(samples[0])))
    means = []
    for sample in ordered:
        sums, counts = (
            np.array([math.fsum(values) for values in sample]),
            np.array([len(values) for values in sample]),
        )
        with np.errstate(invalid="ignore", divide="ignore"):  # a draw may have no word of a kind
            means.append(sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1))
    means += [means[0] - other for other in means[1:]]
    return [
        (float(low), float(high))
        for low, high in (np.nanquantile(draws, (0.025, 0.975)) for draws in means)
    ]


def _by_text(
    texts: Sequence[AuditedText], measure: str, kind: str = "", place: str = ""
) -> list[list[float]]:
    """A measure of the words of a kind or place, a list a text."""

    def wanted(word: AuditedWord) -> bool:
        return kind in ("", kind_of(word.word)) and place in ("", place_of(word.place))

    every = [[getattr(word, measure) for word in text.measured if wanted(word)] for text in texts]
    return [[value for value in values if not math.isnan(value)] for values in every]


def _moved(share: float) -> str:
    return f"a distance of {percent(share)} of its size"


def _mean(sample: Sequence[Sequence[float]]) -> float:
    values = [value for group in sample for value in group]
    return math.fsum(values) / len(values)


def _bootstrap(*samples: Sequence[Sequence[float]]) -> str:
    counts = " and ".join(str(sum(map(len, sample))) for sample in samples)
    return (
        f"Measured on {counts} words of {len(samples[0])} texts; 95 % interval, bootstrap over "
        "texts."
    )


def _ends(interval: tuple[float, float], unit: Callable[[float], str] = percent) -> str:
    return f"{unit(interval[0])} to {'any' if math.isinf(interval[1]) else unit(interval[1])}"


def _changes(changes: Sequence[AuditChange] | None) -> Iterator[Finding]:
    if changes is None:
        return
    certain = [change for change in changes if change.certain]
    for change in certain[:3]:
        value, low, high = change.difference.value, change.difference.low, change.difference.high
        number = f"{percent(change.before)} to {percent(change.after)}"
        sentence = (
            f"Since the earlier audit the {change.measure} of {change.kind}s "
            f"{'grew' if value > 0 else 'fell'} from "
            f"{number} of the output's size, as a distance. Look at what changed in the model "
            "before you compare its "
            "scores with earlier ones."
        )
        known = f"Change {change.difference}, 95 % over {change.texts} texts."
        interval = None if low is None or high is None else (low, high)
        yield Finding(number, sentence, known, INTERVAL, value, interval)
    if not certain:
        texts = max((change.texts for change in changes), default=0)
        sentence = (
            f"Since the earlier audit no kind of word changed beyond chance ({texts} texts "
            "in both)."
        )
        yield Finding("no kind", sentence, "95 % intervals over texts.", (), 0.0)


def _advice(advice: LengthAdvice | None) -> Iterator[Finding]:
    if advice is None:
        return
    under = ""
    if advice.length is not None and advice.decisive:
        number = advice.length
        sentence = (
            f"{advice.advice[0].upper()}{advice.advice[1:]}. Cut longer texts into "
            "passages "
            "of that length."
        )
    elif advice.length is None and advice.high is not None and advice.low is None:
        number, under = advice.high, "under "
        sentence = (
            f"Passages of {number} {advice.unit}, the shortest tried, lose a {advice.kind}: with "
            "it and without it "
            f"their cosine stays over {advice.threshold:g}. Decide such cases by a reranker or a "
            "classifier; "
            "“wordsens check” measures single sentences."
        )
    elif advice.length is None and advice.low is not None:
        number = advice.low
        sentence = (
            f"A {advice.kind} brings the cosine under {advice.threshold:g} in passages of {number} "
            f"{advice.unit}. "
            "Passages of that length keep it."
        )
    else:
        return
    interval = (
        None
        if advice.low is None or advice.high is None
        else (float(advice.low), float(advice.high))
    )
    known = f"95 %, {advice.changes} changed sentences: {advice.source}."
    yield Finding(
        f"{under}{number} {advice.unit}", sentence, known, INTERVAL, float(number), interval
    )


def _negations(texts: Sequence[AuditedText]) -> Iterator[Finding]:
    """The weight of a "not" beside that of a word of content, where an interval of the difference
    is known."""
    negations, content = (
        _by_text(texts, "removal", "negation"),
        _by_text(texts, "removal", "content word"),
    )
    if (
        not any(negations)
        or not any(content)
        or (intervals := mean_intervals(negations, content)) is None
    ):
        return
    (low, high), mean, other = intervals[2], _mean(negations), _mean(content)
    gap = f"difference {percent(mean - other)} ({_ends(intervals[2])})"
    if low <= 0 <= high:
        sentence = (
            f"Taking out a “not” or its like moves the output {_moved(mean)}, a word of content "
            f"{percent(other)}; "
            f"these texts do not tell which counts for more: {gap}."
        )
    else:
        advice = "Look at how texts are cut: a lost “not” is felt."
        if high < 0:
            advice = (
                "Do not trust a similarity to tell a statement from its opposite; “wordsens "
                "check” measures it."
            )
        sentence = (
            f"Taking out a “not” or its like moves the output {'less' if high < 0 else 'more'} "
            "than taking out a word "
            f"of content: {_moved(mean)} against {percent(other)}; {gap}. {advice}"
        )
    yield Finding(
        percent(mean), sentence, _bootstrap(negations, content), INTERVAL, mean, intervals[0]
    )


def _reactions(summary: AuditSummary) -> Iterator[Finding]:
    groups = (
        (
            "moves its texts more than their other words do",
            summary.overreacts,
            "Drop it, or write it in one way.",
        ),
        ("moves them less", summary.ignores, "Do not rely on it to tell texts apart."),
    )
    known = (
        f"95 % interval of the median, by order statistics; of {summary.compared} words compared, "
        "about one in forty "
        "is listed by chance."
    )
    for how, listed, advice in groups:
        for word in listed[:2]:
            interval = word.low, word.high
            sentence = (
                f"“{word.word}” {how}: {times(word.ratio)} times as far "
                f"({_ends(interval, times)}), in {word.texts} "
                f"texts. {advice}"
            )
            yield Finding(
                f"{times(word.ratio)} times", sentence, known, INTERVAL, word.ratio, interval
            )


def _places(texts: Sequence[AuditedText]) -> Iterator[Finding]:
    # Of one kind of word: the kinds are not spread evenly over a text.
    first, last = (
        _by_text(texts, "removal", "content word", place) for place in (PLACES[0], PLACES[2])
    )
    if not any(first) or not any(last) or (intervals := mean_intervals(first, last)) is None:
        return
    low, high = intervals[2]
    if not low <= 0 <= high:
        strong, weak = ("beginning", "end") if low > 0 else ("end", "beginning")
        difference = _mean(first) - _mean(last)
        sentence = (
            f"Words of content at the {strong} of a text count for more: taking one out moves the "
            "output "
            f"{_moved(_mean(first))} in the first fifth and {percent(_mean(last))} in the last "
            f"(difference {_ends((low, high))}). Do not hide what matters at the {weak}."
        )
        number = percent(_mean(first if low > 0 else last))
        yield Finding(number, sentence, _bootstrap(first, last), INTERVAL, difference, (low, high))


def _lengths(summary: AuditSummary) -> Iterator[Finding]:
    for kind, measures in summary.exponents.items():
        fit = measures["removal"].fit
        if fit is None or fit.low is None or fit.high is None or fit.low <= 0 <= fit.high:
            continue
        value, low, high = fit.value, fit.low, fit.high
        less = value < 0
        advice = (
            "Shorter passages tell texts apart by single words."
            if less
            else "Longer passages do no harm."
        )
        sentence = (
            f"In a text twice as long a {kind} counts for {'less' if less else 'more'}: "
            f"{times(2**value)} times as much ({times(2**low)} to {times(2**high)}). "
            f"{advice}"
        )
        known = (
            f"Exponent {value:.2f}; 95 % interval, Student's t over "
            f"{measures['removal'].texts} texts."
        )
        interval = 2**low, 2**high
        yield Finding(f"{times(2**value)} times", sentence, known, INTERVAL, 2**value, interval)


def _cut(texts: Sequence[AuditedText]) -> Iterator[Finding]:
    lost, negations = (
        sum(text.words_lost for text in texts),
        sum(text.negations_lost for text in texts),
    )
    if lost:
        cut = sum(text.words_lost > 0 for text in texts)
        sentence = (
            f"{lost:,} words were not read by this audit, {negations:,} "
            f"negation{'' if negations == 1 else 's'} among "
            f"them: {cut} of {len(texts)} texts are longer than its limit. Raise --max-words as "
            "far as the model "
            "reads; cut longer texts."
        )
        yield Finding(f"{lost:,} words", sentence, "Counted.", (), float(lost))


def _swaps(texts: Sequence[AuditedText]) -> Iterator[Finding]:
    swapped = [word for text in texts for word in text.measured if not math.isnan(word.swap)]
    if not swapped:
        return
    best, sample = max(swapped, key=lambda word: word.swap), _by_text(texts, "swap")
    intervals = mean_intervals(sample)
    spread = f" ({_ends(intervals[0])})" if intervals else ""
    sentence = (
        "The farthest word that a writer could have meant instead moves the output "
        f"{_moved(_mean(sample))} on "
        f"average{spread}; the farthest of all is “{best.swapped_for}” for “{best.word}”, "
        f"{percent(best.swap)}. Look "
        "at these pairs in the records."
    )
    surety = ("attained", *(INTERVAL if intervals else ()))
    yield Finding(percent(best.swap), sentence, _bootstrap(sample), surety, best.swap)


def _kinds(texts: Sequence[AuditedText]) -> Iterator[Finding]:
    """The mean effect of a word, and which kinds count for more than which others, where an
    interval says so."""
    samples = {f"a {kind}": _by_text(texts, "removal", kind) for kind in KINDS}
    samples = {kind: sample for kind, sample in samples.items() if any(sample)}
    lows = {
        (kind, other): intervals[2][0]
        for kind, other in permutations(samples, 2)
        if (intervals := mean_intervals(samples[kind], samples[other])) is not None
    }
    named = {kind: f"{kind} ({percent(_mean(sample))})" for kind, sample in samples.items()}
    above = {
        kind: [named[other] for other in samples if lows.get((kind, other), 0.0) > 0]
        for kind in samples
    }
    more = [
        f"{named[kind]} counts for more than {' and '.join(others)}"
        for kind, others in above.items()
        if others
    ]
    mean = _mean(_by_text(texts, "removal"))
    order = f": {'; '.join(more)}; otherwise" if more else "; between the kinds"
    found = f"{order} no difference was found" if lows else ""
    sentence = f"Taking out a word moves the output {_moved(mean)} on average{found}."
    known = f"More: so says the 95 % interval of the difference, bootstrap over {len(texts)} texts."
    yield Finding(
        percent(mean), sentence, known if lows else "Counted.", INTERVAL if lows else (), mean
    )


def display(audit: Audit) -> Display:
    """The findings first; then categories, words, layers and length; then what was not measured."""
    summary, findings = audit.summary, findings_of(audit)
    few = (
        f"Nothing is certain yet: a finding takes {LEAST_TEXTS} texts at least, often more; "
        "give "
        "more texts."
    )
    advice = (
        f"No advice on length: {audit.no_advice}" if audit.advice is None else audit.advice.show()
    )
    parts: list[Any] = [
        Findings(tuple(findings), most=MOST) if findings else few,
        _groups(audit),
        reactions(
            "Reacts to: function words that move a text more than its other words",
            summary.overreacts,
            summary,
        ),
        reactions(
            "Ignores: content words and negations that move a text less", summary.ignores, summary
        ),
        *([_layers(audit)] if audit.layers else []),
        *([_substitution(audit.substitution)] if audit.substitution is not None else []),
        Section("Length", (advice,)),
        *_not_measured(audit),
        f"Records: {audit.table} (audit {audit.name})",
    ]
    first = f"{audit.map_name}: {summary.words} words of {summary.texts} texts"
    return Display((first,), tuple(parts), failures=tuple(each.sentence for each in audit.unmet))


def _groups(audit: Audit) -> Table:
    groups = audit.summary.groups
    names = {"S": "sensitivity", "removal": "removal", "swap": "swap"}
    measured = {
        name: field
        for name, field in names.items()
        if any(getattr(g, field) is not None for g in groups)
    }
    rows = []
    for group in groups:
        values = [getattr(group, field) for field in measured.values()]
        rows.append(
            (
                group.category,
                group.count,
                *(None if value is None else f"{value:.3f}" for value in values),
            )
        )
    how = {
        "delete": "deleting it does",
        "mask": "masking it does; the mask token itself moves a model too",
    }
    note = f"All relative to the output's norm. removal: how far {how[audit.removal]}."
    if "S" in measured:
        note += (
            " S, of the words that were searched: how far the word could move the output "
            "within its own rows' "
        )
        note += "length, a lower bound."
    else:
        note += (
            " S was not measured: it takes a model with gradients, and --sensitivity-texts of at "
            "least 1."
        )
    return Table("", ("words", "count", *measured), tuple(rows), note, len(rows))


def reactions(title: str, words: Sequence[Reaction], summary: AuditSummary) -> Section:
    """The words of one list, or why there is none."""
    if words:
        rows = []
        for word in words:
            interval = f"{word.low:.2f} to {word.high:.2f}"
            name = Strong(word.word, "rise" if word.more else "fall")
            rows.append((name, f"{word.ratio:.2f}", interval, word.texts))
        return Section(title, (Table("", ("word", "times as far", "95 %", "texts"), tuple(rows)),))
    why = (
        f"None: of {summary.compared} words measured in {least_values()} texts or more, none "
        "does so beyond chance."
    )
    if not summary.compared:
        why = (
            f"Too few texts: no word was measured beside another in {least_values()} texts or more "
            "(the most: "
            f"{summary.most_texts}); measure more texts or words (--words-per-text)."
        )
    return Section(title, (why,))


def _layers(audit: Audit) -> Table:
    rows = []
    for layer in audit.layers:
        heads = [(f"{index}: {value:.3f}", value) for index, value in enumerate(layer.heads)]
        least, most = (end(heads, key=lambda head: head[1])[0] for end in (min, max))
        rows.append((str(layer.layer), f"{layer.sensitivity:.3f}", least, most))
    return Table("By layer", ("layer", "S", "least head", "most head"), tuple(rows), most=len(rows))


_NEIGHBOURS = ", of neighbouring words alone: on average too low"


def _substitution(swapped: SubstitutionSensitivity) -> Section:
    """The measures of the literature, each with its interval over texts."""
    texts = len(swapped.texts)
    means = {
        "average sensitivity": swapped.average,
        "block sensitivity": swapped.block,
        "random sensitivity": swapped.random,
        "labels changed": swapped.flips,
    }
    lines = [f"{name} {mean}" for name, mean in means.items() if mean is not None]
    fifths = ", ".join("none" if part is None else f"{part.value:.3g}" for part in swapped.profile)
    about = (
        "average: the variance that one random word makes, summed over words; block: the most that "
        f"disjoint blocks of words make together{'' if swapped.every_block else _NEIGHBOURS}; "
        "random: the mean change by one. In parentheses: 95 % over texts."
    )
    title = f"Random words of the same kind ({texts} text{'s' * (texts != 1)})"
    return Section(title, (*lines, f"profile, first to last fifth of a text: {fifths}", about))


def _not_measured(audit: Audit) -> list[str]:
    """Lines on texts that were copies, left out or failed: how many, and the first by name; and on
    words that are not whole."""
    apart = any(takes_apart(document.text) for document in audit.texts.documents)
    lines = [TAKEN_APART] if apart else []
    if audit.texts.copies:
        lines.append(
            f"copies: {audit.texts.copies} texts are equal to an earlier one, and were measured "
            "once"
        )
    left_out = [f"{source}: {reason}" for source, reason in audit.texts.left_out]
    failed = [f"{record.source}: {record.error}" for record in audit.failed]
    for what, named in (("left out", left_out), ("failed", failed)):
        if named:
            lines.append(f"{what}: {len(named)} texts: {_first(named)}")
    return lines


def _first(named: Sequence[str]) -> str:
    more = len(named) - _NAMED
    return "; ".join(named[:_NAMED]) + (f"; and {more} more" if more > 0 else "")
