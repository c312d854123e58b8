"""The tables of `wordsens audit`, and what they say in sentences."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from wordsens.audit.decay import Decay
from wordsens.audit.reactions import Reaction
from wordsens.audit.summary import AuditSummary, Exponent
from wordsens.cli.audit.findings import findings
from wordsens.cli.terminal import LITTLE, MUCH, stdout, table
from wordsens.sensitivity.substitution import SubstitutionSensitivity
from wordsens.statistics.median import least_values
from wordsens.statistics.power_law import LEAST_TEXTS

if TYPE_CHECKING:
    from wordsens.cli.audit.outcome import Audit

NO_GRADIENTS = (
    "No S, no layers and no bound: they take gradients, and this model gives one vector a text. Lengths are in words."
)

_NAMED = 5
"""Texts that are named where more were cut, left out or failed; the JSON document names all."""


def print_audit(audit: "Audit") -> None:
    """The findings first; then categories, words, layers and length; then what was not measured."""
    console = stdout()
    summary = audit.summary
    console.print(f"{audit.map_name}: {summary.words} words of {summary.texts} texts", style="bold", markup=False)
    told = findings(audit)
    for number, line in enumerate(told, start=1):
        console.print(Text(f"{number}. {line}"))
    if not told:
        few = f"Nothing is certain yet: a finding takes {LEAST_TEXTS} texts at least, often more; give more texts."
        console.print(few, markup=False)
    console.print()
    _groups(audit)
    _words("Reacts to: function words that move a text more than its other words", summary.overreacts, summary, MUCH)
    _words("Ignores: content words and negations that move a text less", summary.ignores, summary, LITTLE)
    if audit.layers:
        _layers(audit)
    if audit.substitution is not None:
        _substitution(audit.substitution)
    _length(audit)
    for line in not_measured(audit):
        console.print(Text(line))
    console.print(f"Records: {audit.table} (audit {audit.name})", markup=False, soft_wrap=True)


def _groups(audit: "Audit") -> None:
    console = stdout()
    groups = audit.summary.groups
    with_swaps = any(group.swap is not None for group in groups)
    with_sensitivity = any(group.sensitivity is not None for group in groups)
    columns = [
        ("words", "left"),
        ("count", "right"),
        *([("S", "right")] if with_sensitivity else []),
        ("removal", "right"),
    ]
    shown = table(*columns, *([("swap", "right")] if with_swaps else []))
    for group in groups:
        means = [
            *([group.sensitivity] if with_sensitivity else []),
            group.removal,
            *([group.swap] if with_swaps else []),
        ]
        shown.add_row(group.category, str(group.count), *("" if mean is None else f"{mean:.3f}" for mean in means))
    console.print(shown)
    taken_out = {"delete": "deleting it does", "mask": "masking it does; the mask token itself moves a model too"}
    if with_sensitivity:
        console.print(
            "S: how far the word could move the output, relative to its norm, within its own rows' length; attained, "
            f"so a lower bound. removal: how far {taken_out[audit.options.removal]}."
        )
    else:
        console.print(
            f"removal: how far {taken_out[audit.options.removal]}, relative to the output's norm. {NO_GRADIENTS}"
        )
    console.print()


def _words(title: str, words: Sequence[Reaction], summary: AuditSummary, style: str) -> None:
    console = stdout()
    console.print(title, style="bold")
    if words:
        told = [
            Text.assemble((one.word, style), f" x{one.ratio:.2f} ({one.low:.2f} to {one.high:.2f}; {one.texts} texts)")
            for one in words
        ]
        console.print(Text(", ").join(told))
    else:
        console.print(_none(summary))
    console.print()


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


def _layers(audit: "Audit") -> None:
    console = stdout()
    console.print("By layer", style="bold")
    layers = table(("layer", "right"), ("S", "right"), ("least head", "right"), ("most head", "right"))
    for layer in audit.layers:
        heads = list(layer.heads)
        most, least = heads.index(max(heads)), heads.index(min(heads))
        layers.add_row(
            str(layer.layer), f"{layer.sensitivity:.3f}", f"{least}: {min(heads):.3f}", f"{most}: {max(heads):.3f}"
        )
    console.print(layers)
    console.print()


def _substitution(found: SubstitutionSensitivity) -> None:
    """The measures of the literature, each with its interval over texts."""
    console = stdout()
    texts = len(found.texts)
    console.print(f"Random words of the same kind ({texts} text{'s' * (texts != 1)})", style="bold")
    told = {"average": found.average, "block": found.block, "random": found.random, "flips": found.flips}
    for name, mean in told.items():
        if mean is not None:
            console.print(f"{name} sensitivity {mean}" if name != "flips" else f"labels changed {mean}", markup=False)
    fifths = ", ".join("none" if part is None else f"{part.value:.3g}" for part in found.profile)
    console.print(f"profile, first to last fifth of a text: {fifths}")
    console.print(
        "average: the variance that one random word makes, summed over words; block: the most that disjoint "
        "neighbouring words make together; random: the mean change by one. In parentheses: 95 % over texts."
    )
    console.print()


def _length(audit: "Audit") -> None:
    console = stdout()
    console.print("Length", style="bold")
    for kind, exponents in audit.summary.exponents.items():
        console.print(f"{kind}: {exponents_text(exponents)}", markup=False)
    if audit.advice is not None:
        console.print(audit.advice.show(), markup=False)
    elif audit.no_advice is not None:
        console.print(Text(f"No advice on length: {audit.no_advice}"))
    if audit.no_decays is not None:
        console.print(Text(f"Pairs of sentences were not measured: {audit.no_decays}"))
    if audit.decays:
        _decays(audit.decays)
    for one in audit.decays:
        console.print(advice(one, audit.context), markup=False)
    console.print()


def _decays(decays: Sequence[Decay]) -> None:
    multiples = sorted({multiple for one in decays for multiple in one.means})
    shown = table(("changed word", "left"), *((f"{multiple}x", "right") for multiple in multiples), ("n^", "right"))
    for one in decays:
        means = [f"{one.means[multiple]:.4f}" if multiple in one.means else "" for multiple in multiples]
        shown.add_row(one.kind, *means, "" if one.fit is None else f"{one.fit.exponent:.2f}")
    console = stdout()
    console.print("Cosine distance of a sentence's two versions, alone and in passages ever longer (times its length):")
    console.print(shown)


def exponents_text(exponents: dict[str, Exponent]) -> str:
    """The exponents of one kind of word, each with its standard error by text, or why there is none."""
    told = [
        f"{name} ~ n^{one.fit.exponent:.2f} ± {one.fit.standard_error:.2f} ({one.texts} texts)"
        if abs(one.fit.exponent) > 2 * one.fit.standard_error
        else f"{name}: neither rises nor falls beyond chance ({one.texts} texts)"
        for name, one in exponents.items()
        if one.fit is not None
    ]
    reasons: dict[str, list[str]] = {}
    for name, one in exponents.items():
        if one.reason is not None:
            reasons.setdefault(one.reason, []).append(name)
    told += [f"no exponent of {' and '.join(names)}: {reason}" for reason, names in reasons.items()]
    return "; ".join(told)


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
    told = f"95 % interval over {decay.pairs} pairs: {low} to {'no limit' if high is None else high} tokens"
    if context is not None and low > context:
        return f"{kind}: stays over {over} up to the model's context of {context} tokens ({told})."
    if not decay.decisive:
        return (
            f"{kind}: the change falls under {over} at about {decay.length} tokens, too uncertain to act on ({told}); "
            "measure more pairs."
        )
    beyond = f"; extrapolated, passages had up to {decay.longest} tokens" if decay.length > decay.longest else ""
    return (
        f"{kind}: keep passages under {decay.length} tokens; past that the change falls under {over} ({told}{beyond})."
    )


def not_measured(audit: "Audit") -> list[str]:
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
