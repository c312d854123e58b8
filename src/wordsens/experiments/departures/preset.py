"""The protocols on the maps of the paper as a sweep, at three scales."""

from dataclasses import dataclass
from typing import Any

from wordsens.errors import InputError, require_choice
from wordsens.experiments.departures.protocol import ERROR, PADDED_BELOW, SENSITIVITY, protocols_of
from wordsens.experiments.grid.preset import Preset, with_effort
from wordsens.experiments.grid.sweep import Sweep
from wordsens.experiments.texts.documents import texts_at_least
from wordsens.experiments.texts.source import Embedded, ReviewsText
from wordsens.experiments.texts.training import SENTIMENT, reads_labels
from wordsens.text import load_encoder


@dataclass(frozen=True)
class Scale:
    """The size of the experiment.

    Attributes:
        dimensions: d of each map whose S is measured, or the encoder's own where that is smaller.
        sizes: n.
        error: the maps whose Err is measured, each with its n and d.
        texts: N, at most.
        draws: of each row.
    """

    dimensions: dict[str, int]
    sizes: tuple[int, ...]
    error: dict[str, tuple[int, int]]
    texts: int
    draws: int


# Dense maps have their matrix, and every word is searched: at n = 160, d = 48 that takes about 4 s in float32.
_DENSE: dict[str, Any] = {"gaussian": "dense", "dtype": "float32", "starts": 1, "steps": 10}
# Softmax: quick found what normal did to five digits (n = 160, d = 384), in an eighth of the time. ReLU needs normal.
_SEARCHES: dict[str, dict[str, Any]] = {"rf": _DENSE, "raf": {"search": "quick"}, "relu-raf": {}}

SCALES = {
    "quick": Scale({"rf": 16, "raf": 32}, (8, 16), {"raf": (8, 24)}, 12, 5),
    "laptop": Scale({"rf": 48, "raf": 96}, (20, 40, 80), {"rf": (40, 48), "raf": (40, 64)}, 30, 20),
    "full": Scale(
        {"rf": 48, "raf": 192, "relu-raf": 192},
        (20, 40, 80, 160),
        {"rf": (40, 64), "raf": (40, 64), "relu-raf": (40, 64)},
        30,
        20,
    ),
}


def paper_departures(
    scale: str,
    source: Embedded | None = None,
    *,
    seed: int = 0,
    labels: str | None = None,
    search: str | None = None,
) -> Preset:
    """S of every protocol against n, and Err of those that change it, on real texts: [CLS] and [PAD] are of those.

    Args:
        scale: quick (seconds), laptop or full (about 20 minutes on two cores).
        source: of the texts; None for the shipped reviews.
        seed: of every draw.
        labels: of the error: None or "sentiment" for the texts' own, "linear" or "random".
        search: "quick", "normal" or "thorough" in place of the scale's own starts and steps.

    Raises:
        InputError: no such scale, encoder or data, or texts too short for any size.
    """
    source = source or ReviewsText()
    size = SCALES[require_choice("scale", scale, SCALES)]
    width = load_encoder(source.encoder).dimension
    text, notices = source.model_dump(mode="json"), []
    sizes = [n for n in size.sizes if texts_at_least(source, n, seed=seed, most=1)]
    if len(sizes) < 2:
        raise InputError(
            f"`data` has no text of {size.sizes[1]} words, so S cannot be followed over n; give longer texts"
        )
    if len(sizes) < len(size.sizes):
        notices.append(f"no text has {', '.join(str(n) for n in size.sizes if n not in sizes)} words: left out")
    common = {"text": text, "draw": list(range(size.draws))}
    grids: list[dict[str, Any]] = [
        {
            **common,
            "map": name,
            "n": sizes,
            "d": min(d, width),
            "protocol": protocols_of(SENSITIVITY),
            **with_effort(_SEARCHES[name], search),
        }
        for name, d in size.dimensions.items()
    ]
    for name, (n, d) in size.error.items():
        known = _labels(source, labels, notices)
        texts = min(size.texts, _texts(source, n, seed, size.texts))
        if known is None or texts < 2:
            continue
        error = {"measures": ERROR, "labels": known, "texts": texts, "protocol": protocols_of(ERROR)}
        grids.append(
            {**common, "map": name, "n": n, "d": min(d, width), **error, **with_effort(_SEARCHES[name], search)}
        )
    sweep = {"name": f"paper-departures-{scale}", "kind": "departures", "common": {"seed": seed}, "grids": grids}
    return Preset(Sweep.parse(sweep), tuple(dict.fromkeys(notices)))


def _labels(source: Embedded, labels: str | None, notices: list[str]) -> str | None:
    """The labels to learn; None, with a notice, where the texts' own are wanted by default and they have none."""
    try:
        reads_labels(source, labels or SENTIMENT)
    except InputError as error:
        if labels is not None:
            raise
        notices.append(f"Err is not measured: {error}")
        return None
    return labels or SENTIMENT


def _texts(source: Embedded, n: int, seed: int, most: int) -> int:
    """The number of texts that can be learned, one being held out: long ones, or short ones that are padded."""
    padded = source.model_copy(update={"padded_below": PADDED_BELOW})
    return min(len(texts_at_least(one, n, seed=seed, most=most + 1)) for one in (source, padded)) - 1
