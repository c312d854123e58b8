"""Does a model that just learned a text notice one changed word? One fit, one further text a cell
(paper, figure 4)."""

from collections.abc import Mapping, Sequence
from typing import Any

from wordsens.errors import InputError
from wordsens.generalization import (
    OBJECTIVE_NAMES,
)
from wordsens.generalization.min_norm import TRAININGS
from wordsens.models.embedding import load_encoder
from wordsens.studies.generalization.cell import (
    FRONTIER,
    GeneralizationCell,
    measure_generalization,
)
from wordsens.studies.generalization.summary import summarize
from wordsens.sweeps.experiment import (
    Experiment,
    Grids,
)
from wordsens.sweeps.store import Record
from wordsens.sweeps.texts import (
    SENTIMENT,
    DatasetText,
    Embedded,
    available,
    reads_labels,
)

MAPS_AND_WORDS = (("rf", 40), ("raf", 40), ("raf", 120), ("relu-raf", 120))
"""Each map with its number of words: RF at n = 40, RAF at both, ReLU-RAF at n = 120, as in the
paper."""

_LEAST_REVIEWS = 30

PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "texts": [100, 300],
        "d": 384,
        "sample": 3,
        "draw": 1,
        "held_out": 50,
        "starts": 6,
        "steps": 30,
    },
    "laptop": {"texts": [100, 300, 1000], "d": 384, "sample": 10, "draw": 1, "held_out": 100},
    # All objectives of a text in one search: a fifth of the time of one search each.
    "full": {
        "texts": [100, 300, 500, 700, 900, 1100, 1300],
        "d": 768,
        "sample": 10,
        "draw": 2,
        "held_out": 200,
        "together": True,
    },
}
"""N, d (or the encoder's own where that is smaller), samples of a draw, draws and test texts; the
search."""


def preset(scale: str, source: Embedded, seed: int, labels: str | None) -> Grids:
    """Err against gamma for RF, RAF and ReLU-RAF: both trainings, every objective and the frontier.

    Without a dataset: Gaussian texts, whose label is the sign of a linear function, and the shipped
    reviews with their sentiment. With one: those texts.

    Raises:
        InputError: no such encoder or data, or too few long texts for any training set.
    """
    size, labels = PRESETS[scale], labels or SENTIMENT
    shipped = not isinstance(source, DatasetText)
    width = load_encoder(source.encoder).dimension
    notices = (
        [f"{source.encoder} has {width} coordinates, fewer than {size['d']}"]
        if width < size["d"]
        else []
    )
    text, labelled = source.model_dump(mode="json"), reads_labels(source, labels)
    grids = []
    for name, n in MAPS_AND_WORDS:
        have = available(source, n, labelled=labelled)
        keys = {**size, "d": min(width, size["d"])}
        if shipped:
            # A few dozen at most: a third is held out, the others are learned.
            third = max(1, have // 3)
            keys |= {
                "held_out": third,
                "sample": min(size["sample"], third),
                "texts": [have - third],
            }
            if have < _LEAST_REVIEWS:
                notices.append(
                    f"{have} shipped reviews have {n} words, too few: {name} is not measured there"
                )
                continue
        else:
            keys["texts"] = [texts for texts in size["texts"] if texts + size["held_out"] <= have]
            if lost := [str(texts) for texts in size["texts"] if texts not in keys["texts"]]:
                notices.append(
                    f"{have} texts have {n} words: {name} is measured without N = {', '.join(lost)}"
                )
        if keys["texts"]:
            grids.append(_grid(keys, name, n, text, labels))
    if shipped:
        grids += [
            _grid(size, name, n, {"kind": "gaussian"}, "linear") for name, n in MAPS_AND_WORDS
        ]
    elif not grids:
        raise InputError(
            f"`texts` (={source.path!r}) has too few texts of {MAPS_AND_WORDS[0][1]} words or more "
            "for a training set "
            f"of {size['texts'][0]} and {size['held_out']} held out; give more texts"
        )
    return grids, notices


def _grid(
    size: dict[str, Any], name: str, n: int, text: dict[str, Any], labels: str
) -> dict[str, Any]:
    return {
        "map": name,
        "text": text,
        "labels": labels,
        "n": n,
        "dtype": "float32",
        "word": 0,
        **size,
        "draw": list(range(size["draw"])),
        "sample": list(range(size["sample"])),
        "training": list(TRAININGS),
        # The named alignments are the training's own or the other one's: "alignment" is one of
        # them.
        "objective": [name for name in OBJECTIVE_NAMES if name != "alignment"] + [FRONTIER],
    }


def _figures(records: Sequence[Record]) -> Mapping[str, Any]:
    from wordsens.studies.generalization.figures import generalization_figures

    return generalization_figures(records)


GENERALIZATION = Experiment(
    name="generalization",
    Cell=GeneralizationCell,
    measure=measure_generalization,
    preset=preset,
    summarize=summarize,
    together=GeneralizationCell.of_fit,
    most_together=100,  # a fit of 1,300 texts takes as long as a hundred cells
    figures=_figures,
)
