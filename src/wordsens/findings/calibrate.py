"""What a calibration says: its threshold or why there is none, the kinds that pass, and what other
budgets cost."""

import math

from wordsens.display.numbers import Estimate, as_sentences, column, decimals, percent, plural
from wordsens.display.view import Chart, Table, View
from wordsens.evaluation.calibrate import Calibration, OperatingPoint
from wordsens.evaluation.collisions import Collisions


def view(calibration: Calibration, distance: str = "") -> View:
    """The threshold with what it keeps and lets through, or that there is none, and which pairs
    were left out or replaced; the threshold in the distance of that name; the kinds of opposites
    that pass, and one row per budget."""
    headline = " ".join((_sentence(calibration), *map(as_sentences, calibration.scored.changes)))
    sentence = in_distance(calibration, distance) if distance else ""
    parts = filter(len, (sentence, _kinds(calibration), _budgets(calibration)))
    return View(headline, tuple(parts), notes=calibration.notes, chart=_chart(calibration))


def _sentence(calibration: Calibration) -> str:
    point, count = calibration.point, int(calibration.scored.opposite.sum())
    budget, confidence = percent(calibration.budget), percent(calibration.confidence)
    if point.threshold is not None:
        behind = " and the guard" if calibration.guard else ""
        whose = "package's " if calibration.scored.has_stand_ins else ""
        return (
            f"With the threshold {decimals(point.threshold)}{behind}, {calibration.model} keeps "
            f"{_kept(point)} of the {whose}near-duplicates, and {point.hits} of {count} opposites "
            f"pass as the same: at most {budget} of opposites like these, at {confidence} "
            "confidence."
        )
    behind = " with the guard" if calibration.guard else ""
    sentence = f"No threshold of {calibration.model}{behind} keeps false hits under {budget}"
    if count < calibration.needed:
        shown = too_few(count, calibration.needed, calibration.confidence, "opposite")
        return f"{sentence} for sure: {shown}"
    guarded = calibration.point_at(calibration.budget, guard=True)
    if guarded.threshold is None:
        return f"{sentence}."
    return (
        f"{sentence}; with the guard {decimals(guarded.threshold)} does and keeps {_kept(guarded)}."
    )


def too_few(count: int, needed: int, confidence: float, noun: str) -> str:
    """That so few cannot show a budget, how many it takes, and what they can show."""
    best = percent(1 - (1 - confidence) ** (1 / count))
    return (
        f"{plural(count, noun)} cannot show it. At {percent(confidence)} confidence it takes "
        f"{needed} of which none passes; {count} can show {best} at best."
    )


def _kept(point: OperatingPoint) -> str:
    return column([point.recall], "%")[0]


def in_distance(calibration: Calibration | Collisions, name: str) -> str:
    """The threshold as a distance of a vector store, "l2" or "cosine"; "" without a threshold."""
    if calibration.distances is None:
        return ""
    distance = calibration.distances[name]
    if name == "cosine":
        return f"As a cosine distance, 1 - c: at most {decimals(distance)}."
    root = math.floor(math.sqrt(distance) * 1e6) / 1e6
    return (
        f"As a squared L2 distance of vectors of length one, 2 - 2c: at most {decimals(distance)}; "
        f"where a store takes the root, at most {decimals(root)}."
    )


def _kinds(calibration: Calibration) -> Table:
    rows, limit = calibration.kinds, f"at most ({percent(calibration.confidence)})"
    keys = {"kind": "kind", "opposites": "pairs", "pass": "hits", limit: "limit"}
    columns = {name: [row[key] for row in rows] for name, key in keys.items()}
    return Table("", columns, units={limit: "%"}, most=len(rows))


def _budgets(calibration: Calibration) -> Table:
    columns = {"budget": [alone.budget for alone, _ in calibration.budgets]}
    units = {"budget": "%"}
    for guard, suffix in ((False, ""), (True, " with guard")):
        points = [pair[guard] for pair in calibration.budgets]
        columns |= {
            f"threshold{suffix}": [
                "none" if point.threshold is None else decimals(point.threshold) for point in points
            ],
            f"keeps{suffix}": [point.recall for point in points],
            f"pass{suffix}": [point.hits for point in points],
        }
        units[f"keeps{suffix}"] = "%"
    note = (
        "Keeps: near-duplicates at or above the threshold, with the 95 % confidence interval. "
        f"Pass: opposites that are, of {int(calibration.scored.opposite.sum())}; with the guard, "
        "those that it does not call different. Each budget holds at "
        f"{percent(calibration.confidence)} confidence for pairs that are drawn like these."
    )
    title = "What a budget of false hits costs"
    return Table(title, columns, units=units, note=note, most=len(calibration.budgets))


def _chart(calibration: Calibration) -> Chart:
    """The share of near-duplicates that is kept under every limit of false hits."""
    least, most = min(calibration.budget, 0.002), max(calibration.budget, 0.5)
    limits = [least * (most / least) ** (step / 199) for step in range(200)]
    none = Estimate(0.0, 0.0, 0.0)
    rows = [
        (limit, calibration.point_at(limit, guard=guard).recall or none, name)
        for guard, name in ((False, "threshold alone"), (True, "threshold and guard"))
        for limit in limits
    ]
    upper = (
        "upper limit of the share of opposites accepted "
        f"({percent(calibration.confidence)} confidence)"
    )
    options = {
        "x": "limit",
        "y": "kept",
        "colour": "use",
        "log": "x",
        "band": ("kept low", "kept high"),
        "limits": (0, 1),
        "guides": {f"budget {calibration.budget:g}": [(calibration.budget, None)]},
        "labels": {"limit": upper, "kept": "share of near-duplicates kept"},
        "title": f"Near-duplicates that {calibration.model} keeps under each budget",
        "caption": "Each budget at its smallest threshold; 0 where no threshold keeps it. Bands: "
        "95 % confidence intervals.",
    }
    columns = zip(("limit", "kept", "use"), zip(*rows, strict=True), strict=True)
    return Chart("lines", dict(columns), options)
