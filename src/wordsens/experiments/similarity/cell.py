"""One comparison of similarities: from spec to the columns of a record."""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError
from wordsens.evaluation.kinds import SYNONYM, Measured
from wordsens.experiments.kinds import CellKind
from wordsens.experiments.similarity.check_pairs import some_pairs
from wordsens.experiments.similarity.record import SimilarityRecord
from wordsens.experiments.similarity.spec import CHECK, SimilarityCell
from wordsens.experiments.similarity.summary import summarise_similarity
from wordsens.experiments.texts.source import Embedded
from wordsens.experiments.texts.swapped_passages import swapped_passages
from wordsens.maps.mapping import feature_norm
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.seeds import generator
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.statistics.auc import auc, auc_interval
from wordsens.text import Document, embed, load_encoder
from wordsens.text.matrix import TextMatrix
from wordsens.text.pairs import Pair

_BATCH = 32
"""Texts that a random map takes at once: attention on 32 texts of 320 rows holds 26 MB of scores."""


def measure_similarity(
    cell: SimilarityCell, keep: Callable[[Mapping[str, Tensor]], None] | None = None
) -> dict[str, Any]:
    """Compare the pairs of one cell; `keep` is given the pairs' `cosines` and relative changes (`moved`), in order.

    Passages are drawn by seed, n and draw alone: every map sees the same ones.
    """
    pairs = pairs_of(cell)
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.first, pair.second)))
    phi = cell.build()
    if isinstance(phi, TransformerFeatures):
        features = _pooled(phi, texts, cell)
        first = phi.embed([texts[0]])[0]
        own = phi.reading().leading_tokens, len(first) - phi.reading().own_tokens
    else:
        matrices, lengths = _rows(cell, texts)
        features = _mapped(phi, matrices)
        first, own = matrices[0], (0, lengths[0])
    at = {text: place for place, text in enumerate(texts)}
    cosines, moved = compared(features, [(at[pair.first], at[pair.second]) for pair in pairs], phi.name)
    if keep is not None:
        keep({"cosines": torch.from_numpy(cosines), "moved": torch.from_numpy(moved)})
    counted = [load_encoder(cell.encoder).tokenize(text).words for text in texts]
    return {
        **aucs(pairs, cosines, moved, seed=cell.pairs_seed),
        "rows": sum(counted) / len(counted),
        **_searched(cell, phi, first, own),
    }


def describe_similarity(cell: SimilarityCell) -> dict[str, Any]:
    """The columns that the cell alone decides."""
    pairs = {"text": "pairs"} if cell.pairs == CHECK else {}
    return {**cell.described(), **pairs, "pairs": cell.pairs, "count": cell.count}


def pairs_of(cell: SimilarityCell) -> tuple[Pair, ...]:
    """The pairs that the cell compares, each passage or text in its words."""
    if cell.length is not None:
        return some_pairs(cell.length, cell.count, cell.pairs_seed)
    assert isinstance(cell.text, Embedded), "others are refused"
    plain = cell.text.model_copy(update={"encoder": cell.encoder, "layer": 0})
    return swapped_passages(plain, cell.encoder, cell.n, cell.count, cell.pairs_seed)


def compared(
    features: Float[Tensor, "m k"], places: Sequence[tuple[int, int]], name: str
) -> tuple[Float[np.ndarray, " pairs"], Float[np.ndarray, " pairs"]]:
    """For each pair (a, b) of rows the cosine of a and b, and ‖b - a‖ / ‖a‖; both in float64.

    Raises:
        ZeroFeaturesError: features of length 0, whose cosine is not defined; `name` is the map's.
    """
    cosines, moved = [], []
    for first, second in places:
        a, b = features[first].double(), features[second].double()
        length = feature_norm(a, name)
        cosines.append(float(a @ b) / (length * feature_norm(b, name)))
        moved.append(float(torch.linalg.vector_norm(b - a)) / length)
    return np.array(cosines), np.array(moved)


