"""What becomes of a threshold when the model changes."""

from wordsens.display.numbers import Estimate, as_sentences, column, decimals
from wordsens.display.view import Table, View
from wordsens.evaluation.carry import (
    OLD,
    SAME_FALSE_HITS,
    SAME_RECALL,
    UNCHANGED,
    CarriedThreshold,
)


def view(carried: CarriedThreshold) -> View:
    """The two thresholds of the new model with what was left out or replaced, what the old number
    would do, and the shares of each setting."""
    old, unchanged = carried[OLD], carried[UNCHANGED]
    recall, false_hits = carried[SAME_RECALL], carried[SAME_FALSE_HITS]
    number = decimals(old.threshold.value)
    headline = (
        f"To keep its recall of {_share(old.recall)}, the threshold {number} of {carried.old} "
        f"becomes {_number(recall.threshold)} with {carried.new}; to keep its false hits at "
        f"{_share(old.false_hits)}, {_number(false_hits.threshold)}."
    )
    left = (
        f"Left at {number}, {carried.new} would accept {_share(unchanged.recall)} of "
        f"near-duplicates and {_share(unchanged.false_hits)} of opposites. These are shares of the "
        "given pairs; `wordsens calibrate` finds a threshold with a promise."
    )
    columns = {
        "setting": [setting.name for setting in carried.settings],
        "threshold": [decimals(setting.threshold.value) for setting in carried.settings],
        "95 %": [_interval(setting.threshold) for setting in carried.settings],
        "recall": [setting.recall for setting in carried.settings],
        "false hits": [setting.false_hits for setting in carried.settings],
    }
    note = (
        f"Recall: the share of {old.recall.n} near-duplicates at or above the threshold; false "
        f"hits: of {old.false_hits.n} opposites; with 95 % confidence intervals."
    )
    table = Table("", columns, units={"recall": "%", "false hits": "%"}, note=note)
    headline = " ".join((headline, *map(as_sentences, carried.changes)))
    return View(headline, (left, table), notes=carried.notes)


def _share(estimate: Estimate) -> str:
    return column([Estimate(estimate.value)], "%")[0]


def _number(threshold: Estimate) -> str:
    return f"{decimals(threshold.value)} (95 %: {_interval(threshold)})"


def _interval(threshold: Estimate) -> str:
    if threshold.low is None or threshold.high is None:
        return ""
    return f"{decimals(threshold.low)} to {decimals(threshold.high)}"
