"""What an audit says: its answer, at most three findings, and its table; on a page texts."""

from collections.abc import Iterator
from dataclasses import replace

from wordsens.display.numbers import as_sentences, column, percent, plural
from wordsens.display.view import ColouredWord, Table, View, Words
from wordsens.evaluation.audit import LEAST_TEXTS, Audit, mean_change
from wordsens.evaluation.length import LengthAdvice
from wordsens.evaluation.word_effects import WordEffects
from wordsens.findings.length import answer as length_answer
from wordsens.intervals import ends
from wordsens.text.english import PLACES

_VERBS = {"delete": "deleting", "mask": "masking"}

# How many texts a page shows.
_TEXTS = 6

# Two kinds of words, each with its name, and what to do where the first counts for less, and for
# more. Places are compared within one kind of word: the kinds are not spread evenly over a text.
_COMPARED = (
    (
        ("a negation", ["negation"]),
        ("a content word", ["content word"]),
        "Do not rely on similarity to distinguish a statement from its opposite; “wordsens check” "
        "measures it.",
        "",
    ),
    (
        ("a content word in the first fifth of a text", ["content word", PLACES[0]]),
        ("one in the last fifth", ["content word", PLACES[2]]),
        "Content words count for more at the end: do not hide what matters at the beginning.",
        "Content words count for more at the beginning: do not hide what matters at the end.",
    ),
)


def view(audit: Audit) -> View:
    """The mean change by a removal with the texts that were left out or cut; the findings; one row
    per kind of word and per place, and the advice on length."""
    words = audit.effects.effects
    headline = (
        f"{audit.effects.model}: {_VERBS[audit.removal]} one word changes the output by "
        f"{column([mean_change(words)], '%')[0]} of its size ({plural(len(words), 'word')} of "
        f"{plural(len(audit.sources), 'text')})."
    )
    findings = [*_advice(audit.advice), *_differences(audit)] or [
        f"No comparison: it takes {LEAST_TEXTS} texts or more that have both kinds of words."
    ]
    masked = "; the mask token itself also changes the output" * (audit.removal == "mask")
    note = (
        f"Removal: the change of the output by {_VERBS[audit.removal]} one word, divided by the "
        f"output's size; mean over texts [95 % confidence interval]{masked}."
    )
    lengths = f"No advice on length: {audit.no_advice}"
    if audit.advice is not None:
        title = "Median cosine distance of the two versions of a passage, by its length"
        lengths = Table(title, audit.advice.columns(), folded=True)
    return View(
        " ".join((headline, *map(as_sentences, _omissions(audit)))),
        (*findings, Table("", audit.columns(), {"removal": "%"}, note), lengths),
        failures=audit.failures,
        notes=audit.effects.notes,
    )


def page(audit: Audit) -> View:
    """The view with the texts that one word changes most: whole, the measured words in colour."""
    effects, verb = audit.effects, _VERBS[audit.removal]
    largest = sorted(effects.effects, key=lambda effect: -effect.change)
    numbers = list(dict.fromkeys(effect.text for effect in largest))[:_TEXTS]
    legend = f"times the output's size: its change by {verb} the word; grey: not measured"
    words = [
        Words(
            audit.sources[number],
            _pieces(effects, number),
            largest[0].change,
            legend * (number == numbers[0]),
        )
        for number in numbers
    ]
    title = f"{len(words)} of {plural(len(audit.sources), 'text')}, the largest change first"
    found = view(audit)
    return replace(found, parts=(*found.parts, View(title, tuple(words))))


def _pieces(effects: WordEffects, number: int) -> tuple[ColouredWord | str, ...]:
    text, stop, pieces = effects.texts[number], 0, []
    for effect in effects.effects:
        if effect.text == number:
            about = percent(effect.change)
            pieces += [text[stop : effect.start], ColouredWord(effect.word, effect.change, about)]
            stop = effect.end
    return (*pieces, text[stop:])


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
    if advice is not None:
        remedy = " Cut longer texts into passages of that length." * advice.decisive
        if advice.length is None and advice.high is not None:
            remedy = (
                " Decide such cases with a reranker or a classifier; “wordsens check” measures "
                "single sentences."
            )
        yield as_sentences(length_answer(advice)) + remedy


def _differences(audit: Audit) -> Iterator[str]:
    """Each two kinds of words, as far as their texts allow to compare them."""
    verb = _VERBS[audit.removal]
    for (name, first), (other, second), less, more in _COMPARED:
        if found := audit.difference(first, second):
            one, two, difference = found
            low, high = ends(difference)
            claim = less if high < 0 else more if low > 0 else "No difference is claimed."
            sentence = (
                f"{verb.capitalize()} {name} changes the output by {percent(one.value)} of its "
                f"size; {verb} {other}, by {percent(two.value)} (difference "
                f"{column([difference], '%')[0]}, {difference.n} texts). {claim}"
            )
            yield sentence.rstrip()