def aucs(
    pairs: Sequence[Pair],
    cosines: Float[np.ndarray, " pairs"],
    moved: Float[np.ndarray, " pairs"],
    *,
    seed: int,
) -> dict[str, Any]:
    """The columns that the pairs' cosines and relative changes give."""
    measured = Measured(pairs, cosines)
    opposites = np.logical_or.reduce(list(measured.opposites.values()))
    same, synonyms = cosines[measured.paraphrases], measured.synonyms
    one_word = np.array([pair.kind == SYNONYM for pair in pairs])
    found = auc_interval(cosines[opposites], same, seed=seed)
    kinds = measured.opposites
    return {
        "value": found.value,
        "auc_low": found.low,
        "auc_high": found.high,
        "auc_synonym": auc(cosines[opposites], cosines[synonyms]) if synonyms.any() else None,
        "opposites": int(opposites.sum()),
        "same": len(same),
        "synonyms": int(one_word.sum()),
        "kinds": json.dumps(list(kinds)),
        "auc_by_kind": tuple(auc(cosines[own], same) for own in kinds.values()),
        "auc_synonym_by_kind": tuple(auc(cosines[own], cosines[synonyms]) for own in kinds.values())
        if synonyms.any()
        else None,
        "moved_flip": float(np.median(moved[opposites])),
        "moved_synonym": float(np.median(moved[one_word])) if one_word.any() else None,
        "changed": json.dumps([pair.changed for pair in pairs], ensure_ascii=False),
    }


def _rows(cell: SimilarityCell, texts: Sequence[str]) -> tuple[list[TextMatrix], list[int]]:
    """The texts as n rows of length sqrt(d), shorter ones filled with [PAD]; and how many rows are their own."""
    assert isinstance(cell.text, Embedded), "others are refused"
    lengths = [load_encoder(cell.encoder).tokenize(text).words for text in texts]
    if max(lengths) > cell.n:
        raise InputError(
            f"`n` (={cell.n}) is less than the {max(lengths)} rows of the longest text; take n={max(lengths)} or more"
        )
    found = [Document(text, None, f"text {place}") for place, text in enumerate(texts)]
    padded = None if min(lengths) == cell.n else cell.n
    rows = embed(found, encoder=cell.text.encoder, layer=cell.text.layer, pad_to=padded)
    return [one.truncated(cell.n, cell.d) for one in rows], lengths


@torch.no_grad()
def _mapped(phi: Any, texts: Sequence[TextMatrix]) -> Float[Tensor, "m k"]:
    rows = torch.stack([text.rows for text in texts])
    return torch.cat([phi(phi.accept(batch)).flatten(start_dim=1).cpu() for batch in rows.split(_BATCH)])


def _pooled(phi: TransformerFeatures, texts: Sequence[str], cell: SimilarityCell) -> Float[Tensor, "m d"]:
    if phi.text_shape[1] != cell.d:
        raise InputError(f"`d` (={cell.d}) must be {phi.text_shape[1]}, the width of the model {cell.model!r}")
    return _layers(_Held(phi, texts))[phi.layer]


class _Held:
    """A model's map and texts as the key of a cache: equal where the model, the texts and the way of pooling are."""

    def __init__(self, phi: TransformerFeatures, texts: Sequence[str]):
        self.phi, self.key = phi, (tuple(texts), id(phi.stack), phi.pool)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=2)
def _layers(held: _Held) -> Float[Tensor, "layers m d"]:
    """The pooled states of every layer, from one pass; kept for the cells of the other layers."""
    return held.phi.encode_layers(list(held.key[0]))


def _searched(cell: SimilarityCell, phi: Any, text: TextMatrix, own: tuple[int, int]) -> dict[str, Any]:
    """S of the text over a few of its `own` words: from which row on, and how many."""
    if not cell.words:
        return {"sensitivity": None, "evaluations": None}
    start, count = own
    stream = generator(cell.pairs_seed, "searched words", count)
    words = sorted(start + place for place in torch.randperm(count, generator=stream)[: cell.words].tolist())
    found = word_sensitivity(
        phi, text, words, cell.radius, cell.seed_of("search"), search=cell.search_plan, certificate=False
    )
    return {
        "sensitivity": found.value,
        "evaluations": found.evaluations,
        "word": found.word,
        "token": text.word(found.word),
    }


KIND = CellKind(
    name="similarity",
    folder="similarity-records",
    cell_type=SimilarityCell,
    record_type=SimilarityRecord,
    measure=measure_similarity,
    described=describe_similarity,
    sharing=SimilarityCell.layers_of,
    summarise=summarise_similarity,
)
