"""Similarity where one word matters, as data: AUC and S against the length, AUC against S, and the pairs of check."""

from collections.abc import Callable, Sequence

from wordsens.experiments.experiment import text_title
from wordsens.experiments.similarity import CHECK, SWAPS, Column, Place, auc_of, places, s_of
from wordsens.experiments.store import Record
from wordsens.figures.panels import Curve, FigureData, Mark, Panel, Point
from wordsens.figures.several_words_panels import mark
from wordsens.figures.styles import Style, series_styles

_BARS = "Marks are means over draws of weights and passages; bars are two standard errors."
_COIN = "a coin"
_WHOLE: Point = (-0.03, 1.03)
"""From no pair to every pair, and room for the marks."""


def _along(records: Sequence[Record]) -> FigureData | None:
    found = places(records, SWAPS)
    if not found:
        return None
    styles, panels = _styles(found), []
    for text, learned in _groups(found):
        own = [one for one in found if (one.text, one.learned) == (text, learned)]
        panels.append(_panel(f"AUC: {_maps(learned)}, {text_title(text)}", own, styles, auc_of, coin=True))
        if any(one.by_draw(s_of) for one in own):
            panels.append(_panel(f"S: {_maps(learned)}, {text_title(text)}", own, styles, s_of))
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
    found = [one for one in places(records, SWAPS) if one.by_draw(s_of)]
    if not found:
        return None
    styles, panels = _styles(found), []
    for text, learned in _groups(found):
        own = [one for one in found if (one.text, one.learned) == (text, learned)]
        curves = []
        for title in dict.fromkeys(one.title for one in own):
            marks = [_at_s(one) for one in own if one.title == title]
            curves.append(Curve(title, styles[title], tuple(sorted(marks, key=lambda one: one.x))))
        guide = _coin([one.x for curve in curves for one in curve.marks])
        panels.append(Panel(f"{_maps(learned).capitalize()}, {text_title(text)}", tuple(curves), guide))
    caption = f"{_BARS} A mark a length, at the mean of S."
    return FigureData(
        "Does the AUC follow the sensitivity?", caption, "word sensitivity S", "AUC", tuple(panels), (True, False)
    )


def _check(records: Sequence[Record]) -> FigureData | None:
    found = places(records, CHECK)
    if not found:
        return None
    styles = _styles(found)
    panels = []
    for name, column in (("paraphrases", auc_of), ("synonyms", _synonyms)):
        for learned in dict.fromkeys(one.learned for one in found):
            own = [one for one in found if one.learned == learned and one.by_draw(column)]
            if own:
                panels.append(_panel(f"{_maps(learned).capitalize()}, against {name}", own, styles, column, coin=True))
    return FigureData(
        "Pairs of check: are opposites less alike than pairs that mean the same?",
        "Marks are means over draws of weights on the same pairs; bars are two standard errors.",
        "rows of the longest text",
        "AUC",
        tuple(panels),
        (True, False),
    )


def _groups(found: Sequence[Place]) -> list[tuple[str, bool]]:
    """Kinds of text, and whether the maps are layers of a trained model: a panel each."""
    return list(dict.fromkeys((one.text, one.learned) for one in found))


def _maps(learned: bool) -> str:
    return "layers" if learned else "random maps"


def _panel(title: str, own: Sequence[Place], styles: dict[str, Style], column: Column, *, coin: bool = False) -> Panel:
    curves = []
    for name in dict.fromkeys(one.title for one in own):
        found = [(one.n, value) for one in own if one.title == name and (value := one.estimate(column)) is not None]
        if found:
            curves.append(Curve(name, styles[name], tuple(mark(n, value) for n, value in found), joined=True))
    guide = _coin([one.n for one in own]) if coin else ()
    return Panel(title, tuple(curves), guide, y_limits=_WHOLE if coin else None)


def _coin(places: Sequence[int | float]) -> tuple[tuple[str, tuple[Point, ...]], ...]:
    first, last = min(places), max(places)
    if first == last:  # as far as the axis of one place reaches
        first, last = first / 2, 2 * last
    return ((_COIN, ((first, 0.5), (last, 0.5))),)


def _at_s(place: Place) -> Mark:
    s, value = place.estimate(s_of), place.estimate(auc_of)
    assert s is not None and value is not None, "places without S are left out"
    told = mark(float(f"{s.mean:.3g}"), value)
    return Mark(told.x, told.y, told.low, told.high, (f"{place.n} words", *told.told))


def _styles(found: Sequence[Place]) -> dict[str, Style]:
    titles = list(dict.fromkeys(one.title for one in found))
    maps = {one.title: None if one.learned else one.map for one in found}
    return dict(zip(titles, series_styles([(title, maps[title]) for title in titles]), strict=True))


def _synonyms(record: Record) -> float | None:
    return record.auc_synonym


SIMILARITY_FIGURES: dict[str, Callable[[Sequence[Record]], FigureData | None]] = {
    "similarity": _along,
    "similarity-sensitivity": _against_s,
    "similarity-check": _check,
}
"""By the name of its file, the function of finished records that gives each figure; None where they allow none."""
