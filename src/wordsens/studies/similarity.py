"""Similarity where one word matters: are texts of flipped meaning less similar than texts that mean
the same?"""

import hashlib
import json
import math
from collections.abc import Hashable, Iterator, Sequence
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor

from wordsens.display.numbers import Estimate
from wordsens.display.view import Finding
from wordsens.errors import InputError, require_choice
from wordsens.intervals import LEAST, auc, auc_estimate, correlation_estimate
from wordsens.maps.mapping import feature_norm
from wordsens.maps.registry import map_title
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.models.embedding import embed, load_encoder
from wordsens.models.text_model import TextModel
from wordsens.seeds import derive_seed, generator
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.studies.passages import chosen_passages, shipped_pairs, some_pairs, swapped_passages
from wordsens.sweeps.map_cell import MapCell
from wordsens.sweeps.study import (
    BARS,
    INTERVALS,
    Preset,
    Study,
    Tables,
    changes,
    means,
    require_alike,
    side,
    tally,
    text_title,
)
from wordsens.sweeps.texts import Embedded, ShippedText, documents
from wordsens.text import Document
from wordsens.text.matrix import TextMatrix
from wordsens.text.pairs import LENGTHS, PACKAGE, SYNONYM, Pair

SWAPS, CHECK = "swaps", "check"

# Texts that a random map takes at once: attention on 32 texts of 320 rows holds 26 MB of scores.
_BATCH = 32


class SimilarityCell(MapCell, frozen=True):
    """The features of one map, pairs of one kind and length, one draw of weights and passages.

    Attributes:
        map: a transformer's texts are compared by one vector each, and `pool` says which.
        pairs: "swaps", passages of the texts with one word exchanged; or "check", the shipped
            pairs.
        n: of swaps, the rows of a passage, special tokens left out; of check, the rows up to which
            texts are padded.
        length: of check: question, paragraph or page.
        count: at most this many passages, or pairs of each kind.
        words: how many words are searched for S, in the first text; 0 for no S.
    """

    experiment: ClassVar[str] = "similarity"

    pairs: Literal["swaps", "check"] = SWAPS
    length: str | None = None
    count: Annotated[int, Field(ge=2)] = 16
    words: Annotated[int, Field(ge=0)] = 2

    @model_validator(mode="after")
    def _valid(self) -> "SimilarityCell":
        if (self.pairs == CHECK) != (self.length is not None):
            raise InputError(
                f"`length` (={self.length!r}) goes with pairs 'check', and `pairs` is "
                f"{self.pairs!r}"
            )
        if self.length is not None:
            require_choice("length", self.length, LENGTHS)
        if not isinstance(self.text, Embedded):
            raise InputError(
                f"`text` (={self.text.kind!r}) has no words to exchange; give reviews or a dataset"
            )
        if self.text.keep_special_tokens or self.text.padded_below is not None:
            raise InputError(
                "`text` is cut into passages here; drop keep_special_tokens and padded_below"
            )
        if self.reads_texts_itself and self.map_options["pool"] is None:
            raise InputError(
                "`pool` is missing: texts of a transformer are compared by one vector each; give "
                "mean"
            )
        return self

    @property
    def encoder(self) -> str:
        """The encoder whose tokens are counted."""
        assert isinstance(self.text, Embedded), "others are refused"
        return self.model if self.reads_texts_itself else self.text.encoder

    @property
    def pairs_seed(self) -> int:
        """The seed of the choice of pairs: every map sees the same ones. Those of check are the
        same in every draw."""
        return derive_seed(self.seed, "similarity", CHECK if self.pairs == CHECK else self.draw)

    def layers_of(self) -> Hashable:
        """Equal for cells that pool the layers of one model on the same texts, which are read
        once."""
        if not self.reads_texts_itself:
            return self
        names = ("model", "pool", "dtype", "pairs", "n", "length", "count", "pairs_seed")
        return tuple(getattr(self, name) for name in names)

    def described(self) -> dict[str, Any]:
        return {**super().described(), **({"text": "pairs"} if self.pairs == CHECK else {})}

    def content_of(self, source: Embedded) -> str:
        """The digest of the texts, or of the shipped pairs."""
        if self.length is None:
            return super().content_of(source)
        rows = json.dumps(
            [pair.row() for pair in shipped_pairs(self.length)], sort_keys=True, default=str
        )
        return hashlib.sha256(rows.encode()).hexdigest()


