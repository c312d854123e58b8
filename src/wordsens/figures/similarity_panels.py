"""Similarity where one word matters, as data: AUC and S against the length, AUC against S, and the pairs of check."""

from collections.abc import Callable, Sequence

from wordsens.experiments.experiment import estimate, grouped, text_title
from wordsens.experiments.similarity import CHECK, SWAPS, features_title, learned, of_pairs
from wordsens.experiments.store import Record
from wordsens.figures.panels import Curve, FigureData, Mark, Panel, Point
from wordsens.figures.several_words_panels import mark
from wordsens.figures.styles import Style, series_styles

_BARS = "Marks are means over draws of weights and passages; bars are two standard errors."
_COIN = "a coin"
_WHOLE: Point = (-0.03, 1.03)
"""From no pair to every pair, and room for the marks."""


def _along(records: Sequence[Record]) -> FigureData | None:
    finished = of_pairs(records, SWAPS)
    if not finished:
        return None
    styles, panels = _styles(finished), []
    for (text, layers), group in grouped(finished, "text", learned).items():
        panels.append(_panel(f"AUC: {_maps(layers)}, {text_title(text)}", group, styles, "value", coin=True))
        if any(one.sensitivity is not None for one in group):
            panels.append(_panel(f"S: {_maps(layers)}, {text_title(text)}", group, styles, "sensitivity"))
    return FigureData(
        "Is a flipped meaning less alike than a synonym?",
        f"{_BARS} AUC: the chance that it is, by the cosine of the features. S: of one passage, attained by a short "
        "search of a few words.",
        "words of a passage",
        "",
        tuple(panels),
        (True, False),
        shared=False,
    )


def _against_s(records: Sequence[Record]) -> FigureData | None:
    finished = [one for one in of_pairs(records, SWAPS) if one.sensitivity is not None]
    if not finished:
        return None
    styles, panels = _styles(finished), []
    for (text, layers), group in grouped(finished, "text", learned).items():
        curves = []
        for (title,), curve in grouped(group, features_title).items():
            marks = map(_at_s, grouped(curve, "n").values())
            curves.append(Curve(title, styles[title], tuple(sorted(marks, key=lambda one: one.x))))
        guide = _coin([one.x for curve in curves for one in curve.marks])
        panels.append(Panel(f"{_maps(layers).capitalize()}, {text_title(text)}", tuple(curves), guide))
    caption = f"{_BARS} A mark a length, at the mean of S."
    return FigureData(
        "Does the AUC follow the sensitivity?", caption, "word sensitivity S", "AUC", tuple(panels), (True, False)
    )


def _check(records: Sequence[Record]) -> FigureData | None:
    finished = of_pairs(records, CHECK)
    if not finished:
        return None
    styles = _styles(finished)
    panels = []
    for name, column in (("paraphrases", "value"), ("synonyms", "auc_synonym")):
        for (layers,), group in grouped(finished, learned).items():
            if known := [one for one in group if getattr(one, column) is not None]:
                title = f"{_maps(layers).capitalize()}, against {name}"
                panels.append(_panel(title, known, styles, column, coin=True))
    return FigureData(
        "Pairs of check: are opposites less alike than pairs that mean the same?",
        "Marks are means over draws of weights on the same pairs; bars are two standard errors.",
        "rows of the longest text",
        "AUC",
        tuple(panels),
        (True, False),
    )


def _maps(layers: bool) -> str:
    return "layers" if layers else "random maps"


def _panel(title: str, group: Sequence[Record], styles: dict[str, Style], column: str, *, coin: bool = False) -> Panel:
    curves = []
    for (name,), curve in grouped(group, features_title).items():
        finished = [(n, estimate(part, column)) for (n,), part in grouped(curve, "n").items()]
        marks = tuple(mark(n, value) for n, value in finished if value is not None)
        curves += [Curve(name, styles[name], marks, joined=True)] if marks else []
    guide = _coin([one.n for one in group]) if coin else ()
    return Panel(title, tuple(curves), guide, y_limits=_WHOLE if coin else None)


def _coin(places: Sequence[int | float]) -> tuple[tuple[str, tuple[Point, ...]], ...]:
    first, last = min(places), max(places)
    if first == last:  # as far as the axis of one place reaches
        first, last = first / 2, 2 * last
    return ((_COIN, ((first, 0.5), (last, 0.5))),)


def _at_s(records: Sequence[Record]) -> Mark:
    s, value = estimate(records, "sensitivity"), estimate(records)
    assert s is not None and value is not None, "records without S are left out"
    drawn = mark(float(f"{s.mean:.3g}"), value)
    return Mark(drawn.x, drawn.y, drawn.low, drawn.high, (f"{records[0].n} words", *drawn.told))


def _styles(finished: Sequence[Record]) -> dict[str, Style]:
    maps = {features_title(one): None if learned(one) else one.map for one in finished}
    return dict(zip(maps, series_styles(list(maps.items())), strict=True))


SIMILARITY_FIGURES: dict[str, Callable[[Sequence[Record]], FigureData | None]] = {
    "similarity": _along,
    "similarity-sensitivity": _against_s,
    "similarity-check": _check,
}
"""By the name of its file, the function of finished records that gives each figure; None where they allow none."""
