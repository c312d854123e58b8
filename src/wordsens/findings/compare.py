"""What a comparison of two models says: its sentences, and the rows of every part."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from wordsens.display.content import Display, Interval, Section, Shade, Strong, Table, Words, level, minus
from wordsens.evaluation.compare import Comparison, MatchedThreshold
from wordsens.evaluation.difference import (
    ALL_KINDS,
    CHECK,
    NEAREST,
    NEIGHBOURS,
    RANK,
    RECALL,
    REMOVAL,
    WORD,
    Difference,
    with_interval,
)
from wordsens.evaluation.neighbours import ChangedNeighbour
from wordsens.evaluation.texts import LEAST_TEXTS
from wordsens.evaluation.word_differences import EVERY
from wordsens.results import ResultTable

_NAMED = 3
"""Rows that a sentence names."""

_PARTS = {CHECK: "flipped meanings", REMOVAL: "kinds of words", WORD: "single words", RANK: "words' ranks",
          NEIGHBOURS: "neighbours"}  # fmt: skip

_TITLES = {
    CHECK: "Flipped meanings: area under the curve, opposites against near-duplicates",
    REMOVAL: "Kinds of words: how far a text moves without one",
    RANK: "Words' ranks among the words of their text",
    WORD: "Single words: how far a text moves without it",
    NEIGHBOURS: "Neighbours: texts whose nearest is another, and the share of the nearest that is kept",
}

_ROWS = 12
"""Rows of a part that are shown at once: those that count first, then the largest differences."""

_CHANGED = 5
"""Texts with another first neighbour that are shown."""


def answer(comparison: Comparison) -> tuple[str, ...]:
    """The overall answer first; nothing is said of a row whose interval includes the opposite, or no difference."""
    return tuple(_sentences(comparison))


def _sentences(comparison: Comparison) -> Iterator[str]:
    rows = [row for row in comparison.rows if row.differs]
    if rows:
        counts = {part: sum(row.part == part for row in rows) for part in _PARTS}
        parts = ", ".join(f"{_PARTS[part]} ({count})" for part, count in counts.items() if count)
        yield (
            f"{comparison.second} differs from {comparison.first} in {len(rows)} of {len(comparison.rows)} comparisons "
            f"over {comparison.texts} texts: {parts}."
        )
    else:
        yield from _no_difference(comparison)
    if comparison.matched is not None:
        yield _matched(comparison.matched)
    yield from _meanings(comparison, [row for row in rows if row.part == CHECK])
    yield from _words(comparison, rows)
    yield from _ranks(comparison, [row for row in rows if row.part == RANK])
    yield from _neighbours(comparison, {row.name: row for row in rows if row.part == NEIGHBOURS})
    by_part = {part: [row for row in comparison.rows if row.part == part] for part in _PARTS}
    same = [_PARTS[part] for part, some in by_part.items() if some and all(row.excluded for row in some)]
    if rows and same:
        yield f"No difference beyond {comparison.tolerance:.0%} in {', '.join(same)}."


def _no_difference(comparison: Comparison) -> Iterator[str]:
    first, second, beyond = comparison.first, comparison.second, f"beyond {comparison.tolerance:.0%}"
    if not comparison.rows:
        yield (
            f"Nothing could be compared between {first} and {second}: too few of the {comparison.texts} texts have two "
            f"words or more; give {LEAST_TEXTS} or more that have."
        )
        return
    undecided = sum(not row.excluded for row in comparison.rows)
    where = f"{len(comparison.rows)} comparisons over {comparison.texts} texts"
    if comparison.apart == 0:
        yield f"No difference between {first} and {second} in {where}: their vectors are the same."
    elif undecided:
        yield (
            f"No difference between {first} and {second} is certain in {where}; {undecided} of them cannot exclude one "
            f"{beyond}."
        )
    else:
        yield f"No difference between {first} and {second} {beyond} in {where}."
    names = {ALL_KINDS: "AUC of all kinds", EVERY: "change without a word", NEAREST: "texts with another neighbour"}
    main = [row for row in comparison.rows if row.name in names]
    if known := [f"{names[row.name]} {with_interval(row)}" for row in main if row.low is not None]:
        yield f"Second less first: {'; '.join(known)}."
    if unsure := [names[row.name] for row in main if not row.excluded]:
        pairs = "pairs or " if main[0].name == ALL_KINDS else ""
        yield f"Too few {pairs}texts to exclude one {beyond} in {', '.join(unsure)}: give more."


def _matched(matched: MatchedThreshold) -> str:
    """What to do with a threshold after the change of models."""
    return (
        f"A threshold of {matched.first:.4g} with the first model is {matched.second:.4f} with the second (95 %: "
        f"{matched.second_low:.4f} to {matched.second_high:.4f}): both keep {matched.recall:.0%} of near-duplicates, "
        f"and {matched.false_hits_first:.0%} and {matched.false_hits_second:.0%} of opposites pass."
    )


def _meanings(comparison: Comparison, rows: Sequence[Difference]) -> Iterator[str]:
    kinds = [row for row in rows if row.name != ALL_KINDS] or rows
    fewer, more = [row for row in kinds if row.difference < 0], [row for row in kinds if row.difference > 0]
    keep = f"keep {comparison.first} where these matter, or add a reranker"
    anew = "thresholds set before may now be too strict; set them anew"
    for some, how, advice in ((fewer, "fewer", keep), (more, "more", anew)):
        if some:
            listed = _listed(
                sorted(some, key=lambda row: -abs(row.difference)),
                lambda row: (
                    f"{row.name} AUC {row.first:.3f} -> {row.second:.3f}, {with_interval(row)}, {row.count} pairs"
                ),
            )
            yield f"{comparison.second} tells {how} opposites from near-duplicates: {listed}. To do: {advice}."


def _words(comparison: Comparison, rows: Sequence[Difference]) -> Iterator[str]:
    every = next((row for row in rows if row.part == REMOVAL and row.name == EVERY), None)
    if every is not None:
        yield (
            f"Without one word a text moves {_relative(every)} in {comparison.second}: {every.second:.3f} of its "
            f"length against {every.first:.3f}, {with_interval(every)}. To do: set thresholds on cosines anew, on your "
            "own texts."
        )
    kinds = [row for row in rows if row.part == REMOVAL and row.name != EVERY]
    # Where every word moves a text more, single words do too, and their ranks say the rest.
    single = [row for row in rows if row.part == WORD and (every is None or every.difference * row.difference < 0)]
    for title, some in (("By kind, place and length", kinds), ("Single words", single)):
        if some:
            listed = _listed(
                sorted(some, key=lambda row: -abs(row.relative)),
                lambda row: (
                    f"{repr(row.name) if row.part == WORD else row.name} {_relative(row)}, {with_interval(row)}, "
                    f"{row.count} texts"
                ),
            )
            yield f"{title} (a text without them moves): {listed}."


def _ranks(comparison: Comparison, rows: Sequence[Difference]) -> Iterator[str]:
    ranks = sorted(rows, key=lambda row: -abs(row.difference))
    for row in [row for row in ranks if row.crosses][:_NAMED]:
        names = (comparison.first, comparison.second)
        ignores, reacts = names if row.difference > 0 else names[::-1]
        yield (
            f"{ignores} ignores '{row.name}' and {reacts} reacts to it: its rank among the words of its text goes from "
            f"{row.first:.2f} to {row.second:.2f}, {with_interval(row)}, {row.count} texts. To do: try texts with and "
            "without it (wordsens explain)."
        )
    if others := [row for row in ranks if not row.crosses]:
        listed = _listed(
            others,
            lambda row: f"'{row.name}' {row.first:.2f} -> {row.second:.2f}, {with_interval(row)}, {row.count} texts",
        )
        yield f"Words that changed rank (0 the least of their text, 1 the most): {listed}."


def _neighbours(comparison: Comparison, rows: dict[str, Difference]) -> Iterator[str]:
    if (row := rows.get(NEAREST)) is not None:
        yield (
            f"{row.second:.1%} of {row.count} texts have another first neighbour ({row.first:.1%} between two calls of "
            f"one model; {with_interval(row)}). To do: encode the whole corpus anew, and read the changed ones."
        )
    elif (row := rows.get(RECALL)) is not None:
        yield f"The recall of neighbours is {row.second:.3f} ({row.first:.3f} between two calls; {with_interval(row)})."
    # An example is a text that the removal of a single word turns back in one of the models.
    for changed in comparison.changed if rows else ():
        word = next((word for word in changed.words if word.back or word.away), None)
        if word is not None:
            turned = "has the old one nearer" if word.back else "has the new one nearer too"
            yield (
                f"Such as {_short(changed.text)!r}: its first neighbour was {_short(changed.old_text)!r} and is "
                f"{_short(changed.new_text)!r}; without '{word.word}' "
                f"{comparison.second if word.back else comparison.first} {turned} (one change)."
            )
            return


def _listed(rows: Sequence[Difference], said: Any) -> str:
    more = f"; and {len(rows) - _NAMED} more" if len(rows) > _NAMED else ""
    return "; ".join(map(said, rows[:_NAMED])) + more


def _relative(row: Difference) -> str:
    """The difference as a share of the first number, in words."""
    return f"{abs(row.relative):.1%} {'more' if row.difference > 0 else 'less'}"


def _short(text: str, most: int = 60) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= most else plain[:most].rsplit(" ", 1)[0] + " ..."


def table(comparison: Comparison) -> ResultTable:
    """A row a difference, those that count first."""
    failed = tuple(f"FAILED: {failure}" for failure in comparison.failures)
    first, *further = comparison.answer
    return ResultTable(first, comparison.columns(), notes=(*further, *failed, *comparison.notes))


def display(comparison: Comparison) -> Display:
    """The findings, the rows of every part with their intervals, and the texts whose neighbours changed."""
    parts: list[Any] = [table for part in _TITLES if (table := _part(comparison, part)).rows]
    if parts:
        note = (
            f"{comparison.first} first, {comparison.second} second. Coloured rows hold in a test of all rows together, "
            f"beyond {comparison.tolerance:.3g}: orange is more in {comparison.second}, blue less."
        )
        parts[0] = replace(parts[0], note=note)
    if comparison.changed:
        parts.append(_changed_texts(comparison))
    vectors = f"A text's two vectors, at length one, lie {comparison.apart or 0:.2g} apart (mean)."
    return Display(
        comparison.answer,
        tuple(parts),
        failures=comparison.failures,
        passed="All requirements are met." if comparison.requirements and comparison.passed else "",
        notes=comparison.notes if comparison.apart is None else (vectors, *comparison.notes),
    )


def _part(comparison: Comparison, part: str) -> Table:
    """The rows of one part: those that count first, then the largest differences."""
    rows = [row for row in comparison.rows if row.part == part and row.low is not None]
    rows.sort(key=lambda row: (not row.differs, -abs(row.difference)))
    most = max((max(abs(row.low or 0), abs(row.high or 0)) for row in rows), default=0.0) or 1.0
    first, second = ("two calls", "two models") if part == NEIGHBOURS else ("first", "second")
    cells = tuple(
        (
            Strong(row.name, "rise" if row.difference > 0 else "fall") if row.differs else row.name,
            *(f"{row.first:.4f}", f"{row.second:.4f}", minus(f"{row.difference:+.4f}")),
            Interval(row.difference, row.low or 0.0, row.high or 0.0, most, row.differs),
            f"{row.count} {'pairs' if part == CHECK else 'texts'}",
        )
        for row in rows
    )
    headings = ("", first, second, "difference", "95 %", "of")
    return Table(_TITLES[part], headings, cells, most=_ROWS if part in (RANK, WORD) else len(cells))


def _changed_texts(comparison: Comparison) -> Section:
    """Each text with the words that the two models weigh differently, and its neighbour in either."""
    parts: list[Any] = []
    for changed in comparison.changed[:_CHANGED]:
        parts += [
            Words("", _pieces(changed)),
            f"{comparison.first}: was next to: {_short(changed.old_text, 240)}",
            f"{comparison.second}: is next to: {_short(changed.new_text, 240)}",
        ]
        if words := [f"'{word.word}' {word.first:+.3f} / {word.second:+.3f}" for word in changed.words[:3]]:
            parts.append(minus(f"Without these words the old one leads by more or less: {', '.join(words)}"))
    about = (
        "Coloured: words that the two models weigh differently between the old and the new neighbour (removed one by "
        f"one): orange, without it the old one leads by more in {comparison.second}; blue, by less; underlined: "
        "without this one word the models agree again."
    )
    return Section("Texts with another first neighbour, the clearest first", tuple(parts), about)


def _pieces(changed: ChangedNeighbour) -> tuple[Shade | str, ...]:
    most = max((abs(word.apart) for word in changed.words), default=0.0) or 1.0
    stop, pieces = 0, []
    for word in sorted(changed.words, key=lambda word: word.start):
        title = minus(f"{word.first:+.4f} and {word.second:+.4f}")
        share, decides = abs(word.apart) / most, word.back or word.away
        shade = Shade(word.word, level(share), title, falls=word.apart > 0, decides=decides)
        pieces += [changed.text[stop : word.start], shade]
        stop = word.stop
    return (*pieces, changed.text[stop:])
