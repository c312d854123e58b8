"""What an explanation says: its sentences, the texts with their words in colour, and one row per
word."""

from typing import Any

from wordsens.display.numbers import minus
from wordsens.display.view import ColouredWord, Table, View, Words
from wordsens.evaluation.explain import Explanation, WordEffect
from wordsens.text.pairs import Pair


def answer(explanation: Explanation) -> tuple[str, ...]:
    """The number, the words whose deletion moves it most, the words that keep two texts apart; then
    the notes."""
    two, value = len(explanation.texts) > 1, explanation.value
    sentences = [
        f"{explanation.model}: {explanation.score} {value:.4f}"
        if two or value
        else explanation.model
    ]

    def named(word: WordEffect) -> str:
        return f"'{word.word}'" + (" (second text)" if two and word.side else "")

    if words := explanation.most("removal", 3):
        moving = ", ".join(
            f"{named(word)} {word.removal:+.4f}" for word in words if _shows(word.removal)
        )
        most = f"these words change it most: {moving}" if moving else "no word changes it by .0001"
        sentences.append(f"Deleted one by one, {most}.")
    word, dividing = explanation.dividing, dividing_words(explanation)
    if word is not None and dividing:
        without = f"{value + word.rise:.4f} (one change)"
        if differ_alone(explanation):
            sentences.append(
                f"The texts differ in nothing but {' and '.join(map(repr, dividing))}."
            )
        elif len(dividing) == 1:
            sentences.append(
                f"The word that keeps the texts apart most is {named(word)}: without it it is "
                f"{without}."
            )
        else:
            first, second = dividing
            sentences.append(
                f"The pair of words that keeps the texts apart most is '{first}' of the first and "
                f"'{second}' of the "
                f"second: without both it is {without}."
            )
    return (*sentences, *explanation.notes)


def dividing_words(explanation: Explanation) -> tuple[str, ...]:
    """The word that keeps two texts apart most, or the pair of words, that of the first text first;
    () for none."""
    word = explanation.dividing
    if word is None or not _shows(word.rise):
        return ()
    if word.counterpart is None or (word.removal or 0.0) >= (word.apart or 0.0):
        return (word.word,)
    return (word.counterpart, word.word) if word.side else (word.word, word.counterpart)


def differ_alone(explanation: Explanation) -> bool:
    """True where the texts are equal without those words, by construction."""
    changed = (
        Pair("", *explanation.texts, same=False).changed if len(explanation.texts) == 2 else ()
    )
    return tuple(filter(None, changed)) == dividing_words(explanation) != ()


def _shows(value: float | None) -> bool:
    """True where a change is not 0 in the four digits that are printed."""
    return value is not None and round(abs(value), 4) > 0


def view(explanation: Explanation) -> View:
    """The sentences, the texts with the words coloured by what their deletion does, one row per
    word, and pairs."""
    first, *others = answer(explanation)
    most = max((abs(word.removal or 0) for word in explanation.words), default=0.0)
    legend = f"change of the {explanation.score} when the word is deleted"
    if explanation.dividing is not None and (dividing := dividing_words(explanation)):
        most = max(most, explanation.dividing.rise)
        both = ", both deleted" * (len(dividing) == 2)
        legend += f"; underlined: what separates the texts most{both}"
    last = len(explanation.texts) - 1
    coloured = [
        Words("", _pieces(explanation, side), most or 1.0, legend if side == last else "")
        for side in range(len(explanation.texts))
    ]
    pairs = explanation.pairs
    table = Table(
        "Pairs of words whose joint deletion differs most from the sum of both (one change)",
        {
            "first": [pair.first for pair in pairs],
            "second": [pair.second for pair in pairs],
            "both": [pair.together for pair in pairs],
            "sum": [pair.alone for pair in pairs],
            "difference": [pair.together - pair.alone for pair in pairs],
        },
        units=dict.fromkeys(("both", "sum", "difference"), "+"),
    )
    return View(first, (*others, *coloured, _word_table(explanation), table))


def _pieces(explanation: Explanation, side: int) -> tuple[ColouredWord | str, ...]:
    text, stop, pieces = explanation.texts[side], 0, []
    dividing = dividing_words(explanation)
    apart = explanation.dividing if dividing else None
    for word in (word for word in explanation.words if word.side == side):
        change, decides = word.removal or 0.0, False
        if apart is not None:
            counterpart = (
                len(dividing) == 2 and word.side != apart.side and word.word == apart.counterpart
            )
            decides = counterpart or word == apart
            change = apart.rise if decides else change
        about = "" if word.removal is None else minus(f"{word.removal:+.4f}")
        pieces += [text[stop : word.start], ColouredWord(word.word, change, about, decides)]
        stop = word.stop
    return (*pieces, text[stop:])


_COLUMNS = {
    "deleted": ("removal", "Deleted: the change without the word, one change."),
    "best swap": ("swap", "Best swap: the farthest of {tried} words that could stand there."),
    "swapped for": ("swapped_for", ""),
    "down": ("lowers", ""),
    "up": (
        "raises",
        "Down, up: the farthest found by moving the word's vectors by up to their length; lower "
        "bounds.",
    ),
    "at most": ("upper", "At most: no move of the word's vectors goes farther."),
    "both deleted": (
        "apart",
        "Both deleted: the largest rise when this word and one of the other text are deleted.",
    ),
    "with": ("counterpart", ""),
}
"""By heading: the field of a word, and what it means."""


def _word_table(explanation: Explanation) -> Table:
    """One row per word, without the columns that are empty throughout."""
    words = explanation.words
    columns: dict[str, list[Any]] = {
        "text": [word.side + 1 for word in words],
        "word": [word.word for word in words],
    }
    tried = max((word.tried for word in words), default=0)
    note = []
    for heading, (field, meaning) in _COLUMNS.items():
        values = [getattr(word, field) for word in words]
        if any(value is not None for value in values):
            columns[heading] = values
            note.append(meaning.format(tried=tried))
    units = dict.fromkeys(_COLUMNS, "+")
    text = " ".join(filter(None, note))
    return Table("", columns, units=units, note=text, most=max(len(words), 1))
