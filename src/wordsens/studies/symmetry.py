"""Symmetric attention limits what one word can change: S against n at d = n, for tied and untied
queries and keys."""

import math
from collections.abc import Iterator
from typing import Any, ClassVar

import pandas as pd
import torch

from wordsens.display.numbers import number
from wordsens.display.view import Finding
from wordsens.intervals import power_law
from wordsens.seeds import generator
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.sweeps.map_cell import MapCell
from wordsens.sweeps.study import (
    BARS,
    INTERVALS,
    Preset,
    Study,
    Tables,
    changes,
    means,
    over_draws,
    require_alike,
    tally,
)
from wordsens.sweeps.texts import Embedded, load_text


class SymmetryCell(MapCell, frozen=True):
    """One word of one text under one layer of a random transformer."""

    experiment: ClassVar[str] = "symmetry"


def measure(cell: SymmetryCell) -> dict[str, Any]:
    """Measure one cell: `value` is S of a random word, a lower bound with its witness, and `column`
    the sum over rows of their squared weights to that word once it has moved."""
    phi = cell.build()
    text = load_text(cell.text, cell.n, cell.d, draw=cell.draw, seed=cell.seed)
    stream = generator(cell.seed, "word", cell.n, cell.draw)
    word = int(torch.randint(cell.n, (1,), generator=stream))
    found = word_sensitivity(
        phi, text, [word], cell.radius, cell.seed_of("search"), search=cell.search_plan
    )
    moved = phi.accept(text.rows).clone()
    moved[word] += found.perturbations[0].to(moved)
    return {
        "moved": word,
        "value": found.value,
        "upper": found.upper,
        "column": float(phi.attention_of(moved)[0, :, word].double().square().sum()),
        "evaluations": found.evaluations,
        "converged": float(found.converged.double().mean()),
        "arrays": {
            "rows": text.rows,
            "words": found.words,
            "perturbations": found.perturbations,
        },
    }


# n, draws and the search effort. Quick finds .82 to 1 of normal's S, .99 on average.
PRESETS: dict[str, tuple[list[int], int, str]] = {
    "quick": ([10, 20, 40], 3, "quick"),
    "laptop": ([10, 20, 40, 80, 160], 5, "quick"),
    "full": ([10, 20, 40, 80, 160, 320], 10, "normal"),
}

# One layer of attention without values: the scores, and whether W_K = W_Q.
_LAYER: dict[str, Any] = {
    "map": "transformer",
    "depth": 1,
    "norm": None,
    "values": False,
    "attention": ["l2", "normalized-dot", "dot"],
    "tied": [True, False],
    "residual": [True, False],
    "text": {"kind": "gaussian"},
    "dtype": "float32",
}


def temperatures(n: int, d: int) -> dict[str, float]:
    """At 1 a tied row attends to itself alone as n = d grows, at √d / log n as much to itself as to
    all others, at √d to all words about alike."""
    return {"1": 1.0, "√d / log n": math.sqrt(d) / math.log(n), "√d": math.sqrt(d)}


def preset(scale: str, source: Embedded, seed: int, labels: str | None) -> Preset:
    """S of one word at d = n, with and without a residual, at three temperatures."""
    lengths, draws, search = PRESETS[scale]
    common = {**_LAYER, "search": search, "draw": list(range(draws))}
    sizes = [{"n": n, "d": n, "temperature": list(temperatures(n, n).values())} for n in lengths]
    return [{**common, **size} for size in sizes], []


_SETTING = ["residual", "temperature"]
_SERIES = ["attention", *_SETTING]
_COLUMNS = {"S": "value", "at most": "upper", "squared weights": "column"}
_EXPONENTS, _BY_LENGTH = "S of one word ~ n^exponent at d = n", "S of one word by n"


def _named(records: Any) -> Any:
    """The records with the names of their series, in the order of these; `scores` without "tied"
    or "untied"."""
    order = ["temperature", "residual", "tied"]
    records = records.sort_values(order, ascending=[True, False, False], kind="stable")
    names = [
        {value: name for name, value in temperatures(n, d).items()}.get(value, f"{value:g}")
        for n, d, value in records[["n", "d", "temperature"]].itertuples(index=False)
    ]
    tied = records["tied"].map({True: "tied", False: "untied"})
    records = records.assign(
        temperature=names,
        residual=records["residual"].map({True: "yes", False: "no"}),
        attention=tied + " " + records["attention"],
        scores=records["attention"],
    )
    require_alike(records, [*_SERIES, "n"])
    return records


