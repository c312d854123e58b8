"""What flips of labels say: one row per label, and the words that flip one."""

from collections import Counter

from wordsens.display.numbers import plural
from wordsens.display.view import Marked, Table, View
from wordsens.evaluation.classes import FIELDS, ClassFlips
from wordsens.evaluation.text_scores import words_read

# Words that are shown, and the letters of their text on either side.
_SHOWN, _AROUND = 10, 40


def view(flips: ClassFlips) -> View:
    """How many texts one deletion flips, and what was left out; one row per label, the words whose
    deletion flips a label in their texts, and how often."""
    shares = Table(
        "Share of the texts whose label one word changes",
        {name: cells for name, cells in flips.columns().items() if any(cells)},
        units=dict.fromkeys(FIELDS[1:], "%"),
        note="Delete: without the word. Swap: with another in its place. Move: its vector moved by "
        "up to its length, a lower bound.",
    )
    flipping = sorted(
        (word for word in flips.by("delete") if word.label), key=lambda word: word.change
    )
    flipped = len({word.text for word in flipping})
    answer = f"deleting one word changes the label of {flipped} of {len(flips.texts)} texts"
    headline = [f"{flips.model}: {answer}"]
    if flips.left_out:
        number, reason = flips.left_out[0]
        count = plural(len(flips.left_out), "text")
        headline.append(f"{count} left out (the first, text {number}: {reason})")
    texts = zip(flips.texts, flips.read, strict=True)
    if unread := sum(len(words_read(text, span)[1]) for text, span in texts):
        headline.append(f"{plural(unread, 'word')} left out, past what the model reads")
    examples = []
    for word in flipping[:_SHOWN]:
        text = flips.texts[word.text]
        around = " ".join(text[max(0, word.start - _AROUND) : word.end + _AROUND].split())
        label = f"{flips.labels[word.text]} -> {word.label}"
        examples.append((word.word, Marked(around, (word.word,)), label, word.change))
    words = Table.of_rows(
        "Words whose deletion changes the label (one change)",
        ("word", "in", "label", "probability"),
        examples,
        units={"probability": "+"},
    )
    named = [
        (word.word.lower(), flips.labels[word.text], word.label) for word in flips.by("delete")
    ]
    deleted = Counter(name[:2] for name in named)
    often = Counter(name[:2] for name in named if name[2])
    rows = [(*name, count, deleted[name]) for name, count in often.most_common()]
    counts = Table.of_rows(
        "How often", ("word", "label", "changes it", "deleted"), rows, most=_SHOWN
    )
    parts = (shares, words, counts)
    return View("; ".join(headline), parts, failures=flips.failures, notes=flips.notes)
