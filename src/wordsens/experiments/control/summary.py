"""Records of trainings under control in tables."""

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

from wordsens.experiments.control.claims import all_claims
from wordsens.experiments.control.record import ControlRecord
from wordsens.experiments.control.series import (
    ALONG,
    TASK_TITLES,
    along_training,
    control_title,
    controlled,
    growth,
    held,
    network_title,
    stacked,
    uncontrolled,
)
from wordsens.experiments.summary import Section, Summary
from wordsens.statistics.mean import Estimate


def summarise_control(records: Sequence[ControlRecord]) -> Summary:
    """Tables of the tasks against n, of S held at targets, of other controls and of layers; sentences about them."""
    done = [record for record in records if record.done]
    sections = (
        _section(
            "Accuracy against length",
            ("task", "n", "d"),
            uncontrolled(done),
            lambda own: (own.task, own.n, own.d),
            {"accuracy": _value, "S": _sensitivity, "robust": _robust},
        ),
        _section(
            "S held at a target",
            ("task", "n", "target"),
            held(done),
            lambda own: (own.task, own.n, own.target),
            {"S": _sensitivity, "median word": lambda own: own.median_word, "accuracy": _value, "robust": _robust},
        ),
        _section(
            "Other controls",
            ("task", "n", "control", "strength"),
            controlled(done),
            lambda own: (own.task, own.n, own.control, own.strength),
            {"S": _sensitivity, "accuracy": _value, "robust": _robust},
        ),
        _section(
            "S behind the layers",
            ("weights", "n", "layers"),
            stacked(done),
            lambda own: ("trained" if own.steps else "random", own.n, own.layers),
            {
                "first": lambda own: own.by_layer[0],
                "at most": lambda own: own.first_upper,
                "last": lambda own: own.by_layer[-1],
                "a layer": growth,
            },
        ),
    )
    sections += (_along(along_training(done)),)
    return Summary(
        tuple(one for one in sections if one.rows),
        "Means over draws with standard errors. S: attained by the full search on held-out texts, over random words "
        "and the deciding one. Robust: right while a word of a few moves by sqrt(d), by short ascent: an upper bound. "
        "At most: a certified bound of S behind the first layer, over the same words, where it is attention alone. "
        "A layer: the factor from one layer to the next, geometric mean. Synonyms kept: copies of a text in which a "
        "word is another that means the same, whose label stays. Flips told: the AUC by which copies whose meaning is "
        "flipped move the features farther than those. New words: the accuracy of a linear function of the features on "
        "a one-word task of another vocabulary.",
        tuple(all_claims(done)),
    )


def _section(
    title: str,
    headings: tuple[str, ...],
    records: Sequence[ControlRecord],
    key: Callable[[ControlRecord], tuple[Any, ...]],
    columns: dict[str, Callable[[Any], float | None]],
) -> Section:
    """A row for each network and key: the estimates of the columns."""
    groups: dict[tuple[Hashable, ...], list[ControlRecord]] = defaultdict(list)
    for record in records:
        groups[network_title(record), *key(record)].append(record)
    rows = []
    for name, own in groups.items():
        values = [[found for one in own if (found := column(one)) is not None] for column in columns.values()]
        told = [Estimate.of(one) if one and all(map(math.isfinite, one)) else None for one in values]
        rows.append((*(TASK_TITLES.get(str(part), part) for part in name), *told, len(own)))
    return Section(title, ("map", *headings, *columns, "draws"), tuple(rows))


def _along(records: Sequence[ControlRecord]) -> Section:
    """A row for each network, task, control and step of the training."""
    groups: dict[tuple[str | int, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    draws: dict[tuple[str | int, ...], int] = defaultdict(int)
    for record in records:
        for at, step in enumerate(record.along_steps or ()):
            key = network_title(record), TASK_TITLES[record.task], record.n, control_title(record), step
            draws[key] += 1
            for name, column in ALONG.items():
                if (values := getattr(record, column)) is not None:
                    groups[key][name].append(values[at])
    rows = [
        (*key, *(Estimate.of(found[name]) if found[name] else None for name in ALONG), draws[key])
        for key, found in groups.items()
    ]
    headings = ("map", "task", "n", "control", "step", *ALONG, "draws")
    return Section("Along the training", headings, tuple(rows))


def _value(record: ControlRecord) -> float | None:
    return record.value


def _sensitivity(record: ControlRecord) -> float | None:
    return record.sensitivity


def _robust(record: ControlRecord) -> float | None:
    return record.robust
