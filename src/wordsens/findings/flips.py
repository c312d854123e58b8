"""What flips of labels say: one sentence per class, the words that decide, and the words that flip
a label."""

from typing import Any

from wordsens.display.numbers import Estimate, column, percent
from wordsens.display.view import Marked, Table, View
from wordsens.evaluation.flips import FlipWord, LabelFlips

_SHOWN, _AROUND = 10, 40
"""Words that are shown, and the letters of their text on either side."""

_NAMED = 5
"""Words that a sentence names."""


def _text(share: Estimate) -> str:
    return column([share], "%")[0]


def answer(flips: LabelFlips) -> tuple[str, ...]:
    """The share of each class that one word moves, and the words that decide more often than others
    of their texts."""
    sentences = []
    for row in flips.classes:
        sentence = (
            f"{row.label}: of {row.removal.n} texts, {_text(row.removal)} change class when "
            "one word is deleted"
        )
        if row.swap is not None:
            sentence += f", {_text(row.swap)} when one word is replaced by another that was tried"
        if row.radius is not None:
            sentence += (
                f", {_text(row.radius)} of {row.radius.n} when one word's vector moves by up "
                "to its own length"
            )
        if row.median_radius is not None:
            sentence += f" (median needed: {row.median_radius:.2f} of it)"
        sentences.append(f"{sentence}.")
    for row in [row for row in flips.by_word if row.more][:_NAMED]:
        sentences.append(
            f"'{row.word}' decides: deleting it changes the class of {_text(row.share)} of "
            f"{row.share.n} {row.label} texts, deleting another of their words "
            f"{percent(row.usual)}."
        )
    return tuple(sentences)


def view(flips: LabelFlips) -> View:
    """The sentences, the words whose deletion flips a label, and the words that do so more than
    others."""
    flipping = sorted(
        (word for word in flips.words if word.removed_to), key=lambda word: word.removal
    )
    headings = ("word", "in", "label", "with another word", "radius")
    cells = [_flipped(flips.texts[word.text], word) for word in flipping]
    words = Table.of_rows(
        "Words whose deletion flips the label (one change)", headings, cells, most=_SHOWN
    )
    rows = [row for row in flips.by_word if row.share.value > 0]
    shares = Table(
        "Share of a word's texts that its deletion flips",
        {
            "word": [row.word for row in rows],
            "class": [row.label for row in rows],
            "flipped": [row.share for row in rows],
            "texts": [row.share.n for row in rows],
            "others": [row.usual for row in rows],
            "more than others": [row.more for row in rows],
        },
        units={"flipped": "%", "others": "%"},
        most=_SHOWN,
    )
    first = f"{flips.model}: {len(flips.texts)} texts, {len(flips.words)} words"
    parts = (*answer(flips), words, shares)
    return View(first, parts, failures=flips.failures, notes=flips.notes)


def _flipped(text: str, word: FlipWord) -> tuple[Any, ...]:
    """The word in its text, and where the text goes without it, or with another."""
    around = " ".join(text[max(0, word.start - _AROUND) : word.stop + _AROUND].split())
    shown = f"{'...' * (word.start > _AROUND)}{around}{'...' * (word.stop + _AROUND < len(text))}"
    swap = f"{word.swapped_for}: {word.swapped_to}" if word.swapped_to else None
    label = f"{word.label} -> {word.removed_to} ({word.removal:+.3f})"
    return word.word, Marked(shown, (word.word,)), label, swap, word.radius
