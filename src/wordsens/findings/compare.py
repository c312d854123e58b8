"""What a comparison of two models says: its sentences, and the rows of every part."""

import math
from collections.abc import Iterator
from typing import Any

from wordsens.display.numbers import as_sentences, decimals, plural
from wordsens.display.view import Table, View
from wordsens.evaluation.compare import (
    ALL_KINDS,
    CHECK,
    FALSE_HITS,
    NEIGHBOURS,
    RECALL,
    REMOVAL,
    Comparison,
    Difference,
)
from wordsens.evaluation.texts import LEAST_TEXTS

_TITLES = {
    CHECK: "AUC: opposites against near-duplicates",
    FALSE_HITS: "False hits: share of opposites accepted, each model at its threshold",
    RECALL: "Recall: share of near-duplicates accepted, each model at its threshold",
    REMOVAL: "Mean relative change of a text's vector when one word is deleted",
}

# Texts with another nearest text that are shown, and the characters of each.
_CHANGED, _SHORT = 8, 120


def view(comparison: Comparison) -> View:
    """How many comparisons differ, with what was left out or replaced; the threshold of the second
    model; the kinds whose AUC changed; how many texts have another nearest text; the rows of every
    part with their intervals, and those texts."""
    first, *others = _sentences(comparison)
    headline = " ".join((first, *map(as_sentences, comparison.changes)))
    tables = [_part(comparison, part) for part in _TITLES]
    tables.append(_changed_texts(comparison))
    vectors = ()
    if comparison.apart is not None:
        vectors = (f"the mean distance of a text's two unit vectors is {comparison.apart:.2g}",)
    return View(
        headline,
        (*others, *filter(len, tables)),
        failures=comparison.failures,
        passed="All requirements are met." if comparison.requirements and comparison.passed else "",
        notes=(*vectors, *comparison.notes),
    )


def _sentences(comparison: Comparison) -> Iterator[str]:
    names = f"{comparison.first} and {comparison.second}"
    tested = [row for row in comparison.rows if row.change.p is not None]
    differing = [row for row in tested if row.differs]
    where = plural(len(tested), "tested comparison")
    open_rows = sum(not row.excluded for row in tested)
    if differing:
        yield f"{names} differ in {len(differing)} of {where}."
    elif not tested:
        yield (
            f"Nothing could be compared between {names}: words were deleted from fewer than "
            f"{LEAST_TEXTS} texts."
        )
    elif comparison.apart == 0:
        yield f"No difference between {names}: their vectors are the same."
    elif open_rows:
        yield (
            f"No difference between {names} is certain in {where}; {open_rows} of them cannot "
            "exclude one: give more pairs or texts."
        )
    else:
        yield f"No difference between {names} beyond the tolerance in {where}."
    if (second := comparison.second_threshold) is not None:
        yield (
            f"A threshold of {_floored(comparison.threshold)} with the first model is "
            f"{_floored(second.value)} with the second (95 %: {_floored(second.low)} to "
            f"{_floored(second.high)})."
        )
    yield from _meanings(comparison, [row for row in differing if row.part == CHECK])
    for row in comparison.rows:
        if row.part == NEIGHBOURS:
            changed = f"{len(comparison.changed)} of {plural(row.count, 'text')}"
            yield f"In the second model {changed} have a different nearest text."


def _floored(threshold: float | None) -> str:
    """A threshold in as many decimals as it has, four at most: rounded up it would accept fewer."""
    return decimals(math.floor((threshold or 0.0) * 1e4 + 1e-9) / 1e4)


def _meanings(comparison: Comparison, rows: list[Difference]) -> Iterator[str]:
    """The kinds of opposites that the second model tells less, or more, from near-duplicates."""
    kinds = [row for row in rows if row.name != ALL_KINDS] or rows
    kinds.sort(key=lambda row: -abs(row.change.value))
    remedies = {
        "fewer": f"keep {comparison.first} where these matter, or add a reranker",
        "more": "thresholds set before may now be too strict; set them again",
    }
    for how, remedy in remedies.items():
        names = [row.name for row in kinds if (row.change.value < 0) == (how == "fewer")]
        if names:
            yield (
                f"{comparison.second} tells {how} opposites from near-duplicates: "
                f"{', '.join(names)}. To do: {remedy}."
            )


def _part(comparison: Comparison, part: str) -> Table:
    """The rows of one part: those that differ first, then the largest changes."""
    rows = [row for row in comparison.rows if row.part == part]
    rows.sort(key=lambda row: (not row.differs, -abs(row.change.value)))
    shares = part in (FALSE_HITS, RECALL)
    columns: dict[str, Any] = {
        "kind": [row.name for row in rows],
        "first": [row.first for row in rows],
        "second": [row.second for row in rows],
        "change": [row.change for row in rows],
    }
    if not shares:
        columns["differs"] = [row.differs for row in rows]
    columns["texts" if part == REMOVAL else "pairs"] = [row.count for row in rows]
    note = (
        f"First: {comparison.first}; second: {comparison.second}. Change: second minus first, "
        "with the 95 % confidence interval."
    )
    if not shares:
        note += " Differs: beyond the tolerance in a test of all rows together."
    units = dict.fromkeys(["first", "second", "change"], "%" if shares else "")
    return Table(_TITLES[part], columns, units=units, note=note, most=len(rows))


def _changed_texts(comparison: Comparison) -> Table:
    changed = comparison.changed
    columns = {
        "text": [shortened(each.text) for each in changed],
        f"nearest by {comparison.first}": [shortened(each.old) for each in changed],
        f"nearest by {comparison.second}": [shortened(each.new) for each in changed],
    }
    return Table("Texts whose nearest text changed, the clearest first", columns, most=_CHANGED)


def shortened(text: str) -> str:
    """The text in one line, cut behind a word where it is long."""
    plain = " ".join(text.split())
    return plain if len(plain) <= _SHORT else plain[:_SHORT].rsplit(" ", 1)[0] + " ..."
