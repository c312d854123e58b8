"""What trainings under control say: tables, and sentences whose paired intervals leave out no
change."""

from collections import Counter
from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import Any

from wordsens.display.numbers import Estimate
from wordsens.display.view import Finding
from wordsens.intervals import correlation_estimate, ends
from wordsens.studies.control.cell import ALONG, HOLD, TASK_TITLES
from wordsens.sweeps.experiment import (
    INTERVALS,
    LEAST_DRAWS,
    SHARE,
    Column,
    Summary,
    estimate,
    finding,
    grouped,
    over_draws,
    paired,
    ratio,
    table,
    value_of,
)
from wordsens.sweeps.store import Record

_CONTROL_TITLES = {
    "none": "no control",
    "lower": "the penalty",
    "raise": "the reward",
    "spectral": "the spectral penalty",
    "adversarial": "adversarial words",
    "pairs": "supervision by pairs",
}


def control_title(record: Record) -> str:
    """The control in words."""
    name = str(record.control)
    return _CONTROL_TITLES.get(name, name.replace("-", " "))


def network_title(record: Record) -> str:
    """The network in words: "softmax attention, 6 layers, residual, LayerNorm"."""
    names = {"dense": "fully connected", "softmax": "softmax attention", "relu": "ReLU attention"}
    parts = [names.get(record.layer, f"{record.layer} attention")]
    parts += [f"{record.layers} layers"] if record.layers > 1 else []
    options = {"residual": record.residual, "LayerNorm": record.norm, "MLP": record.mlp}
    return ", ".join([*parts, *(name for name, has in options.items() if has)])


def living(records: Sequence[Record]) -> list[Record]:
    """Networks with a sensitivity: some unit answers to a held-out text."""
    return [one for one in records if one.sensitivity is not None]


def single(records: Sequence[Record]) -> list[Record]:
    """Those measured at the end of the training alone, and behind the last layer."""
    return [one for one in living(records) if one.by_layer is None and one.along_steps is None]


def uncontrolled(records: Sequence[Record]) -> list[Record]:
    """Trained single layers without control."""
    return [one for one in single(records) if one.control == "none" and one.steps]


def held(records: Sequence[Record]) -> list[Record]:
    """Those whose S was held at a target."""
    return [one for one in living(records) if one.control == HOLD]


def controlled(records: Sequence[Record]) -> list[Record]:
    """Those of the other controls, and of none at the same size."""
    group = [one for one in single(records) if one.control != HOLD]
    sizes = {(one.task, one.n, one.layer) for one in group if one.control != "none"}
    return [one for one in group if (one.task, one.n, one.layer) in sizes]


def along_training(records: Sequence[Record]) -> list[Record]:
    """Those measured along their training."""
    return [one for one in living(records) if one.along_steps is not None]


def stacked(records: Sequence[Record]) -> list[Record]:
    """Those measured behind each of several layers."""
    return [one for one in living(records) if one.by_layer is not None and len(one.by_layer) > 1]


def growth(record: Record) -> float | None:
    """The factor of S from one layer to the next, geometric mean; None where S is 0 behind one of
    them."""
    values = record.by_layer or ()
    if len(values) < 2 or not values[0] or not values[-1]:
        return None
    return (values[-1] / values[0]) ** (1 / (len(values) - 1))


def task_title(record: Record) -> str:
    """The task in words."""
    return TASK_TITLES[record.task]


def summarize(records: Sequence[Record]) -> Summary:
    """Tables of the tasks against n, of S held at targets, of other controls and of layers;
    sentences about them."""
    network: dict[str, Column] = {"map": network_title, "task": task_title, "n": "n"}
    accuracy: dict[str, Column] = {"S": "sensitivity", "accuracy": "value", "robust": "robust"}
    shares = ("accuracy", "robust")
    held_at = {"median word": "median_word", **accuracy}
    layers = {
        "first": lambda one: one.by_layer[0],
        "at most": "first_upper",
        "last": lambda one: one.by_layer[-1],
    }
    weights = {"map": network_title, "weights": _weights, "n": "n", "layers": "layers"}
    other = {**network, "control": "control", "strength": "strength"}
    sections = (
        table(
            "Accuracy against length",
            uncontrolled(records),
            {**network, "d": "d"},
            accuracy,
            shares,
        ),
        table(
            "S held at a target", held(records), {**network, "target": "target"}, held_at, shares
        ),
        table("Other controls", controlled(records), other, accuracy, shares),
        table("S behind the layers", stacked(records), weights, {**layers, "a layer": growth}),
        table(
            "Along the training",
            _looks(records),
            {**network, "control": control_title, "step": "step"},
            ALONG,
            set(ALONG) - {"S"},
        ),
    )
    along = [
        claim
        for (name, task), group in grouped(uncontrolled(records), network_title, task_title).items()
        for claim in _along_length(f"{name}, {task}", grouped(group, "n"))
    ]
    return Summary(
        tuple(table for table in sections if len(table)),
        f"Means over draws, {INTERVALS}. S: attained by the full search. Robust: right "
        "while a word of a few "
        "moves by sqrt(d).",
        (*along, *_claims(records)),
        "S: on held-out texts, over random words and the deciding one. Robust: by short ascent, an "
        "upper bound. At "
        "most: a certified bound of S behind the first layer, over the same words, where it is "
        "attention alone. "
        "A layer: the factor from one layer to the next, geometric mean. Synonyms kept: copies of "
        "a text in which a "
        "word is another that means the same, whose label stays. Flips told: the AUC by which "
        "copies whose meaning is "
        "flipped move the features farther than those. New words: the accuracy of a linear "
        "function of the features on "
        "a one-word task of another vocabulary.",
        leading=max(1, len(along)),
    )


