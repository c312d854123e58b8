"""S against n: one text and one map a cell (paper, figures 2 and 3)."""

from collections.abc import Mapping, Sequence
from typing import Any

from wordsens.errors import InputError
from wordsens.models.embedding import load_encoder
from wordsens.studies.sensitivity.summary import summarize
from wordsens.sweeps.experiment import (
    Experiment,
    Grids,
)
from wordsens.sweeps.measurement import (
    SensitivityCell,
    alike,
    measure_sensitivities,
    measure_sensitivity,
)
from wordsens.sweeps.store import Record
from wordsens.sweeps.texts import Embedded, texts_at_least

_ATTENTION_SIZES = (10, 20, 50, 100, 150, 200, 250)

# Matrices on demand: at n d = 48,000 a dense one would take 9 GB.
_FEW_WORDS: dict[str, Any] = {"words": {"sample": 4}, "gaussian": "lazy"}

_FAST: dict[str, Any] = {"starts": 2, "dtype": "float32"}

_ATTENTION = ["raf", "relu-raf"]

_DRF: dict[str, Any] = {"map": ["drf"], "depth": [2, 4, 8]}

# Quick takes larger n than the paper for RF and DRF. With k = D, S sqrt(n) is about 1 + sqrt(2/n)
# for RF, so the slope lies below -1/2 by about sqrt(2/n)/2, and longer texts come closer to the
# limit; more range steadies the fit.
PRESETS: dict[str, list[dict[str, Any]]] = {
    "quick": [
        {"map": ["rf"], "n": (100, 150, 200, 250), "d": (192,), "draw": 5, **_FAST, **_FEW_WORDS},
        {
            **_DRF,
            "n": (50, 80, 120, 160),
            "d": (64,),
            "draw": 4,
            **_FAST,
            **_FEW_WORDS,
            "words": {"sample": 2},
            "starts": 1,
            "steps": 20,
        },
        {
            "map": _ATTENTION,
            "n": (10, 20, 50, 100, 200),
            "d": (192,),
            "draw": 3,
            "dtype": "float32",
            "search": "quick",
        },
    ],
    "laptop": [
        {
            "map": ["rf"],
            "n": (90, 110, 130, 150),
            "d": (192, 384),
            "draw": 5,
            "starts": 2,
            **_FEW_WORDS,
        },
        {**_DRF, "n": (50, 60, 70, 80), "d": (192,), "draw": 5, "starts": 2, **_FEW_WORDS},
        {"map": _ATTENTION, "n": _ATTENTION_SIZES, "d": (192, 384), "draw": 5},
    ],
    "full": [
        {
            "map": ["rf"],
            "n": tuple(range(90, 151, 10)),
            "d": (192, 384, 768),
            "draw": 10,
            **_FEW_WORDS,
            "dtype": "float32",
        },
        {
            **_DRF,
            "n": (50, 60, 70, 80),
            "d": (768,),
            "draw": 5,
            "starts": 2,
            **_FEW_WORDS,
            "dtype": "float32",
        },
        {"map": _ATTENTION, "n": _ATTENTION_SIZES, "d": (192, 384, 768), "draw": 5},
    ],
}
"""The grids on Gaussian texts, `draw` the number of draws; real texts have the n and d that they
allow."""


def preset(scale: str, source: Embedded, seed: int, labels: str | None) -> Grids:
    """S against n for RF, DRF, RAF and ReLU-RAF, on real and on Gaussian texts.

    Raises:
        InputError: no such encoder or data, or texts too short for any size.
    """
    width = load_encoder(source.encoder).dimension
    grids, notices = [], []
    for part in PRESETS[scale]:
        maps = "/".join(part["map"])
        sizes = [n for n in part["n"] if texts_at_least(source, n, seed=seed, most=1)]
        if lost := [str(n) for n in part["n"] if n not in sizes]:
            notices.append(
                f"no text has {', '.join(lost)} words: {maps} are measured without them on real "
                "texts"
            )
        dimensions = [d for d in part["d"] if d <= width] or [width]
        if len(dimensions) < len(part["d"]):
            notices.append(
                f"{source.encoder} has {width} coordinates: larger d are measured on Gaussian "
                "texts only"
            )
        elif width < min(part["d"]):
            notices.append(
                f"{source.encoder} has {width} coordinates: real texts under {maps} have d = "
                f"{width}"
            )
        grid = {**part, "draw": list(range(part["draw"])), "text": {"kind": "gaussian"}}
        grid |= {"n": list(part["n"]), "d": list(part["d"])}
        if len(sizes) > 1:
            grids.append(
                {**grid, "text": source.model_dump(mode="json"), "n": sizes, "d": dimensions}
            )
        grids.append(grid)
    if all(grid["text"]["kind"] == "gaussian" for grid in grids):
        raise InputError(
            f"`texts` (={getattr(source, 'path', None)!r}) has no text of "
            f"{PRESETS[scale][-1]['n'][1]} words or more, "
            "so S cannot be followed over n; give longer texts"
        )
    return grids, notices


def _figures(records: Sequence[Record]) -> Mapping[str, Any]:
    from wordsens.studies.sensitivity.figures import sensitivity_figures

    return sensitivity_figures(records)


SENSITIVITY = Experiment(
    name="sensitivity",
    Cell=SensitivityCell,
    measure=measure_sensitivity,
    together=alike,
    measure_together=measure_sensitivities,
    preset=preset,
    value="word sensitivity S",
    summarize=summarize,
    figures=_figures,
)
