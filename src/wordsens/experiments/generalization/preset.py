"""The paper's generalization experiment as a sweep, at three scales."""

from dataclasses import dataclass, replace

from wordsens.errors import InputError, require_choice
from wordsens.experiments.generalization.spec import FRONTIER, GeneralizationSweep
from wordsens.experiments.texts.source import DatasetText, Embedded, ReviewsText
from wordsens.experiments.texts.training import available
from wordsens.generalization import OBJECTIVE_NAMES
from wordsens.regression import TRAININGS
from wordsens.text import load_encoder

MAPS_AND_WORDS = (("rf", 40), ("raf", 40), ("raf", 120), ("relu-raf", 120))
"""Each map with its number of words: RF at n = 40, RAF at both, ReLU-RAF at n = 120, as in the paper."""


@dataclass(frozen=True)
class Scale:
    """How large an experiment is.

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

SCALES: dict[str, Scale] = {
    "quick": Scale((100, 300), 384, 3, 1, 50, {"dtype": "float32", **_LIGHT}),
    "laptop": Scale((100, 300, 1000), 384, 10, 1, 100, {"dtype": "float32"}),
    "full": Scale((100, 300, 500, 700, 900, 1100, 1300), 768, 20, 3, 200, {"dtype": "float32"}),
}


@dataclass(frozen=True)
class GeneralizationPreset:
    """A sweep, and what the user should know of how it was fitted to the data."""

    sweep: GeneralizationSweep
    notices: tuple[str, ...]


def paper_generalization(
    scale: str, *, data: str | None = None, encoder: str = "minilm", seed: int = 0
) -> GeneralizationPreset:
    """Err against gamma for RF, RAF and ReLU-RAF: both trainings, every objective and the frontier.

    Without `data`: Gaussian texts, whose label is the sign of a linear function, and the shipped reviews with their
    sentiment. With `data`: those texts with their sentiment.

    Args:
        scale: quick (a minute or two), laptop (an hour) or full (the paper's sizes).
        data: any source of labelled texts that `wordsens.text.readers` reads.
        encoder: embeds real texts.
        seed: of every draw.

    Raises:
        InputError: no such scale, encoder or data, or too few long texts for any training set.
    """
    size = SCALES[require_choice("scale", scale, SCALES)]
    notices: list[str] = []
    source = ReviewsText(encoder=encoder) if data is None else DatasetText(path=data, encoder=encoder)
    grids = _real(size, source, notices, shipped=data is None)
    if data is None:
        grids += [_grid(size, name, n, {"kind": "gaussian"}, "linear", size.texts) for name, n in MAPS_AND_WORDS]
    elif not grids:
        raise InputError(
            f"`data` (={data!r}) has too few texts of {MAPS_AND_WORDS[0][1]} words or more for a training set of "
            f"{size.texts[0]} and {size.held_out} held out; give more texts"
        )
    common = {"seed": seed, "word": 0}
    sweep = GeneralizationSweep.parse({"name": f"paper-generalization-{scale}", "common": common, "grids": grids})
    return GeneralizationPreset(sweep, tuple(notices))


def _real(size: Scale, source: Embedded, notices: list[str], *, shipped: bool) -> list[dict]:
    width = load_encoder(source.encoder).dimension
    if width < size.dimension:
        notices.append(f"{source.encoder} has {width} coordinates, fewer than this scale's {size.dimension}")
    size = replace(size, dimension=min(width, size.dimension))
    grids = []
    for name, n in MAPS_AND_WORDS:
        have = available(source, n)
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
            grids.append(_grid(own, name, n, source.model_dump(mode="json"), "sentiment", sizes))
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
