"""The findings of `wordsens audit` in sentences, and its tables."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.text import Text

from wordsens.audit.comparison import AuditChange
from wordsens.audit.decay import Decay
from wordsens.audit.layers import LayerSensitivity
from wordsens.audit.summary import PLACES, AuditSummary, Exponent, Reaction, place_of
from wordsens.audit.text import AuditedText, AuditedWord, AuditTexts
from wordsens.cli.audit import AuditOptions
from wordsens.cli.terminal import LITTLE, MUCH, stdout, table
from wordsens.evaluation.length import LengthAdvice
from wordsens.experiments.audit import audited
from wordsens.experiments.store import Record
from wordsens.report.findings.audit import mean_intervals
from wordsens.report.findings.finding import times
from wordsens.sensitivity.substitution import SubstitutionSensitivity
from wordsens.statistics.median import least_values
from wordsens.statistics.power_law import LEAST_TEXTS
from wordsens.text.english import kind_of


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


MOST = 10
"""Lines: a screen has room for them and for the first table."""

_REACTIONS = 2
"""Words that are named for reacting, and for being ignored."""


def findings(audit: Audit) -> list[str]:
    """At most MOST sentences; none whose interval includes its opposite."""
    texts = [audited(record) for record in audit.records if record.done]
    lines = [
        *_changed(audit),
        *_advice(audit),
        *_negations(texts),
        *_words(audit),
        *_places(texts),
        *_lengths(audit),
        *_cut(audit),
        *_swaps(texts),
        *_reach(texts),
    ]
    return lines[:MOST]


def _by_text(texts: Sequence[AuditedText], wanted: str, **only: str) -> list[list[float]]:
    """A measure of the words of a kind or place, a list a text."""

    def fits(word: AuditedWord) -> bool:
        return only.get("kind", kind_of(word.word)) == kind_of(word.word) and only.get(
            "place", place_of(word.place)
        ) == place_of(word.place)

    return [
        [value for word in text.measured if fits(word) and not math.isnan(value := getattr(word, wanted))]
        for text in texts
    ]


def _mean(sample: Sequence[Sequence[float]]) -> float:
    values = [value for own in sample for value in own]
    return math.fsum(values) / len(values)


def _compared(one: list[list[float]], other: list[list[float]]) -> tuple[float, float, float, float] | None:
    """Both means and the interval of their difference; None where that includes 0, or is not known."""
    if not any(one) or not any(other) or (intervals := mean_intervals(one, other)) is None:
        return None
    low, high = intervals[2]
    return None if low <= 0 <= high else (_mean(one), _mean(other), low, high)


def _changed(audit: Audit) -> Iterator[str]:
    if audit.changes is None:
        return
    certain = [change for change in audit.changes if change.certain]
    for change in certain[:3]:
        way = "grew" if change.difference.value > 0 else "fell"
        yield (
            f"Since the earlier audit the {change.measure} of {change.kind}s {way} from {times(change.before)} to "
            f"{times(change.after)} (change {change.difference}, 95 % over {change.texts} texts). Look at what changed "
            "in the model before you compare its scores with earlier ones."
        )
    if not certain:
        texts = max((change.texts for change in audit.changes), default=0)
        yield f"Since the earlier audit no kind of word changed beyond chance ({texts} texts in both)."


def _advice(audit: Audit) -> Iterator[str]:
    advice = audit.advice
    if advice is None:
        return
    sentence = advice.advice[0].upper() + advice.advice[1:]
    if advice.length is not None and advice.decisive:
        yield f"{sentence}. Cut longer texts into passages of that length."
    elif advice.length is None and advice.high is not None and advice.low is None:
        yield (
            f"Even passages of {advice.high} {advice.unit} lose a {advice.kind}: its cosine stays over "
            f"{advice.threshold:g} (95 %, {advice.changes} changed sentences). Decide such cases by a reranker or a "
            "classifier; only single short sentences could keep it."
        )
    elif advice.length is None and advice.low is not None:
        yield (
            f"A {advice.kind} brings the cosine under {advice.threshold:g} in passages of {advice.low} "
            f"{advice.unit} (95 %, {advice.changes} changed sentences). Passages of that length keep it."
        )


def _negations(texts: Sequence[AuditedText]) -> Iterator[str]:
    found = _compared(_by_text(texts, "removal", kind="negation"), _by_text(texts, "removal", kind="content word"))
    if found is not None:
        own, other, low, high = found
        less = high < 0
        do = (
            "Do not trust a similarity to tell a statement from its opposite; `wordsens check` measures it."
            if less
            else "Look at how texts are cut: a lost “not” is felt."
        )
        yield (
            f"Taking out a “not” or its like moves the output {'less' if less else 'more'} than a word of content: by "
            f"{times(own)} of its size against {times(other)} (difference 95 %: {times(low)} to {times(high)}). {do}"
        )


def _words(audit: Audit) -> Iterator[str]:
    told = (
        (
            audit.summary.overreacts,
            "moves its texts more than their other words do",
            "Drop it, or write it in one way.",
        ),
        (
            audit.summary.ignores,
            "moves its texts less than their other words do",
            "Do not rely on it to tell texts apart.",
        ),
    )
    for words, how, do in told:
        for one in words[:_REACTIONS]:
            high = "any" if math.isinf(one.high) else times(one.high)
            yield (
                f"“{one.word}” {how}: {times(one.ratio)} times as far (95 %: {times(one.low)} to {high}; "
                f"{one.texts} texts). {do}"
            )


def _places(texts: Sequence[AuditedText]) -> Iterator[str]:
    found = _compared(_by_text(texts, "removal", place=PLACES[0]), _by_text(texts, "removal", place=PLACES[2]))
    if found is not None:
        own, other, low, high = found
        side, weak = ("beginning", "end") if low > 0 else ("end", "beginning")
        yield (
            f"Words at the {side} of a text count for more: taking one out moves the output by {times(own)} in the "
            f"first fifth and {times(other)} in the last (difference 95 %: {times(low)} to {times(high)}). Do not hide "
            f"what matters at the {weak}."
        )


def _lengths(audit: Audit) -> Iterator[str]:
    exponents = audit.summary.exponents.get("content word", {}).get("removal")
    fit = None if exponents is None else exponents.fit
    if exponents is not None and fit is not None and abs(fit.exponent) > 2 * fit.standard_error:
        halved = 2**fit.exponent
        low, high = sorted(2 ** (fit.exponent + side * 2 * fit.standard_error) for side in (-1, 1))
        way = "less" if halved < 1 else "more"
        yield (
            f"In a text twice as long a word counts for {way}: {times(halved)} times as much (95 %: {times(low)} to "
            f"{times(high)}; {exponents.texts} texts). "
            + ("Shorter passages tell texts apart by single words." if halved < 1 else "Longer passages do no harm.")
        )


def _cut(audit: Audit) -> Iterator[str]:
    if audit.cut:
        lost = sum(record.words_lost for record in audit.cut)
        negations = sum(record.negations_lost for record in audit.cut)
        yield (
            f"{lost:,} words were never read, {negations:,} negations among them: {len(audit.cut)} of "
            f"{audit.summary.texts} texts are longer than what is read (counted). Raise --max-words, or cut the texts."
        )


def _swaps(texts: Sequence[AuditedText]) -> Iterator[str]:
    found = [word for text in texts for word in text.measured if not math.isnan(word.swap)]
    sample = _by_text(texts, "swap")
    intervals = mean_intervals(sample) if found else None
    if found and intervals is not None:
        best = max(found, key=lambda word: word.swap)
        yield (
            f"Another word that a writer could have meant moves the output by {times(_mean(sample))} of its size at "
            f"most, on average (95 %: {times(intervals[0][0])} to {times(intervals[0][1])}); the farthest is "
            f"“{best.swapped_for}” for “{best.word}”, {times(best.swap)}. Look at these pairs in the records."
        )


def _reach(texts: Sequence[AuditedText]) -> Iterator[str]:
    sample = _by_text(texts, "sensitivity")
    intervals = mean_intervals(sample) if any(sample) else None
    if intervals is not None:
        low, high = intervals[0]
        yield (
            f"Moved freely within its own length, one word reaches {times(_mean(sample))} of the output's size on "
            f"average (attained; 95 %: {times(low)} to {times(high)}). Odd tokens can do that too: clean the texts of "
            "signs and code that nobody wrote."
        )


NO_GRADIENTS = (
    "No S, no layers and no bound: they take gradients, and this model gives one vector a text. Lengths are in words."
)

_NAMED = 5
"""Texts that are named where more were cut, left out or failed; the JSON document names all."""


def print_audit(audit: Audit) -> None:
    """The findings first; then categories, words, layers and length; then what was not measured."""
    console = stdout()
    summary = audit.summary
    console.print(f"{audit.map_name}: {summary.words} words of {summary.texts} texts", style="bold", markup=False)
    told = findings(audit)
    for failure in audit.failures:
        console.print(Text(f"FAILED: {failure}", style="bold red"))
    for number, line in enumerate(told, start=1):
        console.print(Text(f"{number}. {line}"))
    if not told:
        few = f"Nothing is certain yet: a finding takes {LEAST_TEXTS} texts at least, often more; give more texts."
        console.print(few, markup=False)
    console.print()
    _groups(audit)
    _word_list(
        "Reacts to: function words that move a text more than its other words", summary.overreacts, summary, MUCH
    )
    _word_list("Ignores: content words and negations that move a text less", summary.ignores, summary, LITTLE)
    if audit.layers:
        _layers(audit)
    if audit.substitution is not None:
        _substitution(audit.substitution)
    _length(audit)
    for line in not_measured(audit):
        console.print(Text(line))
    console.print(f"Records: {audit.table} (audit {audit.name})", markup=False, soft_wrap=True)


def _groups(audit: Audit) -> None:
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


def _word_list(title: str, words: Sequence[Reaction], summary: AuditSummary, style: str) -> None:
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


def _layers(audit: Audit) -> None:
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


def _length(audit: Audit) -> None:
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
