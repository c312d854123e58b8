"""S against the words' mean cosine: equally correlated words, repeated words, real texts."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from wordsens.display.numbers import Estimate, plural
from wordsens.display.view import Finding
from wordsens.intervals import difference, ends
from wordsens.maps.registry import map_title
from wordsens.models.embedding import load_encoder
from wordsens.sweeps.measurement import (
    SensitivityCell,
    alike,
    measure_sensitivities,
    measure_sensitivity,
)
from wordsens.sweeps.study import (
    INTERVALS,
    Preset,
    Study,
    Tables,
    changes,
    means,
    side,
    text_title,
)
from wordsens.sweeps.texts import Embedded, texts_at_least

if TYPE_CHECKING:
    from pandas import DataFrame

CORRELATED = "correlated"

_SETTING = ["map", "n", "d"]

# A ratio whose interval lies this near to 1 is said to hardly change.
NEAR = 0.05


class CorrelationCell(SensitivityCell, frozen=True):
    """A sensitivity cell of this study."""

    experiment: ClassVar[str] = "correlations"


COSINES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95)

# How many times each word of a repeated text stands in it.
REPETITIONS = (2, 4, 10)

_LAZY: dict[str, Any] = {"gaussian": "lazy", "starts": 2}
_RF = {"map": ["rf"], **_LAZY, "words": {"sample": 4}}
_DRF = {"map": ["drf"], **_LAZY, "words": {"sample": 2}, "depth": 4, "steps": 20}
_ATTENTION: dict[str, Any] = {"map": ["raf", "relu-raf"]}
_QUICK = {**_ATTENTION, "search": "quick"}

# Draws, and the grids but for their texts; d is the encoder's own where that is smaller.
PRESETS: dict[str, tuple[int, list[dict[str, Any]]]] = {
    "quick": (5, [{**_RF, "n": 20, "d": 32}, {**_QUICK, "n": 20, "d": 32, "dtype": "float32"}]),
    "laptop": (
        10,
        [{**_RF, "n": 50, "d": 192}, {**_DRF, "n": 50, "d": 96}, {**_QUICK, "n": 50, "d": 192}],
    ),
    "full": (
        10,
        [
            {**_RF, "n": 100, "d": 384},
            {**_DRF, "n": 50, "d": 192},
            {**_ATTENTION, "n": 100, "d": 384},
        ],
    ),
}


def preset(scale: str, source: Embedded, seed: int, labels: str | None) -> Preset:
    """S of RF, DRF, RAF and ReLU-RAF on orthogonal to nearly equal words, repeated words, and real
    texts, taken at their layer and at the encoder's last.
    """
    draws, parts = PRESETS[scale]
    encoder = load_encoder(source.encoder)
    cosines, repetitions = (
        ((0.0, 0.5, 0.95), (4,)) if scale == "quick" else (COSINES, REPETITIONS)
    )
    grids, notices = [], []
    for part in parts:
        n = part["n"]
        texts: list[dict[str, Any]] = [{"kind": CORRELATED, "mean_cosine": one} for one in cosines]
        texts += [{"kind": "repeated", "distinct": n // times} for times in repetitions]
        if texts_at_least(source, n, seed=seed, most=1):
            layers = dict.fromkeys((source.layer, encoder.layers))
            real = source.model_dump(mode="json")
            texts += [{**real, "layer": layer} for layer in layers]
        else:
            maps = "/".join(part["map"])
            notices.append(f"no text has {n} words: {maps} are measured without real texts")
        common = {**part, "d": min(part["d"], encoder.dimension), "draw": list(range(draws))}
        grids += [{**common, "text": text} for text in texts]
    return grids, notices


def _texts(record: Mapping[str, Any]) -> str:
    """The texts of a record in words."""
    if record["text"] == CORRELATED:
        return f"mean cosine {record['mean_cosine']:g}"
    if record["text"] == "repeated":
        return f"{record['distinct']} different words of {record['n']}"
    return text_title(record["text"]) + (f", layer {record['layer']}" if record["layer"] else "")


def tables(records: "DataFrame") -> Tables:
    """One row per map and kind of text, by the words' mean cosine."""
    import pandas as pd

    named = records.assign(texts=list(map(_texts, records.to_dict("records"))))
    columns = {"mean cosine": "cosine", "S": "value"}
    frame = means(named, ["map", "text", "texts", "n", "d"], columns)
    frame["mean cosine"] = [round(mean.value, 9) + 0.0 for mean in frame["mean cosine"]]  # no -0.0
    settings = [_setting(rows) for _, rows in frame.groupby(_SETTING, sort=False)]
    return {TABLE: pd.concat(settings).drop(columns="text")}


