"""Training under control as a sweep, at three scales."""

from dataclasses import dataclass
from typing import Any

from wordsens.errors import InputError, require_choice
from wordsens.experiments.control.spec import CONTROLS, HOLD
from wordsens.experiments.grid.preset import Preset, with_effort
from wordsens.experiments.grid.sweep import Sweep
from wordsens.experiments.texts.documents import available
from wordsens.experiments.texts.source import Embedded, ReviewsText
from wordsens.text import load_encoder

LEAST_TEXTS = 50
"""Fewer labelled texts leave less than ten held out, which tells two accuracies apart in no case."""

STACKS: tuple[dict[str, bool], ...] = (
    {},
    {"residual": True},
    {"norm": True},
    {"residual": True, "norm": True},
    {"residual": True, "norm": True, "mlp": True},
)
"""Stacks of softmax attention: alone, with residual connections, with LayerNorm, with both, and a transformer."""


@dataclass(frozen=True)
class Scale:
    """The size of the study.

    Attributes:
        draws: of every point.
        sizes: n of the tasks against the length.
        steps: of every training.
        controlled: n of the controls.
        targets: S to hold.
        depths: n of the stacks, and how many layers they have.
        real: n and d of real texts.
        layers: networks of one layer that are compared along n.
        held: those that are controlled.
        others: the controls besides a target.
        stacks: of several layers.
        along: networks that are measured along their training, without control and with supervised pairs.
        along_real: whether those of real texts are.
    """

    draws: int
    sizes: tuple[int, ...]
    steps: int
    controlled: int
    targets: tuple[float, ...]
    depths: tuple[tuple[int, ...], int]
    real: tuple[int, int]
    layers: tuple[str, ...] = ("dense", "softmax", "relu")
    held: tuple[str, ...] = ("dense", "softmax")
    others: tuple[str, ...] = tuple(name for name in CONTROLS if name != HOLD)
    stacks: tuple[dict[str, bool], ...] = STACKS
    along: tuple[str, ...] = ("dense", "softmax", "relu")
    along_real: bool = True


SCALES = {
    "quick": Scale(
        5,
        (8, 32),
        150,
        16,
        (0.25, 1.0),
        ((16,), 3),
        (32, 32),
        layers=("dense", "softmax"),
        held=("softmax",),
        others=("none", "lower", "raise"),
        stacks=(STACKS[0], STACKS[-1]),
        along=("softmax",),
        along_real=False,
    ),
    "laptop": Scale(5, (8, 16, 32, 64, 128, 256), 300, 32, (0.125, 0.25, 0.5, 1.0, 2.0), ((32, 128), 6), (64, 64)),
    "full": Scale(20, (8, 16, 32, 64, 128, 256), 600, 32, (0.125, 0.25, 0.5, 1.0, 2.0), ((32, 128), 6), (64, 64)),
}


def paper_control(
    scale: str,
    source: Embedded | None = None,
    *,
    seed: int = 0,
    labels: str | None = None,
    search: str | None = None,
) -> Preset:
    """Networks on one-word and majority tasks against n, under controls, on real texts, by layer, along training.

    Args:
        scale: quick (about a minute), laptop or full.
        source: of the real labelled texts; None for the shipped reviews.
        seed: of every draw.
        labels: for other experiments; real texts are learned by their own labels.
        search: "quick", "normal" or "thorough" in place of quick.

    Raises:
        InputError: no such scale, encoder or data.
    """
    source = source or ReviewsText()
    size = SCALES[require_choice("scale", scale, SCALES)]
    own = {"draw": list(range(size.draws)), "steps": size.steps, **with_effort({}, search)}
    tasks, d = ["one-word", "majority"], 32
    grids: list[dict[str, Any]] = [{**own, "task": tasks, "layer": list(size.layers), "n": list(size.sizes), "d": d}]
    at = {**own, "task": tasks, "layer": list(size.held), "n": size.controlled, "d": d}
    grids += [{**at, "control": "hold", "target": list(size.targets)}, {**at, "control": list(size.others)}]
    lengths, layers = size.depths
    stack = {**own, "task": "one-word", "n": list(lengths), "d": d, "layers": layers, "by_layer": True}
    grids += [{**stack, "steps": 0, **options} for options in size.stacks]
    grids += [{**stack, **options} for options in (size.stacks[0], size.stacks[-1])]
    followed = {"along": True, "control": ["none", "pairs"]}
    grids += [{**at, "layer": list(size.along), **followed}]
    notices = ()
    n, most = size.real
    try:
        enough = available(source, n) >= LEAST_TEXTS
    except InputError:
        enough = False
    if enough:
        d = min(most, load_encoder(source.encoder).dimension)
        real = {
            **own,
            "task": "texts",
            "text": source.model_dump(mode="json"),
            "n": n,
            "d": d,
            "layer": list(size.held),
        }
        grids += [real, {**real, "control": "hold", "target": list(size.targets)}]
        grids += [{**real, **followed}] if size.along_real else []
    else:
        notices = (f"fewer than {LEAST_TEXTS} labelled texts have {n} words: real texts are left out",)
    sweep = {"name": f"paper-control-{scale}", "kind": "control", "common": {"seed": seed}, "grids": grids}
    return Preset(Sweep.parse(sweep), notices)
