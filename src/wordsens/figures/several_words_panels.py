"""S against the number of words that move at once, as data: one panel for each kind of text."""

from collections.abc import Sequence

from wordsens.experiments.experiment import estimate, grouped, text_title
from wordsens.experiments.several_words import NOTICED, never_falling
from wordsens.experiments.store import Record, as_records
from wordsens.figures.panels import Curve, FigureData, Mark, Number, Panel
from wordsens.figures.styles import Style, series_styles
from wordsens.maps.registry import map_title
from wordsens.statistics.mean import Estimate


def several_words_panels(records: Sequence[Record], *, title: str) -> FigureData | None:
    """S against k; None where no finished record is there."""
    ordered = never_falling(records)
    if not ordered:
        return None
    maps = [name for (name,) in grouped(as_records(records), "map")]
    styles = dict(zip(maps, series_styles([(name, name) for name in maps]), strict=True))
    guide = ("half the features' norm", ((1, NOTICED), (ordered[-1].count, NOTICED)))
    panels = [
        Panel(
            f"{text_title(text).capitalize()}, {n} words",
            tuple(
                _curve(group, styles[group[0].map])
                for group in sorted(grouped(part, "map", "d").values(), key=lambda group: maps.index(group[0].map))
            ),
            (guide,),
        )
        for (text, n), part in grouped(ordered, "text", "n").items()
    ]
    return FigureData(
        title=title,
        caption="Marks are means over draws, attained; bars are two standard errors. Shaded up to the upper bound over "
        "every set of so many words, where there is one.",
        x_label="words that move at once",
        y_label="sensitivity S",
        panels=tuple(panels),
    )


def _curve(records: Sequence[Record], style: Style) -> Curve:
    values = {
        k: (Estimate.of([one.value for one in group]), estimate(group, "upper"))
        for (k,), group in grouped(records, "count").items()
    }
    return Curve(
        map_title(records[0].map),
        style,
        tuple(mark(k, value) for k, (value, _) in values.items()),
        joined=True,
        band=tuple((k, value.mean, upper.mean) for k, (value, upper) in values.items() if upper is not None),
    )


def mark(x: Number, value: Estimate) -> Mark:
    """A mean at x with a bar of two standard errors."""
    bar = (value.mean - 2 * value.error, value.mean + 2 * value.error) if value.error else (None, None)
    return Mark(x, value.mean, *bar, (f"{value.draws} draw{'' if value.draws == 1 else 's'}",))
