"""S against n: a cell is one text under one map (paper, figures 2 and 3)."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from wordsens.certificates.base import CERTIFIED
from wordsens.display.numbers import number, plural
from wordsens.display.view import Finding
from wordsens.errors import InputError, argument
from wordsens.intervals import behaviour, power_law
from wordsens.maps.registry import MAPS, base_name, map_entry, map_options, map_title
from wordsens.models.embedding import load_encoder
from wordsens.sweeps.measurement import (
    GIVEN,
    SensitivityCell,
    alike,
    measure_sensitivities,
    measure_sensitivity,
)
from wordsens.sweeps.study import (
    BARS,
    Preset,
    Study,
    Tables,
    changes,
    means,
    text_title,
    varying_columns,
)
from wordsens.sweeps.texts import Embedded, texts_at_least
from wordsens.theory.prediction import TYPICAL

_FAST: dict[str, Any] = {"starts": 2, "dtype": "float32"}

# Matrices on demand: at n d = 48,000 a dense one would take 9 GB.
_FEW_WORDS: dict[str, Any] = {"words": {"sample": 4}, "gaussian": "lazy"}

_RF: dict[str, Any] = {"map": ["rf"], **_FEW_WORDS}
_DRF: dict[str, Any] = {"map": ["drf"], "depth": [2, 4, 8], **_FEW_WORDS}
_ATTENTION: dict[str, Any] = {"map": ["raf", "relu-raf"], "n": [10, 20, 50, 100, 150, 200, 250]}

# The grids on Gaussian texts, `draw` the number of draws; real texts have the n and d that they
# allow. Quick takes larger n than the paper for RF and DRF. With k = D, S sqrt(n) is about 1 +
# sqrt(2/n) for RF, so the slope lies below -1/2 by about sqrt(2/n)/2, and longer texts come closer
# to the limit; more range steadies the fit.
PRESETS: dict[str, list[dict[str, Any]]] = {
    "quick": [
        {**_RF, **_FAST, "n": [100, 150, 200, 250], "d": [192], "draw": 5},
        {
            **_DRF,
            **_FAST,
            "n": [50, 80, 120, 160],
            "d": [64],
            "draw": 4,
            "words": {"sample": 2},
            "starts": 1,
            "steps": 20,
        },
        {
            **_ATTENTION,
            "n": [10, 20, 50, 100, 200],
            "d": [192],
            "draw": 3,
            "dtype": "float32",
            "search": "quick",
        },
    ],
    "laptop": [
        {**_RF, "n": [90, 110, 130, 150], "d": [192, 384], "draw": 5, "starts": 2},
        {**_DRF, "n": [50, 60, 70, 80], "d": [192], "draw": 5, "starts": 2},
        {**_ATTENTION, "d": [192, 384], "draw": 5},
    ],
    "full": [
        {
            **_RF,
            "n": [90, 100, 110, 120, 130, 140, 150],
            "d": [192, 384, 768],
            "draw": 10,
            "dtype": "float32",
        },
        {**_DRF, **_FAST, "n": [50, 60, 70, 80], "d": [768], "draw": 5},
        {**_ATTENTION, "d": [192, 384, 768], "draw": 5},
    ],
}

# The two departures of the published code that change S most: keys of the cell, and of its text.
DEPARTURES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "word 0 only": ({"words": {"indices": [0]}}, {}),
    "padding as words": ({}, {"padded_below": 240}),
}

# Kinds of text that no one wrote: real ones come first.
SYNTHETIC = ("orthogonal", "correlated", "gaussian")

# A panel ends here, in units of all else that it shows: higher upper bounds would press the curves
# flat.
_TALLEST_BAND = 2.0

SERIES, POINTS = "Word sensitivity S ~ n^exponent", "S at every length"
PUBLISHED = "S as published"

_OF_A_SERIES = (
    "n",
    "exponent",
    "S",
    "multiplications",
    "upper/S",
    "average",
    "words searched",
    "at most",
    "bound",
    "theory",
    "predicted",
    "prediction",
    "lengths not compared",
)
_OF_A_LENGTH = (
    "S",
    "at most",
    "predicted",
    "average",
    "words searched",
    "multiplications",
    "draws",
    "bound",
)

_FAMILIES = {
    "rf": "Random features",
    "drf": "Deep random features",
    "raf": "Random attention features",
}


def preset(
    scale: str, source: Embedded, seed: int, labels: str | None, *, as_published: bool = False
) -> Preset:
    """S against n for RF, DRF, RAF and ReLU-RAF, on real and on Gaussian texts.

    `as_published`: RF and attention also with each of DEPARTURES, on real texts of the smallest d.

    Raises:
        InputError: no such encoder or data, or texts too short for any size.
    """
    width = load_encoder(source.encoder).dimension
    grids, notices = [], []
    for part in PRESETS[scale]:
        maps = "/".join(part["map"])
        grid = {**part, "draw": list(range(part["draw"])), "text": {"kind": "gaussian"}}
        sizes = [n for n in part["n"] if texts_at_least(source, n, seed=seed, most=1)]
        if lost := [str(n) for n in part["n"] if n not in sizes]:
            notices.append(
                f"no text has {', '.join(lost)} words: {maps} are measured without them on real "
                "texts"
            )
        dimensions = [d for d in part["d"] if d <= width] or [width]
        if dimensions != part["d"]:
            notices.append(
                f"{source.encoder} has {width} coordinates: real texts under {maps} have d = "
                f"{', '.join(map(str, dimensions))}"
            )
        if len(sizes) > 1:
            real = {**grid, "n": sizes, "d": dimensions, "text": source.model_dump(mode="json")}
            grids.append(real)
            if as_published and "depth" not in part:
                grids += _departed({**real, "d": dimensions[:1]})
        grids.append(grid)
    if all(grid["text"]["kind"] == "gaussian" for grid in grids):
        raise InputError(
            f"{argument('texts')} (={getattr(source, 'path', None)!r}) has no text of "
            f"{PRESETS[scale][-1]['n'][1]} words or more, so S cannot be measured against n; give "
            "longer texts"
        )
    return grids, notices


def _departed(grid: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {**grid, **keys, "text": {**grid["text"], **of_text}}
        for keys, of_text in DEPARTURES.values()
    ]


def multiplications(spec: Mapping[str, Any]) -> int | None:
    """How many multiplications the map of a spec takes for one text, in its products of matrices;
    None where its shape does not say.

    A fully connected layer of k features: k n d, and k² for each further one. Each head of
    attention: n d² for X W, n² d for the scores and n² d for the weighted sums.

    >>> multiplications({"map": "rf", "n": 10, "d": 8}), multiplications({"map": "raf", "n": 10, "d": 8})
    (6400, 2240)
    """  # noqa: E501
    n, d, family = spec["n"], spec["d"], map_entry(spec["map"]).family
    if family == "dense":
        options = map_options(spec["map"], **spec)
        width = options["width"] or n * d
        return width * n * d + (options.get("depth", 1) - 1) * width**2
    if family == "attention":
        return map_options(spec["map"], **spec)["heads"] * (n * d**2 + 2 * n**2 * d)
    return None


def departures(records: Any) -> Any:
    """For each record its departure from the definition; None where it has none, and where its map
    was not measured as defined."""
    found = records["spec"].map(_departure)
    defined = records["map"].isin(set(records["map"][found.isna()]))
    return found.where(defined, None)


def _departure(text: str) -> str | None:
    spec = json.loads(text)
    for name, (keys, of_text) in DEPARTURES.items():
        if keys.items() <= spec.items() and of_text.items() <= spec["text"].items():
            return name
    return None


def series_keys(records: Any) -> list[str]:
    """The columns that tell series of S against n apart: besides map, kind of text and d every key
    of the specs that varies among the records of one map, seeds and draws aside."""
    besides = ("n", "d", "text", "depth")
    varied = {
        name: None
        for _, group in records.groupby("map", sort=False)
        for name in varying_columns(group, besides=besides)
    }
    return ["map", "text", *varied, "d"]


def curves(records: Any, keys: Sequence[str]) -> Any:
    """One row per series and length n, the means over draws; maps in the order in which they first
    appear, those of one name by their depth.

    `at most`, `predicted` and `average` are missing unless every draw has them. `exponent` and the
    columns after it describe the whole series.
    """
    names = list(records["map"].unique())
    bases = list(map(base_name, names))
    order = {
        "map": sorted(names, key=lambda name: (bases.index(base_name(name)), len(name), name)),
        "text": sorted(records["text"].unique(), key=_synthetic),
    }

    def places(column: Any) -> Any:
        return column.map(order[column.name].index) if column.name in order else column

    ordered = records.sort_values([*keys, "n"], key=places, kind="stable")
    groups = ordered.groupby(list(keys), dropna=False, sort=False)
    return pd.concat([_curve(group, keys) for _, group in groups], ignore_index=True)


def _synthetic(kind: str) -> int:
    return SYNTHETIC.index(kind) if kind in SYNTHETIC else -1


def _curve(records: Any, keys: Sequence[str]) -> Any:
    """The rows of one series."""
    averaged = {"S": "value", "at most": "upper", "predicted": "predicted", "average": "average"}
    frame = means(records, [*keys, "n"], averaged)
    for name in ("at most", "predicted", "average"):
        cells = zip(frame[name], frame["draws"], strict=True)
        frame[name] = [
            mean.value if mean and mean.n == draws else math.nan for mean, draws in cells
        ]
    by_length = records.groupby("n")
    compared = by_length["predicted_in_range"].agg(lambda known: known.eq(True).all())
    frame["words searched"] = by_length["words"].min().to_numpy()
    specs = map(json.loads, by_length["spec"].first())
    frame["multiplications"] = list(map(multiplications, specs))
    rigors = records["rigor"].dropna()
    frame["bound"] = max(rigors, key=lambda rigor: rigor != CERTIFIED, default=None)
    owners = records["source"].fillna(records["cell"])
    fit = power_law(records["n"].tolist(), records["value"].tolist(), owners.tolist())
    exponent, constant = fit or (None, math.nan)
    known = frame[frame["predicted"] > 0]
    frame["exponent"] = exponent
    frame["fit"] = constant * frame["n"] ** (exponent.value if exponent else math.nan)
    frame["upper/S"] = (frame["at most"] / _values(frame["S"])).median()
    frame["theory"] = _slope(known["n"].tolist(), known["predicted"].tolist())
    frame["lengths"] = f"{frame['n'].iloc[0]}-{frame['n'].iloc[-1]}"
    of = set(records["predicted_of"].dropna())
    frame["prediction"] = (
        TYPICAL if of == {TYPICAL} else "the largest searched word" if of else None
    )
    frame["lengths not compared"] = int((frame["predicted"].notna() & ~compared.to_numpy()).sum())
    return frame


def _values(estimates: Any) -> Any:
    return estimates.map(lambda mean: mean.value)


def _slope(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The exponent of the predictions between the first and the last n that have one: theory at
    these n, not in the limit."""
    if len(sizes) < 2:
        return math.nan
    return math.log(values[-1] / values[0]) / math.log(sizes[-1] / sizes[0])