def measure(cell: SimilarityCell) -> dict[str, Any]:
    """Compare the pairs of one cell.

    `value` is the AUC: P(cos of an opposite < cos of a pair that means the same) + half of ties,
    over all pairs of pairs. What means the same: a one-word synonym in swaps, a paraphrase in the
    pairs of check. Passages are drawn by seed, n and draw alone: every map sees the same ones.
    """
    pairs = pairs_of(cell)
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.first, pair.second)))
    phi, encoder = cell.build(), load_encoder(cell.encoder)
    counted = [encoder.tokenize(text).words for text in texts]
    if isinstance(phi, TransformerFeatures):
        if phi.text_shape[1] != cell.d:
            raise InputError(
                f"`d` (={cell.d}) must be {phi.text_shape[1]}, the width of the model "
                f"{cell.model!r}"
            )
        features = _layers(phi.model, tuple(texts), phi.pool)[phi.layer]
        first = phi.embed([texts[0]])[0]
        words = range(phi.model.leading_tokens, phi.model.leading_tokens + counted[0])
    else:
        matrices = _rows(cell, texts, counted)
        features = _mapped(phi, matrices)
        first, words = matrices[0], range(counted[0])
    places = [(texts.index(pair.first), texts.index(pair.second)) for pair in pairs]
    cosines, moved = compared(features, places, phi.name)
    return {
        **aucs(pairs, cosines, moved),
        "rows": sum(counted) / len(counted),
        **_searched(cell, phi, first, words),
        "arrays": {"cosines": torch.from_numpy(cosines), "moved": torch.from_numpy(moved)},
    }


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
    for a, b in (features[list(pair)].double() for pair in places):
        length = feature_norm(a, name)
        cosines.append(float(a @ b) / (length * feature_norm(b, name)))
        moved.append(float(torch.linalg.vector_norm(b - a)) / length)
    return np.array(cosines), np.array(moved)


def aucs(
    pairs: Sequence[Pair],
    cosines: Float[np.ndarray, " pairs"],
    moved: Float[np.ndarray, " pairs"],
) -> dict[str, Any]:
    """The columns that the pairs' cosines and relative changes give; auc_low and auc_high: a 95 %
    interval over pairs.
    """
    opposites = np.array([not pair.same for pair in pairs])
    one_word = np.array([pair.kind == SYNONYM for pair in pairs])
    synonyms = one_word & np.array([pair.where == PACKAGE for pair in pairs])
    paraphrases = ~opposites & ~synonyms
    same = cosines[paraphrases if paraphrases.any() else ~opposites]
    estimate = auc_estimate(cosines[opposites], same)
    return {
        "value": estimate.value,
        "auc_low": estimate.low,
        "auc_high": estimate.high,
        "auc_synonym": auc(cosines[opposites], cosines[synonyms])
        if synonyms.any() and paraphrases.any()
        else None,
        "opposites": int(opposites.sum()),
        "same": len(same),
        "synonyms": int(one_word.sum()),
        "moved_flip": float(np.median(moved[opposites])),
        "moved_synonym": float(np.median(moved[one_word])) if one_word.any() else None,
    }


def _rows(cell: SimilarityCell, texts: Sequence[str], counted: Sequence[int]) -> list[TextMatrix]:
    """The texts, of `counted` rows, as n rows of length sqrt(d), shorter ones filled with [PAD]."""
    assert isinstance(cell.text, Embedded), "others are refused"
    if max(counted) > cell.n:
        raise InputError(
            f"`n` (={cell.n}) is less than the {max(counted)} rows of the longest text; take "
            f"n={max(counted)} or more"
        )
    named = [Document(text, None, f"text {place}") for place, text in enumerate(texts)]
    padded = None if min(counted) == cell.n else cell.n
    rows = embed(named, encoder=cell.text.encoder, layer=cell.text.layer, pad_to=padded)
    return [text.truncated(cell.n, cell.d) for text in rows]


@torch.no_grad()
def _mapped(phi: Any, texts: Sequence[TextMatrix]) -> Float[Tensor, "m k"]:
    batches = torch.stack([text.rows for text in texts]).split(_BATCH)
    return torch.cat([phi(phi.accept(batch)).flatten(start_dim=1).cpu() for batch in batches])


@lru_cache(maxsize=2)
def _layers(model: TextModel, texts: tuple[str, ...], pool: str | None) -> Tensor:
    """The pooled states of every layer, from one pass; kept for the cells of the other layers."""
    return model.encode_layers(texts, pool=pool)


