"""How many words must change until a map notices: S of k words that move at once, each in a ball
of its own."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor

from wordsens.certificates.base import Certificate
from wordsens.certificates.dense.bounds import FAILURE_PROBABILITY, by_law
from wordsens.display.numbers import Estimate, number
from wordsens.display.view import Finding
from wordsens.errors import InputError
from wordsens.intervals import power_law
from wordsens.maps.dense import DeepRandomFeatures
from wordsens.maps.registry import map_title
from wordsens.models.embedding import load_encoder
from wordsens.seeds import generator
from wordsens.sensitivity.several_words import group_sensitivity, word_sets
from wordsens.sweeps.map_cell import MapCell
from wordsens.sweeps.study import (
    BARS,
    INTERVALS,
    Preset,
    Study,
    Tables,
    means,
    over_draws,
    require_alike,
    text_title,
)
from wordsens.sweeps.texts import Embedded, load_text, texts_at_least

# Features that move by half their norm: a constant fraction, which the theory of random features
# speaks of.
NOTICED = 0.5


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


def measure(cell: SeveralWordsCell) -> dict[str, Any]:
    """Measure one cell. `value` is a lower bound of the sup over all sets of k words, with its
    witness.

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
# Quick finds .97 to 1.01 of normal's S for softmax, for ReLU as little as .58.
_QUICK = {"map": "raf", "search": "quick"}
# n, d (or the encoder's own where that is smaller), draws, and each map's search.
PRESETS: dict[str, tuple[int, int, int, list[dict[str, Any]]]] = {
    "quick": (16, 48, 3, [_LAZY, _QUICK, {"map": "relu-raf", "search": "quick"}]),
    "laptop": (50, 192, 10, [_LAZY, _QUICK, {"map": "relu-raf"}]),
    "full": (100, 192, 10, [_LAZY, {"map": "raf"}, {"map": "relu-raf"}]),
}


def preset(scale: str, source: Embedded, seed: int, labels: str | None) -> Preset:
    """S of RF, RAF and ReLU-RAF when k = 1, 2, 4, ..., n words move at once, on Gaussian and on
    real texts."""
    n, d, draws, maps = PRESETS[scale]
    texts: list[dict[str, Any]] = [{"text": {"kind": "gaussian"}, "d": d}]
    notices = []
    if texts_at_least(source, n, seed=seed, most=1):
        width = min(d, load_encoder(source.encoder).dimension)
        texts.insert(0, {"text": source.model_dump(mode="json"), "d": width})
    else:
        notices.append(f"no text has {n} words: only Gaussian texts are measured")
    counts = [2**power for power in range(n.bit_length()) if 2**power < n] + [n]
    common = {"n": n, "count": counts, "draw": list(range(draws))}
    return [{**common, **part, **text} for text in texts for part in maps], notices


SERIES = ["map", "text", "n", "d"]
_DRAW = ["seed", "draw"]
_BY_COUNT = "S of several words at once"


def tables(records: pd.DataFrame) -> Tables:
    """How many words each map notices; S, and the bound for every set, by their number. Words of a
    set may stay where they are: S is raised to the most that this many or fewer reach in its
    draw."""
    require_alike(records, SERIES, besides=("count",))
    series = records.groupby(SERIES, dropna=False, sort=False)
    raised = pd.concat([part.sort_values("count", kind="stable") for _, part in series])
    draws = raised.groupby([*SERIES, *_DRAW], dropna=False)
    raised["value"] = draws["value"].cummax()
    series = raised.groupby(SERIES, dropna=False, sort=False)
    rows = [part[SERIES].iloc[0].to_dict() | _enough(part) for _, part in series]
    return {
        "How many changed words are enough": pd.DataFrame(rows, dtype=object),
        _BY_COUNT: means(raised, [*SERIES, "count"], {"S": "value", "at most": "upper"}),
    }