def as_defined(records: Any) -> tuple[Any, list[str]]:
    """The records without departures and given texts, which are of one length each; and the columns
    that tell their series apart."""
    kept = records[(records["text"] != GIVEN) & departures(records).isna()]
    return kept, series_keys(kept)


def tables(records: Any) -> Tables:
    """One row per series, S at its last n; one per series and length; and one per series, length
    and departure, S as published next to S as defined."""
    defined, keys = as_defined(records)
    if defined.empty:
        return {}
    points = curves(defined, keys)
    departed = records.assign(departure=departures(records)).dropna(subset="departure")
    departed = departed[departed["text"] != GIVEN]
    series = points.groupby(keys, dropna=False, sort=False).tail(1)
    series = series.drop(columns="n").rename(columns={"lengths": "n"})
    series["S"] = _values(series["S"])  # with its interval in the table of every length
    return {
        SERIES: series[[*keys, *_OF_A_SERIES]],
        POINTS: points[[*keys, "n", *_OF_A_LENGTH]],
        PUBLISHED: _published(defined, departed, keys),
    }


def _published(defined: Any, departed: Any, keys: Sequence[str]) -> Any:
    if departed.empty:
        return departed
    points = curves(departed, [*keys, "departure"])
    by = [*keys, "departure", "n"]
    names = departed["departure"].unique()
    base = pd.concat([defined.assign(departure=name) for name in names])
    ratios = changes(departed, base, by, relative=True)
    reference = means(base, by, {"S as defined": "value"})[[*by, "S as defined"]]
    words: Any = base.groupby(by, dropna=False, sort=False)["words"].min()
    reference["words as defined"] = words.to_numpy()
    frame = points.merge(reference, on=by, how="left").merge(ratios, on=by, how="left")
    headings = {"S": "S as published", "words searched": "words", "change": "ratio"}
    columns = ["S as defined", "S as published", "ratio", "words as defined", "words", "exponent"]
    return frame.rename(columns=headings)[[*by, *columns]]