def tables(records: pd.DataFrame) -> Tables:
    """The exponent of S in n of every kind of attention; S, its bound and the squared weights to
    the word by n."""
    named, rows = _named(records), []
    for keys, part in named.groupby(_SERIES, sort=False):
        fit, longest = power_law(part["n"].tolist(), part["value"].tolist()), part["n"].max()
        last = part[part["n"] == longest]
        row = dict(zip(_SERIES, keys, strict=True)) | {"exponent": fit[0] if fit else None}
        row |= {f"{name}, n = {longest}": over_draws(last[at]) for name, at in _COLUMNS.items()}
        rows.append(row)
    return {
        _EXPONENTS: pd.DataFrame(rows, dtype=object),
        _BY_LENGTH: means(named, [*_SERIES, "n"], _COLUMNS),
    }


def findings(records: pd.DataFrame, tables: Tables) -> Iterator[Finding]:
    """The exponents at temperature 1 with a residual; tied against untied at the longest texts; the
    squared weights to the moved word."""
    named, rows = _named(records), tables[_EXPONENTS].dropna(subset=["exponent"])
    usual = rows[(rows["residual"] == "yes") & (rows["temperature"] == "1")]
    if len(usual):
        listed = "; ".join(usual.apply("{0.attention} {0.exponent}".format, axis=1))
        yield Finding(
            f"Exponent of S in n at d = n, temperature 1, with a residual: {listed}.",
            rows=tuple(named.merge(usual[_SERIES])["cell"]),
        )
    last = named[named["n"] == named["n"].max()]
    tied = last["tied"].astype(bool)
    factors = changes(last[~tied], last[tied], ["scores", *_SETTING], relative=True)
    if len(factors):
        by_temperature = factors.groupby("temperature", sort=False)["change"]
        counts = [
            f"at temperature {name} {tally(part, 'larger', 'smaller', none=1.0)}"
            for name, part in by_temperature
        ]
        yield Finding(
            f"S of untied attention compared with tied attention at n = {last['n'].max()}: "
            f"{'; '.join(counts)}.",
            "Both are lower bounds of one search: factors near 1 may be the search's.",
            tuple(last["cell"]),
        )
    symmetric = named["upper"].notna()
    if symmetric.any() and not symmetric.all():
        most = named.groupby(symmetric)["column"].max()
        yield Finding(
            "Squared weights of all rows to the moved word, summed: at most "
            f"{number(most[True])} under tied l2 and normalized-dot attention (proved: at most 1), "
            f"up to {number(most[False])} under the others.",
            rows=tuple(named["cell"]),
        )


# Of the temperatures those that are drawn.
_DRAWN = ("1", "√d")


def figures(records: pd.DataFrame) -> dict[str, Any]:
    """S against n, tied and untied, a panel for each kind of scores and two temperatures."""
    from wordsens.plotting import lines

    named = _named(records)
    named = named[named["temperature"].isin(_DRAWN)]
    named["panel"] = named["scores"] + ", T = " + named["temperature"]
    ending = named["residual"].map({"yes": "", "no": ", no residual"})
    named["series"] = named["attention"].str.split().str[0] + ending
    lengths = sorted(set(named["n"]))
    drawn = lines(
        means(named, ["panel", "series", "n"], _COLUMNS),
        x="n",
        y="S",
        colour="series",
        panel="panel",
        labels={"n": "words n (d = n)", "S": STUDY.value},
        log="xy",
        guides={"1/√n": [(n, n**-0.5) for n in lengths]},
        title="Word sensitivity of symmetric and asymmetric attention",
        caption=f"{BARS} S of one word, a lower bound; T is the temperature.",
    )
    return {"symmetry": drawn}


STUDY = Study(
    name="symmetry",
    Cell=SymmetryCell,
    measure=measure,
    preset=preset,
    tables=tables,
    findings=findings,
    figures=figures,
    note=f"S of one word, a lower bound, and exponents b of S ~ n^b: means over draws, {INTERVALS}."
    " At most: the certificate of tied l2 and normalized-dot attention. Squared weights: those of "
    "all rows to the moved word, summed.",
    value="sensitivity S of one word",
)
