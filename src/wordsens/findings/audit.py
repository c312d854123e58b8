"""What an audit says: its findings, each with what to do, for terminal, JSON and report; and its
tables."""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import Any

from wordsens.display.numbers import Estimate, column, percent, plural
from wordsens.display.view import Finding, Table, View
from wordsens.evaluation.audit.cell import audited
from wordsens.evaluation.audit.result import Audit
from wordsens.evaluation.audit.summary import AuditChange
from wordsens.evaluation.audit.text import AuditedText
from wordsens.evaluation.length import LengthAdvice
from wordsens.intervals import ends, mean_estimate
from wordsens.sweeps.store import Row
from wordsens.text.english import PLACES, kind_of, place_of
from wordsens.text.whole_words import TAKEN_APART, takes_apart

LEAST_TEXTS = 5
"""Fewer texts give no finding."""

_KNOWN = "Means over {} texts that have both; [95 % confidence interval], Student's t."

FILE = "findings.json"
"""In the folder of an audit: the findings that its command printed, by the audit's name."""

_NAMED = 5
"""Texts that are named where more were cut, left out or failed; the JSON document names all."""


def audit_findings(
    texts: Sequence[AuditedText],
    *,
    advice: LengthAdvice | None = None,
    changes: Sequence[AuditChange] | None = None,
) -> list[Finding]:
    """What an audit says, the most important first, each with what to do."""
    return [
        *_changes(changes),
        *_advice(advice),
        *_negations(texts),
        *_places(texts),
        *_cut(texts),
    ]


def findings_of(audit: Audit) -> list[Finding]:
    """The findings of an audit in memory."""
    texts = [audited(record) for record in audit.records if record["status"] == "done"]
    return audit_findings(texts, advice=audit.advice, changes=audit.changes)


def save_findings(folder: Path, audit: str, findings: Sequence[Finding]) -> None:
    """Write an audit's findings, advice included, for its report."""
    saved = _saved(folder) | {audit: [asdict(finding) for finding in findings]}
    (folder / FILE).write_text(json.dumps(saved, ensure_ascii=False, indent=1), encoding="utf-8")


def findings_of_records(audit: str, records: Sequence[Row], folder: Path) -> list[Finding]:
    """The findings that the audit's command printed, where it wrote them down; else those of its
    records."""
    saved = _saved(folder).get(audit)
    if saved is None:
        return audit_findings([audited(record) for record in records])
    return [Finding(finding["sentence"], finding["known"]) for finding in saved]


def _saved(folder: Path) -> dict[str, list[dict[str, Any]]]:
    try:
        return json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _differences(
    texts: Sequence[AuditedText], first: Sequence[str], second: Sequence[str]
) -> tuple[Estimate, Estimate, Estimate] | None:
    """The mean effect, over texts, of deleting words of two kinds and places, and the first minus
    the second over the texts that have both; None where fewer than LEAST_TEXTS have both."""
    pairs = [(_effect(text, *first), _effect(text, *second)) for text in texts]
    both = [(one, other) for one, other in pairs if one is not None and other is not None]
    if len(both) < LEAST_TEXTS:
        return None
    samples = [one for one, _ in both], [other for _, other in both], [a - b for a, b in both]
    one, other, difference = (mean_estimate(sample, over="texts") for sample in samples)
    return one, other, difference


def _effect(text: AuditedText, kind: str, place: str = "") -> float | None:
    """The mean effect in a text of deleting its words of a kind and place."""
    effects = [
        word.removal
        for word in text.measured
        if kind == kind_of(word.word)
        and place in ("", place_of(word.place))
        and not math.isnan(word.removal)
    ]
    return fmean(effects) if effects else None


def _percent(estimate: Estimate) -> str:
    return column([estimate], "%")[0]


def _changes(changes: Sequence[AuditChange] | None) -> Iterator[Finding]:
    if changes is None:
        return
    certain = [change for change in changes if change.certain]
    for change in certain[:3]:
        grew = "grew" if change.difference.value > 0 else "fell"
        yield Finding(
            f"Since the earlier audit the {change.measure} of {change.kind}s {grew} from "
            f"{percent(change.before)} to {percent(change.after)} of the output's size. Look at "
            "what changed in the model before you compare its scores with earlier ones.",
            f"Change {change.difference}, over {change.texts} texts.",
        )
    if not certain:
        texts = max((change.texts for change in changes), default=0)
        yield Finding(
            "Since the earlier audit no kind of word changed beyond chance "
            f"({texts} texts in both)."
        )


def _advice(advice: LengthAdvice | None) -> Iterator[Finding]:
    if advice is None:
        return
    if advice.length is not None and advice.decisive:
        sentence = (
            f"{advice.advice[0].upper()}{advice.advice[1:]}. Cut longer texts into passages of "
            "that length."
        )
    elif advice.length is None and advice.high is not None and advice.low is None:
        sentence = (
            f"Even in passages of {advice.high} {advice.unit}, the shortest tested, adding or "
            f"removing a {advice.kind} leaves the cosine above {advice.threshold:g}. Decide such "
            "cases with a reranker or a classifier; “wordsens check” measures single sentences."
        )
    elif advice.length is None and advice.low is not None:
        sentence = (
            f"A {advice.kind} brings the cosine below {advice.threshold:g} in passages of "
            f"{advice.low} {advice.unit}: passages of that length keep it."
        )
    else:
        return
    yield Finding(
        sentence, f"95 % confidence, {advice.changes} changed sentences: {advice.source}."
    )


