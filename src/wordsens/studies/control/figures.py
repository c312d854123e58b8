"""Trainings under control: along the length, against a target, by control, by layer, along the
training."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from wordsens.plotting.axes import Panel, Points, grid, interval
from wordsens.plotting.records import Figures, curves_of
from wordsens.plotting.style import BARS, Style, styles_of
from wordsens.studies.control.cell import ALONG, HOLD, TASK_TITLES
from wordsens.studies.control.summary import (
    along_training,
    control_title,
    held,
    network_title,
    single,
    stacked,
    uncontrolled,
)
from wordsens.sweeps.experiment import SHARE, estimate, grouped, over_draws
from wordsens.sweeps.store import Record


def control_figures(records: Sequence[Record]) -> Figures:
    """Trainings under control: along the length, against a target, accuracy against S, by layer,
    along the training."""
    plain = [one for one in uncontrolled(records) if one.task != "texts"]
    plain = plain if len({one.n for one in plain}) > 1 else []
    chance = {"chance": [(None, 0.5)]}
    styles = styles_of(
        {
            network_title(one): _map(one)
            for one in [*uncontrolled(records), *held(records), *stacked(records)]
        }
    )
    accuracy, s_of_n = [], []
    for (task,), group in grouped(plain, "task").items():
        curves = curves_of(group, network_title, "n", bounds=SHARE)
        accuracy.append(Panel(_task_title(task), curves, chance, limits=(0.4, 1.03)))
        if task == "majority":
            robust = curves_of(group, network_title, "n", "robust", SHARE)
            title = f"{_task_title(task)}: right while a word moves"
            accuracy.append(
                Panel(title, robust, limits=(-0.03, 1.03), label="share that stays right")
            )
        s_of_n.append(Panel(_task_title(task), curves_of(group, network_title, "n", "sensitivity")))
    targeted = held(records)
    targets = [one.target or 0.0 for one in targeted]
    on_target = [
        Panel(
            _task_title(task),
            curves_of(group, network_title, lambda one: one.target or 0.0, "sensitivity"),
            {"the target": [(at, at) for at in (min(targets), max(targets))]},
        )
        for (task,), group in grouped(targeted if len(set(targets)) > 1 else [], "task").items()
    ]
    layers = [
        Panel(f"{'Trained' if trained else 'Random'}, {n} words", _layer_curves(group))
        for (trained, n), group in sorted(
            grouped(stacked(records), lambda one: one.steps > 0, "n").items()
        )
    ]
    steps = "steps of the training + 1"
    tradeoff, controls = _tradeoff(records)
    quality, along_s, training = _along_training(records)
    measured_s = f"{BARS} Attained by the full search, on held-out texts."
    return {
        "control-accuracy": grid(
            "Accuracy against the length of the text",
            *(accuracy, styles, ("words of a text n", "accuracy")),
            log="x",
            share_y=False,
        ),
        "control-sensitivity": grid(
            "Sensitivity of trained networks against the length",
            *(s_of_n, styles, ("words of a text n", "word sensitivity S")),
            log="xy",
            caption=measured_s,
        ),
        "control-target": grid(
            "Sensitivity held at a target",
            *(on_target, styles, ("target of S", "S, measured")),
            log="xy",
            caption=f"{BARS} S is attained by the full search; the penalty holds what its short "
            "search attains, which "
            "is less.",
        ),
        "control-tradeoff": grid(
            "Accuracy against sensitivity, by control",
            *(tradeoff, controls, ("word sensitivity S", "accuracy")),
            log="x",
            share_y=False,
            caption=f"{BARS} S is the mean over draws of what the full search attains.",
        ),
        "control-layers": grid(
            "Sensitivity after each layer",
            *(layers, styles, ("layer", "S")),
            log="y",
            caption=f"{BARS} S of all rows after a layer, attained by the full search.",
        ),
        "control-along": grid(
            "Along the training",
            *(quality, styles_of(ALONG), (steps, "share, or AUC")),
            log="x",
            caption=f"{BARS} Synonyms kept: copies whose label stays. Flips told: AUC of the "
            "change by a flip against "
            "that by a synonym. New words: a linear function of the features on a one-word task of "
            "another vocabulary.",
        ),
        "control-along-sensitivity": grid(
            "Sensitivity along the training",
            *(along_s, training, (steps, "word sensitivity S")),
            log="xy",
            caption=f"{BARS} Attained by the full search on two held-out texts.",
        ),
    }


def _map(record: Record) -> str:
    """The map whose layer the network has: their colours are one."""
    return {"dense": "rf", "softmax": "raf"}.get(record.layer, f"{record.layer}-raf")


def _task_title(task: str) -> str:
    return TASK_TITLES[task].capitalize()


def _layer_curves(records: Sequence[Record]) -> dict[str, Points]:
    curves = {}
    for (name,), group in grouped(records, network_title).items():
        values = [one.by_layer for one in group if one.by_layer is not None]
        curves[name] = [
            (at, over_draws([one[at - 1] for one in values])) for at in range(1, len(values[0]) + 1)
        ]
    return curves


def _tradeoff(records: Sequence[Record]) -> tuple[list[Panel], dict[str, Style]]:
    """Accuracy against S: a curve through the targets, the other controls beside it."""
    at_target = "held at a target"

    def name(record: Record) -> str:
        return at_target if record.control == HOLD else control_title(record)

    sizes = {(one.task, one.n, one.layer) for one in held(records)}
    group = [one for one in single(records) if (one.task, one.n, one.layer) in sizes]
    drawn = []
    for (task, _), part in grouped(group, "task", "layer").items():
        curves: dict[str, Points] = defaultdict(list)
        for draws in grouped(part, "control", "target").values():
            s, value = estimate(draws, "sensitivity"), estimate(draws, bounds=SHARE)
            if s is not None and value is not None:
                curves[name(draws[0])].append((float(f"{s.value:.3g}"), value))
        curves = {
            control: sorted(points, key=lambda point: point[0])
            for control, points in curves.items()
        }
        least = min(interval(value)[0] for points in curves.values() for _, value in points)
        limits = (min(least, 0.9) - 0.02, 1.02)
        title = f"{_task_title(task)}: {network_title(part[0])}"
        drawn.append(Panel(title, curves, limits=limits, scattered=frozenset(curves) - {at_target}))
    return drawn, styles_of(map(name, group))


def _along_training(records: Sequence[Record]) -> tuple[list[Panel], list[Panel], dict[str, Style]]:
    """Shares and areas between 0 and 1 along the training, without control; and S along it, with
    its styles."""

    def name(record: Record) -> str:
        plain = network_title(record)
        return plain if record.control == "none" else f"{plain}, {control_title(record)}"

    def in_order(key: tuple[Any, ...]) -> tuple[Any, ...]:
        return list(TASK_TITLES).index(key[0]), *key[1:]

    trained = along_training(records)
    quality, of_s = [], []
    groups = grouped([one for one in trained if one.control == "none"], "task", "layer", "n")
    for task, layer, n in sorted(groups, key=in_order):
        group = groups[task, layer, n]
        curves = {title: _steps(group, column) for title, column in ALONG.items() if title != "S"}
        title = f"{_task_title(task)}: {network_title(group[0])}, {n} words"
        quality.append(
            Panel(
                title, {key: points for key, points in curves.items() if points}, limits=(0.4, 1.03)
            )
        )
    groups = grouped(trained, "task", "n")
    for task, n in sorted(groups, key=in_order):
        by_name = sorted(grouped(groups[task, n], name).items())
        curves = {
            key: points for (key,), part in by_name if (points := _steps(part, "along_sensitivity"))
        }
        of_s.append(Panel(f"{_task_title(task)}, {n} words", curves))
    return quality, of_s, styles_of({name(one): _map(one) for one in sorted(trained, key=name)})


def _steps(records: Sequence[Record], column: str) -> Points:
    """The mean over draws at each step; none where a record lacks the column."""
    results: dict[int, list[float]] = defaultdict(list)
    for one in records:
        for step, value in zip(one.along_steps or (), getattr(one, column) or (), strict=False):
            results[step].append(value)
    bounds = None if column == "along_sensitivity" else SHARE
    return [(step + 1, over_draws(values, bounds)) for step, values in sorted(results.items())]
