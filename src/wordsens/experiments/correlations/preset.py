"""Correlated, repeated and real words as a sweep, at three scales."""

from dataclasses import dataclass
from typing import Any

from wordsens.errors import require_choice
from wordsens.experiments.grid.preset import Preset, with_effort
from wordsens.experiments.grid.sweep import Sweep
from wordsens.experiments.texts.documents import texts_at_least
from wordsens.experiments.texts.source import Embedded, ReviewsText
from wordsens.text import load_encoder

COSINES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95)
FEW_COSINES = (0.0, 0.5, 0.95)
REPETITIONS = (2, 4, 10)
"""The number of times that each word of a repeated text stands in it."""


@dataclass(frozen=True)
class Part:
    """The maps that share a size: n words of d coordinates, or as many as the encoder has, and their search."""

    maps: tuple[str, ...]
    n: int
    d: int
    search: dict[str, Any]


_LAZY: dict[str, Any] = {"gaussian": "lazy", "starts": 2}
_RF = {**_LAZY, "words": {"sample": 4}}
_DRF = {**_LAZY, "words": {"sample": 2}, "depth": 4, "steps": 20}
_ATTENTION = ("raf", "relu-raf")
_RACE: dict[str, Any] = {"contenders": 12, "sampled": 6}
"""S as normal finds it, in half of the time; quick is 0 to 3 % below."""

SCALES: dict[str, tuple[int, tuple[Part, ...]]] = {
    "quick": (3, (Part(("rf",), 20, 32, _RF), Part(_ATTENTION, 20, 32, {"search": "quick", "dtype": "float32"}))),
    "laptop": (
        10,
        (Part(("rf",), 50, 192, _RF), Part(("drf",), 50, 96, _DRF), Part(_ATTENTION, 50, 192, {"search": "quick"})),
    ),
    "full": (
        10,
        (Part(("rf",), 100, 384, _RF), Part(("drf",), 50, 192, _DRF), Part(_ATTENTION, 100, 384, _RACE)),
    ),
}
"""Draws, and the parts, of each scale."""


def paper_correlations(
    scale: str,
    source: Embedded | None = None,
    *,
    seed: int = 0,
    labels: str | None = None,
    search: str | None = None,
) -> Preset:
    """S of RF, DRF, RAF and ReLU-RAF on orthogonal to nearly equal words, repeated words, and real texts.

    Args:
        scale: quick (seconds), laptop or full (about ten minutes on two cores).
        source: of the real texts, taken at their layer and at the encoder's last; None for the shipped reviews.
        seed: of every draw.
        labels: for experiments that learn; sensitivities take no notice.
        search: "quick", "normal" or "thorough" in place of the scale's own starts and steps.

    Raises:
        InputError: no such scale, encoder or data.
    """
    source = source or ReviewsText()
    draws, parts = SCALES[require_choice("scale", scale, SCALES)]
    encoder = load_encoder(source.encoder)
    layers = dict.fromkeys((source.layer, encoder.layers))
    cosines, times_each = (FEW_COSINES, REPETITIONS[1:2]) if scale == "quick" else (COSINES, REPETITIONS)
    grids, notices = [], []
    for part in parts:
        n, d = part.n, min(part.d, encoder.dimension)
        texts: list[dict[str, Any]] = [{"kind": "correlated", "mean_cosine": cosine} for cosine in cosines]
        texts += [{"kind": "repeated", "distinct": n // times} for times in times_each]
        if texts_at_least(source, n, seed=seed, most=1):
            texts += [source.model_copy(update={"layer": layer}).model_dump(mode="json") for layer in layers]
        else:
            notices.append(f"no text has {n} words: {'/'.join(part.maps)} are measured without real texts")
        own = {"map": list(part.maps), "n": n, "d": d, "draw": list(range(draws)), **with_effort(part.search, search)}
        grids += [{**own, "text": text} for text in texts]
    sweep = {"name": f"paper-correlations-{scale}", "kind": "correlations", "common": {"seed": seed}, "grids": grids}
    return Preset(Sweep.parse(sweep), tuple(notices))
