"""From how many words on a map notices: S of k words that move at once, each in a ball of its
own."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor

from wordsens.certificates.base import Certificate
from wordsens.certificates.dense.bounds import FAILURE_PROBABILITY, by_law
from wordsens.display.numbers import Estimate, number
from wordsens.display.view import Finding, Table
from wordsens.errors import InputError
from wordsens.intervals import power_law
from wordsens.maps.dense import DeepRandomFeatures
from wordsens.maps.registry import map_title
from wordsens.models.embedding import load_encoder
from wordsens.seeds import generator
from wordsens.sensitivity.several_words import group_sensitivity, word_sets
from wordsens.sweeps.experiment import (
    INTERVALS,
    Experiment,
    Grids,
    Summary,
    over_draws,
    rows_by,
    text_title,
)
from wordsens.sweeps.map_cell import MapCell
from wordsens.sweeps.store import Record, as_frame
from wordsens.sweeps.texts import Embedded, load_text, texts_at_least

if TYPE_CHECKING:
    from pandas import DataFrame

NOTICED = 0.5
"""Features that move by half their norm: a constant fraction, which the theory of random features
speaks of."""


class SeveralWordsCell(MapCell, frozen=True):
    """One text, one map, sets of `count` words whose balls have the radius each.

    Attributes:
        count: k, how many words move at once.
    """

    experiment: ClassVar[str] = "several-words"

    count: Annotated[int, Field(ge=1)]

    @model_validator(mode="after")
    def _words_enough(self) -> "SeveralWordsCell":
        if self.count > self.n:
            raise InputError(
                f"`count` (={self.count}) must be at most `n` (={self.n}), the words of the text"
            )
        return self


def measure_several_words(cell: SeveralWordsCell) -> dict[str, Any]:
    """Measure one cell. `value` is attained: a lower bound of the sup over all sets of k words.

    Fully connected features are the same in law for every set, and one random set is searched; of
    other maps those of `word_sets`.
    """
    phi = cell.build()
    model = phi if cell.reads_texts_itself else None
    text = load_text(cell.text, cell.n, cell.d, draw=cell.draw, seed=cell.seed, model=model)
    seed = cell.seed_of("search")
    if isinstance(phi, DeepRandomFeatures):
        stream = generator(cell.seed, "set of words", cell.n, cell.d, cell.draw)
        sets = [tuple(sorted(torch.randperm(cell.n, generator=stream)[: cell.count].tolist()))]
    else:
        sets = word_sets(phi, text, cell.count, cell.radius, seed)
    result = group_sensitivity(phi, text, sets, cell.radius, seed, search=cell.search_plan)
    best = result.witnesses[result.groups.index(result.group)]
    bound = bound_of_every_set(phi, phi.accept(text.rows), cell.count, float(result.radius[0]))
    return {
        "map": phi.name,
        "source": text.source,
        "label": text.label,
        "group": result.group,
        "sets": len(result.groups),
        "value": result.value,
        "upper": None if bound is None else bound.value,
        "rigor": None if bound is None else bound.rigor,
        "evaluations": result.evaluations,
        "converged": float(result.converged.double().mean()),
        "arrays": {"rows": text.rows, "words": torch.tensor(result.group), "perturbations": best},
    }


def bound_of_every_set(
    phi: Any, rows: Float[Tensor, "n d"], count: int, radius: float
) -> Certificate | None:
    """A bound of the sensitivity to every set of `count` words at once, each in a ball of that
    radius (ours).

    The bound of one set by the law of the weights depends on the set through the length of its rows
    alone, and grows with it: that of the longest rows, with a failure probability of 1e-9 / C(n,
    k), is one of all sets with 1e-9. None for maps without a bound for groups.
    """
    if not isinstance(phi, DeepRandomFeatures):
        return None
    longest = torch.linalg.vector_norm(rows, dim=1).argsort(descending=True)[:count].unsqueeze(0)
    reach = torch.tensor([radius * math.sqrt(count)], dtype=torch.float64, device=rows.device)
    each = FAILURE_PROBABILITY / math.comb(len(rows), count)
    bound = by_law(phi, rows, longest, reach, failure_probability=each)
    return replace(bound, failure_probability=FAILURE_PROBABILITY)


_LAZY: dict[str, Any] = {"map": "rf", "gaussian": "lazy", "search": "quick", "dtype": "float32"}
_QUICK = {"map": "raf", "search": "quick"}
# Quick attains .97 to 1.01 of normal's for softmax, for ReLU as little as .58.
PRESETS: dict[str, tuple[int, int, int, list[dict[str, Any]]]] = {
    "quick": (16, 48, 3, [_LAZY, _QUICK, {"map": "relu-raf", "search": "quick"}]),
    "laptop": (50, 192, 10, [_LAZY, _QUICK, {"map": "relu-raf"}]),
    "full": (100, 192, 10, [_LAZY, {"map": "raf"}, {"map": "relu-raf"}]),
}
"""n, d (or the encoder's own where that is smaller), draws, and each map's search."""


def preset(scale: str, source: Embedded, seed: int, labels: str | None) -> Grids:
    """S of RF, RAF and ReLU-RAF when k = 1, 2, 4, ..., n words move at once, on Gaussian and on
    real texts."""
    n, d, draws, maps = PRESETS[scale]
    texts: list[tuple[dict[str, Any], int]] = [({"kind": "gaussian"}, d)]
    notices = []
    if texts_at_least(source, n, seed=seed, most=1):
        texts.insert(
            0, (source.model_dump(mode="json"), min(d, load_encoder(source.encoder).dimension))
        )
    else:
        notices.append(f"no text has {n} words: Gaussian texts are measured alone")
    counts = [2**power for power in range(n.bit_length()) if 2**power < n] + [n]
    common = {"n": n, "count": counts, "draw": list(range(draws))}
    return [
        {**common, **part, "text": text, "d": width} for text, width in texts for part in maps
    ], notices


SERIES = ("map", "text", "n", "d")


def never_falling(records: Sequence[Record]) -> "DataFrame":
    """The records by series and number of words, each S raised to the most that so many or fewer
    words attain in its draw: words of a set may stay where they are."""
    frame = as_frame(records)
    frame["series"] = frame.groupby(list(SERIES), dropna=False, sort=False).ngroup()
    frame = frame.sort_values(["series", "count"], kind="stable")
    frame["value"] = frame.groupby(["series", "draw"], dropna=False)["value"].cummax()
    return frame


def by_count(frame: "DataFrame") -> dict[str, list[Any]]:
    """One row per series and number of words: S, and the bound for every set of so many."""

    def row(part: "DataFrame") -> dict[str, Any]:
        bounded = bool(part["upper"].notna().all())
        return {
            "S": over_draws(list(part["value"])),
            "at most": over_draws(list(part["upper"])) if bounded else None,
            "draws": len(part),
        }

    return rows_by(frame, [*SERIES, "count"], row)


def by_series(frame: "DataFrame") -> dict[str, list[Any]]:
    """One row per series: how many words must change at once until S reaches NOTICED; how it grows
    with them; and how many certainly do not reach it."""

    def row(part: "DataFrame") -> dict[str, Any]:
        draws = [one[["count", "value"]].to_numpy().tolist() for _, one in part.groupby("draw")]
        reached = [place for place in map(_crossing, draws) if place is not None]
        fewest = int(min(part["count"]))
        few = part.query("count <= n / 2")
        fit = power_law(list(few["count"]), list(few["value"]), list(few["draw"]))
        groups: Any = part.groupby("count")["upper"]
        bounded = [count for count, upper in groups if upper.lt(NOTICED).all()]
        return {
            "words": _enough(reached, fewest) if len(reached) == len(draws) else None,
            "not enough": max(map(int, bounded), default=None),
            "S of the fewest": over_draws(list(part["value"][part["count"] == fewest])),
            "exponent": fit[0] if fit and fewest not in reached else None,
            "draws": len(draws),
        }

    return rows_by(frame, SERIES, row)


_NOTE = (
    f"Words: so many changed at once are enough for S = {NOTICED:g}, interpolated between the "
    "numbers tried; fewer may be. Exponent: b of S ~ words^b up to half of the words. Not enough: "
    "no choice of so many words reaches it, with probability 1 - 1e-9 over the weights. At most: "
    f"an upper bound for every choice, likewise. S: attained; means over draws, {INTERVALS}."
)


def summarize(records: Sequence[Record]) -> Summary:
    """How many words each map notices, and S by their number."""
    frame = never_falling(records)
    series = by_series(frame)
    tables = [
        Table(title, columns | {"map": list(map(map_title, columns["map"]))})
        for title, columns in (
            ("How many changed words are enough", series),
            ("S of several words at once", by_count(frame)),
        )
    ]
    cells = tuple(record.cell for record in records)
    found = tuple(Finding(sentence, rows=cells) for sentence in findings(series))
    return Summary(tuple(tables), _NOTE, found, leading=3)


def findings(series: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    """At most three sentences; each speaks of all rows of the table."""
    if told := _by_map(series, "words", "more than were tried"):
        yield f"This many changed words are enough to move the output by half its size: {told}."
    if told := _by_map(series, "not enough"):
        yield (
            "This many are never enough, whichever they are and whatever they become, but for a "
            f"chance of 1e-9 over the random weights: {told}."
        )
    if told := _by_map(series, "exponent"):
        yield f"For up to half of the words, S grows like a power of their number: {told}."


def _by_map(series: Mapping[str, Sequence[Any]], column: str, missing: str = "") -> str:
    """The range of a column for each map, and of how many of its rows."""
    told = []
    for name in dict.fromkeys(series["map"]):
        rows = zip(series["map"], series[column], strict=True)
        cells = [cell for one, cell in rows if one == name]
        known = [getattr(cell, "value", cell) for cell in cells if cell is not None]
        some = f" (in {len(known)} of {len(cells)} settings)" if len(known) < len(cells) else ""
        if known:
            span = " to ".join(dict.fromkeys(map(number, (min(known), max(known)))))
            rows = f" in {len(known)} settings" * (" to " in span)
            told.append(f"{map_title(name)} {span}{some or rows}")
        elif missing:
            told.append(f"{map_title(name)} {missing}")
    return "; ".join(told)


def _enough(reached: Sequence[float], fewest: int) -> Estimate:
    """The mean over draws; without an interval where the fewest words tried are enough in all."""
    if set(reached) == {fewest}:
        return Estimate(float(fewest), n=len(reached))
    return over_draws(reached)


def _crossing(points: Sequence[tuple[int, float]]) -> float | None:
    """The number of words at which S reaches NOTICED, interpolated on logarithmic axes; the fewest
    where it does at once.

    >>> _crossing([(1, 0.25), (4, 0.5), (16, 1.0)]), _crossing([(1, 2.0)]), _crossing([(1, 0.1)])
    (4.0, 1.0, None)
    """
    if points[0][1] >= NOTICED:
        return float(points[0][0])
    for (few, less), (many, more) in pairwise(points):
        if 0 < less < NOTICED <= more:
            along = math.log(NOTICED / less) / math.log(more / less)
            return round(few * (many / few) ** along, 12)
    return None


def figure(records: Sequence[Record]) -> dict[str, Any]:
    """S against the number of words that move at once, a panel for each kind of text."""
    from wordsens.plotting import lines

    columns = by_count(never_falling(records))
    columns["text"] = [text_title(kind).capitalize() for kind in columns["text"]]
    columns["attained"] = [mean.value for mean in columns["S"]]
    columns["bound"] = [mean and mean.value for mean in columns["at most"]]
    drawn = lines(
        columns,
        x="count",
        y="S",
        colour="map",
        panel=("text", "n"),
        labels={"count": "words that move at once", "S": "sensitivity S"},
        log="xy",
        guides={"half the output's size": [(None, NOTICED)]},
        band=("attained", "bound"),
        title="Sensitivity to several words at once",
        caption=f"Means over draws, {INTERVALS}. Shaded up to the upper bound for every choice of "
        "so many words, where there is one.",
    )
    return {"several-words": drawn}


SEVERAL_WORDS = Experiment(
    name="several-words",
    Cell=SeveralWordsCell,
    measure=measure_several_words,
    preset=preset,
    summarize=summarize,
    figures=figure,
)
