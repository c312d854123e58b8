"""S against the words' mean cosine: equally correlated words, repeated words, real texts."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from wordsens.display.numbers import Estimate
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
    BARS,
    INTERVALS,
    Preset,
    Study,
    Tables,
    changes,
    means,
    require_alike,
    side,
    tally,
    text_title,
)
from wordsens.sweeps.texts import Embedded, texts_at_least

CORRELATED = "correlated"

TABLE, BEYOND = "Correlated words", "S beyond equally correlated words"

_SETTING = ["map", "n", "d"]

# A ratio whose interval lies this near to 1 is said to hardly change.
NEAR = 0.05


class CorrelationCell(SensitivityCell, frozen=True):
    """A sensitivity cell of this study."""

    experiment: ClassVar[str] = "correlations"


_RF: dict[str, Any] = {"map": ["rf"], "gaussian": "lazy", "starts": 2, "words": {"sample": 4}}
_DRF = {**_RF, "map": ["drf"], "words": {"sample": 2}, "depth": 4, "steps": 20}
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

# Mean cosines, and how many times a repeated text has each of its words.
_QUICK_TEXTS = (0.0, 0.5, 0.95), (4,)
_TEXTS = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95), (2, 4, 10)


def preset(scale: str, source: Embedded, seed: int, labels: str | None) -> Preset:
    """S of RF, DRF, RAF and ReLU-RAF on orthogonal to nearly equal words, repeated words, and real
    texts, taken at their layer and at the encoder's last.
    """
    draws, parts = PRESETS[scale]
    encoder = load_encoder(source.encoder)
    cosines, repetitions = _QUICK_TEXTS if scale == "quick" else _TEXTS
    layers = dict.fromkeys((source.layer, encoder.layers))
    real = [{**source.model_dump(mode="json"), "layer": layer} for layer in layers]
    grids, notices = [], []
    for part in parts:
        n = part["n"]
        texts: list[dict[str, Any]] = [{"kind": CORRELATED, "mean_cosine": one} for one in cosines]
        texts += [{"kind": "repeated", "distinct": n // times} for times in repetitions]
        if texts_at_least(source, n, seed=seed, most=1):
            texts += real
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


def _rows(records: Any) -> Any:
    """One row per map, size and texts: S, and how much larger it is than that of equally correlated
    words of the same mean cosine."""
    named = records.assign(texts=list(map(_texts, records.to_dict("records"))))
    columns, keys = {"mean cosine": "cosine", "S": "value"}, [*_SETTING, "text", "texts"]
    require_alike(named, keys)
    frame = means(named, keys, columns)
    frame["mean cosine"] = [round(mean.value, 9) + 0.0 for mean in frame["mean cosine"]]  # no -0.0
    settings = frame.sort_values(["text", "mean cosine"]).groupby(_SETTING, sort=False)
    return pd.concat([rows.assign(**{BEYOND: _beyond(rows)}) for _, rows in settings])


def _beyond(rows: Any) -> list[Estimate | None]:
    """S minus that of equally correlated words, interpolated; None for these words themselves, and
    where they have no interval at these cosines."""
    curve = rows[rows["text"] == CORRELATED]
    places = curve["mean cosine"].tolist()
    if not places:
        return [None] * len(rows)
    measured = np.array([(mean.value, *ends(mean)) for mean in curve["S"]])
    columns = [np.interp(rows["mean cosine"], places, column).tolist() for column in measured.T]
    known = rows["mean cosine"].between(places[0], places[-1]) & (rows["text"] != CORRELATED)
    known &= bool(np.isfinite(measured).all())
    return [
        difference(mean, Estimate(value, low, high)) if inside else None
        for inside, mean, value, low, high in zip(known, rows["S"], *columns, strict=True)
    ]


def tables(records: Any) -> Tables:
    """One row per map and kind of text, by the words' mean cosine."""
    return {TABLE: _rows(records).drop(columns="text")}


def findings(records: Any, tables: Mapping[str, Any]) -> Iterator[Finding]:
    """How S depends on the mean cosine, and how other texts differ."""
    known = records["mean_cosine"].astype(float)
    least, most = known.min(), known.max()
    if least < most:
        along = changes(records[known == most], records[known == least], _SETTING, relative=True)
        phrases = "; ".join(map(_along, along.to_dict("records")))
        yield Finding(
            f"When the mean cosine of the words rises from {least:g} to {most:g}, S of {phrases}.",
            "Factors over paired draws.",
            tuple(records["cell"][known.isin((least, most))]),
        )
    others = tables[TABLE].dropna(subset=BEYOND)
    if len(others):
        apart = others[others[BEYOND].map(side) != 0].to_dict("records")
        named = [f"{map_title(row['map'])}, {row['texts']}: {row[BEYOND]}" for row in apart]
        listed = "; ".join([tally(others[BEYOND], "larger", "smaller"), *named])
        yield Finding(
            "Compared with equally correlated words of the same mean cosine, S of repeated words "
            f"and real texts is {listed}.",
            "S of equally correlated words is interpolated.",
            tuple(records["cell"]),
        )


def _along(row: Mapping[str, Any]) -> str:
    change = row["change"]
    low, high = ends(change)
    near = low > 1 - NEAR and high < 1 + NEAR
    does = (": no difference is claimed", " grows", " falls")[side(change, 1.0)]
    does = " hardly changes" if near else does
    return f"{map_title(row['map'])}{does} ({row['n']} words, factor {change})"


def figures(records: Any) -> Mapping[str, Any]:
    """S against the words' measured mean cosine, a panel per map."""
    from wordsens.plotting.figures import lines

    rows = _rows(records)
    whole = rows["text"].isin((CORRELATED, "repeated"))
    figure = lines(
        rows.assign(texts=rows["texts"].mask(whole, rows["text"].map(text_title))),
        x="mean cosine",
        y="S",
        colour="texts",
        panel=["map", "n"],
        limits=(0.0, None),
        share_y=False,
        labels={"mean cosine": "mean cosine between two words", "S": STUDY.value},
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
    note=f"S: a lower bound, means over draws, {INTERVALS}. {BEYOND}: the difference from their "
    "interpolated S. Mean cosine: between two different rows, measured.",
    value="word sensitivity S",
)