def _searched(cell: SimilarityCell, phi: Any, text: TextMatrix, words: range) -> dict[str, Any]:
    """S of the text over a few of its words."""
    if not cell.words:
        return dict.fromkeys(("sensitivity", "evaluations", "word", "token"))
    stream = generator(cell.pairs_seed, "searched words", len(words))
    chosen = torch.randperm(len(words), generator=stream)[: cell.words].tolist()
    places = sorted(words[place] for place in chosen)
    options: dict[str, Any] = {"search": cell.search_plan, "certificate": False}
    result = word_sensitivity(phi, text, places, cell.radius, cell.seed_of("search"), **options)
    return {
        "sensitivity": result.value,
        "evaluations": result.evaluations,
        "word": result.word,
        "token": text.word(result.word),
    }


_LAZY: dict[str, Any] = {
    "gaussian": "lazy",
    "dtype": "float32",
    "starts": 1,
    "steps": 10,
    "words": 2,
}
_QUICK: dict[str, Any] = {"search": "quick", "words": 2}
# The random maps; deep ones of the usual depth. S of two words takes 0.2 s (raf) to 2.6 s (drf) at
# n = 128.
MAPS: dict[str, dict[str, Any]] = {"rf": _LAZY, "drf": _LAZY, "raf": _QUICK, "relu-raf": _QUICK}
# Two words at n = 128 take 4 s at MiniLM's last layer; twice the starts and steps find up to a
# third more there.
POOLED: dict[str, Any] = {"pool": "mean", "search": "quick", "starts": 1, "steps": 6, "words": 2}
# Rows of a passage, and passages per draw; lengths of the pairs of check, pairs of each kind, draws
# of the weights there; the step between the measured layers of the encoder, whose last is always
# measured. Quick leaves out S of the layers, and DRF.
PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "n": (8, 32),
        "count": 8,
        "lengths": LENGTHS[:1],
        "of_a_kind": 4,
        "check_draws": 1,
        "every": 3,
        "maps": {name: {**MAPS[name], "words": 1} for name in MAPS if name != "drf"},
        "pooled": {**POOLED, "words": 0},
    },
    "laptop": {
        "n": (8, 16, 32, 64),
        "count": 24,
        "lengths": LENGTHS[:2],
        "of_a_kind": 12,
        "check_draws": 1,
        "every": 3,
        "maps": MAPS,
        "pooled": POOLED,
    },
    "full": {
        "n": (8, 16, 32, 64, 128),
        "count": 24,
        "lengths": LENGTHS,
        "of_a_kind": 12,
        "check_draws": 2,
        "every": 1,
        "maps": MAPS,
        "pooled": POOLED,
    },
}
# Of the texts and weights of swaps.
DRAWS = list(range(5))
# Room for special tokens: BERT has two, others up to four.
_AROUND = 4
# Keys of a text whose rows a model makes itself.
_OF_ROWS = {"encoder", "layer", "keep_special_tokens", "padded_below"}


def preset(scale: str, source: Embedded, seed: int, labels: str | None) -> Preset:
    """AUC of RF, DRF, RAF, ReLU-RAF and of every pooled layer of the encoder, against the length;
    and S."""
    size, encoder = PRESETS[scale], load_encoder(source.encoder)
    layers = sorted({*range(0, encoder.layers + 1, size["every"]), encoder.layers})
    pooled = {"map": "model", "model": source.encoder, "model_layer": layers, **size["pooled"]}
    texts, first_seed = documents(source), derive_seed(seed, "similarity", 0)
    sizes = [n for n in size["n"] if chosen_passages(texts, source.encoder, n, 1, first_seed)]
    parts: list[tuple[Embedded, dict[str, Any], list[int]]] = []
    if sizes:
        parts.append((source, {"pairs": SWAPS, "n": sizes, "count": size["count"]}, DRAWS))
    left = ", ".join(str(n) for n in size["n"] if n not in sizes)
    notice = f"no text has a passage of {left} words in which one can be swapped: left out"
    notices = [notice] if left else []
    plain = ShippedText(encoder=source.encoder, layer=source.layer)
    for length in size["lengths"]:
        pairs = shipped_pairs(length)
        rows = max(
            encoder.tokenize(text).words for pair in pairs for text in (pair.first, pair.second)
        )
        if encoder.padding is None or rows + _AROUND > (encoder.context or math.inf):
            notices.append(
                f"{encoder.name} cannot take pairs of {rows} rows, or has no [PAD]: {length}s are "
                "left out"
            )
        else:
            check = {"pairs": CHECK, "length": length, "n": rows, "count": size["of_a_kind"]}
            parts.append((plain, check, list(range(size["check_draws"]))))
    grids: list[dict[str, Any]] = []
    for text, keys, draws in parts:
        keys |= {"d": encoder.dimension, "text": text.model_dump(mode="json"), "draw": draws}
        grids += [{**keys, "map": name, **options} for name, options in size["maps"].items()]
        # A model has no random weights, and the pairs of check are the same in every draw.
        own_draws = draws if keys["pairs"] == SWAPS else [0]
        own_text = text.model_dump(mode="json", exclude=_OF_ROWS)
        grids.append({**keys, **pooled, "text": own_text, "draw": own_draws})
    return grids, notices


