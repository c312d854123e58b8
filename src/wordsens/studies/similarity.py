"""Similarity where one word matters: are texts of flipped meaning less alike than texts that mean
the same?"""

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache
from statistics import fmean
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor

from wordsens.display.numbers import Estimate
from wordsens.display.view import Finding
from wordsens.errors import InputError, require_choice
from wordsens.evaluation.similarities import PairSimilarities
from wordsens.intervals import auc, auc_estimate, correlation_estimate, ends
from wordsens.maps.mapping import feature_norm
from wordsens.maps.registry import map_title
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.models.embedding import embed, load_encoder
from wordsens.models.text_model import TextModel
from wordsens.seeds import derive_seed, generator
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.studies.passages import shipped_pairs, some_pairs, swapped_passages
from wordsens.sweeps.experiment import (
    INTERVALS,
    LEAST_DRAWS,
    SHARE,
    Column,
    Experiment,
    Grids,
    Summary,
    estimate,
    finding,
    grouped,
    paired,
    table,
    text_title,
)
from wordsens.sweeps.map_cell import MapCell
from wordsens.sweeps.store import Record, as_records
from wordsens.sweeps.texts import Embedded, ReviewsText
from wordsens.text import Document
from wordsens.text.matrix import TextMatrix
from wordsens.text.pairs import LENGTHS, SYNONYM, Pair

SWAPS, CHECK = "swaps", "check"

_BATCH = 32
"""Texts that a random map takes at once: attention on 32 texts of 320 rows holds 26 MB of
scores."""


