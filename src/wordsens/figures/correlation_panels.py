"""S against the mean cosine of a text's words, as data: one panel for each map."""

from collections.abc import Sequence

from wordsens.experiments.correlations import CORRELATED, by_cosine, texts_title
from wordsens.experiments.experiment import grouped, text_title
from wordsens.experiments.store import Record
from wordsens.figures.panels import Curve, FigureData, Panel
from wordsens.figures.several_words_panels import mark
from wordsens.figures.styles import series_styles
from wordsens.maps.registry import map_title
from wordsens.statistics.mean import Estimate

_ONE_TO_ANOTHER = (CORRELATED, "repeated")
"""Kinds of text that form a curve; the others are single places."""


def correlation_panels(records: Sequence[Record], *, title: str) -> FigureData | None:
    """S against the measured mean cosine; None where no finished record is there."""
    ordered = by_cosine(records)
    if not ordered:
        return None
    names = [name for (name,) in grouped(ordered, _name)]
    styles = dict(zip(names, series_styles([(name, None) for name in names]), strict=True))
    panels = []
    for (recorded,), group in grouped(ordered, "map").items():
        curves, top = [], 0.0
        for (name,), series in grouped(group, _name).items():
            values = [
                (cosine, Estimate.of([one.value for one in part]))
                for (cosine,), part in grouped(series, "cosine").items()
            ]
            top = max(top, *(value.mean + 2 * value.error for _, value in values))
            marks = tuple(mark(cosine, value) for cosine, value in values)
            curves.append(Curve(name, styles[name], marks, joined=series[0].text in _ONE_TO_ANOTHER))
        panels.append(Panel(f"{map_title(recorded)}, {group[0].n} words", tuple(curves), y_limits=(0.0, 1.15 * top)))
    return FigureData(
        title=title,
        caption="Marks are means over draws, attained; bars are two standard errors. Every panel has its own scale.",
        x_label="mean cosine of two words",
        y_label="word sensitivity S",
        panels=tuple(panels),
        logarithmic=(None, None),
        shared=False,
    )


def _name(record: Record) -> str:
    if record.text == CORRELATED:
        return "equally correlated words"
    return texts_title(record) if record.text not in _ONE_TO_ANOTHER else text_title(record.text)
