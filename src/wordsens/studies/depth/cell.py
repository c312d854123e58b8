"""One word of one text behind one layer: S, the average case, the small-radius limit, and the
word's removal."""

from typing import Annotated, Any, ClassVar

import torch
from pydantic import Field, model_validator

from wordsens.errors import InputError
from wordsens.maps.base import FeatureMap
from wordsens.maps.function import FunctionFeatures
from wordsens.maps.random_transformer import RandomTransformer
from wordsens.maps.registry import base_name, map_title
from wordsens.seeds import generator
from wordsens.sensitivity.jacobian import jacobian_sensitivity
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.sensitivity.profile import average_change
from wordsens.sensitivity.replacements import row_removal
from wordsens.sweeps.map_cell import MapCell
from wordsens.sweeps.measurement import mean_cosine
from wordsens.sweeps.texts import load_text
from wordsens.text.matrix import TextMatrix
from wordsens.theory.depth import average_by_layer

_PATHS = 8
"""Of the prediction of one draw; the draws are averaged."""


class DepthCell(MapCell, frozen=True):
    """One word of one text behind one layer: of a random transformer the last, `depth`; of a model
    `model_layer`; of attention the only one.

    Attributes:
        random_weights: of a model: its architecture with random weights, on the trained model's
            rows.
        front, behind: words of the text before and behind the n words of which one moves.
        last_row: of a random transformer: its last row alone is measured, as one reads a causal
            model.
    """

    experiment: ClassVar[str] = "depth"

    random_weights: bool = False
    front: Annotated[int, Field(ge=0)] = 0
    behind: Annotated[int, Field(ge=0)] = 0
    last_row: bool = False

    @model_validator(mode="after")
    def _of_their_maps(self) -> "DepthCell":
        if self.random_weights and not self.reads_texts_itself:
            raise InputError(
                f"`random_weights` is for the map 'model', and {self.map!r} has random ones; drop "
                "it"
            )
        if self.last_row and base_name(self.map) != "transformer":
            raise InputError(
                "`last_row` is for the map 'transformer'; of a model, pool=last is its last row"
            )
        return self


def measure_depth(cell: DepthCell) -> dict[str, Any]:
    """Measure one cell: `value` is S of the word, a lower bound; the other columns are of the same
    word and radius."""
    phi = cell.build()
    model = phi if cell.reads_texts_itself else None
    total = cell.front + cell.n + cell.behind
    text = load_text(cell.text, total, cell.d, draw=cell.draw, seed=cell.seed, model=model)
    word, predicted = _moving_word(cell, text), None
    if cell.random_weights:
        phi = phi.with_random_weights(cell.seed_of("map"))
    name, series = phi.name, series_title(cell, phi)
    layer = phi.layer if cell.reads_texts_itself else getattr(phi, "depth", 1)
    if cell.last_row:
        phi = _last_row(phi)
    elif isinstance(phi, RandomTransformer):
        by_layer, _ = average_by_layer(
            phi, text, word, cell.radius, cell.seed_of("paths"), paths=_PATHS
        )
        predicted = float(by_layer[-1])
    measured = word_sensitivity(
        phi,
        text,
        [word],
        cell.radius,
        cell.seed_of("search"),
        search=cell.search_plan,
        certificate=False,
    )
    radius = float(measured.radius[0])
    return {
        "map": name,
        "series": series,
        "model": cell.model if cell.reads_texts_itself else None,
        "at_layer": layer,
        "source": text.source,
        "moved": word,
        "token": text.word(word),
        "value": measured.value,
        "average": average_change(phi, text, [word], cell.radius, seed=cell.seed_of("average"))[0],
        "predicted": predicted,
        "small_radius": radius
        * jacobian_sensitivity(phi, text, [word], cell.seed_of("jacobian")).value,
        "removal": row_removal(phi, text, word),
        "radius": radius,
        "cosine": mean_cosine(text.rows),
        "evaluations": measured.evaluations,
        "converged": float(measured.converged.double().mean()),
        "arrays": {
            "rows": text.rows,
            "words": measured.words,
            "perturbations": measured.perturbations,
        },
    }


def series_title(cell: DepthCell, phi: FeatureMap) -> str:
    """The name of the curve that the cell is a point of."""
    if cell.reads_texts_itself:
        return cell.model + " with random weights" * cell.random_weights
    if not isinstance(phi, RandomTransformer):
        return map_title(phi.name)
    if not (phi.residual or phi.norm or phi.mlp):
        parts = ["attention with values" if phi.has_values else "attention alone"]
    else:
        parts = [
            "" if phi.residual else "no residual",
            f"{phi.norm}-norm" if phi.norm else "residual" * phi.residual,
        ]
    parts += [
        "MLP" * bool(phi.mlp),
        "causal" * phi.causal,
        f"{phi.heads} heads" if phi.heads > 1 else "",
    ]
    parts += [
        "" if phi.score.name == "softmax" else f"{phi.score.name} scores",
        "last row" * cell.last_row,
    ]
    return ", ".join(part for part in parts if part)


def _moving_word(cell: DepthCell, text: TextMatrix) -> int:
    """A row of a word among the n, at the same place whatever the map; of a model not one of its
    own tokens."""
    window = range(cell.front, cell.front + cell.n)
    of_words = [
        row for word in text.whole_words or () for row in word.rows if row in window
    ] or list(window)
    stream = generator(cell.seed, "word", cell.n, cell.draw)
    return of_words[int(torch.rand(1, generator=stream) * len(of_words))]


def _last_row(phi: FeatureMap) -> FeatureMap:
    return FunctionFeatures(
        lambda texts: phi.features(texts)[..., -1, :],
        batched=True,
        name=phi.name,
        dtype=phi.dtype,
        device=phi.device,
    )