def _negations(texts: Sequence[AuditedText]) -> Iterator[Finding]:
    """The effect of deleting a negation beside that of a content word."""
    found = _differences(texts, ["negation"], ["content word"])
    if found is None:
        return
    negation, content, difference = found
    low, high = ends(difference)
    sentence = (
        f"Deleting a negation changes the output by {percent(negation.value)} of its size; "
        f"deleting a content word, by {percent(content.value)} (difference "
        f"{_percent(difference)})."
    )
    if low <= 0 <= high:
        sentence += " No difference is claimed."
    elif high < 0:
        sentence += (
            " Do not trust a similarity to tell a statement from its opposite; “wordsens check” "
            "measures it."
        )
    yield Finding(sentence, _KNOWN.format(difference.n))


def _places(texts: Sequence[AuditedText]) -> Iterator[Finding]:
    # Of one kind of word: the kinds are not spread evenly over a text.
    found = _differences(texts, ["content word", PLACES[0]], ["content word", PLACES[2]])
    if found is None:
        return
    first, last, difference = found
    low, high = ends(difference)
    if not low <= 0 <= high:
        strong, weak = ("beginning", "end") if low > 0 else ("end", "beginning")
        yield Finding(
            f"Content words count for more at the {strong} of a text: deleting one changes the "
            f"output by {percent(first.value)} of its size in the first fifth and by "
            f"{percent(last.value)} in the last (difference {_percent(difference)}). Do not hide "
            f"what matters at the {weak}.",
            _KNOWN.format(difference.n),
        )


def _cut(texts: Sequence[AuditedText]) -> Iterator[Finding]:
    lost = sum(text.words_lost for text in texts)
    if lost:
        negations = sum(text.negations_lost for text in texts)
        cut = sum(text.words_lost > 0 for text in texts)
        yield Finding(
            f"{plural(lost, 'word')} were not read by this audit, {plural(negations, 'negation')} "
            f"among them: {cut} of {len(texts)} texts are longer than its limit. Raise --max-words "
            "as far as the model reads; cut longer texts."
        )


def view(audit: Audit) -> View:
    """The findings first; then categories, words, layers and length; then what was not measured."""
    summary, findings = audit.summary, findings_of(audit)
    few = (
        f"No finding: an interval takes at least {LEAST_TEXTS} texts, often more; give more texts."
    )
    advice = (
        f"No advice on length: {audit.no_advice}" if audit.advice is None else audit.advice.show()
    )
    parts: list[Any] = [
        *(findings or [few]),
        _groups(audit),
        _layers(audit),
        View("Length", (advice,)),
        *_not_measured(audit),
        f"Records: {audit.table} (audit {audit.name})",
    ]
    first = f"{audit.map_name}: {summary.words} words of {summary.texts} texts"
    missing = [*audit.texts.left_out, *((each["source"], each["error"]) for each in audit.failed)]
    for source, reason in missing[:1]:
        count = plural(len(missing), "text")
        first += f"; {count} not measured (the first, {source}: {reason})"
    return View(first, tuple(parts), failures=tuple(each.sentence for each in audit.unmet))


def _groups(audit: Audit) -> Table:
    groups = audit.summary.groups
    names = {"removal": "removal", "S": "sensitivity", "swap": "swap"}
    columns: dict[str, list[Any]] = {
        "words": [group.category for group in groups],
        "count": [group.count for group in groups],
    }
    for title, field in names.items():
        values = [getattr(group, field) for group in groups]
        if any(value is not None for value in values):
            columns[title] = values
    how = {
        "delete": "deleting the word moves it",
        "mask": "masking the word moves it; the mask token itself moves a model too",
    }
    note = f"All divided by the output's size. Removal: how far {how[audit.removal]}."
    if "S" in columns:
        note += " S: how far the word's vectors can move it within their length, a lower bound."
    else:
        note += " S was not measured: it takes a model with gradients and --sensitivity-texts."
    return Table("", columns, note=note, most=len(groups))


def _layers(audit: Audit) -> Table:
    layers = audit.layers
    columns = {
        "layer": [layer.layer for layer in layers],
        "S": [layer.sensitivity for layer in layers],
        "least head": [min(layer.heads, default=None) for layer in layers],
        "most head": [max(layer.heads, default=None) for layer in layers],
    }
    return Table("By layer", columns, most=len(layers))


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
    failed = [f"{record['source']}: {record['error']}" for record in audit.failed]
    for what, named in (("left out", left_out), ("failed", failed)):
        if named:
            more = f"; and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
            lines.append(f"{what}: {len(named)} texts: {'; '.join(named[:_NAMED])}{more}")
    return lines