def _weights(record: Record) -> str:
    return "trained" if record.steps else "random"


def _looks(records: Sequence[Record]) -> list[Record]:
    """A record for each look at a network along its training."""
    return [
        one.replace(
            step=step,
            **{name: group[at] for name in ALONG.values() if (group := getattr(one, name))},
        )
        for one in along_training(records)
        for at, step in enumerate(one.along_steps)
    ]


NEAR = 0.02
"""Accuracies whose difference has an interval within this of 0 are said to be equal."""

CHANCE = 0.5

FOLLOWS = 0.9
"""The rank correlation beyond which S is said to follow its target."""


def _claims(records: Sequence[Record]) -> Iterator[Finding]:
    """The other sentences that the records support: where the 95 % interval of a change leaves out
    0, draw by draw."""
    plain = grouped(uncontrolled(records), network_title, task_title, "n")
    for key, group in grouped(held(records), network_title, task_title, "n").items():
        yield from _held(", ".join(key[:2]), grouped(group, "target"), plain.get(key, []))
    for (name, task, n), group in grouped(
        controlled(records), network_title, task_title, "n"
    ).items():
        yield from _controls(f"{name}, {task}, {n} words", grouped(group, "control"))
    for (name, weights, n), group in grouped(
        stacked(records), network_title, _weights, "n"
    ).items():
        yield from _layers(f"{name}, {weights}, {n} words", group)
    for (name, task, n), group in grouped(
        along_training(records), network_title, task_title, "n"
    ).items():
        yield from _along(f"{name}, {task}, {n} words", grouped(group, "control"))
    if dead := [one for one in records if one.sensitivity is None]:
        names = Counter(
            f"{network_title(one)}, {task_title(one)}, {control_title(one)}" for one in dead
        )
        sentence = (
            f"In {len(dead)} of {len(records)} trainings the network's units died: its features "
            "are 0 for every text "
            "that was looked at, and S is not defined. They are in no mean: "
            f"{'; '.join(f'{name} ({count})' for name, count in names.items())}."
        )
        known = "A unit of ReLU that is off for every text has no gradient."
        yield finding(str(len(dead)), sentence, known, len(dead), dead)


Groups = dict[tuple[Any, ...], list[Record]]


def _mean(records: Sequence[Record], column: Column) -> Estimate:
    """Of S, or of a share."""
    bounds = None if column in ("sensitivity", "along_sensitivity") else SHARE
    return over_draws([value_of(one, column) for one in records], bounds)


def _sign(change: Estimate | None, none: float = 0.0) -> int:
    """1 or -1 where the interval lies above or below what no change is; else 0."""
    low, high = (none, none) if change is None else ends(change)
    return (low > none) - (high < none)


def _paired(estimate: Estimate) -> str:
    return f"Paired over {estimate.n} draws, {INTERVALS}, which decides."


def _along_length(subject: str, sizes: Groups) -> Iterator[Finding]:
    (first,), (last,) = min(sizes), max(sizes)
    few, many = sizes[first,], sizes[last,]
    change = paired(many, few)
    if first == last or change is None:
        return
    before, after = _mean(few, "value"), _mean(many, "value")
    low, high = ends(change)
    if high < 0:
        chance = ends(after)[0] <= CHANCE <= ends(after)[1]
        also = ", which is not told from chance" if chance else ""
        sentence = f"falls from {before} at {first} words to {after} at {last}{also}"
    elif low > -NEAR and high < NEAR:
        sentence = f"stays from {first} words ({before}) to {last} ({after})"
    elif low > 0:
        sentence = f"rises from {before} at {first} words to {after} at {last}"
    else:
        return
    beside = f"S, beside it, is {_mean(few, 'sensitivity')} and {_mean(many, 'sensitivity')}."
    sentence = f"{subject}: accuracy {sentence}; {beside}"
    yield finding(str(after), sentence, _paired(change), after, [*few, *many])