def findings(records: Any, tables: Mapping[str, Any]) -> Iterator[Finding]:
    """Attention against a fully connected layer, S against length, and what both cost."""
    if SERIES not in tables:
        return
    defined, keys = as_defined(records)
    pairs = _pairs(tables[POINTS])
    compared = defined[defined["map"].isin(("raf", "rf"))].merge(pairs[_SIZE])
    fitted = tables[SERIES].dropna(subset="exponent")
    if len(pairs):
        yield Finding(
            _contrast(pairs),
            f"Lower bounds by search, means over draws, d = {_span(pairs['d'])}.",
            tuple(compared["cell"]),
        )
    if len(fitted):
        yield Finding(
            _trends(fitted),
            "Least squares on logarithms with 95 % confidence intervals.",
            tuple(defined.merge(fitted[keys])["cell"]),
        )
    if len(pairs):
        yield Finding(
            _costs(pairs), "Multiplications in products of matrices.", tuple(compared["cell"])
        )


_SIZE = ["text", "d", "n"]


def _pairs(points: Any) -> Any:
    """Softmax attention and one fully connected layer, at the longest n that both have of each kind
    of text and d."""
    attention, dense = (
        points[points["map"] == name].drop_duplicates(_SIZE, keep=False) for name in ("raf", "rf")
    )
    pairs = attention.merge(dense, on=_SIZE, suffixes=("", " of rf"))
    return pairs.loc[pairs.groupby(["text", "d"], sort=False)["n"].idxmax()]


