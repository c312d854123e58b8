"""What flips of labels say: a sentence a class, the words that decide, and the words that flip a
label."""

from typing import Any

from wordsens.display.content import Display, Marked, Strong, Table
from wordsens.evaluation.flips import FlipWord, LabelFlips, Share
from wordsens.results import ResultTable

_SHOWN, _AROUND = 10, 40
"""Words that are shown, and the letters of their text on either side."""

_NAMED = 5
"""Words that a sentence names."""


def _text(share: Share | None) -> str:
    return "" if share is None else f"{share.value:.0%} ({share.low:.0%} to {share.high:.0%})"


def answer(flips: LabelFlips) -> tuple[str, ...]:
    """The share of each class that one word moves, and the words that decide more often than others
    of their texts."""
    sentences = []
    for row in flips.classes:
        sentence = (
            f"{row.label}: {_text(row.removal)} of {row.removal.count} texts leave the "
            "class without one word"
        )
        if row.swap is not None:
            sentence += f"; {_text(row.swap)} with one word exchanged for another that was tried"
        if row.radius is not None:
            middle = (
                ""
                if row.median_radius is None
                else f", half of them within {row.median_radius:.2f} of it"
            )
            moved = f"{_text(row.radius)} of {row.radius.count}"
            sentence += f"; {moved} with one word moved by up to its own length{middle}"
        sentences.append(f"{sentence}.")
    for row in [row for row in flips.by_word if row.more][:_NAMED]:
        sentences.append(
            f"'{row.word}' decides: without it {_text(row.share)} of {row.share.count} {row.label} "
            "texts leave the "
            f"class; without another word of them {row.usual:.0%}."
        )
    return tuple(sentences)


def table(flips: LabelFlips) -> ResultTable:
    """A row a label."""
    notes = (*flips.answer, *flips.notes)
    return ResultTable(f"{flips.model}: labels that one word flips", flips.columns(), notes=notes)


def display(flips: LabelFlips) -> Display:
    """The findings, the words whose removal flips a label, and the words that do so more than
    others."""
    flipping = sorted(
        (word for word in flips.words if word.removed_to), key=lambda word: word.removal
    )
    words = Table(
        "Words whose removal flips the label (one change)",
        ("word", "in", "label", "with another word", "radius"),
        tuple(_flipped(flips.texts[word.text], word) for word in flipping),
        most=_SHOWN,
    )
    shares = Table(
        "Share of a word's texts that its removal flips; coloured where surely more than other "
        "words do",
        ("word", "class", "flipped", "texts", "others"),
        tuple(
            (
                Strong(row.word, "rise") if row.more else row.word,
                *(row.label, _text(row.share), row.share.count, f"{row.usual:.0%}"),
            )
            for row in flips.by_word
            if row.share.value > 0
        ),
        most=_SHOWN,
    )
    first = f"{flips.model}: {len(flips.texts)} texts, {len(flips.words)} words"
    return Display(
        (first, *flips.answer), (words, shares), failures=flips.failures, notes=flips.notes
    )


def _flipped(text: str, word: FlipWord) -> tuple[Any, ...]:
    """The word in its text, and where the text goes without it, or with another."""
    around = " ".join(text[max(0, word.start - _AROUND) : word.stop + _AROUND].split())
    shown = f"{'...' * (word.start > _AROUND)}{around}{'...' * (word.stop + _AROUND < len(text))}"
    swap = f"{word.swapped_for}: {word.swapped_to}" if word.swapped_to else None
    radius = None if word.radius is None else f"{word.radius:.2f}"
    label = f"{word.label} -> {word.removed_to} ({word.removal:+.3f})"
    return word.word, Marked(shown, (word.word,)), label, swap, radius
