"""Word sensitivity over the layers of random and trained transformers, and by the words around a
word."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
import torch
from pydantic import Field, model_validator

from wordsens.display.numbers import Estimate
from wordsens.display.view import Finding
from wordsens.errors import InputError
from wordsens.maps.base import FeatureMap
from wordsens.maps.function import FunctionFeatures
from wordsens.maps.random_transformer import RandomTransformer
from wordsens.maps.registry import base_name, map_title
from wordsens.maps.transformer.features import loaded_model
from wordsens.models.embedding import load_encoder
from wordsens.seeds import generator
from wordsens.sensitivity.jacobian import jacobian_sensitivity
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.sensitivity.profile import average_change
from wordsens.sensitivity.replacements import row_removal
from wordsens.sweeps.map_cell import MapCell
from wordsens.sweeps.measurement import mean_cosine
from wordsens.sweeps.study import (
    BARS,
    INTERVALS,
    Preset,
    Study,
    Tables,
    changes,
    means,
    over_draws,
    require_alike,
    tally,
    text_title,
)
from wordsens.sweeps.texts import (
    Embedded,
    ShippedText,
    load_text,
    texts_at_least,
)
from wordsens.text.matrix import TextMatrix
from wordsens.theory.depth import average_by_layer

# Of the prediction of one draw; the draws are averaged.
_PATHS = 8


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


def measure(cell: DepthCell) -> dict[str, Any]:
    """Measure one cell: `value` is S of the word, a lower bound; the other columns are of the same
    word and radius."""
    phi = cell.build()
    model = phi if cell.reads_texts_itself else None
    total = cell.front + cell.n + cell.behind
    text = load_text(cell.text, total, cell.d, draw=cell.draw, seed=cell.seed, model=model)
    word, predicted = _moving_word(cell, text), None
    if cell.random_weights:
        phi = phi.with_random_weights(cell.seed_of("map"))
    name, series = phi.name, _series_title(cell, phi)
    layer = phi.layer if model is not None else getattr(phi, "depth", 1)
    if cell.last_row:
        phi = _last_row(phi)
    elif isinstance(phi, RandomTransformer) and phi.attention == "dot" and not phi.tied:
        seed = cell.seed_of("paths")
        by_layer, _ = average_by_layer(phi, text, word, cell.radius, seed, paths=_PATHS)
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
    jacobian = jacobian_sensitivity(phi, text, [word], cell.seed_of("jacobian"))
    return {
        "map": name,
        "series": series,
        "model": cell.model if model is not None else None,
        "at_layer": layer,
        "source": text.source,
        "moved": word,
        "token": text.word(word),
        "value": measured.value,
        "average": average_change(phi, text, [word], cell.radius, seed=cell.seed_of("average"))[0],
        "predicted": predicted,
        "small_radius": radius * jacobian.value,
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


def _moving_word(cell: DepthCell, text: TextMatrix) -> int:
    """A row of a word among the n, at the same place whatever the map; of a model not one of its
    own tokens."""
    window = range(cell.front, cell.front + cell.n)
    in_words = [row for word in text.whole_words or () for row in word.rows if row in window]
    rows = in_words or window
    stream = generator(cell.seed, "word", cell.n, cell.draw)
    return rows[int(torch.rand(1, generator=stream) * len(rows))]


def _series_title(cell: DepthCell, phi: FeatureMap) -> str:
    """The name of the curve that the cell is a point of."""
    if cell.reads_texts_itself:
        return cell.model + " with random weights" * cell.random_weights
    if not isinstance(phi, RandomTransformer):
        return map_title(phi.name)
    if phi.residual or phi.norm or phi.mlp:
        norm = f"{phi.norm}-norm" if phi.norm else "residual" * phi.residual
        parts = ["" if phi.residual else "no residual", norm]
    else:
        parts = ["attention with values" if phi.has_values else "attention alone"]
    parts += [
        "MLP" * bool(phi.mlp),
        "causal" * phi.causal,
        f"{phi.heads} heads" * (phi.heads > 1),
        "tied" * phi.tied,
        f"{phi.attention} attention" * (phi.attention != "dot"),
        f"{phi.score.name} scores" * (phi.score.name != "softmax"),
        "last row" * cell.last_row,
    ]
    return ", ".join(filter(None, parts))


def _last_row(phi: FeatureMap) -> FeatureMap:
    return FunctionFeatures(
        lambda texts: phi.features(texts)[..., -1, :],
        batched=True,
        name=phi.name,
        dtype=phi.dtype,
        device=phi.device,
    )


# Options of the random transformers; the width of the MLP in units of d.
ARCHITECTURES: tuple[dict[str, Any], ...] = (
    {"residual": False, "norm": None},
    {"residual": False, "norm": None, "values": True},
    {"norm": None},
    {"norm": "pre"},
    {"norm": "post"},
    {"norm": "pre", "mlp": 4},
    {"norm": "pre", "score": "relu"},
)

# Attention, and the last row of a causal transformer.
_READ_IN_CONTEXT: tuple[dict[str, Any], ...] = (
    {"map": "raf"},
    {"map": "transformer", "causal": True, "depth": 4, "last_row": True},
)
_PLACES = {"front": "words in front", "behind": "words behind"}

_LARGE: dict[str, Any] = {
    "n": (10, 40, 160),
    "context": (0, 20, 80, 200),
    "trained": (10, 40, 160),
}

# `n`, `layers` of random transformers; `trained`: words of a text of the trained model; `context`:
# words in front or behind.
PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "d": 32,
        "n": (10, 30),
        "layers": (1, 3, 12),
        "draws": 5,
        "context": (0, 20, 80),
        "trained": (10, 20),
    },
    "laptop": {"d": 192, "layers": (1, 2, 3, 4, 6, 8, 12), "draws": 5, **_LARGE},
    "full": {"d": 384, "layers": tuple(range(1, 13)), "draws": 10, **_LARGE},
}


def preset(
    scale: str,
    source: Embedded,
    seed: int,
    labels: str | None,
    *,
    model: str = "minilm",
) -> Preset:
    """S by layer of random transformers on real and Gaussian texts, and of a trained model on each
    kind of text; S of a word of ten by the words around it.

    Args:
        scale, source, seed, labels: as for every experiment; nothing is learned.
        model: the trained one; where the source is the shipped reviews, it is measured on the
            shipped questions and passages too.

    Raises:
        InputError: no such model; no text has enough words.
    """
    size = PRESETS[scale]
    common = {"dtype": "float32", "draw": list(range(size["draws"]))}
    width = min(size["d"], load_encoder(source.encoder).dimension)
    real = {**common, "text": source.model_dump(mode="json"), "d": width}
    random = {**common, "text": {"kind": "gaussian"}, "d": size["d"]}
    lengths = [n for n in size["n"] if texts_at_least(source, n, seed=seed, most=1)]
    notices = [
        f"no text has {n} words: only Gaussian texts are measured"
        for n in size["n"]
        if n not in lengths
    ]
    grids: list[dict[str, Any]] = []
    for grid in ({**random, "n": list(size["n"])}, {**real, "n": lengths}):
        for options in ARCHITECTURES if grid["n"] else ():
            wide = {"mlp": options["mlp"] * grid["d"]} if "mlp" in options else {}
            layers = {"map": "transformer", "depth": list(size["layers"])}
            grids.append({**grid, **layers, **options, **wide})
    trained, more = _trained(scale, source, seed, common, model)
    grids += trained
    n, longest = min(size["n"]), max(size["context"])
    if texts_at_least(source, n + longest, seed=seed, most=1):
        grids += [
            {**real, "n": n, **options, place: list(size["context"])}
            for options in _READ_IN_CONTEXT
            for place in _PLACES
        ]
    else:
        notices.append(
            f"no text has {longest} words or more: words before and after a word are not measured"
        )
    return grids, [*notices, *more]


def _trained(
    scale: str, source: Embedded, seed: int, common: Mapping[str, Any], model: str
) -> Preset:
    phi = loaded_model(model)
    quick, last = scale == "quick", phi.attention_layers
    layers = sorted({1, (last + 1) // 2, last}) if quick else list(range(1, last + 1))
    grids, notices, around = [], [], phi.model.own_tokens
    others = [ShippedText(kind="questions"), ShippedText(kind="passages")]
    for kind in (source, *others * isinstance(source, ShippedText)):
        # The model makes its rows itself; what a source says of an encoder is not for it.
        text = kind.model_dump(mode="json", exclude=set(Embedded.model_fields))
        lengths = [n + around for n in PRESETS[scale]["trained"]]
        lengths = [n for n in lengths if texts_at_least(kind, n, seed=seed, most=1, model=phi)]
        if not lengths:
            notices.append(f"no {text['kind']} text is long enough for {model}: left out")
            continue
        of_model = {"map": "model", "model": model, "model_layer": layers, "text": text}
        grid = {**common, **of_model, "n": lengths, "d": phi.model.dimension}
        grid |= {"n": lengths[-1:], "search": "quick"} if quick else {}
        grids.append(grid)
        if not quick or kind is source:
            behind = {"model_layer": [last] if quick else layers}
            grids.append({**grid, "random_weights": True, **behind})
    return grids, notices


_CURVE = ["architecture", "text", "n", "d"]
_LAYERS = [*_CURVE, "layer"]
_MEASURES = {
    "S": "value",
    "average": "average",
    "predicted": "predicted",
    "small radius": "small_radius",
    "removal": "removal",
}
_RANDOM = "Random transformers: S of one word over the layers"


def tables(records: pd.DataFrame) -> Tables:
    """Growth over the layers, of random transformers and of the trained model; every layer; words
    in front and behind."""
    random, trained, around = parts(records)
    return {
        _RANDOM: _growth(random),
        "Trained model: S of one word over the layers": _growth(trained),
        "Random transformers, every layer": means(random, _LAYERS, _MEASURES),
        "Trained model, every layer": means(trained, _LAYERS, _MEASURES),
        "Words before and after": means(
            around, [*_CURVE, "front", "behind"], {"S": "value", "average": "average"}
        ),
    }


def parts(records: Any) -> tuple[Any, Any, Any]:
    """The records by question, in the order of their curves: random transformers; trained models
    and their random twins; words in front and behind. `text` is the title of the kind.

    Raises:
        InputError: records of one row differ in another key, such as the temperature.
    """
    titled = records.assign(
        architecture=records["series"],
        layer=records["at_layer"],
        text=records["text"].map(text_title),
    )
    require_alike(titled, [*_LAYERS, "front", "behind"])
    titled = titled.sort_values(_LAYERS, kind="stable")
    around = (
        (titled["front"] + titled["behind"] > 0)
        | titled["last_row"].astype(bool)
        | titled["series"].str.startswith("RAF")
    )
    random = titled["model"].isna()
    return titled[random & ~around], titled[~random & ~around], titled[around]


def _sides(around: Any) -> Any:
    """The records by side, with the words that they have there; those without any are on both."""
    total = around["front"] + around["behind"]
    return pd.concat(
        around[around[place] == total].assign(side=name, words=total)
        for place, name in _PLACES.items()
    )


def _growth(records: Any) -> Any:
    """A row for each curve: S behind its first and last layer, and the exponents of S and of the
    average case."""
    rows = []
    for keys, curve in records.groupby(_CURVE, dropna=False, sort=False):
        layers = curve["layer"]
        ends = layers.min(), layers.max()
        row = dict(zip(_CURVE, keys, strict=True)) | {"exponent": exponent(curve)}
        row |= {f"S, layer {end}": over_draws(curve.loc[layers == end, "value"]) for end in ends}
        rows.append(row | {"exponent of the average": exponent(curve, "average")})
    return pd.DataFrame(rows)


def exponent(curve: Any, column: str = "value") -> Estimate | None:
    """b of S ~ layer^b: the mean over draws of each draw's least-squares slope; None for a single
    layer."""
    slopes = []
    for _, draw in curve[curve[column] > 0].groupby("draw"):
        if draw["layer"].nunique() > 1:
            layers, values = np.log(draw[["layer", column]].to_numpy(np.float64)).T
            slopes.append(np.polyfit(layers, values, 1)[0])
    return over_draws(slopes)


def findings(records: pd.DataFrame, tables: Tables) -> Iterator[Finding]:
    """How S and the average case change over the layers; a trained model against its random twin;
    the effect of words around a word."""
    random, trained, around = parts(records)
    if random["layer"].nunique() > 1:
        growth = tables[_RANDOM].dropna(subset=["exponent"])
        texts = " and ".join(growth["text"].unique())
        s = tally(growth["exponent"], "grows", "falls")
        average = tally(growth["exponent of the average"], "grows", "falls")
        yield Finding(
            f"From layer {random['layer'].min()} to {random['layer'].max()} of random transformers "
            f"({texts}), S of one word {s}. The change by a random move of the same length "
            f"{average}.",
            rows=tuple(random.merge(growth[_CURVE])["cell"]),
        )
    last = trained[trained["layer"] == trained.groupby("model")["layer"].transform("max")]
    twin = last["random_weights"].astype(bool)
    keys = ["model", "text", "n"]
    factors = changes(last[~twin], last[twin], keys, relative=True)
    if len(factors):
        phrases = factors.apply("{0.model} {0.change} on {0.text} of {0.n} rows".format, axis=1)
        yield Finding(
            "S of one word after the last layer of a trained model, divided by S of the same "
            f"architecture with random weights: {'; '.join(phrases)}.",
            rows=tuple(last.merge(factors[keys])["cell"]),
        )
    sides = _sides(around)
    keys = [*_LAYERS, "side"]
    sides["most"] = sides.groupby(keys)["words"].transform("max")
    few, many = (sides[sides["words"] == words] for words in (0, sides["most"]))
    factors = changes(many[many["most"] > 0], few, [*keys, "most"], relative=True)
    if len(factors):
        phrase = "{0.architecture}, layer {0.layer}, {0.most} {0.side} ({0.text}): ×{0.change}"
        phrases = factors.apply(phrase.format, axis=1)
        compared = pd.concat([few, many]).merge(factors[keys])
        yield Finding(
            f"More words around a word multiply its S: {'; '.join(phrases)}.",
            rows=tuple(compared["cell"].unique()),
        )


# Series in the colour of attention, with its name: of stacks the one that is nothing else.
_ATTENTION = dict.fromkeys(("attention alone", map_title("raf")), "raf")


def figures(records: pd.DataFrame) -> dict[str, Any]:
    """`depth`: random architectures; `depth-average`: their average case; `depth-model`;
    `depth-context`."""
    from wordsens.plotting import lines

    random, trained, around = parts(records)
    s, average, change = "sensitivity S", "average change", "change over the features' norm"
    curves = means(random, _LAYERS, {s: "value", average: "average"})
    model = means(trained, _LAYERS, _MEASURES).melt(_LAYERS, ["S", "removal"], value_name=change)
    model["architecture"] = model["variable"] + ", " + model["architecture"]
    sides = _sides(around)
    sides["text"] = sides["side"] + ", " + sides["text"]
    context = means(sides, ["architecture", "text", "n", "words"], {s: "value"})
    drawn = {
        "depth": ("S of one word by layer: random transformers", curves, "layer", s),
        "depth-average": (
            "Change by a random move of one word, by layer",
            curves,
            "layer",
            average,
        ),
        "depth-model": ("Change by one word, by layer: a trained model", model, "layer", change),
        "depth-context": ("S of a word against the number of words around it", context, "words", s),
    }
    return {
        name: lines(
            frame.assign(map=frame["architecture"].replace(_ATTENTION)),
            x=x,
            y=y,
            log="y" * (x == "layer"),
            colour="map",
            panel=["text", "n"],
            labels={map_title("raf"): "attention alone"},
            title=title,
            caption=BARS,
        )
        for name, (title, frame, x, y) in drawn.items()
        if len(frame)
    }


STUDY = Study(
    name="depth",
    Cell=DepthCell,
    measure=measure,
    preset=preset,
    tables=tables,
    findings=findings,
    figures=figures,
    note="S of one word, a lower bound. Means over draws and exponents b of S ~ layer^b, "
    f"{INTERVALS} over draws. Average: random Deltas; predicted: its law as d grows. Small radius: "
    "the Jacobian's norm times the radius, over the features' norm. Removal: the change of the "
    "other rows when the word is left out.",
    value="word sensitivity S",
)