class SimilarityCell(MapCell, frozen=True):
    """The features of one map, pairs of one kind and length, one draw of weights and passages.

    Attributes:
        map: a transformer's texts are compared by one vector each, and `pool` says which.
        pairs: "swaps", passages of the texts with one word exchanged; or "check", the shipped
            pairs.
        n: of swaps, the rows of a passage, special tokens left out; of check, the rows up to which
            texts are padded.
        length: of check: question, paragraph or page.
        count: at most so many passages, or pairs of a kind.
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
        if self.reads_texts_itself and self.pool is None:
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

    def layers_of(self) -> tuple[Any, ...] | None:
        """Equal for cells that pool the layers of one model on the same texts, which are read
        once."""
        if not self.reads_texts_itself:
            return None
        return (
            self.model,
            self.pool,
            self.dtype,
            self.pairs,
            self.n,
            self.length,
            self.count,
            self.pairs_seed,
        )

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


def measure_similarity(cell: SimilarityCell) -> dict[str, Any]:
    """Compare the pairs of one cell.

    `value` is the AUC: P(cos of an opposite < cos of a pair that means the same) + half of ties,
    over all pairs of pairs. What means the same: a one-word synonym in swaps, a paraphrase in the
    pairs of check. Passages are drawn by seed, n and draw alone: every map sees the same ones.
    """
    pairs = pairs_of(cell)
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.first, pair.second)))
    phi = cell.build()
    if isinstance(phi, TransformerFeatures):
        features = _pooled(phi, texts, cell)
        first = phi.embed([texts[0]])[0]
        group = phi.model.leading_tokens, len(first) - phi.model.own_tokens
    else:
        matrices, lengths = _rows(cell, texts)
        features = _mapped(phi, matrices)
        first, group = matrices[0], (0, lengths[0])
    at = {text: place for place, text in enumerate(texts)}
    cosines, moved = compared(
        features, [(at[pair.first], at[pair.second]) for pair in pairs], phi.name
    )
    encoder = load_encoder(cell.encoder)
    counted = [encoder.tokenize(text).words for text in texts]
    return {
        **aucs(pairs, cosines, moved),
        "rows": sum(counted) / len(counted),
        **_searched(cell, phi, first, group),
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
) -> dict[str, Any]:
    """The columns that the pairs' cosines and relative changes give; auc_low and auc_high: a 95 %
    interval over pairs.
    """
    measured = PairSimilarities(tuple(pairs), cosines)
    opposites = np.logical_or.reduce(list(measured.opposites.values()))
    same, synonyms = cosines[measured.paraphrases], measured.synonyms
    one_word = np.array([pair.kind == SYNONYM for pair in pairs])
    estimate = auc_estimate(cosines[opposites], same)
    beside = cosines[synonyms] if synonyms.any() else None
    return {
        "value": estimate.value,
        "auc_low": estimate.low,
        "auc_high": estimate.high,
        "auc_synonym": None if beside is None else auc(cosines[opposites], beside),
        "opposites": int(opposites.sum()),
        "same": len(same),
        "synonyms": int(one_word.sum()),
        "moved_flip": float(np.median(moved[opposites])),
        "moved_synonym": float(np.median(moved[one_word])) if one_word.any() else None,
    }


def _rows(cell: SimilarityCell, texts: Sequence[str]) -> tuple[list[TextMatrix], list[int]]:
    """The texts as n rows of length sqrt(d), shorter ones filled with [PAD]; and how many rows are
    their own."""
    assert isinstance(cell.text, Embedded), "others are refused"
    encoder = load_encoder(cell.encoder)
    lengths = [encoder.tokenize(text).words for text in texts]
    if max(lengths) > cell.n:
        raise InputError(
            f"`n` (={cell.n}) is less than the {max(lengths)} rows of the longest text; take "
            f"n={max(lengths)} or more"
        )
    named = [Document(text, None, f"text {place}") for place, text in enumerate(texts)]
    padded = None if min(lengths) == cell.n else cell.n
    rows = embed(named, encoder=cell.text.encoder, layer=cell.text.layer, pad_to=padded)
    return [one.truncated(cell.n, cell.d) for one in rows], lengths


@torch.no_grad()
def _mapped(phi: Any, texts: Sequence[TextMatrix]) -> Float[Tensor, "m k"]:
    rows = torch.stack([text.rows for text in texts])
    return torch.cat(
        [phi(phi.accept(batch)).flatten(start_dim=1).cpu() for batch in rows.split(_BATCH)]
    )


def _pooled(
    phi: TransformerFeatures, texts: Sequence[str], cell: SimilarityCell
) -> Float[Tensor, "m d"]:
    if phi.text_shape[1] != cell.d:
        raise InputError(
            f"`d` (={cell.d}) must be {phi.text_shape[1]}, the width of the model {cell.model!r}"
        )
    return _layers(_Held(phi, texts))[phi.layer]


class _Held:
    """A model's map and texts as the key of a cache: equal where the model, the texts and the way
    of pooling are."""

    def __init__(self, phi: TransformerFeatures, texts: Sequence[str]):
        self.phi, self.key = phi, (tuple(texts), id(phi.model), phi.pool)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)


@lru_cache(maxsize=2)
def _layers(held: _Held) -> Float[Tensor, "layers m d"]:
    """The pooled states of every layer, from one pass; kept for the cells of the other layers."""
    return held.phi.model.encode_layers(list(held.key[0]), pool=held.phi.pool)


def _searched(
    cell: SimilarityCell, phi: Any, text: TextMatrix, group: tuple[int, int]
) -> dict[str, Any]:
    """S of the text over a few of its `own` words: from which row on, and how many."""
    if not cell.words:
        return dict.fromkeys(("sensitivity", "evaluations", "word", "token"))
    start, count = group
    stream = generator(cell.pairs_seed, "searched words", count)
    words = sorted(
        start + place for place in torch.randperm(count, generator=stream)[: cell.words].tolist()
    )
    result = word_sensitivity(
        phi,
        text,
        words,
        cell.radius,
        cell.seed_of("search"),
        search=cell.search_plan,
        certificate=False,
    )
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
MAPS: dict[str, dict[str, Any]] = {"rf": _LAZY, "drf": _LAZY, "raf": _QUICK, "relu-raf": _QUICK}
"""The random maps; deep ones of the usual depth. S of two words takes 0.2 s (raf) to 2.6 s (drf) at
n = 128."""

POOLED: dict[str, Any] = {"pool": "mean", "search": "quick", "starts": 1, "steps": 6, "words": 2}
"""Two words at n = 128 take 4 s at MiniLM's last layer; twice the starts and steps attain up to a
third more there."""

PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "n": (8, 32),
        "draws": 5,
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
        "draws": 5,
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
        "draws": 5,
        "count": 24,
        "lengths": LENGTHS,
        "of_a_kind": 12,
        "check_draws": 2,
        "every": 1,
        "maps": MAPS,
        "pooled": POOLED,
    },
}
"""Rows of a passage, draws, passages of a draw; lengths of the pairs of check, so many of a kind,
draws of the weights there; each so many-th layer of the encoder is measured, and the last. Quick
leaves S of the layers and DRF out."""

_AROUND = 4
"""Room for special tokens: BERT has two, others up to four."""


def preset(scale: str, source: Embedded, seed: int, labels: str | None) -> Grids:
    """AUC of RF, DRF, RAF, ReLU-RAF and of every pooled layer of the encoder, against the length; S
    beside it."""
    size, encoder = PRESETS[scale], load_encoder(source.encoder)
    last = encoder.layers
    layers = [layer for layer in range(last + 1) if layer % size["every"] == 0 or layer == last]
    pooled = {"map": "model", "model": source.encoder, "model_layer": layers, **size["pooled"]}
    maps = [{"map": name, **group} for name, group in size["maps"].items()]
    notices = []
    sizes = [n for n in size["n"] if _holds_swaps(source, n, seed)]
    if left := [str(n) for n in size["n"] if n not in sizes]:
        notices.append(
            f"no text has a passage of {', '.join(left)} words in which one can be swapped: left "
            "out"
        )
    swaps = {"pairs": SWAPS, "n": sizes, "count": size["count"], "draw": list(range(size["draws"]))}
    grids = _grids(swaps, source, encoder, maps, pooled) if sizes else []
    for length in size["lengths"]:
        rows = max(
            encoder.tokenize(text).words
            for one in shipped_pairs(length)
            for text in (one.first, one.second)
        )
        if encoder.padding is None or (
            encoder.context is not None and rows + _AROUND > encoder.context
        ):
            notices.append(
                f"{encoder.name} cannot take pairs of {rows} rows, or has no [PAD]: {length}s are "
                "left out"
            )
            continue
        check = {"pairs": CHECK, "length": length, "n": rows, "count": size["of_a_kind"]}
        plain = ReviewsText(encoder=source.encoder, layer=source.layer)
        random = [{**group, "draw": list(range(size["check_draws"]))} for group in maps]
        grids += _grids(check, plain, encoder, random, pooled)
    return grids, notices


def _grids(
    pairs: dict[str, Any],
    source: Embedded,
    encoder: TextModel,
    maps: list[dict[str, Any]],
    pooled: dict[str, Any],
) -> list[dict[str, Any]]:
    of_rows = {"encoder", "layer", "keep_special_tokens", "padded_below"}
    rows, plain = source.model_dump(mode="json"), source.model_dump(mode="json", exclude=of_rows)
    d = encoder.dimension
    return [{**pairs, **group, "text": rows, "d": d} for group in maps] + [
        {**pairs, **pooled, "text": plain, "d": d}
    ]


def _holds_swaps(source: Embedded, n: int, seed: int) -> bool:
    """Whether one passage of n rows can be swapped, by the choice of the first draw."""
    first = SimilarityCell.parse(
        {"map": "raf", "n": n, "d": 1, "text": source.model_dump(mode="json"), "seed": seed}
    )
    try:
        swapped_passages(source, source.encoder, n, 1, first.pairs_seed)
    except InputError as error:
        if "passage" not in str(error):
            raise
        return False
    return True


def features_title(record: Record) -> str:
    """The features in words: "RF", "minilm layer 3" with the mean of its rows."""
    if not learned(record):
        return map_title(record.map)
    name = record.map.removesuffix(f" layer {record.model_layer}").rstrip("/").rpartition("/")[2]
    return (
        f"{name} layer {record.model_layer}{'' if record.pool == 'mean' else f' ({record.pool})'}"
    )


def learned(record: Record) -> bool:
    """True of a layer of a trained model; the other maps are random."""
    return record.model_layer is not None


def of_pairs(records: Any, pairs: str) -> list[Record]:
    """The finished records of swaps, or of check: map by map, by length."""
    group = [record for record in as_records(records) if record.done and record.pairs == pairs]
    order = list(grouped(group, "text", features_title))
    return sorted(group, key=lambda one: (order.index((one.text, features_title(one))), one.n))


_NUMBERS: dict[str, Column] = {
    "moved by flip": "moved_flip",
    "by synonym": "moved_synonym",
    "S": "sensitivity",
}


def summarize(records: Sequence[Record]) -> Summary:
    """A row a map and length of swaps, and of the pairs of check; sentences about them."""
    swaps, check = of_pairs(records, SWAPS), of_pairs(records, CHECK)
    of_swaps: dict[str, Column] = {"map": features_title, "texts": "text", "n": "n"}
    of_check: dict[str, Column] = {"map": features_title, "texts": "length", "n": "n"}
    interval = {"from": "auc_low", "to": "auc_high", "beside synonyms": "auc_synonym"}
    sections = (
        table(
            "Swaps of one word",
            swaps,
            {**of_swaps, "passages": "opposites"},
            {"AUC": "value", **_NUMBERS},
            ("AUC",),
        ),
        table(
            "Pairs of check",
            check,
            of_check,
            {"AUC": "value", **interval, **_NUMBERS},
            ("AUC", *interval),
        ),
    )
    along = [
        claim
        for group in grouped(swaps, "text").values()
        for curve in grouped(group, features_title).values()
        for claim in _along(list(grouped(curve, "n").values()))
    ]
    beside = [claim for group in grouped(swaps, "text").values() for claim in _beside_s(group)]
    checked = [claim for group in grouped(check, "length").values() for claim in _check(group)]
    return Summary(
        tuple(table for table in sections if len(table)),
        "AUC: the chance that a flipped pair's features are less alike (cosine) than a pair's that "
        "means the same; .5 "
        "is a coin. Moved: median relative change.",
        (*along, *beside, *checked),
        "Ties count half. The same is a one-word synonym in swaps, a paraphrase in check. n counts "
        "tokens. Means over "
        f"draws of weights and passages, {INTERVALS}; in check the pairs are the same in "
        "each draw, and from "
        "... to is a 95 % interval over the pairs. S: attained by a short search of a few words of "
        "one text.",
        leading=max(1, len(along)),
    )


COIN = 0.5
"""The AUC of a guess."""


def _pairs_title(first: Record) -> str:
    return (
        f"swaps in {text_title(first.text)}"
        if first.pairs == SWAPS
        else f"pairs of check, {first.length}s"
    )


def _along(sizes: Sequence[list[Record]]) -> Iterator[Finding]:
    """AUC of one map at the shortest and the longest passages, and their difference draw by
    draw."""
    few, many = sizes[0], sizes[-1]
    start, end = estimate(few, bounds=SHARE), estimate(many, bounds=SHARE)
    change = paired(many, few)
    if start is None or end is None or change is None or (start.low is None or end.low is None):
        return
    first, last = few[0], many[0]
    sentence = (
        f"{features_title(first)}, {_pairs_title(first)}: AUC {start} in passages of {first.n} "
        "words, "
        f"{_beside_a_coin(start)}"
    )
    if first.n != last.n:
        low, high = ends(change)
        how = (
            f"more by {change}"
            if low > 0
            else f"less by {paired(few, many)}"
            if high < 0
            else "no change beyond its scatter"
        )
        sentence += f"; {end} in passages of {last.n}, {_beside_a_coin(end)}, {how}"
    known = f"Mean over {end.n} draws of weights and passages, {INTERVALS}."
    yield finding(str(end), f"{sentence}.", known, end, [*few, *many])


def _beside_a_coin(value: Estimate) -> str:
    low, high = ends(value)
    return (
        "better than a coin"
        if low > COIN
        else "worse than a coin"
        if high < COIN
        else "not told from a coin"
    )


def _beside_s(swaps: Sequence[Record]) -> Iterator[Finding]:
    """The rank correlation of AUC and S: over all features and lengths, over random maps, over
    layers."""
    with_s = [one for one in swaps if one.sensitivity is not None]
    random, layers = ([one for one in with_s if learned(one) == wanted] for wanted in (False, True))
    groups = {"all features": with_s if random and layers else [], "the random maps": random}
    for name, group in {**groups, "the pooled layers": layers}.items():
        draws = [
            [(one.sensitivity, one.value) for one in part]
            for part in grouped(group, "draw").values()
        ]
        if len(draws) < LEAST_DRAWS or min(map(len, draws)) < LEAST_DRAWS:
            continue
        correlation = correlation_estimate(draws)
        if not math.isfinite(correlation.value):
            continue
        low, high = ends(correlation)
        how = (
            "AUC rises with S"
            if low > 0
            else "AUC falls with S"
            if high < 0
            else "AUC does not follow S"
        )
        sentence = (
            f"{_pairs_title(group[0]).capitalize()}: over {name} and the lengths measured {how}; "
            "their rank "
            f"correlation is {correlation}. S "
            "says how far a word can "
            "move the features, not that another meaning does."
        )
        known = (
            f"{len(group)} pairs of values, {len(draws)} draws; [95 % bootstrap interval] over "
            "draws. S attained."
        )
        yield finding(f"{correlation.value:.2f}", sentence, known, correlation, group)


def _check(check: Sequence[Record]) -> Iterator[Finding]:
    """Between which features the AUC of one length lies, and on which side of a coin all of them
    are."""
    groups = {title: group for (title,), group in grouped(check, features_title).items()}
    if len(groups) < 2:
        return
    means = {title: fmean(one.value for one in group) for title, group in groups.items()}
    side = ""
    if max(record.auc_high for record in check) < COIN:
        side = "; every feature finds the flipped pairs more alike than paraphrases"
    elif min(record.auc_low for record in check) > COIN:
        side = "; every feature finds the flipped pairs less alike than paraphrases"
    synonyms = {
        title: value.value
        for title, group in groups.items()
        if (value := estimate(group, "auc_synonym"))
    }
    beside = f" Against one-word synonyms it lies {_between(synonyms)}." if synonyms else ""
    between = (
        _between(means)
        if len(set(means.values())) > 1
        else f"{next(iter(means.values())):.2f} for every feature"
    )
    sentence = (
        f"{_pairs_title(check[0]).capitalize()}, against paraphrases: AUC {between}{side}.{beside}"
    )
    mean, known = fmean(means.values()), "Means over draws; 95 % intervals over the pairs."
    yield finding(between.partition(" (")[0], sentence, known, mean, check)


def _between(means: dict[str, float]) -> str:
    least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
    return f"between {means[least]:.2f} ({least}) and {means[most]:.2f} ({most})"


def _similarity(records: Sequence[Record]) -> dict[str, Any]:
    """AUC and S against the length, AUC against S, and the pairs of check; of a model its first,
    middle and last layer, which a figure can tell apart."""
    from wordsens.plotting.axes import Panel, Points, grid
    from wordsens.plotting.records import curves_of
    from wordsens.plotting.style import BARS, styles_of

    layers = sorted({one.model_layer for one in records if learned(one)})
    ends = {None, *layers[:1], *layers[len(layers) // 2 :][:1], *layers[-1:]}
    drawn = [one for one in records if one.model_layer in ends]
    swaps, check = of_pairs(drawn, SWAPS), of_pairs(drawn, CHECK)
    searched = [one for one in swaps if one.sensitivity is not None]
    whole = (-0.03, 1.03)

    def maps(layers: bool) -> str:
        return "layers" if layers else "random maps"

    chance = {"chance": [(None, 0.5)]}
    styles = styles_of(
        {features_title(one): None if learned(one) else one.map for one in (*swaps, *check)}
    )
    along_n, against_s, of_check = [], [], []
    for (text, layers), group in grouped(swaps, "text", learned).items():
        title = f"{maps(layers).capitalize()}, {text_title(text)}"
        along_n.append(
            Panel(
                title,
                curves_of(group, features_title, "n", bounds=SHARE),
                chance,
                limits=whole,
                label="AUC",
            )
        )
        s_of_n = curves_of(group, features_title, "n", "sensitivity")
        along_n.append(Panel(title, s_of_n, label="word sensitivity S"))
    for (text, layers), group in grouped(searched, "text", learned).items():
        curves: dict[str, Points] = defaultdict(list)
        for (name, _), part in grouped(group, features_title, "n").items():
            s, value = estimate(part, "sensitivity"), estimate(part, bounds=SHARE)
            if s is not None and value is not None:
                curves[name].append((float(f"{s.value:.3g}"), value))
        title = f"{maps(layers).capitalize()}, {text_title(text)}"
        against_s.append(Panel(title, dict(curves), chance, scattered=frozenset(curves)))
    for name, column in (("paraphrases", "value"), ("synonyms", "auc_synonym")):
        for (layers,), group in grouped(check, learned).items():
            title = f"{maps(layers).capitalize()}, against {name}"
            curves = curves_of(group, features_title, "n", column, SHARE)
            of_check.append(Panel(title, curves, chance, limits=whole))
    return {
        "similarity": grid(
            "Is a flipped meaning less alike than a synonym?",
            *(along_n, styles, ("words of a passage", "")),
            log="x",
            share_y=False,
            caption=f"{BARS} AUC: the chance that it is, by the cosine of the features. S: of one "
            "passage, attained by "
            "a short search of a few words.",
        ),
        "similarity-sensitivity": grid(
            "Does the AUC follow the sensitivity?",
            *(against_s, styles, ("word sensitivity S", "AUC")),
            log="x",
            caption=f"{BARS} A mark a length, at the mean of S.",
        ),
        "similarity-check": grid(
            "Pairs of check: are opposites less alike than pairs that mean the same?",
            *(of_check, styles, ("rows of the longest text", "AUC")),
            log="x",
            caption="Marks are means over draws of weights on the same pairs; bars are 95 % "
            "confidence intervals.",
        ),
    }


SIMILARITY = Experiment(
    name="similarity",
    Cell=SimilarityCell,
    measure=measure_similarity,
    preset=preset,
    summarize=summarize,
    together=SimilarityCell.layers_of,
    figures=_similarity,
)