_NUMBERS = {"moved by flip": "moved_flip", "by synonym": "moved_synonym", "S": "sensitivity"}
# The AUC of a guess.
CHANCE = 0.5
_OF_SWAPS, _OF_CHECK = "Swaps of one word", "Pairs of check"
_SYNONYMS = "AUC against synonyms"
_MAPS, _LAYERS = "random maps", "pooled layers"


def ordered(records: pd.DataFrame) -> Any:
    """The records map by map and by length, a model's without its folder; `features` says whether
    maps are random or layers of a model."""
    kinds = {False: _MAPS, True: _LAYERS}
    features = records["spec"].str.contains('"model_layer"').map(kinds)
    named = records.assign(features=features, map=records["map"].str.split("/").str[-1])
    parts = named.groupby(["text", "map"], sort=False)
    return pd.concat([part.sort_values("n", kind="stable") for _, part in parts])


def _both(whole: Any) -> list[Any]:
    return [whole[whole["pairs"] == pairs] for pairs in (SWAPS, CHECK)]


def tables(records: pd.DataFrame) -> Tables:
    """A row per map and length: of swaps, then of the pairs of check, where every draw has the same
    pairs and the interval of the AUC is over these."""
    whole = ordered(records)
    require_alike(whole, ["pairs", "map", "text", "n"])
    swaps, check = _both(whole)
    keys = ["map", "length", "n"]
    columns = {"AUC": "value", _SYNONYMS: "auc_synonym", **_NUMBERS}
    checked = means(check, keys, columns, [_SYNONYMS])
    ends = check.groupby(keys, sort=False)[["value", "auc_low", "auc_high"]].mean()
    checked["AUC"] = [Estimate(*row) for row in ends.itertuples(index=False)]
    keys = ["map", "text", "n"]
    passages = swaps.groupby(keys)["opposites"].transform("min")
    swapped = swaps.assign(passages=passages)
    swapped = means(swapped, [*keys, "passages"], {"AUC": "value", **_NUMBERS}, ["AUC"])
    return {_OF_SWAPS: swapped, _OF_CHECK: checked}


def findings(records: pd.DataFrame, tables: Tables) -> Iterator[Finding]:
    """The AUC against chance, its rank correlation with S, and the pairs of check."""
    swaps, check = _both(ordered(records))
    if len(swaps):
        rows: Any = tables[_OF_SWAPS]
        few, many = rows["n"].min(), rows["n"].max()
        texts = " and ".join(map(text_title, rows["text"].unique()))
        features = dict(zip(swaps["map"], swaps["features"], strict=True))
        clauses = []
        for kind, part in rows.groupby(rows["map"].map(features), sort=False):
            better = tally(part["AUC"], "better than chance", "worse", none=CHANCE)
            clauses.append(f"{kind} are {better}")
        if few < many:
            longest, shortest = (swaps[swaps["n"] == n] for n in (many, few))
            change = changes(longest, shortest, ["map", "text"])["change"]
            clauses.append(f"with length the AUC {tally(change, 'rises', 'falls')}")
        yield Finding(
            "In distinguishing a flipped meaning from a synonym (AUC, swaps in "
            f"{texts} of {few} to {many} words) {'; '.join(clauses)}.",
            rows=tuple(swaps["cell"]),
        )
        searched = swaps.dropna(subset="sensitivity")
        if phrases := list(_correlations(searched)):
            yield Finding(
                f"The AUC compared with the word sensitivity S ({texts}): over "
                f"{'; over '.join(phrases)}.",
                rows=tuple(searched["cell"]),
            )
    if len(check):
        rows = tables[_OF_CHECK]
        lengths = f"{', '.join(rows['length'].unique())} pairs of check"
        compared = tally(rows["AUC"], "above chance", "below chance", none=CHANCE)
        yield Finding(
            f"Opposites against paraphrases, {lengths}: AUC {_span(rows, 'AUC')}, {compared}; "
            f"against one-word synonyms {_span(rows, _SYNONYMS)}.",
            rows=tuple(check["cell"]),
        )


