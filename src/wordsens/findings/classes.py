"""What flips of labels say: one row per label, and the words that flip one."""

from collections import Counter

from wordsens.display.numbers import plural
from wordsens.display.view import Marked, Table, View
from wordsens.evaluation.classes import FIELDS, ClassFlips
from wordsens.evaluation.text_scores import words_read
from wordsens.findings.check import around
from wordsens.text.whole_words import without

# Words that are shown.
_SHOWN = 10


def view(flips: ClassFlips) -> View:
    """How many texts one deletion flips, and what was left out; one row per label, the words whose
    deletion flips a label in their texts, and how often."""
    shares = Table(
        "Share of the texts whose label one word changes",
        flips.columns(),
        units=dict.fromkeys(FIELDS[1:], "%"),
        note="Delete: without the word. Swap: with another in its place. Move: its vector moved by "
        "up to its length, a lower bound.",
    )
    deleted = flips.by("delete")
    flipping = sorted((word for word in deleted if word.label), key=lambda word: word.change)
    flipped = len({word.text for word in flipping})
    headline = [
        f"{flips.model}: deleting one word changes the label of {flipped} of "
        f"{len(flips.texts)} texts"
    ]
    if flips.left_out:
        number, reason = flips.left_out[0]
        count = plural(len(flips.left_out), "text")
        headline.append(f"{count} left out (the first, text {number}: {reason})")
    texts = zip(flips.texts, flips.read, strict=True)
    if unread := sum(len(words_read(text, span)[1]) for text, span in texts):
        headline.append(f"{plural(unread, 'word')} left out, past what the model reads")
    examples = [
        (
            word.word,
            Marked(around(text, without(text, word.span)), (word.word,)),
            f"{flips.labels[word.text]} -> {word.label}",
            word.change,
        )
        for word in flipping[:_SHOWN]
        for text in [flips.texts[word.text]]
    ]
    words = Table.of_rows(
        "Words whose deletion changes the label (one change)",
        ("word", "in", "label", "probability"),
        examples,
        units={"probability": "+"},
    )
    tried, changed = (
        Counter((word.word.lower(), flips.labels[word.text]) for word in some)
        for some in (deleted, flipping)
    )
    rows = [(*name, count, tried[name]) for name, count in changed.most_common()]
    counts = Table.of_rows(
        "How often", ("word", "label", "changes it", "deleted"), rows, most=_SHOWN
    )
    parts = (shares, words, counts)
    return View("; ".join(headline), parts, failures=flips.failures, notes=flips.notes)
