"""Several words at once as a sweep, at three scales."""

from dataclasses import dataclass
from typing import Any

from wordsens.errors import require_choice
from wordsens.experiments.grid.preset import Preset, with_effort
from wordsens.experiments.grid.sweep import Sweep
from wordsens.experiments.texts.documents import texts_at_least
from wordsens.experiments.texts.source import Embedded, ReviewsText
from wordsens.text import load_encoder


@dataclass(frozen=True)
class Scale:
    """The size of the experiment: n words of d coordinates, or as many as the encoder has; draws; each map's search."""

    n: int
    d: int
    draws: int
    searches: dict[str, dict[str, Any]]


_LAZY: dict[str, Any] = {"gaussian": "lazy", "search": "quick", "dtype": "float32"}
# Each of k words asks the matrix: at k = n = 100, d = 192 that is 7 s and 0.6 GB.

SCALES = {
    "quick": Scale(16, 48, 3, {"rf": _LAZY, "raf": {"search": "quick"}, "relu-raf": {"search": "quick"}}),
    # Quick finds .97 to 1.01 of normal's for softmax, for ReLU as little as .58.
    "laptop": Scale(50, 192, 10, {"rf": _LAZY, "raf": {"search": "quick"}, "relu-raf": {}}),
    "full": Scale(100, 192, 10, {"rf": _LAZY, "raf": {}, "relu-raf": {}}),
}


def paper_several_words(
    scale: str,
    source: Embedded | None = None,
    *,
    seed: int = 0,
    labels: str | None = None,
    search: str | None = None,
) -> Preset:
    """S of RF, RAF and ReLU-RAF when k = 1, 2, 4, ..., n words move at once, on Gaussian and on real texts.

    Args:
        scale: quick (seconds), laptop or full (about ten minutes on two cores).
        source: of the real texts; None for the shipped reviews.
        seed: of every draw.
        labels: for experiments that learn; sensitivities take no notice.
        search: "quick", "normal" or "thorough" in place of the scale's own.

    Raises:
        InputError: no such scale, encoder or data.
    """
    source = source or ReviewsText()
    size = SCALES[require_choice("scale", scale, SCALES)]
    texts: list[tuple[dict[str, Any], int]] = [({"kind": "gaussian"}, size.d)]
    notices = ()
    if texts_at_least(source, size.n, seed=seed, most=1):
        texts.insert(0, (source.model_dump(mode="json"), min(size.d, load_encoder(source.encoder).dimension)))
    else:
        notices = (f"no text has {size.n} words: Gaussian texts are measured alone",)
    counts = [2**power for power in range(size.n.bit_length()) if 2**power < size.n] + [size.n]
    draws = list(range(size.draws))
    grids = [
        {"map": name, "text": text, "n": size.n, "d": d, "count": counts, "draw": draws, **with_effort(own, search)}
        for text, d in texts
        for name, own in size.searches.items()
    ]
    sweep = {"name": f"paper-several-words-{scale}", "kind": "several-words", "common": {"seed": seed}, "grids": grids}
    return Preset(Sweep.parse(sweep), notices)
