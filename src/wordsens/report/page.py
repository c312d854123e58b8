"""A word as a page's script reads it."""

from typing import Any

from wordsens.report.texts import Word


def word_data(word: Word) -> dict[str, Any]:
    """The word as the page's script reads it."""
    return {
        "text": word.text,
        "attained": word.attained,
        "upper": word.upper,
        "removal": word.removal,
        "swap": word.swap,
        "swappedFor": word.swapped_for,
        "moved": word.moved,
    }