def _held(subject: str, targets: Groups, plain: Sequence[Record]) -> Iterator[Finding]:
    """The rank correlation of S with its target, where its interval lies above 0; and what each
    target costs."""
    (first,), (last,) = min(targets), max(targets)
    if first == last:
        return
    draws = grouped((one for group in targets.values() for one in group), "draw")
    pairs = [[(one.target, one.sensitivity) for one in group] for group in draws.values()]
    correlation = correlation_estimate(pairs) if len(pairs) >= LEAST_DRAWS else Estimate(0.0)
    low, _ = ends(correlation)
    if low > 0:
        sentence = (
            f"{subject}: {'S follows' if low > FOLLOWS else 'S rises with'} its target over a "
            "factor of "
            f"{last / first:g}, from {_mean(targets[first,], 'sensitivity')} at {first:g} to "
            f"{_mean(targets[last,], 'sensitivity')} at {last:g}; rank correlation {correlation} "
            "over targets and draws."
        )
        known = "Spearman's; [95 % bootstrap interval] over draws. S by full search."
        records = [record for group in targets.values() for record in group]
        number = f"rank correlation {correlation.value:.2f}"
        yield finding(number, sentence, known, correlation, records)
    for (target,), group in targets.items():
        yield from _cost(f"{subject}: S held at {target:g}", group, plain)


def _cost(subject: str, records: Sequence[Record], plain: Sequence[Record]) -> Iterator[Finding]:
    """The accuracy that a control costs or gains, and what it does to the accuracy under attack."""
    for column, word in (("value", "accuracy"), ("robust", "accuracy while a word moves")):
        gain, cost = paired(records, plain, column), paired(plain, records, column)
        if gain is not None and (sign := _sign(gain)):
            draws = {one.draw for one in records}
            was = fmean(getattr(one, column) for one in plain if one.draw in draws)
            size = gain if sign > 0 else cost
            sentence = (
                f"{subject} {'gains' if sign > 0 else 'costs'} {size} of {word} ({was:.3g} "
                "without)."
            )
            yield finding(f"{size} of accuracy", sentence, _paired(gain), gain, [*records, *plain])


def _controls(place: str, controls: Groups) -> Iterator[Finding]:
    plain, untold = controls.pop(("none",), []), []
    for group in controls.values():
        subject, change = f"{place}: {control_title(group[0])}", ratio(group, plain, "sensitivity")
        if change is not None and (sign := _sign(change, 1.0)):
            sentence = f"{subject} {'raises' if sign > 0 else 'lowers'} S, by the factor {change}."
            yield finding(f"factor {change}", sentence, _paired(change), change, [*group, *plain])
        elif change is not None:
            untold.append(f"{control_title(group[0])} ({change})")
        yield from _cost(subject, group, plain)
    if untold:
        number = f"{len(untold)} control{'s' * (len(untold) > 1)}"
        sentence = (
            f"{place}: of {number} the draws do not tell whether S changes: {'; '.join(untold)}."
        )
        known = "In brackets: the factor of S, paired over draws; its interval holds 1."
        records = [record for group in controls.values() for record in group]
        yield finding(number, sentence, known, len(untold), records)


def _layers(subject: str, records: Sequence[Record]) -> Iterator[Finding]:
    factor = estimate(records, growth)
    if factor is not None and (sign := _sign(factor, 1.0)):
        first, last = (over_draws([one.by_layer[at] for one in records]) for at in (0, -1))
        sentence = (
            f"{subject}: S {'grows' if sign > 0 else 'falls'} from layer to layer by the factor "
            f"{factor}, from {first} "
            f"to {last}."
        )
        yield finding(f"factor {factor}", sentence, _paired(factor), factor, records)


_ALONG_TITLES = {
    "along_sensitivity": "S",
    "along_kept": "the share of synonyms that keep the label",
    "along_told": "the AUC of flips against synonyms",
    "along_probe": "the accuracy of a linear function of the features on a one-word task of new "
    "words",
}
"""What of a training is said, besides the accuracy: the column, and its name in a sentence."""


def _along(place: str, controls: Groups) -> Iterator[Finding]:
    """What changes from the first step to the last without control, and what each control changes
    at the last."""
    plain = controls.get(("none",), [])
    for (control,), group in controls.items():
        for column, title in _ALONG_TITLES.items():
            last = [
                one.replace(end=values[-1]) for one in group if (values := getattr(one, column))
            ]
            at = 0 if control == "none" else -1
            others = [
                one.replace(end=values[at]) for one in plain if (values := getattr(one, column))
            ]
            change = paired(last, others, "end")
            if change is None or not (sign := _sign(change)):
                continue
            bounds = None if title == "S" else SHARE
            now, before = (over_draws([one.end for one in part], bounds) for part in (last, others))
            if control == "none":
                start, end = (
                    over_draws([one.along_accuracy[at] for one in group], SHARE) for at in (0, -1)
                )
                sentence = (
                    f"along the training {title} {'rises' if sign > 0 else 'falls'} from "
                    f"{before} to {now}, "
                )
                sentence += f"while accuracy goes from {start} to {end}."
            else:
                sentence = (
                    f"{control_title(group[0])} {'raises' if sign > 0 else 'lowers'} "
                    f"{title} at the end of the "
                )
                sentence += f"training: {now} in place of {before}."
            yield finding(
                str(now), f"{place}: {sentence}", _paired(change), change, [*group, *plain]
            )
