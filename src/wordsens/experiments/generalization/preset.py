"""The paper's generalization experiment as a sweep, at three scales."""

from dataclasses import dataclass, replace

from wordsens.errors import InputError, require_choice
from wordsens.experiments.generalization.spec import FRONTIER
from wordsens.experiments.grid.preset import Preset, with_effort
from wordsens.experiments.grid.sweep import Sweep
from wordsens.experiments.texts.documents import available
from wordsens.experiments.texts.source import DatasetText, Embedded, ReviewsText
from wordsens.experiments.texts.training import SENTIMENT, reads_labels
from wordsens.generalization import OBJECTIVE_NAMES
from wordsens.regression import TRAININGS
from wordsens.text import load_encoder

MAPS_AND_WORDS = (("rf", 40), ("raf", 40), ("raf", 120), ("relu-raf", 120))
"""Each map with its number of words: RF at n = 40, RAF at both, ReLU-RAF at n = 120, as in the paper."""


@dataclass(frozen=True)
class Scale:
    """The size of an experiment.

    Attributes:
        texts: N, of the training sets.
        dimension: d, or the encoder's own where that is smaller.
        samples: texts X of a draw.
        draws: training sets and weights.
        held_out: test texts.
        search: starts, generations, ... and dtype.
    """

    texts: tuple[int, ...]
    dimension: int
    samples: int
    draws: int
    held_out: int
    search: dict[str, object]


_LIGHT: dict[str, object] = {"starts": 6, "generations": 0, "steps": 30}
# All objectives of a text in one search: a fifth of the time of one search each (measurements.md).
_TOGETHER: dict[str, object] = {"together": True}

SCALES: dict[str, Scale] = {
    "quick": Scale((100, 300), 384, 3, 1, 50, {"dtype": "float32", **_LIGHT}),
    "laptop": Scale((100, 300, 1000), 384, 10, 1, 100, {"dtype": "float32"}),
    "full": Scale((100, 300, 500, 700, 900, 1100, 1300), 768, 10, 2, 200, {"dtype": "float32", **_TOGETHER}),
}


def paper_generalization(
    scale: str,
    source: Embedded | None = None,
    *,
    seed: int = 0,
    labels: str | None = None,
    search: str | None = None,
) -> Preset:
    """Err against gamma for RF, RAF and ReLU-RAF: both trainings, every objective and the frontier.

    Without a dataset: Gaussian texts, whose label is the sign of a linear function, and the shipped reviews with their
    sentiment. With one: those texts.

    Args:
        scale: quick (a minute or two), laptop (an hour) or full (the paper's sizes).
        source: of real texts; None for the shipped reviews.
        seed: of every draw.
        search: "quick", "normal" or "thorough" in place of the scale's own starts and steps.
        labels: of the real texts: None or "sentiment" for their own, "linear" or "random".

    Raises:
        InputError: no such scale, encoder or data, or too few long texts for any training set.
    """
    source = source or ReviewsText()
    shipped = not isinstance(source, DatasetText)
    labels = labels or SENTIMENT
    size = SCALES[require_choice("scale", scale, SCALES)]
    size = replace(size, search=with_effort(size.search, search))
    notices: list[str] = []
    grids = _real(size, source, notices, labels)
    if shipped:
        grids += [_grid(size, name, n, {"kind": "gaussian"}, "linear", size.texts) for name, n in MAPS_AND_WORDS]
    elif not grids:
        raise InputError(
            f"`data` (={source.path!r}) has too few texts of {MAPS_AND_WORDS[0][1]} words or more for a training set "
            f"of {size.texts[0]} and {size.held_out} held out; give more texts"
        )
    common = {"seed": seed, "word": 0}
    sweep = Sweep.parse(
        {"name": f"paper-generalization-{scale}", "kind": "generalization", "common": common, "grids": grids}
    )
    return Preset(sweep, tuple(notices))


def _real(size: Scale, source: Embedded, notices: list[str], labels: str) -> list[dict]:
    shipped = not isinstance(source, DatasetText)
    labelled = reads_labels(source, labels)
    width = load_encoder(source.encoder).dimension
    if width < size.dimension:
        notices.append(f"{source.encoder} has {width} coordinates, fewer than this scale's {size.dimension}")
    size = replace(size, dimension=min(width, size.dimension))
    grids = []
    for name, n in MAPS_AND_WORDS:
        have = available(source, n, labelled=labelled)
        if shipped:
            # A few dozen at most: a third is held out, the others are learned.
            own = replace(size, held_out=max(1, have // 3), samples=min(size.samples, max(1, have // 3)))
            sizes = (have - own.held_out,) if have >= 30 else ()
        else:
            own = size
            sizes = tuple(texts for texts in size.texts if texts + size.held_out <= have)
        lost = [texts for texts in size.texts if texts not in sizes]
        if not shipped and lost:
            notices.append(
                f"{have} texts have {n} words: {name} is measured there without N = {', '.join(map(str, lost))}"
            )
        if sizes:
            grids.append(_grid(own, name, n, source.model_dump(mode="json"), labels, sizes))
        elif shipped:
            notices.append(
                f"{have} shipped reviews have {n} words, too few to learn from: {name} is not measured there"
            )
    return grids


def _grid(size: Scale, name: str, n: int, text: dict[str, object], labels: str, sizes: tuple[int, ...]) -> dict:
    return {
        "map": name,
        "text": text,
        "labels": labels,
        "n": n,
        "d": size.dimension,
        "held_out": size.held_out,
        **size.search,
        "draw": list(range(size.draws)),
        "texts": list(sizes),
        "sample": list(range(size.samples)),
        "training": list(TRAININGS),
        # The named alignments are the training's own or the other one's: "alignment" is one of them.
        "objective": [name for name in OBJECTIVE_NAMES if name != "alignment"] + [FRONTIER],
    }
