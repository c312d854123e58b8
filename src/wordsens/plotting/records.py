"""Figures of records: those of their study, and any column against any other."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsens.errors import InputError, argument, require_choice
from wordsens.intervals import power_law
from wordsens.plotting.figures import label_of, lines
from wordsens.plotting.style import MOST_SERIES, StyledFigure, StyleFile, in_style
from wordsens.sweeps.study import BARS, means, rank, varying_columns
from wordsens.sweeps.sweep import finished_of_one

if TYPE_CHECKING:
    from pandas import DataFrame

# By the name of the file.
Figures = dict[str, Any]

# The most axes of a sweep besides the length that have a figure each.
_MOST_AXES = 3

# A record's map is named drf4: its name already has the depth.
_OF_MAP = ("depth",)


def of_experiment(records: "DataFrame", *, style: StyleFile = None) -> Figures:
    """The figures of a study, by the names of the files that `wordsens paper` writes.

    Args:
        records: of `read_records`, or some of its rows; failed ones are left out.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.

    Raises:
        InputError: no record is finished, or they are of several studies.

    >>> of_experiment(ws.read_records("out"))["sensitivity"]  # doctest: +SKIP
    """
    study, done = finished_of_one(records)
    with in_style(style):
        return dict((study.figures or along_axes)(done))


def save_figures(records: "DataFrame", folder: Path, style: StyleFile) -> list[Path]:
    """Write the figures of a study's records as PDF, SVG and PNG, and give their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = {
        folder / f"{file}.{suffix}": figure
        for file, figure in of_experiment(records, style=style).items()
        for suffix in ("pdf", "svg", "png")
    }
    for path, figure in paths.items():
        figure.savefig(path)
    return list(paths)


def along_axes(records: "DataFrame", besides: Sequence[str] = ()) -> Figures:
    """A figure for each axis of a sweep that has several values, all of them numbers; for at most
    three."""
    axes = [
        name
        for name, values in varying_columns(records, besides=besides).items()
        if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)
    ]
    return {f"along-{axis.replace('_', '-')}": along(records, axis) for axis in axes[:_MOST_AXES]}


def along(
    records: "DataFrame",
    x: str,
    y: str = "value",
    *,
    by: Sequence[str] | None = None,
    logarithmic: bool = True,
    style: StyleFile = None,
) -> StyledFigure:
    """The mean of y against x, a curve for each series; bars are 95 % confidence intervals over the
    records.

    Args:
        records: of `read_records`, or some of its rows; failed ones are left out.
        x, y: columns.
        by: the columns that tell series apart; None for every key of the specs that would else be
            averaged over.
        logarithmic: both axes, where x and y are positive numbers, with the fitted power laws; the
            legend gives their exponents with 95 % confidence intervals.
        style: a .mplstyle file in place of ours, or a name that matplotlib knows.

    Raises:
        InputError: more series than a figure can tell apart, or what `series_along` refuses.
    """
    points, series = series_along(records, x, y, by)
    if len(series) > MOST_SERIES:
        raise InputError(
            f"{argument('by')} gives {len(series)} series, but a figure tells at most "
            f"{MOST_SERIES} apart; choose some with KEY=VALUE, and draw several figures"
        )
    positive = all(isinstance(place, int | float) and place > 0 for place in points[x])
    logarithmic = logarithmic and positive and min(mean.value for mean in points[y]) > 0
    colour = [name for name in series if name not in SERIES]
    labels = {x: x.replace("_", " "), y: column_title(records, y)}
    if logarithmic:
        for row in series.dropna(subset="exponent").to_dict("records"):
            name = label_of(row, colour)
            labels[name] = f"{name}: exponent {row['exponent']}"
    return lines(
        points,
        x=x,
        y=y,
        colour=colour,
        log="xy" if logarithmic else "",
        fit="fit" if logarithmic else "",
        labels=labels,
        caption=BARS.replace("draws", "records"),
        style=style,
    )


# The columns of a series besides its keys: the ends of x, the number of different texts, and the
# exponent of y against x, None where there is no fit.
SERIES = ("from", "to", "texts", "exponent")


def series_along(
    records: "DataFrame", x: str, y: str = "value", by: Sequence[str] | None = None
) -> "tuple[DataFrame, DataFrame]":
    """The finished records as series of y against x: one row per point (the keys of its series, x,
    the mean of y over its records, and `fit`, the power law there), and one row per series (the
    keys and SERIES).

    Records that share x and the keys of a series are averaged: they may differ in seed, draw and
    sample only.

    Args:
        records: of one study; those without x or y are left out.
        x, y: columns; y has numbers.
        by: the columns that tell series apart; None for every key of the specs that would else be
            averaged over.

    Raises:
        InputError: no such column, nothing to show, or records that differ in more would be
            averaged.
    """
    import pandas as pd

    done: Any = records[records["status"] == "done"]
    known = [str(name) for name in done if done[name].notna().any()]
    for side, name in (("x", x), ("y", y), *(("by", name) for name in by or ())):
        require_choice(side, name, known)
    if by is None:
        varying = varying_columns(done, besides=(x, *_OF_MAP))
        by = [name for name in varying if done.groupby(x)[name].nunique(dropna=False).max() > 1]
        by = by or ["map"] * ("map" in known)
    numbers = pd.to_numeric(done[y], errors="coerce")
    done = done.assign(**{y: numbers}).dropna(subset=[x, y])
    if done.empty:
        raise InputError(
            f"{argument('y')} (={y!r}) is no number of any finished record that has {x}; run the "
            "sweep first"
        )
    besides = (x, *by, *(_OF_MAP if "map" in by else ()))
    keys = list(by) or ["records"]
    owner = done.get("source", done["cell"]).fillna(done["cell"])
    done = done.assign(records="all records", owner=owner)
    done = done.sort_values([*keys, x], key=lambda cells: cells.map(rank), kind="stable")
    for place, part in done.groupby([*keys, x], dropna=False, sort=False):
        for name, values in varying_columns(part, besides=besides).items():
            raise InputError(
                f"{argument('by')} leaves out {name}, which has several values at {x} = "
                f"{place[-1]} ({', '.join(map(str, values[:4]))}), and they would be averaged; add "
                f"{name} to it, or choose some with {name}=..."
            )
    points, series = [], []
    for _, part in done.groupby(keys, dropna=False, sort=False):
        curve = means(part, [*keys, x], {y: y}).drop(columns="draws").assign(fit=None)
        places, values, texts = (part[name].tolist() for name in (x, y, "owner"))
        exponent, constant = power_law(places, values, texts) or (None, 0.0)
        if exponent is not None:
            curve["fit"] = constant * curve[x].astype(float) ** exponent.value
        points.append(curve)
        cells = {"from": places[0], "to": places[-1], "texts": len({*texts})}
        series.append({name: part[name].iloc[0] for name in keys} | cells | {"exponent": exponent})
    return pd.concat(points, ignore_index=True), pd.DataFrame(series)


def column_title(records: "DataFrame", name: str) -> str:
    """A column as a figure names it: "word sensitivity S" for the value of sensitivity."""
    return finished_of_one(records)[0].value if name == "value" else name.replace("_", " ")
