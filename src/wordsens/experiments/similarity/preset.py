"""Similarity where one word matters as a sweep, at three scales."""

from dataclasses import dataclass, field
from typing import Any

from wordsens.errors import InputError, require_choice
from wordsens.experiments.grid.preset import Preset, with_effort
from wordsens.experiments.grid.sweep import Sweep
from wordsens.experiments.similarity.check_pairs import shipped_pairs
from wordsens.experiments.similarity.spec import CHECK, SWAPS, SimilarityCell
from wordsens.experiments.texts.source import Embedded, ReviewsText
from wordsens.experiments.texts.swapped_passages import swapped_passages
from wordsens.text import load_encoder
from wordsens.text.encoder import Encoder
from wordsens.text.pairs import LENGTHS

_LAZY: dict[str, Any] = {"gaussian": "lazy", "dtype": "float32", "starts": 1, "steps": 10}
MAPS: dict[str, dict[str, Any]] = {
    "rf": _LAZY,
    "drf": _LAZY,
    "raf": {"search": "quick"},
    "relu-raf": {"search": "quick"},
}
"""The random maps; deep ones of the usual depth. S of two words takes 0.2 s (raf) to 2.6 s (drf) at n = 128."""

POOLED: dict[str, Any] = {"pool": "mean", "search": "quick", "starts": 1, "steps": 6, "generations": 0}
"""Two words at n = 128 take 4 s at MiniLM's last layer; twice the starts and steps found up to a third more there."""

WORDS = 2
"""Words that are searched for S: the same ones under every map."""


@dataclass(frozen=True)
class Scale:
    """The size of the experiment.

    Attributes:
        sizes: rows of a passage.
        draws: of weights and passages.
        count: passages of a draw.
        lengths: of the pairs of check.
        of_a_kind: at most so many of those.
        check_draws: of the weights, where the pairs are those of check.
        maps: the random ones, and their keys.
        pooled: the keys of the encoder's layers.
        every: each so many-th layer of the encoder is measured, and the last one.
    """

    sizes: tuple[int, ...]
    draws: int
    count: int
    lengths: tuple[str, ...]
    of_a_kind: int
    check_draws: int
    maps: dict[str, dict[str, Any]] = field(default_factory=lambda: MAPS)
    pooled: dict[str, Any] = field(default_factory=lambda: POOLED)
    every: int = 1


SCALES = {
    "quick": Scale(
        (8, 32), 5, 8, LENGTHS[:1], 4, 1,
        maps={name: {**MAPS[name], "words": 1} for name in MAPS if name != "drf"},
        pooled={**POOLED, "words": 0}, every=3,
    ),
    "laptop": Scale((8, 16, 32, 64), 5, 24, LENGTHS[:2], 12, 1, every=3),
    "full": Scale((8, 16, 32, 64, 128), 5, 24, LENGTHS, 12, 2),
}  # fmt: skip
"""Quick leaves S of the layers out, which takes two thirds of the time of the others, and DRF, the dearest random map.
Cells of laptop are cells of full: a folder of one goes on as the other."""


def paper_similarity(
    scale: str,
    source: Embedded | None = None,
    *,
    seed: int = 0,
    labels: str | None = None,
    search: str | None = None,
) -> Preset:
    """AUC of RF, DRF, RAF, ReLU-RAF and of every pooled layer of the encoder, against the length; S beside it.

    Args:
        scale: quick (seconds), laptop or full (minutes).
        source: of the passages; None for the shipped reviews. Its encoder gives the rows, and the layers.
        seed: of every draw.
        labels: for experiments that learn; this one takes no notice.
        search: "quick", "normal" or "thorough" in place of the scale's own starts and steps.

    Raises:
        InputError: no such scale, encoder or data.
    """
    source = source or ReviewsText()
    size = SCALES[require_choice("scale", scale, SCALES)]
    encoder = load_encoder(source.encoder)
    maps = [{"map": name, "words": WORDS, **with_effort(own, search)} for name, own in size.maps.items()]
    layers = [layer for layer in range(encoder.layers + 1) if layer % size.every == 0 or layer == encoder.layers]
    pooled = {
        "map": "model",
        "model": source.encoder,
        "model_layer": layers,
        "words": WORDS,
        **with_effort(size.pooled, search),
    }
    sizes = [n for n in size.sizes if _holds_swaps(source, n, seed)]
    notices = []
    if left := [str(n) for n in size.sizes if n not in sizes]:
        notices.append(f"no text has a passage of {', '.join(left)} words in which one can be swapped: left out")
    swaps = {"pairs": SWAPS, "n": sizes, "count": size.count, "draw": list(range(size.draws))}
    grids = _grids(swaps, source, encoder, maps, pooled) if sizes else []
    for length in size.lengths:
        rows = max(encoder.tokenize(text).words for one in shipped_pairs(length) for text in (one.first, one.second))
        if encoder.padding is None or (encoder.context is not None and rows + _AROUND > encoder.context):
            notices.append(f"{encoder.name} cannot take pairs of {rows} rows, or has no [PAD]: {length}s are left out")
            continue
        check = {"pairs": CHECK, "length": length, "n": rows, "count": size.of_a_kind}
        plain = ReviewsText(encoder=source.encoder, layer=source.layer)
        random = [{**own, "draw": list(range(size.check_draws))} for own in maps]
        grids += _grids(check, plain, encoder, random, pooled)
    sweep = {"name": f"paper-similarity-{scale}", "kind": "similarity", "common": {"seed": seed}, "grids": grids}
    return Preset(Sweep.parse(sweep), tuple(notices))


_AROUND = 4
"""Room for special tokens: BERT has two, others up to four."""


def _grids(
    pairs: dict[str, Any], source: Embedded, encoder: Encoder, maps: list[dict[str, Any]], pooled: dict[str, Any]
) -> list[dict[str, Any]]:
    of_rows = {"encoder", "layer", "keep_special_tokens", "padded_below"}
    rows, plain = source.model_dump(mode="json"), source.model_dump(mode="json", exclude=of_rows)
    d = encoder.dimension
    return [{**pairs, **own, "text": rows, "d": d} for own in maps] + [{**pairs, **pooled, "text": plain, "d": d}]


def _holds_swaps(source: Embedded, n: int, seed: int) -> bool:
    """Whether one passage of n rows can be swapped, by the choice of the first draw."""
    first = SimilarityCell.parse({"map": "raf", "n": n, "d": 1, "text": source.model_dump(mode="json"), "seed": seed})
    try:
        swapped_passages(source, source.encoder, n, 1, first.pairs_seed)
    except InputError as error:
        if "passage" not in str(error):
            raise
        return False
    return True
