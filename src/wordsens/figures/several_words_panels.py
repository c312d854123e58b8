"""S against the number of words that move at once, as data: one panel for each kind of text."""

from collections.abc import Sequence
from statistics import fmean

from wordsens.experiments.experiment import text_title
from wordsens.experiments.several_words import NOTICED, series_of_counts
from wordsens.experiments.store import Record
from wordsens.figures.panels import Curve, FigureData, Mark, Number, Panel
from wordsens.figures.styles import Style, series_styles
from wordsens.maps.registry import map_title
from wordsens.statistics.mean import Estimate


def several_words_panels(records: Sequence[Record], *, title: str) -> FigureData | None:
    """S against k; None where no finished record is there."""
    series = series_of_counts(records)
    if not series:
        return None
    maps = list(dict.fromkeys(key[0] for key in series))
    styles = dict(zip(maps, series_styles([(name, name) for name in maps]), strict=True))
    most = max(count for own in series.values() for count in own)
    panels = [
        Panel(
            f"{text_title(text).capitalize()}, {n} words",
            tuple(_curve(key[0], own, styles[key[0]]) for key, own in series.items() if key[1:3] == (text, n)),
            (("half the features' norm", ((1, NOTICED), (most, NOTICED))),),
        )
        for text, n in dict.fromkeys(key[1:3] for key in series)
    ]
    return FigureData(
        title=title,
        caption="Marks are means over draws, attained; bars are two standard errors. Shaded up to the upper bound over "
        "every set of so many words, where there is one.",
        x_label="words that move at once",
        y_label="sensitivity S",
        panels=tuple(panels),
    )


def _curve(name: str, counts: dict[int, list[Record]], style: Style) -> Curve:
    found = {count: Estimate.of([one.value or 0.0 for one in own]) for count, own in counts.items()}
    bounds = {count: [one.upper for one in own if one.upper is not None] for count, own in counts.items()}
    return Curve(
        map_title(name),
        style,
        tuple(mark(count, value) for count, value in found.items()),
        joined=True,
        band=tuple((count, found[count].mean, fmean(own)) for count, own in bounds.items() if own),
    )


def mark(x: Number, value: Estimate) -> Mark:
    """A mean at x with a bar of two standard errors."""
    bar = (value.mean - 2 * value.error, value.mean + 2 * value.error) if value.error else (None, None)
    return Mark(x, value.mean, *bar, (f"{value.draws} draw{'' if value.draws == 1 else 's'}",))
