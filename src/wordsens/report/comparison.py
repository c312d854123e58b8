"""Runs side by side: how each series of S that several runs share differs."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from wordsens.display.view import Table
from wordsens.intervals import LEAST, difference
from wordsens.maps.registry import map_title
from wordsens.report.load import Run
from wordsens.studies.sensitivity import as_defined, curves


def comparison(runs: Sequence[Run]) -> Table:
    """One row per series and pair of runs: S of both at the longest length that they share, and the
    difference with its interval (square and add)."""
    import pandas as pd

    measured = [
        (run.name, *as_defined(part.frame))
        for run in runs
        for part in run.parts
        if part.name == "sensitivity" and part.done
    ]
    curved = [(name, curves(frame, keys), keys) for name, frame, keys in measured if len(frame)]
    pairs = []
    for (first, one, keys), (second, other, same) in combinations(curved, 2):
        if keys == same:  # those that vary in other keys share no series
            both = one.merge(other, on=[*keys, "n"], suffixes=(" first", " second"))
            longest = both.groupby(keys, dropna=False, sort=False)["n"].idxmax()
            both = both.loc[longest, [*keys, "n", "S first", "S second"]]
            both["difference"] = list(map(difference, both["S second"], both["S first"]))
            pairs.append(both.assign(**{"first run": first, "second run": second}))
    if not pairs:
        return Table("", {})
    frame: Any = pd.concat(pairs, ignore_index=True)
    frame["map"] = frame["map"].map(map_title)
    note = (
        "S: means over draws with 95 % confidence intervals (Student's t). Difference: second "
        "minus first; no difference is claimed where its interval holds 0, or where a run has "
        f"fewer than {LEAST} draws."
    )
    return Table("S side by side", frame.to_dict("list"), note=note, most=len(frame))
