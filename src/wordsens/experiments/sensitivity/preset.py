"""The paper's experiments as sweeps, at three scales."""

from dataclasses import dataclass, replace

from wordsens.errors import InputError, require_choice
from wordsens.experiments.grid.preset import Preset, with_effort
from wordsens.experiments.grid.sweep import Sweep
from wordsens.experiments.texts.documents import texts_at_least
from wordsens.experiments.texts.source import Embedded, ReviewsText
from wordsens.text import load_encoder


@dataclass(frozen=True)
class Part:
    """One map's share of an experiment.

    Attributes:
        maps: the maps that share the sizes.
        sizes: n.
        dimensions: d; real texts use those that their encoder has.
        draws: independent draws a point.
        search: starts, steps, words of the search.
        depths: of drf.
    """

    maps: tuple[str, ...]
    sizes: tuple[int, ...]
    dimensions: tuple[int, ...]
    draws: int
    search: dict[str, object]
    depths: tuple[int, ...] = ()


_ATTENTION_SIZES = (10, 20, 50, 100, 150, 200, 250)
_ATTENTION = ("raf", "relu-raf")
_DEPTHS = (2, 4, 8)
# Matrices on demand: at n d = 48,000 a dense one would take 9 GB.
_FEW_WORDS: dict[str, object] = {"words": {"sample": 4}, "gaussian": "lazy"}
_LAZY = {**_FEW_WORDS, "dtype": "float32"}
"""Bound by memory, which float32 halves: n = 80, d = 768, L = 8 takes 26 s in place of 52."""
_RACE: dict[str, object] = {"contenders": 12, "sampled": 6}
"""S is the largest of all words, most of which need not be searched to the end to tell that they are not that one."""
_FAST: dict[str, object] = {"starts": 2, "dtype": "float32"}

# Quick takes larger n than the paper for RF and DRF. With k = D, S sqrt(n) is about 1 + sqrt(2/n) for RF, so the slope
# lies below -1/2 by about sqrt(2/n)/2, and longer texts come closer to the limit; more range steadies the fit. For
# attention it leaves out n = 150 and 250, which would take a third of its time.
SCALES: dict[str, tuple[Part, ...]] = {
    "quick": (
        Part(("rf",), (100, 150, 200, 250), (192,), 5, {**_FAST, **_FEW_WORDS}),
        Part(
            ("drf",),
            (50, 80, 120, 160),
            (64,),
            4,
            {**_FAST, **_FEW_WORDS, "words": {"sample": 2}, "starts": 1, "steps": 20},
            _DEPTHS,
        ),
        Part(_ATTENTION, (10, 20, 50, 100, 200), (384,), 3, {**_FAST, "steps": 60, "generations": 0}),
    ),
    "laptop": (
        Part(("rf",), (90, 110, 130, 150), (192, 384), 5, {"starts": 2, **_FEW_WORDS}),
        Part(("drf",), (50, 60, 70, 80), (192,), 5, {"starts": 2, **_FEW_WORDS}, _DEPTHS),
        Part(_ATTENTION, _ATTENTION_SIZES, (192, 384), 5, {}),
    ),
    "full": (
        Part(("rf",), tuple(range(90, 151, 10)), (192, 384, 768), 10, _LAZY),
        Part(("drf",), (50, 60, 70, 80), (768,), 5, {"starts": 2, **_LAZY}, _DEPTHS),
        Part(_ATTENTION, _ATTENTION_SIZES, (192, 384, 768), 5, _RACE),
    ),
}


def paper_sensitivity(
    scale: str,
    source: Embedded | None = None,
    *,
    seed: int = 0,
    labels: str | None = None,
    search: str | None = None,
) -> Preset:
    """S against n for RF, DRF, RAF and ReLU-RAF, on real and on Gaussian texts (the figures of the paper).

    Args:
        scale: quick (minutes), laptop (an hour or so) or full (the paper's sizes).
        source: of the real texts; None for the shipped reviews. Widths d past its encoder's own are measured on
            Gaussian texts only.
        seed: of every draw.
        labels: for experiments that learn; sensitivities take no notice.
        search: "quick", "normal" or "thorough" in place of the scale's own starts and steps.

    Raises:
        InputError: no such scale, encoder or data, or texts too short for any size.
    """
    source = source or ReviewsText()
    scaled = SCALES[require_choice("scale", scale, SCALES)]
    parts = [replace(part, search=with_effort(part.search, search)) for part in scaled]
    encoder, width = source.encoder, load_encoder(source.encoder).dimension
    notices: dict[str, None] = {}
    grids = []
    for part in parts:
        sizes = tuple(n for n in part.sizes if texts_at_least(source, n, seed=seed, most=1))
        if len(sizes) < len(part.sizes):
            lost = ", ".join(str(n) for n in part.sizes if n not in sizes)
            notices[f"no text has {lost} words, so {'/'.join(part.maps)} are measured without them on real texts"] = (
                None
            )
        dimensions = tuple(d for d in part.dimensions if d <= width)
        if not dimensions:
            notices[
                f"{encoder} has {width} coordinates, fewer than this scale's {min(part.dimensions)}: real texts are "
                f"measured with d = {width} under {'/'.join(part.maps)}"
            ] = None
            dimensions = (width,)
        elif len(dimensions) < len(part.dimensions):
            notices[f"{encoder} has {width} coordinates: larger d are measured on Gaussian texts only"] = None
        if len(sizes) > 1:
            grids.append(_grid(part, source.model_dump(mode="json"), sizes, dimensions))
        grids.append(_grid(part, {"kind": "gaussian"}, part.sizes, part.dimensions))
    if not any(grid["text"]["kind"] != "gaussian" for grid in grids):
        raise InputError(
            f"`data` (={getattr(source, 'path', None)!r}) has no text of {parts[-1].sizes[1]} words or more, "
            "so S cannot be followed over n; give longer texts"
        )
    sweep = Sweep.parse({"name": f"paper-sensitivity-{scale}", "common": {"seed": seed}, "grids": grids})
    return Preset(sweep, tuple(notices))


def _grid(part: Part, text: dict[str, object], sizes: tuple[int, ...], dimensions: tuple[int, ...]) -> dict:
    grid = {
        "map": list(part.maps),
        "text": text,
        "n": list(sizes),
        "d": list(dimensions),
        "draw": list(range(part.draws)),
        **part.search,
    }
    return {**grid, "depth": list(part.depths)} if part.depths else grid