def _correlations(searched: Any) -> Iterator[str]:
    """The rank correlation of AUC and S over random maps, and over layers, where it is known."""
    for kind, part in searched.groupby("features", sort=False):
        draws = [draw[["sensitivity", "value"]].to_numpy() for _, draw in part.groupby("draw")]
        correlation = correlation_estimate(draws) if len(draws) >= LEAST else Estimate(0.0)
        if correlation.low is not None:
            how = ("does not follow S", "rises with S", "falls with S")[side(correlation)]
            yield f"{kind} and lengths the AUC {how}, rank correlation {correlation}"


def _span(rows: Any, column: str) -> str:
    """The least and the largest mean of a column, with their maps."""
    known = rows.dropna(subset=column)
    means = sorted(zip([cell.value for cell in known[column]], known["map"], strict=True))
    return " to ".join(f"{mean:.2f} ({map_title(name)})" for mean, name in (means[0], means[-1]))


def figures(records: pd.DataFrame) -> dict[str, Any]:
    """AUC against the length and against S, and the pairs of check; of a model its first, middle
    and last layer, which a figure can tell apart."""
    from wordsens.plotting import lines, points

    whole = ordered(records)
    features = dict(zip(whole["map"], whole["features"], strict=True))
    layers = sorted(name for name, kind in features.items() if kind == _LAYERS)
    layers.sort(key=len)  # layer 2 before layer 10
    left = set(layers) - {layers[place] for place in (0, len(layers) // 2, -1) if layers}
    frames: Any = (frame[~frame["map"].isin(list(left))] for frame in tables(records).values())
    swaps, check = (frame.assign(panel=frame["map"].map(features)) for frame in frames)
    swaps["panel"] += ", " + swaps["text"].map(text_title)
    columns = {"AUC": "paraphrases", _SYNONYMS: "synonyms"}
    of_check = pd.concat(
        [
            check.assign(AUC=check[column], panel=check["panel"] + f", against {name}")
            for column, name in columns.items()
        ]
    )
    drawn = {
        "similarity": (
            (lines, swaps, "n", "words per passage", "x"),
            "Is a flipped meaning less similar than a synonym?",
            f"{BARS} AUC: the probability that it is, by the cosine of the features.",
        ),
        "similarity-sensitivity": (
            (points, swaps, "S", "word sensitivity S", "x"),
            "Does the AUC follow the sensitivity?",
            f"{BARS} One mark per length, at the mean of S for one passage, a lower bound from a "
            "short search over a few words.",
        ),
        "similarity-check": (
            (points, of_check, "length", "text length", ""),
            "Pairs of check: are opposites less similar than pairs that mean the same?",
            "Marks are means over draws of weights on the same pairs. Bars, against paraphrases "
            "only: 95 % confidence intervals over the pairs.",
        ),
    }
    options: dict[str, Any] = {"y": "AUC", "colour": "map", "panel": "panel"}
    options["guides"] = {"chance": [(None, CHANCE)]}
    return {
        name: draw(frame, x=x, labels={x: label}, log=log, title=title, caption=caption, **options)
        for name, ((draw, frame, x, label, log), title, caption) in drawn.items()
        if frame[x].notna().any()
    }


STUDY = Study(
    name="similarity",
    Cell=SimilarityCell,
    measure=measure,
    preset=preset,
    tables=tables,
    findings=findings,
    figures=figures,
    note="AUC: the probability that the features of a pair with flipped meaning are less similar "
    "(cosine) than those of a pair with the same meaning: a one-word synonym in swaps, a "
    "paraphrase in check; 0.5 is chance. Moved: median relative change. n counts tokens. Means "
    f"over draws of weights and passages, {INTERVALS}; in check the interval is over the pairs. "
    "S: a lower bound from a short search over a few words of one text.",
    together=SimilarityCell.layers_of,
)
