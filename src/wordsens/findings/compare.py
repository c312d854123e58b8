"""What a comparison of two models says: its sentences, and the rows of every part."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from wordsens.display.numbers import Estimate, as_sentences, minus
from wordsens.display.view import ColouredWord, Table, View, Words
from wordsens.evaluation.compare import Comparison
from wordsens.evaluation.difference import (
    ALL_KINDS,
    CHECK,
    NEIGHBOURS,
    RANK,
    REMOVAL,
    WORD,
    Difference,
    with_interval,
)
from wordsens.evaluation.neighbours import ChangedNeighbour
from wordsens.evaluation.texts import LEAST_TEXTS

_NAMED = 3
"""Rows that a sentence names."""

_PARTS = {
    CHECK: "flipped meanings",
    REMOVAL: "kinds of words",
    WORD: "single words",
    RANK: "words' ranks",
    NEIGHBOURS: "neighbours",
}

_TITLES = {
    CHECK: "Flipped meanings: area under the curve, opposites against near-duplicates",
    REMOVAL: "Kinds of words: how far a text moves without one",
    RANK: "Words' ranks among the words of their text, 0 the least and 1 the most",
    WORD: "Single words: how far a text moves without it",
    NEIGHBOURS: "Neighbours: texts whose nearest is another, and the share of the nearest that is "
    "kept",
}

_ROWS = 12
"""Rows of a part that are shown at once: those that count first, then the largest differences."""

_CHANGED = 5
"""Texts with another first neighbour that are shown."""


def answer(comparison: Comparison) -> tuple[str, ...]:
    """The overall answer first, with the texts and pairs that were left out or replaced; nothing is
    said of a row whose interval includes the opposite, or no difference."""
    first, *others = _sentences(comparison)
    return " ".join(filter(None, [first, as_sentences(*comparison.changes)])), *others


def _sentences(comparison: Comparison) -> Iterator[str]:
    rows = [row for row in comparison.rows if row.differs]
    if rows:
        counts = {part: sum(row.part == part for row in rows) for part in _PARTS}
        parts = ", ".join(f"{_PARTS[part]} ({count})" for part, count in counts.items() if count)
        yield (
            f"{comparison.second} differs from {comparison.first} in {len(rows)} of "
            f"{len(comparison.rows)} comparisons "
            f"over {comparison.texts} texts: {parts}."
        )
    else:
        yield from _no_difference(comparison)
    if (matched := comparison.matched) is not None:
        second = math.floor(matched.second * 1e4) / 1e4  # rounded up it would keep fewer
        yield (
            f"A threshold of {matched.first:.4g} with the first model is {second:.4f} with the "
            f"second (95 %: {matched.second_low:.4f} to {matched.second_high:.4f}): they keep "
            f"{matched.recall:.0%} and {matched.recall_second:.0%} of near-duplicates; "
            f"{matched.false_hits_first:.0%} and {matched.false_hits_second:.0%} of opposites pass."
        )
    yield from _meanings(comparison, [row for row in rows if row.part == CHECK])


def _no_difference(comparison: Comparison) -> Iterator[str]:
    first, second = comparison.first, comparison.second
    beyond = f"beyond {comparison.tolerance:.0%}"
    if not comparison.rows:
        yield (
            f"Nothing could be compared between {first} and {second}: too few of the "
            f"{comparison.texts} texts have two "
            f"words or more; give {LEAST_TEXTS} or more that have."
        )
        return
    undecided = sum(not row.excluded for row in comparison.rows)
    where = f"{len(comparison.rows)} comparisons over {comparison.texts} texts"
    if comparison.apart == 0:
        yield f"No difference between {first} and {second} in {where}: their vectors are the same."
    elif undecided:
        yield (
            f"No difference between {first} and {second} is certain in {where}; {undecided} of "
            "them cannot exclude one "
            f"{beyond}: give more pairs or texts."
        )
    else:
        yield f"No difference between {first} and {second} {beyond} in {where}."


def _meanings(comparison: Comparison, rows: Sequence[Difference]) -> Iterator[str]:
    kinds = [row for row in rows if row.name != ALL_KINDS] or rows
    fewer, more = (
        [row for row in kinds if row.difference < 0],
        [row for row in kinds if row.difference > 0],
    )
    keep = f"keep {comparison.first} where these matter, or add a reranker"
    anew = "thresholds set before may now be too strict; set them anew"
    for some, how, advice in ((fewer, "fewer", keep), (more, "more", anew)):
        if some:
            listed = [
                f"{row.name} AUC {row.first:.3f} to {row.second:.3f}, {with_interval(row)}, "
                f"{row.count} pairs"
                for row in sorted(some, key=lambda row: -abs(row.difference))[:_NAMED]
            ]
            listed += [f"and {len(some) - _NAMED} more"] * (len(some) > _NAMED)
            said = f"tells {how} opposites from near-duplicates: {'; '.join(listed)}"
            yield f"{comparison.second} {said}. To do: {advice}."


def _short(text: str, most: int = 60) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= most else plain[:most].rsplit(" ", 1)[0] + " ..."


def view(comparison: Comparison) -> View:
    """The sentences, the rows of every part with their intervals, and the texts whose neighbours
    changed."""
    first, *others = answer(comparison)
    parts: list[Any] = [*others]
    parts += [table for part in _TITLES if len(table := _part(comparison, part))]
    if comparison.changed:
        parts.append(_changed_texts(comparison))
    vectors = f"A text's two vectors, at length one, lie {comparison.apart or 0:.2g} apart (mean)."
    return View(
        first,
        tuple(parts),
        failures=comparison.failures,
        passed="All requirements are met." if comparison.requirements and comparison.passed else "",
        notes=comparison.notes if comparison.apart is None else (vectors, *comparison.notes),
    )


def _part(comparison: Comparison, part: str) -> Table:
    """The rows of one part: those that count first, then the largest differences."""
    rows = [row for row in comparison.rows if row.part == part and row.low is not None]
    rows.sort(key=lambda row: (not row.differs, -abs(row.difference)))
    first, second = ("two calls", "two models") if part == NEIGHBOURS else ("first", "second")
    columns = {
        "": [row.name for row in rows],
        first: [row.first for row in rows],
        second: [row.second for row in rows],
        "difference": [Estimate(row.difference, row.low, row.high) for row in rows],
        "differs": [row.differs for row in rows],
        "pairs" if part == CHECK else "texts": [row.count for row in rows],
    }
    note = (
        f"First: {comparison.first}; second: {comparison.second}. Brackets: 95 % confidence "
        "intervals. Differs: beyond "
        f"{comparison.tolerance:.3g} in a test of all rows together."
    )
    most = _ROWS if part in (RANK, WORD) else len(rows)
    return Table(_TITLES[part], columns, note=note, most=most)


def _changed_texts(comparison: Comparison) -> View:
    """Each text with the words that the two models weigh differently, and its neighbour in
    either."""
    parts: list[Any] = []
    for changed in comparison.changed[:_CHANGED]:
        parts += [
            Words("", *_pieces(changed)),
            f"Its first neighbour by {comparison.first}: {_short(changed.old_text, 240)}",
            f"By {comparison.second}: {_short(changed.new_text, 240)}",
        ]
        if words := [
            f"'{word.word}' {word.first:+.3f} / {word.second:+.3f}" for word in changed.words[:3]
        ]:
            parts.append(
                minus(
                    "What the old one's lead over the new one gains without a word, in either: "
                    f"{', '.join(words)}"
                )
            )
    about = (
        "Coloured: words that the two models weigh differently between the old and the new "
        f"neighbour. Blue: without it the old one leads by more in {comparison.second}; orange, by "
        "less; underlined: without this one word the models agree again."
    )
    title = "Texts with another first neighbour, the clearest first"
    return View(title, (about, *parts))


def _pieces(changed: ChangedNeighbour) -> tuple[tuple[ColouredWord | str, ...], float]:
    """The text with its words, and the number at which colours are strongest."""
    most = max((abs(word.apart) for word in changed.words), default=0.0) or 1.0
    stop, pieces = 0, []
    for word in sorted(changed.words, key=lambda word: word.start):
        about = minus(f"{word.first:+.4f} and {word.second:+.4f}")
        coloured = ColouredWord(word.word, word.apart, about, word.back or word.away)
        pieces += [changed.text[stop : word.start], coloured]
        stop = word.stop
    return (*pieces, changed.text[stop:]), most