def _contrast(pairs: Any) -> str:
    phrases = []
    for kind, rows in pairs.groupby("text", sort=False):
        far, near = _values(rows["S"]), _values(rows["S of rf"])
        phrase = (
            f"{_span(far)} against {_span(near)} times the size of the output in "
            f"{text_title(str(kind))} of {_span(rows['n'])} words"
        )
        least = far / rows["at most of rf"]
        all_searched = rows["words searched of rf"] == rows["n"]
        if (all_searched & (least > 1)).all():
            bounds = ", ".join(sorted(set(rows["bound of rf"])))
            times = number(least.min())
            phrase += f" (at least {times} times, whatever the searches missed, {bounds})"
        phrases.append(phrase)
    times = _span(_values(pairs["S"]) / _values(pairs["S of rf"]))
    return (
        f"One word moves attention {times} times as far as a fully connected layer: "
        f"{'; '.join(phrases)}."
    )


def _trends(series: Any) -> str:
    """What S does with length, and for which maps: in how many of their settings, with which
    exponents."""
    trends: dict[str, list[str]] = {}
    behaviours = series["exponent"].map(behaviour)
    for (name, trend), rows in series.groupby(["map", behaviours], sort=False):
        settings = (series["map"] == name).sum()
        exponents, theory = _values(rows["exponent"]), rows["theory"].dropna()
        details = [f"{len(rows)} of {settings} settings", f"exponent {_span(exponents.round(2))}"]
        if len(theory):
            details.append(f"theory {_span(theory.round(2))}")
        if lengths := int(rows["lengths not compared"].sum()):
            details.append(f"not compared at such sizes at {plural(lengths, 'length')}")
        phrase = f"{map_title(str(name))} ({', '.join(details)})"
        trends.setdefault(str(trend), []).append(phrase)
    texts = " and ".join(map(text_title, series["text"].unique()))
    phrases = "; ".join(f"{trend} for {', '.join(maps)}" for trend, maps in trends.items())
    return f"As {texts} become longer, S {phrases}."


def _costs(pairs: Any) -> str:
    attention, dense = pairs["multiplications"], pairs["multiplications of rf"]
    return (
        f"Attention takes {_span(attention / dense)} times as many multiplications as a fully "
        f"connected layer with as many features: {_span(attention)} against {_span(dense)} per "
        f"text of {_span(pairs['n'])} words, d = {_span(pairs['d'])}."
    )


