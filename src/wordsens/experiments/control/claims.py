"""Sentences about trainings under control, each only where the interval of its number allows it."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean

from wordsens.experiments.control.along_claims import along_claims
from wordsens.experiments.control.record import ControlRecord
from wordsens.experiments.control.series import (
    TASK_TITLES,
    along_training,
    control_title,
    controlled,
    dead,
    growth,
    held,
    network_title,
    paired,
    same_draws,
    stacked,
    uncontrolled,
)
from wordsens.experiments.summary import Claim
from wordsens.statistics.mean import LEAST, Estimate
from wordsens.statistics.rank_correlation import correlation_interval

NEAR = 0.02
"""Accuracies whose difference has an interval within this of 0 are said to be equal."""

CHANCE = 0.5

FOLLOWS = 0.9
"""The rank correlation beyond which S is said to follow its target; issue 19 asks for it."""

Groups = dict[tuple[str, str], dict[int | float, list[ControlRecord]]]


def all_claims(records: Sequence[ControlRecord]) -> Iterator[Claim]:
    """Every sentence that the records support."""
    yield from _along_length(uncontrolled(records))
    yield from _held(held(records), uncontrolled(records))
    yield from _controls(controlled(records))
    yield from _layers(stacked(records))
    yield from along_claims(along_training(records))
    yield from _dead(records)


def _dead(records: Sequence[ControlRecord]) -> Iterator[Claim]:
    found = dead(records)
    if found:
        names = Counter(f"{network_title(one)}, {TASK_TITLES[one.task]}, {_control_of(one)}" for one in found)
        listed = "; ".join(f"{name} ({count})" for name, count in names.items())
        sentence = (
            f"In {len(found)} of {len(records)} trainings the network's units died: its features are 0 for every text "
            f"that was looked at, and S is not defined. They are in no mean: {listed}."
        )
        yield Claim(str(len(found)), sentence, "A unit of ReLU that is off for every text has no gradient.")


def _control_of(record: ControlRecord) -> str:
    return control_title(record) if record.target is None else f"S held at {record.target:g}"


def _along_length(records: Sequence[ControlRecord]) -> Iterator[Claim]:
    groups: Groups = defaultdict(lambda: defaultdict(list))
    for one in records:
        groups[network_title(one), one.task][one.n].append(one)
    for (name, task), sizes in groups.items():
        (first, few), (last, many) = min(sizes.items()), max(sizes.items())
        pairs = same_draws(few, many)
        if first == last or not pairs:
            continue
        before, after = (Estimate.of([one.value or 0.0 for one in own]) for own in (few, many))
        change = Estimate.of([(b.value or 0.0) - (a.value or 0.0) for a, b in pairs])
        low, high = change.interval
        s = [Estimate.of([one.sensitivity or 0.0 for one in own]) for own in (few, many)]
        subject = f"{name}, {TASK_TITLES[task]}: accuracy"
        beside = f"S, beside it, is {s[0]} and {s[1]}"
        if high < 0:
            chance = after.interval[0] <= CHANCE <= after.interval[1]
            told = ", which is not told from chance" if chance else ""
            sentence = f"{subject} falls from {before} at {first:.0f} words to {after} at {last:.0f}{told}; {beside}."
        elif low > -NEAR and high < NEAR:
            sentence = f"{subject} stays from {first:.0f} words ({before}) to {last:.0f} ({after}); {beside}."
        else:
            continue
        yield Claim(f"{after.mean:.2g}", sentence, paired(change))
    yield from _robust(groups)


def _robust(groups: Groups) -> Iterator[Claim]:
    """Networks two by two on the longest texts that no single word decides: who stays right while a word moves."""
    found = {name: own[max(own)] for (name, task), own in groups.items() if task == "majority"}
    for (first, own), (second, other) in pairwise(found.items()):
        pairs = same_draws(own, other)
        if not pairs:
            continue
        gap = Estimate.of([(a.robust or 0.0) - (b.robust or 0.0) for a, b in pairs])
        low, high = gap.interval
        if low > 0 or high < 0:
            a, b = (Estimate.of([one.robust or 0.0 for one in part]) for part in (own, other))
            n = own[0].n
            sentence = (
                f"Majority, {n} words: while one word moves, {first} stays right in {a} of the texts, {second} in {b}."
            )
            yield Claim(f"{gap.mean:+.2g}", sentence, paired(gap) + " By a short attack: upper bounds.")


def _held(records: Sequence[ControlRecord], plain: Sequence[ControlRecord]) -> Iterator[Claim]:
    groups: Groups = defaultdict(lambda: defaultdict(list))
    for one in records:
        groups[network_title(one), one.task][one.target or 0.0].append(one)
    for (name, task), targets in groups.items():
        if len(targets) < 2:
            continue
        draws: dict[int, list[tuple[float, float]]] = defaultdict(list)
        for target, own in targets.items():
            for one in own:
                draws[one.draw].append((target, one.sensitivity or 0.0))
        subject = f"{name}, {TASK_TITLES[task]}"
        if len(draws) >= LEAST:
            yield from _follows(subject, targets, draws)
        beside = [one for one in plain if (network_title(one), one.task) == (name, task)]
        for target, own in targets.items():
            yield from _cost(
                f"{subject}: S held at {target:g}", same_draws(own, [b for b in beside if b.n == own[0].n])
            )


def _follows(
    subject: str, targets: dict[int | float, list[ControlRecord]], draws: dict[int, list[tuple[float, float]]]
) -> Iterator[Claim]:
    """The rank correlation of S with its target, where its interval lies above 0."""
    value, low, high = correlation_interval(draws)
    ends = min(targets), max(targets)
    means = [Estimate.of([one.sensitivity or 0.0 for one in targets[at]]) for at in ends]
    if low > 0:
        sentence = (
            f"{subject}: {'S follows' if low > FOLLOWS else 'S rises with'} its target over a factor of "
            f"{ends[1] / ends[0]:g}, from {means[0]} at {ends[0]:g} to {means[1]} at {ends[1]:g}; rank correlation "
            f"{value:.2f} over targets and draws ({low:.2f} to {high:.2f})."
        )
        yield Claim(f"{value:.2f}", sentence, "Spearman's; 95 % bootstrap interval over draws. S by the full search.")


def _cost(subject: str, pairs: Sequence[tuple[ControlRecord, ControlRecord]]) -> Iterator[Claim]:
    """The accuracy that a control costs or gains, and what it does to the accuracy under attack."""
    for column, word in (("value", "accuracy"), ("robust", "accuracy while a word moves")):
        if not pairs:
            return
        gain = Estimate.of([(getattr(a, column) or 0.0) - (getattr(b, column) or 0.0) for a, b in pairs])
        low, high = gain.interval
        if low > 0 or high < 0:
            verb = "gains" if low > 0 else "costs"
            size = Estimate(abs(gain.mean), gain.error, gain.draws)
            was = fmean(getattr(b, column) or 0.0 for _, b in pairs)
            yield Claim(f"{gain.mean:+.2g}", f"{subject} {verb} {size} of {word} ({was:.3g} without).", paired(gain))


def _controls(records: Sequence[ControlRecord]) -> Iterator[Claim]:
    groups: dict[tuple[str, str, int], dict[str, list[ControlRecord]]] = defaultdict(lambda: defaultdict(list))
    for one in records:
        groups[network_title(one), one.task, one.n][one.control].append(one)
    for (name, task, n), controls in groups.items():
        for control, own in controls.items():
            pairs = same_draws(own, controls["none"])
            if control == "none" or not pairs:
                continue
            change = Estimate.of([(a.sensitivity or 0.0) / b.sensitivity for a, b in pairs if b.sensitivity])
            low, high = change.interval
            subject = f"{name}, {TASK_TITLES[task]}, {n} words: {control_title(own[0])}"
            if low > 1 or high < 1:
                sentence = f"{subject} {'raises' if low > 1 else 'lowers'} S, by the factor {change}."
                yield Claim(f"×{change.mean:.2g}", sentence, paired(change))
            yield from _cost(subject, pairs)


def _layers(records: Sequence[ControlRecord]) -> Iterator[Claim]:
    groups: dict[tuple[str, int, bool], list[ControlRecord]] = defaultdict(list)
    for one in records:
        groups[network_title(one), one.n, one.steps > 0].append(one)
    for (name, n, trained), own in groups.items():
        factors = [factor for one in own if (factor := growth(one)) is not None]
        if not factors:
            continue
        factor = Estimate.of(factors)
        low, high = factor.interval
        if low > 1 or high < 1:
            first, last = (Estimate.of([(one.by_layer or (0.0,))[at] for one in own]) for at in (0, -1))
            sentence = (
                f"{name}, {'trained' if trained else 'random'}, {n} words: S {'grows' if low > 1 else 'falls'} from "
                f"layer to layer by the factor {factor}, from {first} to {last}."
            )
            yield Claim(f"×{factor.mean:.3g}", sentence, paired(factor))
