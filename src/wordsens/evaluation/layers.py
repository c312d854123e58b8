"""The layer at which a flipped meaning is lost: the same comparison at every layer, before and
after pooling."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.display.view import Table
from wordsens.errors import InputError
from wordsens.evaluation.similarities import PairSimilarities, Progress, unit_vectors
from wordsens.intervals import auc
from wordsens.maps.transformer.features import TransformerFeatures, map_of
from wordsens.models.model import Model, require_cosines
from wordsens.seeds import Seed, derive_seed
from wordsens.text.pairs import LENGTHS, Pair

MOST_OF_A_KIND = 24
"""Pairs of a kind: on two cores MiniLM's seven layers then take about a minute."""

BATCH = 64
"""Texts of one length in tokens that the model takes at once."""


@dataclass(frozen=True, kw_only=True)
class LayerRow:
    """One kind of opposite at one layer, over the pairs of the length of a question.

    Attributes:
        kind, layer: which; layer 0 is what enters the first one.
        pairs: how many opposites.
        auc: of the pooled vectors, against paraphrases.
        auc_synonym: of the pooled vectors, against one-word synonyms; None where there are none.
        pooled: the median cosine distance of an opposite's two pooled vectors.
        rows: the median distance of the token that finds its like least in the other text: 1 - min
            over the rows of both texts of the largest cosine with a row of the other. The
            difference is still there.
        rows_synonym: the same of one-word synonyms; None where there are none.
    """

    kind: str
    layer: int
    pairs: int
    auc: float
    auc_synonym: float | None
    pooled: float
    rows: float
    rows_synonym: float | None

    @property
    def kept(self) -> float:
        """The share of the rows' distance that is left after pooling."""
        return self.pooled / self.rows if self.rows > 0 else float("nan")


def layer_rows(
    model: Model,
    pairs: Sequence[Pair],
    *,
    seed: Seed = 0,
    progress: Progress = lambda done, total: None,
) -> list[LayerRow]:
    """The kinds at every layer.

    Args:
        model: that gives its layers, and the rows behind them.
        pairs: of which those of the length of a question are measured, so that no text is cut: at
            most MOST_OF_A_KIND of each kind, at random.
        seed: of the choice.
        progress: called with (done, total) in texts and layers.

    Raises:
        InputError: the model does not give its layers, or no pair is short enough.
    """
    if getattr(model, "layers", None) is None:
        raise InputError(
            f"{model.name} does not give its layers; leave --layers out, or name a transformers "
            "model"
        )
    require_cosines(model, "layers (--layers)")
    of_questions = [pair for pair in pairs if pair.length == LENGTHS[0]]
    shuffled = random.Random(derive_seed(seed, "layers")).sample(of_questions, len(of_questions))
    short: list[Pair] = []
    for kind in dict.fromkeys(pair.kind for pair in of_questions):
        short += [pair for pair in shuffled if pair.kind == kind][:MOST_OF_A_KIND]
    if not short:
        raise InputError(
            "`pairs` holds none of the length of a question, where layers are compared"
        )
    texts = [text for pair in short for text in (pair.first, pair.second)]
    phi = map_of(model)
    encode = partial(phi.model.encode_layers, pool=phi.pool)
    units = unit_vectors(encode, texts, progress)
    pooled = np.array(
        [(units[pair.first] * units[pair.second]).sum(-1).tolist() for pair in short]
    ).T
    layers: list[LayerRow] = []
    for layer, cosines in enumerate(pooled):
        rows = _token_rows(phi.at(layer=layer), texts)
        tables = (rows[pair.first] @ rows[pair.second].T for pair in short)
        apart = np.array(
            [1 - float(torch.minimum(table.amax(0).min(), table.amax(1).min())) for table in tables]
        )
        layers += _rows_of(layer, PairSimilarities(tuple(short), cosines), apart)
        progress(layer + 1, len(pooled))
    return layers


def _rows_of(
    layer: int, measured: PairSimilarities, apart: Float[np.ndarray, " pairs"]
) -> list[LayerRow]:
    cosines, synonyms = measured.values, measured.synonyms
    return [
        LayerRow(
            kind=kind,
            layer=layer,
            pairs=int(members.sum()),
            auc=auc(cosines[members], cosines[measured.paraphrases]),
            auc_synonym=auc(cosines[members], cosines[synonyms]) if synonyms.any() else None,
            pooled=float(np.median(1 - cosines[members])),
            rows=float(np.median(apart[members])),
            rows_synonym=float(np.median(apart[synonyms])) if synonyms.any() else None,
        )
        for kind, members in measured.opposites.items()
    ]


def _token_rows(phi: TransformerFeatures, texts: Sequence[str]) -> dict[str, Tensor]:
    """Every text's rows at the map's layer, each at length one."""
    embedded = {text: phi.embed([text])[0].rows for text in dict.fromkeys(texts)}
    units: dict[str, Tensor] = {}
    for tokens in sorted({len(rows) for rows in embedded.values()}):
        alike = [text for text, rows in embedded.items() if len(rows) == tokens]
        for start in range(0, len(alike), BATCH):
            batch = alike[start : start + BATCH]
            states = phi(torch.stack([embedded[text] for text in batch]))
            units |= dict(
                zip(batch, torch.nn.functional.normalize(states.double(), dim=-1), strict=True)
            )
    return units


def layer_table(layers: Sequence[LayerRow]) -> Table:
    """One row per kind and layer."""
    rows = sorted(layers, key=lambda row: (row.kind, row.layer))
    names = {"kind": "kind", "layer": "layer", "AUC": "auc", "synonym": "auc_synonym"}
    names |= {"token": "rows", "pooled": "pooled", "kept": "kept"}
    return Table(
        "By layer: AUC, and the distance of an opposite's farthest token and of its pooled vectors",
        {title: [getattr(row, name) for row in rows] for title, name in names.items()},
        units={"kept": "%"},
        note="Token: the median cosine distance of the token that has no close counterpart in the "
        "other text. Pooled: the median distance of the two pooled vectors. Kept: their ratio, "
        "which is what pooling leaves of the difference.",
        most=len(rows),
    )
