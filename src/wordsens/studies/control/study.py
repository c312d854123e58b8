"""Small networks trained with their word sensitivity held, raised or lowered, and what comes of
it."""

from collections.abc import Mapping, Sequence
from typing import Any

from wordsens.errors import InputError
from wordsens.models.embedding import load_encoder
from wordsens.studies.control.cell import CONTROLS, HOLD, ControlCell, measure_control
from wordsens.studies.control.summary import summarize
from wordsens.sweeps.experiment import (
    Experiment,
    Grids,
)
from wordsens.sweeps.store import Record
from wordsens.sweeps.texts import (
    Embedded,
    available,
)

LEAST_TEXTS = 50
"""Fewer labelled texts leave less than ten held out, which tells two accuracies apart in no
case."""

STACKS: tuple[dict[str, bool], ...] = (
    {},
    {"residual": True},
    {"norm": True},
    {"residual": True, "norm": True},
    {"residual": True, "norm": True, "mlp": True},
)
"""Stacks of softmax attention: alone, with residual connections, with LayerNorm, with both, and a
transformer."""

_LARGE: dict[str, Any] = {
    "n": [8, 16, 32, 64, 128, 256],
    "controlled": 32,
    "targets": [0.125, 0.25, 0.5, 1.0, 2.0],
    "depths": ([32, 128], 6),
    "real": (64, 64),
    "layers": ["dense", "softmax", "relu"],
    "held": ["dense", "softmax"],
    "others": [name for name in CONTROLS if name != HOLD],
    "stacks": STACKS,
    "along": ["dense", "softmax", "relu"],
    "along_real": True,
}

PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "draws": 5,
        "steps": 150,
        "n": [8, 32],
        "controlled": 16,
        "targets": [0.25, 1.0],
        "depths": ([16], 3),
        "real": (32, 32),
        "layers": ["dense", "softmax"],
        "held": ["softmax"],
        "others": ["none", "lower", "raise"],
        "stacks": (STACKS[0], STACKS[-1]),
        "along": ["softmax"],
        "along_real": False,
    },
    "laptop": {"draws": 5, "steps": 300, **_LARGE},
    "full": {"draws": 20, "steps": 600, **_LARGE},
}
"""Draws, steps; n of the tasks against the length; n of the controls, S to hold; n of the stacks
and their layers; n and d of real texts; networks along n, those that are controlled, the other
controls, the stacks; networks that are measured along their training, and whether those of real
texts are."""


def preset(scale: str, source: Embedded, seed: int, labels: str | None) -> Grids:
    """Networks on one-word and majority tasks against n, under controls, on real texts, by layer,
    along training."""
    size = PRESETS[scale]
    common: dict[str, Any] = {"draw": list(range(size["draws"])), "steps": size["steps"]}
    tasks, d = ["one-word", "majority"], 32
    grids: list[dict[str, Any]] = [
        {**common, "task": tasks, "layer": size["layers"], "n": size["n"], "d": d}
    ]
    at = {**common, "task": tasks, "layer": size["held"], "n": size["controlled"], "d": d}
    grids += [{**at, "control": HOLD, "target": size["targets"]}, {**at, "control": size["others"]}]
    lengths, layers = size["depths"]
    stack = {**common, "task": "one-word", "n": lengths, "d": d, "layers": layers, "by_layer": True}
    grids += [{**stack, "steps": 0, **options} for options in size["stacks"]]
    grids += [{**stack, **options} for options in (size["stacks"][0], size["stacks"][-1])]
    followed = {"along": True, "control": ["none", "pairs"]}
    grids += [{**at, "layer": size["along"], **followed}]
    n, most = size["real"]
    try:
        enough = available(source, n) >= LEAST_TEXTS
    except InputError:
        enough = False
    if not enough:
        return grids, [
            f"fewer than {LEAST_TEXTS} labelled texts have {n} words: real texts are left out"
        ]
    d = min(most, load_encoder(source.encoder).dimension)
    real = {
        **common,
        "task": "texts",
        "text": source.model_dump(mode="json"),
        "n": n,
        "d": d,
        "layer": size["held"],
    }
    grids += [real, {**real, "control": HOLD, "target": size["targets"]}]
    return grids + ([{**real, **followed}] if size["along_real"] else []), []


def _figures(records: Sequence[Record]) -> Mapping[str, Any]:
    from wordsens.studies.control.figures import control_figures

    return control_figures(records)


CONTROL = Experiment(
    name="control",
    Cell=ControlCell,
    measure=measure_control,
    preset=preset,
    summarize=summarize,
    figures=_figures,
)
