"""Sentences about trainings that were measured along their way, each only where its number's interval allows it."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from wordsens.experiments.control.record import ControlRecord
from wordsens.experiments.control.series import TASK_TITLES, control_title, network_title, paired, same_draws
from wordsens.experiments.summary import Claim
from wordsens.statistics.mean import Estimate

_CHANGES = {
    "along_sensitivity": "S",
    "along_kept": "the share of synonyms that keep the label",
    "along_told": "the AUC of flips against synonyms",
    "along_probe": "the accuracy of a linear function of the features on a one-word task of new words",
}
"""What of a training is told, besides the accuracy: the column, and its name in a sentence."""


def along_claims(records: Sequence[ControlRecord]) -> Iterator[Claim]:
    """What changes from the first step to the last without control, and what each control changes at the last."""
    groups: dict[tuple[str, str, int], dict[str, list[ControlRecord]]] = defaultdict(lambda: defaultdict(list))
    for one in records:
        groups[network_title(one), one.task, one.n][one.control].append(one)
    for (name, task, n), controls in groups.items():
        subject = f"{name}, {TASK_TITLES[task]}, {n} words"
        for control, own in controls.items():
            if control == "none":
                yield from _from_first_to_last(subject, own)
            else:
                yield from _against(f"{subject}: {control_title(own[0])}", own, controls["none"])


def _from_first_to_last(subject: str, records: Sequence[ControlRecord]) -> Iterator[Claim]:
    accuracies = _ends(records, "along_accuracy")
    if accuracies is None:
        return
    learned = f"while accuracy goes from {accuracies[0]} to {accuracies[1]}"
    for column, title in _CHANGES.items():
        found = _ends(records, column)
        if found is None:
            continue
        change = Estimate.of([values[-1] - values[0] for one in records if (values := getattr(one, column))])
        low, high = change.interval
        if low > 0 or high < 0:
            verb = "rises" if low > 0 else "falls"
            sentence = f"{subject}: along the training {title} {verb} from {found[0]} to {found[1]}, {learned}."
            yield Claim(f"{change.mean:+.2g}", sentence, paired(change))


def _against(subject: str, records: Sequence[ControlRecord], plain: Sequence[ControlRecord]) -> Iterator[Claim]:
    pairs = same_draws(records, plain)
    for column, title in _CHANGES.items():
        both = [(a[-1], b[-1]) for one, other in pairs if (a := getattr(one, column)) and (b := getattr(other, column))]
        if not both:
            continue
        change = Estimate.of([a - b for a, b in both])
        low, high = change.interval
        if low > 0 or high < 0:
            verb = "raises" if low > 0 else "lowers"
            with_it, without = (Estimate.of(list(part)) for part in zip(*both, strict=True))
            sentence = f"{subject} {verb} {title} at the end of the training: {with_it} in place of {without}."
            yield Claim(f"{change.mean:+.2g}", sentence, paired(change))


def _ends(records: Sequence[ControlRecord], column: str) -> tuple[Estimate, Estimate] | None:
    """Of the first and of the last measurement; None where a record lacks them."""
    values = [getattr(one, column) for one in records]
    if not values or not all(values):
        return None
    return Estimate.of([one[0] for one in values]), Estimate.of([one[-1] for one in values])