def _enough(part: Any) -> dict[str, Any]:
    """How many words must change at once until S reaches NOTICED, the most that certainly do not
    reach it, and how S grows up to half of the words."""
    curves = [draw[["count", "value"]].to_numpy() for _, draw in part.groupby(_DRAW)]
    reached = [crossing(*curve.T) for curve in curves if curve[-1, 1] >= NOTICED]
    fewest = part["count"].min()
    words = over_draws(reached) if len(reached) == len(curves) else None
    if words and set(reached) == {fewest}:  # fewer were not tried: no interval
        words = Estimate(float(fewest), n=len(reached))
    few = part[part["count"] <= part["n"] / 2]
    texts = [*zip(few["seed"], few["draw"], strict=True)]
    fit = power_law(few["count"].tolist(), few["value"].tolist(), texts)
    below = part.groupby("count")["upper"].max() < NOTICED
    return {
        "words": words,
        "not enough": max(below.index[below], default=None),
        "exponent": fit[0] if fit and fewest not in reached else None,
        "S of the fewest": over_draws(part["value"][part["count"] == fewest]),
        "draws": len(curves),
    }


@np.errstate(divide="ignore")
def crossing(counts: Sequence[float], values: Sequence[float]) -> float:
    """The number of words at which S, which never falls, reaches NOTICED, interpolated on
    logarithmic axes; the fewest where it does at once.

    >>> crossing([1, 4, 16], [0.25, 0.5, 1.0]), crossing([1, 2], [2.0, 3.0])
    (4.0, 1.0)
    """
    place = np.interp(math.log(NOTICED), np.log(values), np.log(counts))
    return round(math.exp(place), 12)


# By the column of the first table that each speaks of; and what is said of a map without a number.
_SENTENCES = {
    "words": (
        "Number of words that must change to move the output by half its size",
        "more than the largest number tried",
    ),
    "not enough": (
        "Number of changed words that is never enough, whichever words they are and whatever "
        "replaces them, with probability 1 − 1e-9 over the random weights",
        "",
    ),
    "exponent": ("Exponent of S in the number of changed words, up to half of the words", ""),
}


def findings(records: pd.DataFrame, tables: Tables) -> Iterator[Finding]:
    """How many words are enough, how many never are, and how S grows; each of all rows."""
    series = next(iter(tables.values()))
    texts = " and ".join(map(text_title, series["text"].unique()))
    for column, (sentence, missing) in _SENTENCES.items():
        spans: Any = series.groupby("map", sort=False)[column].agg(_span)
        spans = {map_title(name): span or missing for name, span in spans.items()}
        if clauses := "; ".join(f"{name} {span}" for name, span in spans.items() if span):
            yield Finding(f"{sentence}: {clauses} ({texts}).", rows=tuple(records["cell"]))


def _span(cells: Any) -> str:
    """The least and the largest of the numbers of a column, and in how many rows they are."""
    known = [getattr(cell, "value", cell) for cell in cells.dropna()]
    ends = dict.fromkeys(map(number, (min(known), max(known)))) if known else {}
    some = f" in {len(known)} of {len(cells)} settings" if 0 < len(known) < len(cells) else ""
    return " to ".join(ends) + some


def figures(records: pd.DataFrame) -> dict[str, Any]:
    """S against the number of words that move at once, a panel for each kind of text."""
    from wordsens.plotting import lines

    columns = tables(records)[_BY_COUNT]
    columns["text"] = columns["text"].map(text_title).str.capitalize()
    drawn = lines(
        columns,
        x="count",
        y="S",
        colour="map",
        panel=("text", "n"),
        labels={"count": "words that move at once", "S": "sensitivity S"},
        log="xy",
        guides={"half the output's size": [(None, NOTICED)]},
        band=("S", "at most"),
        title="Sensitivity to several words at once",
        caption=f"{BARS} S is a lower bound. Shaded: up to the upper bound for every choice of "
        "this many words, where there is one.",
    )
    return {"several-words": drawn}


STUDY = Study(
    name="several-words",
    Cell=SeveralWordsCell,
    measure=measure,
    preset=preset,
    tables=tables,
    findings=findings,
    figures=figures,
    note=f"Words: how many must change at once for S = {NOTICED:g}, interpolated between the "
    "numbers tried; fewer may be enough. Exponent: b in S ~ words^b, up to half of the words. Not "
    "enough: no choice of this many words reaches it, with probability 1 - 1e-9 over the weights. "
    "At most: an upper bound for every choice, with the same probability. S: a lower bound with a "
    f"witness. Means over draws, {INTERVALS}.",
)
