"""What an explanation says: its sentences, the texts with their words in colour, and one row per
word."""

from itertools import product

from wordsens.display.numbers import minus
from wordsens.display.view import ColouredWord, Table, View, Words
from wordsens.evaluation.explain import Explanation
from wordsens.text.pairs import Pair
from wordsens.text.whole_words import Span, lettered_spans

# The smallest change that is not 0 in the four digits that are printed.
_SHOWN = 5e-5

# The smallest rise of the score by which words separate two texts.
_SEPARATES = 0.01

# What each column means.
_MEANING = {
    "deleted": "Deleted: the change when the word is deleted.",
    "best swap": (
        "Best swap: the largest change when another word that fits replaces it; empty where none "
        "is listed."
    ),
    "moved": (
        "Moved: the largest change found by moving the word's vectors by up to their length; a "
        "lower bound."
    ),
    "both deleted": (
        "Both deleted: the highest rise when this word and a word of the other text are deleted."
    ),
}


def view(explanation: Explanation) -> View:
    """The sentences, the texts with the words coloured by what their deletion does, one row per
    word, and pairs."""
    deleted = explanation.by("delete")
    sentence, underlined = separation(explanation)
    strongest = max((abs(effect.change) for effect in deleted), default=0.0) or 1.0
    legend = f"change of the {explanation.score} when that word alone is deleted" + (
        "; underlined: what separates the texts" * bool(underlined)
    )
    last = len(explanation.texts) - 1
    coloured = [
        Words("", _pieces(explanation, side, underlined), strongest, legend * (side == last))
        for side in range(last + 1)
    ]
    columns = explanation.columns()
    columns = {name: cells for name, cells in columns.items() if {*cells} - {None}}
    meaning = " ".join(text for name, text in _MEANING.items() if name in columns)
    words = Table("", columns, dict.fromkeys(_MEANING, "+"), meaning, max(len(columns["word"]), 1))
    numbers = ("both", "sum", "difference")
    pairs = Table.of_rows(
        "Pairs of words: deleting both differs most from the sum of deleting each",
        ("first", "second", *numbers),
        [
            (
                pair.first.word,
                pair.second.word,
                pair.together,
                pair.alone,
                pair.together - pair.alone,
            )
            for pair in explanation.pairs
        ],
        units=dict.fromkeys(numbers, "+"),
    )
    headline = [_answer(explanation), *explanation.changes]
    parts = (*filter(None, (sentence,)), *coloured, words, pairs)
    return View("; ".join(headline), parts, notes=explanation.notes)


def _answer(explanation: Explanation) -> str:
    """The score, and the word whose deletion changes it most."""
    alone = len(explanation.texts) < 2 and not explanation.value  # an embedding has no score
    value = "when a word is deleted" if alone else f"{explanation.value:.4f}"
    sentence = f"{explanation.model}: {explanation.score} {value}"
    leader = max(explanation.by("delete"), key=lambda effect: abs(effect.change), default=None)
    if leader is None:
        return sentence
    which = " of the second text" * leader.text
    most = f"deleting {leader.word!r}{which} changes it most, by {minus(f'{leader.change:+.4f}')}"
    none = abs(leader.change) < _SHOWN
    return f"{sentence}; {'no word changes it by .0001' if none else most}"


def separation(explanation: Explanation) -> tuple[str, list[tuple[int, Span]]]:
    """What separates two texts in a sentence, and its parts of the texts: their number and
    characters. Words that both texts have do not."""
    texts, score, value = explanation.texts, explanation.score, explanation.value
    if len(texts) < 2:
        return "", []
    if (phrases := exchanged(*texts)) is not None:
        first, second = (texts[0][slice(*span)] for side, span in phrases if side == 0)
        return f"'{first}' and '{second}' are exchanged; the {score} is {value:.4f}.", phrases
    singles = [((effect,), effect.change) for effect in explanation.by("delete")]
    pairs = [
        ((pair.first, pair.second), pair.together)
        for pair in explanation.partners
        if pair.first.word.lower() != pair.second.word.lower()
    ]
    changed = [*filter(None, Pair("", *texts, same=False).changed)]
    found = [*singles, *pairs]
    differing = [each for each in found if [word.word for word in each[0]] == changed]
    words, rise = max(differing or found, key=lambda each: each[1], default=((), 0.0))
    if rise < _SEPARATES and not differing:
        # Nothing is known of words that the model does not read.
        none = (
            "No single word explains the difference: deleting one does not raise the "
            f"{score} by {_SEPARATES}."
        )
        return none * bool(words and changed and not explanation.changes), []
    named = " and ".join(f"'{word.word}'" for word in words)
    parts = [(word.text, word.span) for word in words]
    if differing:
        return f"The texts differ only in {named}.", parts
    closest = f"Deleting {named} brings the texts closest: the {score} becomes {value + rise:.4f}."
    return closest, parts


def exchanged(*texts: str) -> list[tuple[int, Span]] | None:
    """The two phrases that change places between the texts, each with the number of its text; None
    where the texts differ in another way.

    >>> exchanged("From the old hall to Leeds.", "From Leeds to the old hall.")
    [(0, (5, 17)), (0, (21, 26)), (1, (14, 26)), (1, (5, 10))]
    """
    spans = [lettered_spans(text) for text in texts]
    first, second = (
        [text[slice(*span)].lower() for span in its] for text, its in zip(texts, spans, strict=True)
    )
    differing = [
        at for at, words in enumerate(zip(first, second, strict=False)) if len({*words}) > 1
    ]
    if sorted(first) != sorted(second) or not differing:
        return None
    start, stop = differing[0], differing[-1] + 1
    before, after = first[start:stop], second[start:stop]
    count = stop - start
    for left, right in product(range(1, count), repeat=2):
        inner = before[left : count - right]
        if after == before[count - right :] + inner + before[:left]:
            places = [
                (0, start, left),
                (0, stop - right, right),
                (1, stop - left, left),
                (1, start, right),
            ]
            return [
                (side, (spans[side][at][0], spans[side][at + length - 1][1]))
                for side, at, length in places
            ]
    return None


def _pieces(
    explanation: Explanation, side: int, underlined: list[tuple[int, Span]]
) -> tuple[ColouredWord | str, ...]:
    changes = {
        effect.span: effect.change for effect in explanation.by("delete") if effect.text == side
    }
    text, stop, pieces = explanation.texts[side], 0, []
    marked = [span for which, span in underlined if which == side]
    for start, end in lettered_spans(text):
        change = changes.get((start, end))
        about = "" if change is None else minus(f"{change:+.4f}")
        decides = any(first <= start and end <= last for first, last in marked)
        pieces += [text[stop:start], ColouredWord(text[start:end], change or 0.0, about, decides)]
        stop = end
    return (*pieces, text[stop:])
