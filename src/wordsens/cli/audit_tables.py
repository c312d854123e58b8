"""What `wordsens audit` says: its findings and tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordsens.cli.audit import AuditOptions
from wordsens.display.content import Display, Finding, Findings, Section, Strong, Table
from wordsens.evaluation.audit.cell import audited
from wordsens.evaluation.audit.comparison import AuditChange
from wordsens.evaluation.audit.decay import Decay
from wordsens.evaluation.audit.layers import LayerSensitivity
from wordsens.evaluation.audit.summary import AuditSummary, Exponent, Reaction
from wordsens.evaluation.audit.text import AuditTexts
from wordsens.evaluation.length import LengthAdvice
from wordsens.report.findings import audit_findings
from wordsens.sensitivity.substitution import SubstitutionSensitivity
from wordsens.statistics.median import least_values
from wordsens.statistics.power_law import LEAST_TEXTS
from wordsens.sweeps.store import Record


@dataclass(frozen=True)
class Audit:
    """Everything an audit prints.

    Attributes:
        options: of the command.
        texts: of the dataset, with those that were left out.
        records: of the texts, in the order of the dataset; failed ones too.
        summary: of those that are done.
        layers: by layer and head; none of a black box.
        substitution: the sensitivities to random words; None where none were asked for.
        name: of the audit: the hash of everything but the texts, a column of the records.
        decays: of the minimal pairs' distances by kind; empty where `no_decays` says why.
        advice: on length; None where `no_advice` says why.
        changes: since the earlier audit that was named; None where none was.
        failures: a sentence for every requirement that is not met.
        map_name, context: of the model.
    """

    options: AuditOptions
    name: str
    texts: AuditTexts
    records: list[Record]
    summary: AuditSummary
    layers: list[LayerSensitivity]
    substitution: SubstitutionSensitivity | None
    decays: list[Decay]
    no_decays: str | None
    advice: LengthAdvice | None
    no_advice: str | None
    changes: list[AuditChange] | None
    failures: list[str]
    map_name: str
    context: int | None

    @property
    def failed(self) -> list[Record]:
        """The texts that could not be measured, though nothing was wrong with them."""
        return [record for record in self.records if not record.done]

    @property
    def cut(self) -> list[Record]:
        """The texts that lost words, those that lost most first."""
        return sorted((record for record in self.records if record.words_lost), key=lambda record: -record.words_lost)

    @property
    def table(self) -> Path:
        """The file with the records as one table, beside those of other audits with the same folder."""
        return Path(self.options.out) / "audit.parquet"


NO_GRADIENTS = (
    "No S, no layers and no bound: they take gradients, and this model gives one vector a text. Lengths are in words."
)

MOST = 10
"""Findings that are shown at once."""

_NAMED = 5
"""Texts that are named where more were cut, left out or failed; the JSON document names all."""


def audit_findings_of(audit: Audit) -> list[Finding]:
    """What the audit says, for terminal, JSON and report."""
    texts = [audited(record) for record in audit.records if record.done]
    return audit_findings(texts, audit.summary, advice=audit.advice, changes=audit.changes)


def audit_display(audit: Audit) -> Display:
    """The findings first; then categories, words, layers and length; then what was not measured."""
    summary = audit.summary
    findings = audit_findings_of(audit)
    few = f"Nothing is certain yet: a finding takes {LEAST_TEXTS} texts at least, often more; give more texts."
    parts: list[Any] = [
        Findings(tuple(findings), most=MOST) if findings else few,
        _groups(audit),
        _reactions("Reacts to: function words that move a text more than its other words", summary.overreacts, summary),
        _reactions("Ignores: content words and negations that move a text less", summary.ignores, summary),
        *([_layers(audit)] if audit.layers else []),
        *([_substitution(audit.substitution)] if audit.substitution is not None else []),
        _length(audit),
        *not_measured(audit),
        f"Records: {audit.table} (audit {audit.name})",
    ]
    return Display(
        (f"{audit.map_name}: {summary.words} words of {summary.texts} texts",),
        tuple(parts),
        failures=tuple(audit.failures),
    )


def _groups(audit: Audit) -> Table:
    groups = audit.summary.groups
    names = {"S": "sensitivity", "removal": "removal", "swap": "swap"}
    known = {name: field for name, field in names.items() if any(getattr(one, field) is not None for one in groups)}
    rows = tuple(
        (one.category, one.count, *(_three(getattr(one, field)) for field in known.values())) for one in groups
    )
    done = {"delete": "deleting it does", "mask": "masking it does; the mask token itself moves a model too"}
    removal = f"removal: how far {done[audit.options.removal]}"
    note = f"{removal}, relative to the output's norm. {NO_GRADIENTS}"
    if "S" in known:
        note = (
            "S: how far the word could move the output, relative to its norm, within its own rows' length; attained, "
            f"so a lower bound. {removal}."
        )
    return Table("", ("words", "count", *known), rows, note, len(rows))


def _three(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"


def _reactions(title: str, words: Sequence[Reaction], summary: AuditSummary) -> Section:
    rows = tuple(
        (
            Strong(one.word, "rise" if one.more else "fall"),
            *(f"{one.ratio:.2f}", f"{one.low:.2f} to {one.high:.2f}", one.texts),
        )
        for one in words
    )
    return Section(title, (Table("", ("word", "times as far", "95 %", "texts"), rows),) if rows else (_none(summary),))


def _none(summary: AuditSummary) -> str:
    least = least_values()
    if not summary.most_texts:
        return (
            "Nothing to compare: a word is compared with the others of its text, and no text had two words measured "
            "(--words-per-text)."
        )
    if not summary.compared:
        return (
            f"Too few texts: no word was measured in {least} texts or more (the most: {summary.most_texts}); measure "
            "more texts or words (--words-per-text)."
        )
    return f"None: of {summary.compared} words measured in {least} texts or more, none does so beyond chance."


def _layers(audit: Audit) -> Table:
    rows = []
    for layer in audit.layers:
        heads = list(layer.heads)
        most, least = heads.index(max(heads)), heads.index(min(heads))
        rows.append(
            (str(layer.layer), f"{layer.sensitivity:.3f}", f"{least}: {min(heads):.3f}", f"{most}: {max(heads):.3f}")
        )
    return Table("By layer", ("layer", "S", "least head", "most head"), tuple(rows), most=len(rows))


def _substitution(result: SubstitutionSensitivity) -> Section:
    """The measures of the literature, each with its interval over texts."""
    texts = len(result.texts)
    means = {"average": result.average, "block": result.block, "random": result.random, "flips": result.flips}
    lines = [
        f"{name} sensitivity {mean}" if name != "flips" else f"labels changed {mean}"
        for name, mean in means.items()
        if mean is not None
    ]
    fifths = ", ".join("none" if part is None else f"{part.value:.3g}" for part in result.profile)
    about = (
        "average: the variance that one random word makes, summed over words; block: the most that disjoint blocks "
        f"of words make together{'' if result.every_block else ', of neighbouring words alone: a lower bound'}; "
        "random: the mean change by one. In parentheses: 95 % over texts."
    )
    title = f"Random words of the same kind ({texts} text{'s' * (texts != 1)})"
    return Section(title, (*lines, f"profile, first to last fifth of a text: {fifths}", about))


def _length(audit: Audit) -> Section:
    parts: list[Any] = [f"{kind}: {exponents_text(each)}" for kind, each in audit.summary.exponents.items()]
    if audit.advice is not None:
        parts.append(audit.advice.show())
    elif audit.no_advice is not None:
        parts.append(f"No advice on length: {audit.no_advice}")
    if audit.no_decays is not None:
        parts.append(f"Pairs of sentences were not measured: {audit.no_decays}")
    if audit.decays:
        parts.append(_decays(audit.decays))
    return Section("Length", (*parts, *(advice(one, audit.context) for one in audit.decays)))


def _decays(decays: Sequence[Decay]) -> Table:
    multiples = sorted({multiple for one in decays for multiple in one.means})
    rows = tuple(
        (
            one.kind,
            *(f"{one.means[multiple]:.4f}" if multiple in one.means else None for multiple in multiples),
            None if one.fit is None else f"{one.fit.exponent:.2f}",
        )
        for one in decays
    )
    title = "Cosine distance of a sentence's two versions, alone and in passages ever longer (times its length)"
    return Table(title, ("changed word", *(f"{multiple}x" for multiple in multiples), "n^"), rows, most=len(rows))


def exponents_text(exponents: dict[str, Exponent]) -> str:
    """The exponents of one kind of word, each with its standard error by text, or why there is none."""
    shown = [
        f"{name} ~ n^{one.fit.exponent:.2f} ± {one.fit.standard_error:.2f} ({one.texts} texts)"
        if not one.fit.interval[0] <= 0 <= one.fit.interval[1]
        else f"{name}: neither rises nor falls beyond chance ({one.texts} texts)"
        for name, one in exponents.items()
        if one.fit is not None
    ]
    reasons: dict[str, list[str]] = {}
    for name, one in exponents.items():
        if one.reason is not None:
            reasons.setdefault(one.reason, []).append(name)
    shown += [f"no exponent of {' and '.join(names)}: {reason}" for reason, names in reasons.items()]
    return "; ".join(shown)


def advice(decay: Decay, context: int | None) -> str:
    """The advice that the decay of one kind gives on how long a passage may be."""
    over, kind = f"{decay.threshold:g}", decay.kind
    first = next(iter(decay.means.values()))
    if first <= decay.threshold:
        return f"{kind}: a change moves the output by less than {over} even in a sentence alone."
    if decay.fit is None:
        return f"{kind}: no advice on length: {decay.reason}."
    if decay.length is None:
        return f"{kind}: no fall with length was measured."
    if decay.interval is None:
        return f"{kind}: {decay.pairs} pairs are too few to say how long a passage may be."
    low, high = decay.interval
    if high is None and (context is None or low <= context):
        return (
            f"{kind}: {decay.pairs} pairs do not tell whether the change falls with length (95 %: {low} to no limit)."
        )
    shown = f"95 % interval over {decay.pairs} pairs: {low} to {'no limit' if high is None else high} tokens"
    if context is not None and low > context:
        return f"{kind}: stays over {over} up to the model's context of {context} tokens ({shown})."
    if not decay.decisive:
        return (
            f"{kind}: the change falls under {over} at about {decay.length} tokens, too uncertain to act on ({shown}); "
            "measure more pairs."
        )
    beyond = f"; extrapolated, passages had up to {decay.longest} tokens" if decay.length > decay.longest else ""
    return (
        f"{kind}: keep passages under {decay.length} tokens; past that the change falls under {over} ({shown}{beyond})."
    )


def not_measured(audit: Audit) -> list[str]:
    """Lines on texts that were cut, copies, left out or failed: how many, and the first by name."""
    lines = []
    if audit.cut:
        lost = sum(record.words_lost for record in audit.cut)
        negations = sum(record.negations_lost for record in audit.cut)
        named = [f"{record.source} ({record.words_lost} words)" for record in audit.cut]
        lines.append(
            f"cut: {len(audit.cut)} of {audit.summary.texts} texts are longer than what is read; {lost} words were "
            f"lost, {negations} negations among them: {_first(named)}. --max-words keeps more, up to the context."
        )
    if audit.texts.copies:
        lines.append(f"copies: {audit.texts.copies} texts are equal to an earlier one, and were measured once")
    if audit.texts.left_out:
        named = [f"{source}: {reason}" for source, reason in audit.texts.left_out]
        lines.append(f"left out: {len(named)} texts: {_first(named)}")
    if audit.failed:
        named = [f"{record.source}: {record.error}" for record in audit.failed]
        lines.append(f"failed: {len(named)} texts: {_first(named)}")
    return lines


def _first(named: Sequence[str]) -> str:
    more = len(named) - _NAMED
    return "; ".join(named[:_NAMED]) + (f"; and {more} more" if more > 0 else "")
