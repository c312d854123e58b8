"""How many words must change until a model that just learned a text notices: the least error after
k changed words, and k*(n), the least k with an error below 1."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from wordsens.display.view import Finding
from wordsens.generalization import TRAININGS, NewText
from wordsens.generalization.result import finite_sample_bound
from wordsens.intervals import median_estimate, power_law, share_estimate
from wordsens.maps.dense import DeepRandomFeatures
from wordsens.maps.registry import map_title
from wordsens.studies import generalization
from wordsens.studies.generalization import FRONTIER, LIMIT, NOTICED, GeneralizationCell, new_text
from wordsens.studies.several_words import bound_of_every_set
from wordsens.sweeps.study import INTERVALS, Preset, Study, Tables, require_alike
from wordsens.sweeps.texts import DatasetText, Embedded


class ChangedWordsCell(GeneralizationCell, frozen=True):
    """A generalization cell of this study, whose first `count` words change at once."""

    experiment: ClassVar[str] = "generalization-words"


def measure(cell: ChangedWordsCell) -> dict[str, Any]:
    """Measure one cell: the columns of a generalization cell, and `at_least`, below which no choice
    of `count` words and no change of them brings the error, gamma at most the largest limit."""
    columns = generalization.measure(cell)
    new = new_text(cell.of_fit(), cell.sample)
    radius = math.sqrt(cell.d) if cell.radius is None else cell.radius
    floor = least_error(new, cell.training, cell.count, radius, max(cell.gammas))
    return columns | {"at_least": floor}


def least_error(
    new: NewText, training: str, count: int, radius: float, limit: float
) -> float | None:
    """A lower bound of Err after any `count` words changed, each within the radius, with gamma at
    most the limit (ours, proved; docs/proofs.md#several-changed-words). With probability 1 - 1e-9
    over the weights; None for a map without a bound of S for several words.

    The larger of (2 - gamma - S_k |rho|)², S_k a bound of |F - 1|, and, fine-tuned with
    non-negative features, (1 + y f(X) - gamma)², where y f(X) <= 1.
    """
    phi = new.fit.phi
    bound = bound_of_every_set(phi, new.rows, count, radius)
    if bound is None or not isinstance(phi, DeepRandomFeatures):
        return None
    lengths = new.features.norm() * new.direction(training).norm()
    floor = finite_sample_bound(limit, 1 + bound.value * float(lengths), new.surprise)
    before = new.label * new.output_before
    if training == "fine-tuned" and phi.activation.name == "relu" and before <= 1:
        return max(floor, max(0.0, 1 + before - limit) ** 2)
    return floor


# Values of n, draws, and the search; 16 training texts, d = 2 n. Quick finds errors of attention
# that are 1 to 4 % above normal's, and takes a third of the time.
PRESETS: dict[str, tuple[list[int], int, str]] = {
    "quick": ([8, 16, 32], 3, "quick"),
    "laptop": ([8, 16, 32, 64], 12, "quick"),
    "full": ([8, 12, 16, 24, 32, 48, 64, 96], 20, "normal"),
}


def preset(
    scale: str, source: Embedded, seed: int, labels: str | None, *, words_changed: int = 64
) -> Preset:
    """The least error of RF and RAF, both trainings, after 1, 2, 4, ... words of a Gaussian text
    changed, at most `words_changed`, d proportional to n."""
    lengths, draws, search = PRESETS[scale]
    counts = [2**power for power in range(words_changed.bit_length())]
    grids = [
        {
            "map": ["rf", "raf"],
            "text": {"kind": "gaussian"},
            "labels": "linear",
            "n": n,
            "d": 2 * n,
            "texts": 16,
            "held_out": 20,
            "search": search,
            "dtype": "float32",
            "training": list(TRAININGS),
            "objective": FRONTIER,
            "gammas": [[LIMIT]],
            "count": [count for count in counts if count <= n],
            "draw": list(range(draws)),
        }
        for n in lengths
    ]
    notice = "--texts is not read: changed words are counted on Gaussian texts"
    return grids, [notice] * isinstance(source, DatasetText)


SERIES = ["map", "training", "text"]
_DRAW = ["seed", "draw", "sample"]
_GROWTH, _NUMBERS = "k* ~ n^exponent", "k*, the least number of changed words that is noticed"
_ERRORS = "Least error by the number of changed words"


def tables(records: Any) -> Tables:
    """How k* grows with n; k* at every n; the least error of every k. Words of a group may stay
    where they are: the error is lowered to the least that this many or fewer reach in its draw."""
    require_alike(records, [*SERIES, "n"], besides=("count",))
    lowered = records.sort_values("count", kind="stable")
    draws = lowered.groupby([*SERIES, "n", *_DRAW], dropna=False)
    lowered["value"] = draws["value"].cummin()
    numbers = _rows(lowered, ["n"], _number)
    series = numbers.groupby(SERIES, dropna=False, sort=False)
    growth = [dict(zip(SERIES, keys, strict=True)) | _growth(part) for keys, part in series]
    return {
        _GROWTH: pd.DataFrame(growth, dtype=object),
        _NUMBERS: numbers,
        _ERRORS: _rows(lowered, ["n", "count"], _error),
    }


def _rows(records: Any, keys: list[str], columns: Callable[[Any], dict[str, Any]]) -> Any:
    """The columns of the records of each series and value of the keys."""
    return pd.DataFrame(
        [
            dict(zip([*SERIES, *keys], [*names, *values], strict=True)) | columns(part)
            for names, whole in records.groupby(SERIES, dropna=False, sort=False)
            for values, part in whole.groupby(keys)
        ],
        dtype=object,
    )


def _number(part: Any) -> dict[str, Any]:
    """k* of one setting, the median over draws, of which some may never notice; and the most words
    of which no choice is ever enough in any draw."""
    curves = [draw for _, draw in part.groupby(_DRAW)]
    least = [enough(draw["count"].tolist(), draw["value"].tolist()) for draw in curves]
    noticed = sum(map(math.isfinite, least))
    never = part.groupby("count")["at_least"].min() >= NOTICED
    return {
        "k*": median_estimate(least) if noticed > len(least) / 2 else None,
        "noticed": share_estimate(noticed, len(least)),
        "not enough": max(never.index[never], default=None),
        "draws": len(least),
    }


def enough(counts: Sequence[int], errors: Sequence[float]) -> float:
    """The number of words at which the error, which never rises, is NOTICED, interpolated in log k;
    the fewest where it is there at once, inf where it is never.

    >>> enough([1, 4, 16], [3.0, 1.5, 0.5]), enough([1, 2], [0.5, 0.1]), enough([1, 2], [3.0, 2.0])
    (8.0, 1.0, inf)
    """
    if errors[-1] >= NOTICED:
        return math.inf
    place = np.interp(-NOTICED, np.negative(errors), np.log(counts))
    return round(math.exp(place), 12)


def _growth(part: Any) -> dict[str, Any]:
    """The exponent of k* in n, and k* at both ends; none where most draws of a length never
    notice."""
    least = [number and number.value for number in part["k*"]]
    fit = power_law(part["n"].tolist(), least) if all(least) else None
    return {
        "exponent": fit and fit[0],
        "n from": part["n"].iloc[0],
        "k* there": part["k*"].iloc[0],
        "n to": part["n"].iloc[-1],
        "k* at the end": part["k*"].iloc[-1],
    }


def _error(part: Any) -> dict[str, Any]:
    """The least error of one number of words and what belongs to it, medians over draws."""
    medians = {name: part[name].median() for name in ("gamma", "alignment", "at_least")}
    error = median_estimate(part["value"].round(6).tolist())
    return {"error": error, **medians, "draws": len(part)}


def findings(records: Any, tables: Mapping[str, Any]) -> Iterator[Finding]:
    """How k* grows with n, and how far the alignment falls, beside what is proved of it."""
    cells = tuple(records["cell"])
    clauses = []
    for row in tables[_GROWTH].to_dict("records"):
        ends = " to ".join(
            f"{row[place] or 'none'} at n = {row[n]}"
            for n, place in (("n from", "k* there"), ("n to", "k* at the end"))
        )
        grows = f" (exponent {row['exponent']})" if row["exponent"] else ""
        clauses.append(f"{map_title(row['map'])}, {row['training']}: {ends}{grows}")
    yield Finding(
        "Number of changed words k* after which a model that has just learned the text gives the "
        f"new label, γ at most {LIMIT:g}. {'; '.join(clauses)}.",
        "Medians over draws, from the least error found; fewer words may be enough.",
        cells,
    )
    least = records.groupby(["map", "training"], sort=False)["alignment"].min()
    named = [f"{map_title(name)}, {kind}, {value:.2f}" for (name, kind), value in least.items()]
    bounded = records.dropna(subset="at_least")
    never = bounded[(bounded["count"] == bounded["n"]) & (bounded["at_least"] >= NOTICED)]
    yield Finding(
        "Fully connected ReLU features that are fine-tuned have an alignment F of at least 0 "
        "however many words change (proved): they can forget a text, but not learn its opposite "
        f"from it. Least F found: {'; '.join(named)}.",
        f"Records in which even n changed words can never be noticed: {len(never)}. Errors below "
        f"their lower bound: {int((bounded['value'] < bounded['at_least'] - 1e-4).sum())}.",
        cells,
    )


def figures(records: Any) -> dict[str, Any]:
    """The least error against the number of changed words, a line per n, a panel per map and
    training."""
    from wordsens.plotting import lines

    columns = tables(records)[_ERRORS]
    panels = columns["map"].map(map_title) + ", " + columns["training"]
    figure = lines(
        columns.assign(panel=panels),
        x="count",
        y="error",
        colour="n",
        panel="panel",
        log="x",
        dashes="at_least",
        guides={"noticed below": [(None, NOTICED)]},
        labels={"count": "changed words k", "error": "least error found"},
        title="Error of the model on the changed text, by the number of changed words",
        caption=f"Medians over draws of the least error found with γ up to {LIMIT:g}; smaller ones "
        "may exist. Bars, for six draws or more: 95 % confidence intervals. Dashed: the proved "
        "lower bound of RF (with probability 1 − 1e-9 over the weights), a median too.",
    )
    return {"generalization-words": figure}


STUDY = Study(
    name="generalization-words",
    Cell=ChangedWordsCell,
    measure=measure,
    preset=preset,
    tables=tables,
    findings=findings,
    figures=figures,
    note=f"k*: how many words must change for an error below {NOTICED:g}, γ at most {LIMIT:g}; "
    "interpolated between the numbers tried, medians over draws, of which some may never notice. "
    f"Exponent: b in k* ~ n^b, {INTERVALS}. Not enough: in no draw is a change of this many words "
    "noticed, whichever they are, with probability 1 − 1e-9 over the weights.",
    together=GeneralizationCell.of_fit,
)
