"""Err against gamma and the frontier as data: a panel for each training, map and n."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from wordsens.errors import InputError
from wordsens.experiments.generalization import FRONTIER, GeneralizationSeries, generalization_series
from wordsens.experiments.store import Record
from wordsens.figures.panels import MARKS, Curve, FigureData, Mark, Panel
from wordsens.figures.styles import STYLES
from wordsens.maps.registry import map_title

OBJECTIVES = {
    "fine-tuned-alignment": "fine-tuned alignment",
    "retrained-alignment": "retrained alignment",
    "error": "error",
    "penalized-error": "error, γ penalized",
    "alignment": "alignment",
}
"""The aims of the searches for a change of a word, in the order of the colours."""

SAMPLES_DRAWN = 60
"""So many single samples stand behind a median; the table has all."""

_CURVE = tuple((step / 20, (2 - step / 20) ** 2) for step in range(41))
_GUIDE = (("(2 − γ)²: the limit for random features", _CURVE),)


def error_panels(records: Iterable[Record], *, title: str) -> FigureData | None:
    """Err against gamma, a mark a sample; None where no record is finished."""
    points = [one for one in records if one.done and one.objective != FRONTIER and one.gamma is not None]
    if not points:
        return None
    shown = points[:MARKS]
    keys = _keys(shown)
    colours = {name: (*STYLES[at % len(STYLES)], False) for at, name in enumerate(OBJECTIVES)}
    panels = []
    for name, n, training in keys:
        own = [one for one in shown if (one.map, one.n, one.training) == (name, n, training)]
        curves = tuple(
            Curve(told, colours[objective], tuple(_mark(one) for one in own if one.objective == objective))
            for objective, told in OBJECTIVES.items()
            if any(one.objective == objective for one in own)
        )
        panels.append(Panel(f"{map_title(name)}, n = {n}, {training}", curves, _GUIDE, (0, 3), (0, 6)))
    return FigureData(
        title=title,
        caption="Each mark is a text that the model had just learned, with one word changed so that its label flips. "
        "Below 1 the model notices. γ: how far the model before tells the two apart. Marks on an edge lie beyond.",
        x_label="γ of the model before",
        y_label="error on the changed text",
        panels=tuple(panels),
        logarithmic=(None, None),
        left_out=f"{len(points) - len(shown)} of {len(points)} samples are not drawn." if points[MARKS:] else "",
    )


def frontier_panels(records: Iterable[Record], *, title: str) -> FigureData | None:
    """The least Err found under each limit on gamma; None without a finished frontier."""
    try:
        series = [one for one in generalization_series(records) if one.limits]
    except InputError:  # they differ in what no legend here tells apart
        return None
    if not series:
        return None
    keys = _keys(series)
    sizes = sorted({one.texts for one in series})
    style = {texts: (*STYLES[at % len(STYLES)], False) for at, texts in enumerate(sizes)}
    panels = tuple(
        Panel(
            f"{map_title(name)}, n = {n}, {training}",
            tuple(
                _frontier(one, style[one.texts])
                for one in series
                if (one.map, one.n, one.training) == (name, n, training)
            ),
            _GUIDE,
            (0, 2.05),
            (0, 4.6),
        )
        for name, n, training in keys
    )
    return FigureData(
        title=title,
        caption="The least error found when γ may not pass a limit: the median over samples, and single samples "
        "faintly. Attained: less may be possible.",
        x_label="limit on γ",
        y_label="least error on the changed text",
        panels=panels,
        logarithmic=(None, None),
    )


def _keys(found: Sequence[Any]) -> list[tuple[str, int, str]]:
    """Map, n and training of each panel: the trainings one after the other, so that each can have a row."""
    keys = dict.fromkeys((one.map, one.n, one.training) for one in found)
    trainings = list(dict.fromkeys(training for _, _, training in keys))
    return sorted(keys, key=lambda key: trainings.index(key[2]))


def _mark(record: Record) -> Mark:
    told = [f"N = {record.texts:,}", f"word {record.word}" + (f" “{record.token}”" if record.token else "")]
    return Mark(record.gamma or 0.0, record.value or 0.0, told=tuple(told))


def _frontier(series: GeneralizationSeries, style: tuple[str, str, bool]) -> Curve:
    samples: Sequence[tuple[float, ...]] = list(zip(*series.least_errors, strict=True))
    return Curve(
        f"N = {series.texts:,}",
        style,
        tuple(
            Mark(limit, statistics.median(errors), told=(f"{len(errors)} samples", f"best {min(errors):.3g}"))
            for limit, errors in zip(series.limits, series.least_errors, strict=True)
        ),
        joined=True,
        faint=tuple(tuple(zip(series.limits, sample, strict=True)) for sample in samples[:SAMPLES_DRAWN]),
    )