def _setting(rows: "DataFrame") -> "DataFrame":
    """The rows of one map and size in order; S minus that of equally correlated words of the same
    mean cosine, interpolated, where it lies between measured ones with intervals."""
    rows = rows.sort_values(["text", "mean cosine"])
    curve = rows[rows["text"] == CORRELATED]
    places = curve["mean cosine"].tolist()
    bounds = [(mean.value, *ends(mean)) for mean in curve["S"]]
    beyond: list[Estimate | None] = []
    for kind, cosine, mean in zip(rows["text"], rows["mean cosine"], rows["S"], strict=True):
        inside = kind != CORRELATED and np.isfinite(bounds).all() and places[0] <= cosine <= places[-1]
        numbers = [float(np.interp(cosine, places, ends)) for ends in zip(*bounds, strict=True)] if inside else []
        beyond.append(difference(mean, Estimate(*numbers)) if inside else None)
    return rows.assign(**{BEYOND: beyond})


def findings(records: "DataFrame", tables: Tables) -> Iterator[Finding]:
    """How S goes with the mean cosine, and where other texts lie."""
    correlated = records[records["text"] == CORRELATED]
    cosines = correlated.groupby(_SETTING)["mean_cosine"]
    least, most = cosines.transform("min"), cosines.transform("max")
    several = correlated[least < most]
    first, last = (several[several["mean_cosine"] == end] for end in (least, most))
    along = changes(last, first, _SETTING, relative=True)
    if len(along):
        phrases = map(_along, along.to_dict("records"))
        reach = f"{several['mean_cosine'].min():g} to {several['mean_cosine'].max():g}"
        sentence = f"From mean cosine {reach} of equally correlated words, S of {'; '.join(phrases)}."
        yield Finding(sentence, "Factors of paired draws.", tuple(several["cell"]))
    beside = tables[TABLE].dropna(subset=BEYOND)
    if len(beside):
        apart = beside[beside[BEYOND].map(side) != 0]
        columns = (apart["map"].map(map_title), apart["texts"], apart[BEYOND])
        named = [f"{name}, {texts}: {change}" for name, texts, change in zip(*columns, strict=True)]
        sentence = tally(beside[BEYOND], "S is larger", "smaller")
        listed = "; ".join([sentence, *named])
        yield Finding(f"Beside equally correlated words of the same mean cosine: {listed}.", "Interpolated.", tuple(records["cell"]))


def _along(row: Mapping[str, Any]) -> str:
    low, high = ends(row["change"])
    does = ("does not surely change", "grows", "falls")[side(row["change"], 1.0)]
    if low > 1 - NEAR and high < 1 + NEAR:
        does = "hardly changes"
    return f"{map_title(row['map'])} {does} ({row['n']} words, factor {row['change']})"


def figures(records: "DataFrame") -> Mapping[str, Any]:
    """S against the words' measured mean cosine, a panel per map."""
    from wordsens.plotting.figures import lines
    from wordsens.plotting.style import BARS

    joined = records["text"].isin((CORRELATED, "repeated"))
    texts = records["text"].map(text_title)
    named = records.assign(texts=texts.where(joined, list(map(_texts, records.to_dict("records")))), layer=)
    figure = lines(
        rows,
        x="cosine",
        y="S",
        colour="texts",
        panel=["map", "n"],
        limits=(0.0, None),
        share_y=False,
        labels={"mean cosine": "mean cosine of two words", "S": "word sensitivity S", text_title(CORRELATED): "equally correlated words"},
        title="Word sensitivity against the words' mean cosine",
        caption=f"{BARS} Every panel has its own scale.",
    )
    return {"correlations": figure}


STUDY = Study(
    name="correlations",
    Cell=CorrelationCell,
    # The bounds would take as long as the searches, and correlated words leave them wide.
    measure=partial(measure_sensitivity, certificate=False),
    together=alike,
    measure_together=partial(measure_sensitivities, certificate=False),
    preset=preset,
    tables=tables,
    findings=findings,
    figures=figures,
    note=f"S: a lower bound, means over draws, {INTERVALS}; if equally correlated: interpolated "
    "between those texts. Mean cosine: of two different rows, measured.",
    value="word sensitivity S",
)
