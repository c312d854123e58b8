"""What a calibration says: its threshold or why there is none, the kinds that pass, and what other
budgets cost."""

import math
from typing import Any

from wordsens.display.content import Display, Table, as_sentences, percent, plural
from wordsens.evaluation.calibrate import Calibration, OperatingPoint
from wordsens.results import ResultTable


def answer(calibration: Calibration) -> tuple[str, ...]:
    """The threshold with what it keeps and lets through, or that there is none, and which pairs
    were left out or replaced; then the same with the other use of the guard."""
    first, *others = _sentences(calibration)
    return " ".join(filter(None, [first, as_sentences(*calibration.changes)])), *others


def _sentences(calibration: Calibration) -> tuple[str, ...]:
    budget, count = percent(calibration.budget), int(calibration.measured.opposite.sum())
    other = calibration.point_at(calibration.budget, guard=not calibration.guard)
    where = "without the guard" if calibration.guard else "with the guard"
    point = calibration.point
    if point.threshold is None:
        behind = " with the guard" if calibration.guard else ""
        sentence = f"No threshold of {calibration.model}{behind} keeps false hits under {budget}"
        if count < calibration.needed:
            return (
                f"{sentence} for sure: {plural(count, 'opposite')} cannot show it. At "
                f"{percent(calibration.confidence)} confidence it takes {calibration.needed} of "
                f"which none passes; {count} can show "
                f"{percent(1 - (1 - calibration.confidence) ** (1 / count))} at best.",
            )
        if other.threshold is not None:
            sentence += (
                f"; {where} {decimals(other.threshold)} does and keeps "
                f"{percent(other.recall or 0.0)}"
            )
        return (f"{sentence}.",)
    guarded = " and the guard" if calibration.guard else ""
    whose = "package's " if calibration.measured.has_stand_ins else ""
    first = (
        f"With the threshold {decimals(point.threshold)}{guarded}, {calibration.model} keeps "
        f"{_kept(point)} of the {whose}near-duplicates, and {point.hits} of {count} opposites pass "
        f"as the same: at most {budget} of opposites like these, at "
        f"{percent(calibration.confidence)} confidence."
    )
    if other.threshold is None:
        return first, f"{where.capitalize()} no threshold serves."
    costs = f"the threshold {decimals(other.threshold)} keeps {percent(other.recall or 0.0)}"
    return first, f"{where.capitalize()} {costs}."


def _kept(point: OperatingPoint) -> str:
    low, high = point.recall_low or 0.0, point.recall_high or 0.0
    return f"{percent(point.recall or 0.0)} ({100 * low:.0f} to {100 * high:.0f} %)"


def decimals(number: float) -> str:
    """All digits of a threshold or a distance, which has few.

    >>> decimals(0.83), decimals(1 - 0.83), decimals(1.0)
    ('.83', '.17', '1')
    """
    return f"{number:.15g}".replace("0.", ".", 1) if 0 < abs(number) < 1 else f"{number:.15g}"


def in_distance(calibration: Calibration, name: str) -> str:
    """The threshold as a distance of a vector store, "l2" or "cosine"; "" without a threshold."""
    if calibration.distances is None:
        return ""
    distance = calibration.distances[name]
    if name == "cosine":
        return f"As a cosine distance, 1 - c: at most {decimals(distance)}."
    root = math.floor(math.sqrt(distance) * 1e6) / 1e6
    return (
        f"As a squared L2 distance of vectors of length one, 2 - 2c: at most {decimals(distance)}; "
        "where a store takes "
        f"the root, at most {decimals(root)}."
    )


def table(calibration: Calibration) -> ResultTable:
    """A row a budget, without the guard and with it."""
    return ResultTable(calibration.answer[0], calibration.columns(), notes=calibration.notes)


def display(calibration: Calibration, distance: str = "") -> Display:
    """The answer, also in the distance of that name; the kinds of opposites that pass, and a row a
    budget."""
    confidence = percent(calibration.confidence)
    kinds = Table(
        "",
        ("kind", "opposites", "pass", f"at most ({confidence})"),
        tuple((row.kind, row.pairs, row.hits, percent(row.limit)) for row in calibration.kinds),
        most=len(calibration.kinds),
    )
    budgets = Table(
        "What a budget of false hits costs",
        ("budget", "threshold", "keeps", "pass", "with guard", "keeps", "pass"),
        tuple(
            (percent(alone.budget), *_cells(alone), *_cells(guarded))
            for alone, guarded in calibration.budgets
        ),
        "keeps: near-duplicates at or above the threshold, with its 95 % interval. pass: the "
        "opposites that are, of "
        f"{int(calibration.measured.opposite.sum())}; with the guard, those that it does not call "
        "different. Each "
        f"budget holds at {confidence} confidence for pairs that are drawn like these.",
        len(calibration.budgets),
    )
    said = in_distance(calibration, distance) if distance else ""
    return Display(
        (*calibration.answer, *filter(None, [said])),
        tuple(each for each in (kinds, budgets) if each.rows),
        notes=calibration.notes,
    )


def _cells(point: OperatingPoint) -> tuple[Any, ...]:
    if point.threshold is None:
        return "none", None, None
    return decimals(point.threshold), _kept(point), point.hits
