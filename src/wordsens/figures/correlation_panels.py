"""S against the mean cosine of a text's words, as data: one panel for each map."""

from collections.abc import Sequence

from wordsens.experiments.correlations import CORRELATED, Place, places
from wordsens.experiments.experiment import text_title
from wordsens.experiments.store import Record
from wordsens.figures.panels import Curve, FigureData, Panel
from wordsens.figures.several_words_panels import mark
from wordsens.figures.styles import series_styles
from wordsens.maps.registry import map_title

_ONE_TO_ANOTHER = (CORRELATED, "repeated")
"""Kinds of text that form a curve; the others are single places."""


def correlation_panels(records: Sequence[Record], *, title: str) -> FigureData | None:
    """S against the measured mean cosine; None where no finished record is there."""
    found = places(records)
    if not found:
        return None
    names = list(dict.fromkeys(_name(one) for one in found))
    styles = dict(zip(names, series_styles([(name, None) for name in names]), strict=True))
    panels = []
    for recorded in dict.fromkeys(one.map for one in found):
        own = [one for one in found if one.map == recorded]
        curves = []
        for name in dict.fromkeys(_name(one) for one in own):
            series = [one for one in own if _name(one) == name]
            curves.append(
                Curve(
                    name,
                    styles[name],
                    tuple(mark(one.cosine, one.value) for one in series),
                    joined=series[0].text in _ONE_TO_ANOTHER,
                )
            )
        top = 1.15 * max(one.value.mean + 2 * one.value.error for one in own)
        panels.append(Panel(f"{map_title(recorded)}, {own[0].records[0].n} words", tuple(curves), y_limits=(0.0, top)))
    return FigureData(
        title=title,
        caption="Marks are means over draws, attained; bars are two standard errors. Every panel has its own scale.",
        x_label="mean cosine of two words",
        y_label="word sensitivity S",
        panels=tuple(panels),
        logarithmic=(None, None),
        shared=False,
    )


def _name(place: Place) -> str:
    if place.text == CORRELATED:
        return "equally correlated words"
    return place.title if place.text not in _ONE_TO_ANOTHER else text_title(place.text)