def _span(values: Iterable[float]) -> str:
    """The least and the largest.

    >>> _span([3.0, 2.0, 2.5]), _span([2.0, 2.0])
    ('2 to 3', '2')
    """
    numbers = sorted(values)
    return " to ".join(dict.fromkeys(map(number, (numbers[0], numbers[-1]))))


def figures(records: Any) -> Mapping[str, Any]:
    """All maps on one axis, each with its largest d, where several lengths were measured; then each
    family by itself."""
    defined, keys = as_defined(records)
    if defined.empty:
        return {}
    points = curves(defined, keys)
    families = points["map"].map(_family)
    drawn = {}
    if families.nunique() > 1 and points["n"].nunique() > 1:
        largest = points.groupby(["map", "text"])["d"].transform("max")
        drawn["sensitivity"] = _figure(points[points["d"] == largest], keys, "Word sensitivity")
    for name, family in points.groupby(families, sort=False):
        file = "".join(letter if letter.isalnum() else "-" for letter in str(name))
        drawn[file] = _figure(family, keys, _FAMILIES.get(str(name)) or map_title(str(name)))
    return drawn


def _family(name: str) -> str:
    base = base_name(name)
    return "raf" if base in MAPS and MAPS[base].family == "attention" else base


def _figure(points: Any, keys: Sequence[str], title: str) -> Any:
    """S against n on logarithmic axes, a panel per kind of text."""
    from wordsens.plotting.figures import label_of, lines

    ends = [mean.value if mean.high is None else mean.high for mean in points["S"]]
    tallest = _TALLEST_BAND * max([*ends, *points["predicted"].dropna()])
    cut_off = points["at most"].max() > tallest
    # What is the same for a map on each kind of text needs no series of its own.
    varies = points.groupby(["map", "text"])[list(keys[2:])].nunique(dropna=False) > 1
    colour = ["map", *varies.columns[varies.any()]]
    points = points.astype(object).where(points.notna(), None)
    sizes = points.groupby("text", sort=False)["d"].unique()
    one_size = "d" not in colour and sizes.map(len).max() == 1
    titles = [
        text_title(str(kind)) + (f", d = {each[0]}" if one_size else "")
        for kind, each in sizes.items()
    ]
    titles = [title[0].upper() + title[1:] for title in titles]
    labels = dict(zip(sizes.index, titles, strict=True))
    points["series"] = [label_of(row, colour) for row in points.to_dict("records")]
    for name, rows in points.groupby("series", sort=False):
        of_series = ", ".join(map(str, rows["d"].unique()))
        label = f"{name}, d = {of_series}" if "d" not in colour and not one_size else str(name)
        fitted = rows.dropna(subset="exponent")
        exponents = dict(zip(fitted["text"], fitted["exponent"], strict=True))
        if exponents:
            listed = [str(exponents.get(kind, "none")) for kind in sizes.index]
            label += f": exponent {'; '.join(listed)}"
        labels[name] = label
    caption = (
        f"{BARS} S is a lower bound. Solid: fitted power laws, with their exponents for "
        f"{' and '.join(titles)}. Shaded: up to the upper bound, within the panel. Dashed: theory, "
        "not a bound"
    )
    if names := points["map"][points["lengths not compared"] > 0].unique().tolist():
        caption += f" (not compared at such sizes: {', '.join(map(map_title, names))})"
    return lines(
        points,
        x="n",
        y="S",
        colour=colour,
        panel="text",
        log="xy" if all(mean.value > 0 for mean in points["S"]) else "x",
        band=("S", "at most"),
        limits=(None, tallest if cut_off else None),
        fit="fit",
        dashes="predicted",
        joined=False,
        labels={**labels, "n": "words n", "S": "word sensitivity S"},
        title=title,
        caption=f"{caption}.",
    )


STUDY = Study(
    name="sensitivity",
    Cell=SensitivityCell,
    measure=measure_sensitivity,
    together=alike,
    measure_together=measure_sensitivities,
    preset=preset,
    tables=tables,
    findings=findings,
    figures=figures,
    note="S: a lower bound, the largest value found, at the last n; upper/S: median over n. "
    "Average: random perturbations instead of the worst. Predicted: theory, not a bound. Words: "
    "the smallest number searched in a text (RF and DRF: a random sample). Ratio: S as published "
    "divided by S as defined, over paired draws.",
    value="word sensitivity S",
)
