"""What distinct questions say of a threshold: the share of new ones that would get a wrong answer,
by the threshold and the size of the cache, and the worst of them."""

from collections.abc import Iterator

import numpy as np

from wordsens.display.numbers import as_sentences, decimals, fixed, percent, plural
from wordsens.display.view import Chart, Table, View
from wordsens.evaluation.collisions import Collisions
from wordsens.findings.calibrate import in_distance, too_few
from wordsens.findings.compare import shortened

# Thresholds that the figure draws, and hits that the terminal shows.
_POINTS, _WORST = 100, 8


def view(collisions: Collisions, distance: str = "") -> View:
    """The threshold with its hits, or that there is none, and which texts were left out; the
    threshold in the distance of that name; what the share assumes; the share of hits by the
    threshold, and the worst hits."""
    headline = " ".join((_sentence(collisions), *map(as_sentences, collisions.changes)))
    parts = [in_distance(collisions, distance) if distance else "", *_assumed(collisions)]
    tables = (_shares(collisions), _worst(collisions))
    return View(headline, (*filter(len, parts), *tables), chart=_chart(collisions))


def _sentence(collisions: Collisions) -> str:
    point, asked = collisions.point, len(collisions.asked)
    budget, confidence = percent(collisions.budget), percent(collisions.confidence)
    if point.threshold is not None:
        behind = " and the guard" if collisions.guard else ""
        return (
            f"With the threshold {decimals(point.threshold)}{behind}, {collisions.model} gives at "
            f"most {budget} of new questions the answer to another question, at {confidence} "
            f"confidence: {point.hits} of {asked}, with {collisions.cached[0]} of your questions "
            f"in the cache{_with_guard(collisions)}."
        )
    behind = " with the guard" if collisions.guard else ""
    sentence = (
        f"No threshold of {collisions.model}{behind} keeps wrong answers under {budget} of new "
        "questions"
    )
    if asked < collisions.needed:
        shown = too_few(asked, collisions.needed, collisions.confidence, "new question")
        return f"{sentence} for sure: {shown} Give {2 * collisions.needed} questions or more."
    return f"{sentence}{_with_guard(collisions)}."


def _with_guard(collisions: Collisions) -> str:
    """The threshold that would do with the guard, where it was not asked for."""
    guarded = collisions.point_at(collisions.budget, guard=True).threshold
    return "" if collisions.guard or guarded is None else f"; with the guard, {decimals(guarded)}"


def _assumed(collisions: Collisions) -> Iterator[str]:
    guard, threshold = collisions.guard, collisions.threshold
    same, repeated = collisions.verdicts.count("same"), len(collisions.repeated)
    yield (
        "Every hit counts as wrong: your questions are taken to have different answers. The share "
        "is of all new questions, not of the answers that the cache gives."
    )
    if repeated or collisions.differing:
        yield (
            f"By your labels, {plural(repeated, 'pair')} of a new and a cached question mean the "
            f"same and are no hits ({collisions.reached} at or above the threshold); "
            f"{plural(collisions.differing, 'pair')} differ."
        )
    if same:
        yield (
            f"The guard calls {plural(same, 'pair')} the same, the first below: delete one "
            "question of each, or label the pair."
        )
    if threshold is not None:
        whole, quarter = (
            collisions.hits(threshold, guard=guard, quarter=quarter)[0] for quarter in (False, True)
        )
        cached, fewer = collisions.cached
        compared = f": {quarter} hit with a quarter of it ({fewer} questions)" if whole else ""
        yield (
            f"The share grows with the cache{compared}. Calibrate with more questions before your "
            f"cache holds more than {cached}."
        )


def _shares(collisions: Collisions) -> Table:
    columns = collisions.columns()
    thresholds = columns.pop("threshold")
    headings = {
        "hits": "cache",
        "at most": "cache at most",
        "guarded": "cache guarded",
        "guarded at most": "cache guarded at most",
        "quarter": "quarter",
        "quarter guarded": "quarter guarded",
    }
    shown = {name: columns[key] for name, key in headings.items()}
    chosen = [collisions.point_at(collisions.budget, guard=guard) for guard in (False, True)]
    alone, guarded = (
        "none" if point.threshold is None else decimals(point.threshold) for point in chosen
    )
    note = (
        f"Hits: the share of {len(collisions.asked)} new questions whose nearest of "
        f"{collisions.cached[0]} questions in the cache reaches the threshold; guarded: the "
        f"nearest that the guard does not call different; quarter: with {collisions.cached[1]} of "
        "the questions in the cache. At most: the upper limit of the share in truth, at "
        f"{percent(collisions.confidence)} confidence. The lowest threshold that keeps the budget "
        f"is {alone}, and {guarded} with the guard."
    )
    return Table(
        "Share of new questions that get the answer to another question",
        {"threshold": list(map(decimals, thresholds)), **shown},
        units=dict.fromkeys(shown, "%"),
        note=note,
        most=len(thresholds),
    )


def _worst(collisions: Collisions) -> Table:
    rows = collisions.worst()
    columns = {
        collisions.score: [fixed(row["similarity"], 4) for row in rows],
        "guard": [row["guard"] for row in rows],
        "new question": [shortened(row["first"]) for row in rows],
        "answered as": [shortened(row["second"]) for row in rows],
    }
    note = (
        "Pairs that the guard calls the same come first, then the nearest. --write-pairs FILE "
        "writes them so that you can label them: pairs that mean the same no longer count as wrong "
        "answers, and the threshold falls."
    )
    return Table("Nearest questions, the worst hits first", columns, note=note, most=_WORST)


def _chart(collisions: Collisions) -> Chart:
    """The share of hits and its limit against the threshold, for the cache and its quarter, without
    the guard and with it."""
    thresholds = collisions.thresholds
    rows = []
    for threshold in np.linspace(thresholds[0], thresholds[-1], _POINTS).tolist():
        for guard, panel in ((False, "threshold alone"), (True, "threshold and guard")):
            for quarter, cached in enumerate(collisions.cached):
                hits, limit = collisions.hits(threshold, guard=guard, quarter=bool(quarter))
                share = hits / len(collisions.asked)
                rows.append((threshold, share, limit, plural(cached, "question"), panel))
    options = {
        "x": "threshold",
        "y": "share",
        "colour": "cache",
        "panel": "use",
        "band": ("share", "limit"),
        "guides": {f"budget {collisions.budget:g}": [(None, collisions.budget)]},
        "labels": {
            "threshold": f"threshold ({collisions.score})",
            "share": "share of questions that hit",
        },
        "title": f"Questions that hit the cache at each threshold of {collisions.model}",
        "caption": "Colours: the number of questions in the cache. Bands: up to the upper limit of "
        f"the share, at {percent(collisions.confidence)} confidence.",
    }
    names = ("threshold", "share", "limit", "cache", "use")
    return Chart("lines", dict(zip(names, zip(*rows, strict=True), strict=True)), options)
