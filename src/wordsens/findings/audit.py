"""What an audit says: its answer, at most three findings, and its table."""

from collections.abc import Iterator

from wordsens.display.numbers import as_sentences, column, percent, plural
from wordsens.display.view import Table, View
from wordsens.evaluation.audit import LEAST_TEXTS, Audit, mean_change
from wordsens.evaluation.length import LengthAdvice
from wordsens.findings.length import answer as length_answer
from wordsens.intervals import ends
from wordsens.text.english import PLACES

_VERBS = {"delete": "deleting", "mask": "masking"}


def answer(audit: Audit) -> tuple[str, ...]:
    """The mean change by a removal with the texts that were left out or cut; then the findings."""
    words = audit.effects.effects
    headline = (
        f"{audit.effects.model}: {_VERBS[audit.removal]} one word changes the output by "
        f"{column([mean_change(words)], '%')[0]} of its size ({plural(len(words), 'word')} of "
        f"{plural(len(audit.sources), 'text')})."
    )
    headline = " ".join(filter(None, [headline, as_sentences(*_omissions(audit))]))
    findings = [*_advice(audit.advice), *_negations(audit), *_places(audit)]
    few = f"No finding: a difference takes {LEAST_TEXTS} texts or more with both kinds of words."
    return headline, *(findings or [few])


def _omissions(audit: Audit) -> Iterator[str]:
    """The texts that were left out, are copies, or were cut; the first of them by name."""
    if audit.left_out:
        source, reason = audit.left_out[0]
        count = plural(len(audit.left_out), "text")
        yield f"{count} left out (the first, {source}: {reason})"
    if audit.copies:
        yield f"{plural(audit.copies, 'text')} left out, equal to an earlier one"
    if audit.cut:
        lost = plural(sum(text.words_lost for text in audit.cut), "word")
        negations = plural(sum(text.negations_lost for text in audit.cut), "negation")
        yield (
            f"{plural(len(audit.cut), 'text')} cut: {lost} not read, {negations} among them (most "
            f"of {audit.cut[0].source})"
        )


def _advice(advice: LengthAdvice | None) -> Iterator[str]:
    if advice is None:
        return
    if advice.length is not None:
        advised = as_sentences(length_answer(advice))
        yield advised + " Cut longer texts into passages of that length." * advice.decisive
    elif advice.low is not None:
        yield (
            f"A {advice.kind} brings the cosine below {advice.threshold:g} in passages of "
            f"{advice.low} {advice.unit}: passages of that length keep it."
        )
    elif advice.high is not None:
        shortest = min(advice.columns()[advice.unit])
        yield (
            f"Even in passages of {shortest} {advice.unit}, the shortest tested, adding or "
            f"removing a {advice.kind} leaves the cosine above {advice.threshold:g}. Decide such "
            "cases with a reranker or a classifier; “wordsens check” measures single sentences."
        )


def _negations(audit: Audit) -> Iterator[str]:
    """The effect of removing a negation beside that of a content word."""
    found = audit.difference(["negation"], ["content word"])
    if found is None:
        return
    negation, content, difference = found
    low, high = ends(difference)
    sentence = (
        f"{_VERBS[audit.removal].capitalize()} a negation changes the output by "
        f"{percent(negation.value)} of its size; a content word, by {percent(content.value)} "
        f"(difference {column([difference], '%')[0]}, {difference.n} texts)."
    )
    if low <= 0 <= high:
        sentence += " No difference is claimed."
    elif high < 0:
        sentence += (
            " Do not trust a similarity to tell a statement from its opposite; “wordsens check” "
            "measures it."
        )
    yield sentence


def _places(audit: Audit) -> Iterator[str]:
    # Of one kind of word: the kinds are not spread evenly over a text.
    found = audit.difference(["content word", PLACES[0]], ["content word", PLACES[2]])
    low, high = ends(found[2]) if found else (0.0, 0.0)
    if found and not low <= 0 <= high:
        strong, weak = ("beginning", "end") if low > 0 else ("end", "beginning")
        yield (
            f"Content words count for more at the {strong} of a text: "
            f"{_VERBS[audit.removal]} one changes the output by {percent(found[0].value)} of its "
            f"size in the first fifth and by {percent(found[1].value)} in the last (difference "
            f"{column([found[2]], '%')[0]}, {found[2].n} texts). Do not hide what matters at the "
            f"{weak}."
        )


def view(audit: Audit) -> View:
    """The answer, one row per kind of word and per place, and the advice on length."""
    headline, *findings = answer(audit)
    masked = "; the mask token itself moves a model too" * (audit.removal == "mask")
    note = (
        f"Removal: the change of the output by {_VERBS[audit.removal]} the word, over the output's "
        f"size: the mean over texts [95 % confidence interval]{masked}."
    )
    lengths = f"No advice on length: {audit.no_advice}"
    if audit.advice is not None:
        title = "Median cosine distance of the two versions of a passage, by its length"
        lengths = Table(title, audit.advice.columns(), folded=True)
    parts = (*findings, Table("", audit.columns(), {"removal": "%"}, note), lengths)
    return View(headline, parts, failures=audit.failures, notes=audit.effects.notes)
