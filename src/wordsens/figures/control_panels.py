"""Trainings under control as data: along the length, against a target, accuracy against S, layer by layer, and along
the training."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from wordsens.experiments.control import (
    ALONG,
    HOLD,
    TASK_TITLES,
    along_training,
    control_title,
    held,
    network_title,
    single,
    stacked,
    uncontrolled,
)
from wordsens.experiments.store import Record
from wordsens.figures.panels import Curve, FigureData, Mark, Panel
from wordsens.figures.several_words_panels import mark
from wordsens.figures.styles import Style, series_styles
from wordsens.statistics.mean import Estimate

_BARS = "Marks are means over draws; bars are two standard errors."
_CHANCE = 0.5
_STEPS = "steps of the training + 1"

Column = Callable[[Record], float | None]


def _accuracy_along(records: Sequence[Record]) -> FigureData | None:
    return _along_length(records, _accuracy, "accuracy", "Accuracy against the length of the text")


def _sensitivity_along(records: Sequence[Record]) -> FigureData | None:
    title = "Sensitivity of trained networks against the length"
    return _along_length(records, _sensitivity, "word sensitivity S", title)


def _along_length(records: Sequence[Record], column: Column, y_label: str, title: str) -> FigureData | None:
    group = [one for one in uncontrolled(records) if one.task != "texts"]
    if len({one.n for one in group}) < 2:
        return None
    styles = _styles(group)
    accuracy = column is _accuracy
    sizes = [one.n for one in group]
    guides = (("chance", ((min(sizes), _CHANCE), (max(sizes), _CHANCE))),) if accuracy else ()
    panels = [
        Panel(
            _title(task),
            _curves([one for one in group if one.task == task], styles, lambda one: one.n, column),
            guides,
            y_limits=(0.4, 1.03) if accuracy else None,
        )
        for task in dict.fromkeys(one.task for one in group)
    ]
    if accuracy:
        panels += [
            Panel(
                f"{_title(task)}: right while a word moves",
                _curves([one for one in group if one.task == task], styles, lambda one: one.n, lambda one: one.robust),
                y_limits=(-0.03, 1.03),
            )
            for task in ("majority",)
            if any(one.task == task for one in group)
        ]
    caption = _BARS if accuracy else f"{_BARS} Attained by the full search, on held-out texts."
    return FigureData(
        title, caption, "words of a text n", y_label, tuple(panels), (True, not accuracy), shared=not accuracy
    )


def _targets(study: Sequence[Record]) -> FigureData | None:
    records = held(study)
    targets = [one.target or 0.0 for one in records]
    if len(set(targets)) < 2:
        return None
    styles = _styles(records)
    ends = min(targets), max(targets)
    panels = [
        Panel(
            _title(task),
            _curves([one for one in records if one.task == task], styles, lambda one: one.target or 0.0, _sensitivity),
            (("the target", ((ends[0], ends[0]), (ends[1], ends[1]))),),
        )
        for task in dict.fromkeys(one.task for one in records)
    ]
    caption = f"{_BARS} S is attained by the full search; the penalty holds what its short search finds, which is less."
    return FigureData("Sensitivity held at a target", caption, "target of S", "S, measured", tuple(panels))


def _tradeoff(records: Sequence[Record]) -> FigureData | None:
    """Accuracy against S: a curve through the targets, the other controls beside it."""
    sizes = {(one.task, one.n, one.layer) for one in held(records)}
    group = [one for one in single(records) if (one.task, one.n, one.layer) in sizes]
    if not group:
        return None
    groups: dict[Hashable, list[Record]] = defaultdict(list)
    for one in group:
        groups[one.task, one.layer, one.control, one.target].append(one)
    names = list(dict.fromkeys(_control_name(one) for one in group))
    styles = dict(zip(names, series_styles([(name, None) for name in names]), strict=True))
    panels = []
    for task, layer in dict.fromkeys((one.task, one.layer) for one in group):
        curves = []
        for name in names:
            places = [part for part in groups.values() if (part[0].task, part[0].layer) == (task, layer)]
            marks = [_place(part) for part in places if _control_name(part[0]) == name]
            if marks:
                joined = name == "held at a target"
                curves.append(Curve(name, styles[name], tuple(sorted(marks, key=lambda one: one.x)), joined=joined))
        least = min(one.y if one.low is None else one.low for curve in curves for one in curve.marks)
        title = f"{_title(task)}: {network_title(groups[_key(group, task, layer)][0])}"
        panels.append(Panel(title, tuple(curves), y_limits=(min(least, 0.9) - 0.02, 1.02)))
    return FigureData(
        "Accuracy against sensitivity, by control",
        f"{_BARS} S is the mean over draws of what the full search attains.",
        "word sensitivity S",
        "accuracy",
        tuple(panels),
        (True, False),
        shared=False,
    )


def _key(records: Sequence[Record], task: str, layer: str) -> Hashable:
    one = next(one for one in records if (one.task, one.layer) == (task, layer))
    return one.task, one.layer, one.control, one.target


def _control_name(record: Record) -> str:
    return "held at a target" if record.control == HOLD else control_title(record)


def _place(records: Sequence[Record]) -> Mark:
    value = Estimate.of([one.value or 0.0 for one in records])
    s = Estimate.of([one.sensitivity or 0.0 for one in records])
    target = records[0].target
    drawn = mark(float(f"{s.mean:.3g}"), value)
    return (
        drawn if target is None else Mark(drawn.x, drawn.y, drawn.low, drawn.high, (f"target {target:g}", *drawn.told))
    )


def _layers(study: Sequence[Record]) -> FigureData | None:
    records = stacked(study)
    if not records:
        return None
    styles = _styles(records)
    panels = []
    for trained, n in sorted({(one.steps > 0, one.n) for one in records}):
        group = [one for one in records if (one.steps > 0, one.n) == (trained, n)]
        curves = []
        for name in dict.fromkeys(network_title(one) for one in group):
            values = [one.by_layer for one in group if network_title(one) == name and one.by_layer is not None]
            marks = tuple(
                mark(layer, Estimate.of([one[layer - 1] for one in values])) for layer in range(1, len(values[0]) + 1)
            )
            curves.append(Curve(name, styles[name], marks, joined=True))
        panels.append(Panel(f"{'Trained' if trained else 'Random'}, {n} words", tuple(curves)))
    caption = f"{_BARS} S of all rows behind a layer, attained by the full search."
    return FigureData("Sensitivity behind each layer", caption, "layer", "S", tuple(panels), (False, True))


def _along_quality(study: Sequence[Record]) -> FigureData | None:
    """A panel for each task and network: shares and areas between 0 and 1 along the training, without control."""
    records = [one for one in along_training(study) if one.control == "none"]
    if not records:
        return None
    columns = {name: column for name, column in ALONG.items() if name != "S"}
    styles = dict(zip(columns, series_styles([(name, None) for name in columns]), strict=True))
    panels = []
    for task, layer, n in sorted({(one.task, one.layer, one.n) for one in records}, key=_in_order):
        group = [one for one in records if (one.task, one.layer, one.n) == (task, layer, n)]
        curves = [
            Curve(name, styles[name], marks, joined=True)
            for name, column in columns.items()
            if (marks := _along_marks(group, column))
        ]
        title = f"{_title(task)}: {network_title(group[0])}, {n} words"
        panels.append(Panel(title, tuple(curves), y_limits=(0.4, 1.03)))
    caption = (
        f"{_BARS} Synonyms kept: copies whose label stays. Flips told: AUC of the change by a flip against that by a "
        "synonym. New words: a linear function of the features on a one-word task of another vocabulary."
    )
    return FigureData("Along the training", caption, _STEPS, "share, or AUC", tuple(panels), (True, False))


def _along_sensitivity(study: Sequence[Record]) -> FigureData | None:
    records = along_training(study)
    if not records:
        return None
    names = sorted({_along_name(one) for one in records})
    styles = dict(zip(names, series_styles([(name, None) for name in names]), strict=True))
    panels = []
    for task, n in sorted({(one.task, one.n) for one in records}, key=_in_order):
        group = [one for one in records if (one.task, one.n) == (task, n)]
        curves = []
        for name in sorted({_along_name(one) for one in group}):
            marks = _along_marks([one for one in group if _along_name(one) == name], "along_sensitivity")
            curves += [Curve(name, styles[name], marks, joined=True)] if marks else []
        panels.append(Panel(f"{_title(task)}, {n} words", tuple(curves)))
    caption = f"{_BARS} Attained by the full search on two held-out texts."
    return FigureData("Sensitivity along the training", caption, _STEPS, "word sensitivity S", tuple(panels))


def _along_name(record: Record) -> str:
    return network_title(record) if record.control == "none" else f"{network_title(record)}, {control_title(record)}"


def _along_marks(records: Sequence[Record], column: str) -> tuple[Mark, ...]:
    """The mean over draws at each step; none where a record lacks the column."""
    results: dict[int, list[float]] = defaultdict(list)
    for one in records:
        for step, value in zip(one.along_steps or (), getattr(one, column) or (), strict=False):
            results[step].append(value)
    return tuple(mark(step + 1, Estimate.of(values)) for step, values in sorted(results.items()))


def _in_order(key: tuple[Any, ...]) -> tuple[Any, ...]:
    """By task, in the order of their titles, then by the rest."""
    return list(TASK_TITLES).index(key[0]), *key[1:]


def _curves(
    records: Sequence[Record], styles: dict[str, Style], x: Callable[[Record], int | float], y: Column
) -> tuple[Curve, ...]:
    groups: dict[str, dict[int | float, list[float]]] = defaultdict(lambda: defaultdict(list))
    for one in records:
        if (value := y(one)) is not None:
            groups[network_title(one)][x(one)].append(value)
    return tuple(
        Curve(
            name, styles[name], tuple(mark(at, Estimate.of(group)) for at, group in sorted(places.items())), joined=True
        )
        for name, places in groups.items()
    )


def _styles(records: Sequence[Record]) -> dict[str, Style]:
    names = list(dict.fromkeys(network_title(one) for one in records))
    return dict(zip(names, series_styles([(name, None) for name in names]), strict=True))


def _title(task: str) -> str:
    return TASK_TITLES[task].capitalize()


def _accuracy(record: Any) -> float | None:
    return record.value


def _sensitivity(record: Any) -> float | None:
    return record.sensitivity


CONTROL_FIGURES: dict[str, Callable[[Sequence[Record]], FigureData | None]] = {
    "control-accuracy": _accuracy_along,
    "control-sensitivity": _sensitivity_along,
    "control-target": _targets,
    "control-tradeoff": _tradeoff,
    "control-layers": _layers,
    "control-along": _along_quality,
    "control-along-sensitivity": _along_sensitivity,
}
"""By the name of its file, the function of finished records that gives each figure; None where they allow none."""
