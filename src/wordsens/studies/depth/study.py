"""The grids of the depth study, and the experiment."""

from collections.abc import Mapping, Sequence
from typing import Any

from wordsens.errors import InputError
from wordsens.maps.transformer.features import loaded_model
from wordsens.models.embedding import load_encoder
from wordsens.studies.depth.cell import DepthCell, measure_depth
from wordsens.studies.depth.summary import summarize
from wordsens.sweeps.experiment import Experiment, Grids
from wordsens.sweeps.store import Record
from wordsens.sweeps.texts import (
    DatasetText,
    Embedded,
    PassagesText,
    QuestionsText,
    ReviewsText,
    kinds_of_table,
    texts_at_least,
)

ARCHITECTURES: tuple[dict[str, Any], ...] = (
    {"residual": False, "norm": None},
    {"residual": False, "norm": None, "values": True},
    {"norm": None},
    {"norm": "pre"},
    {"norm": "post"},
    {"norm": "pre", "mlp": 4},
    {"norm": "pre", "score": "relu"},
)
"""Options of the random transformers; the width of the MLP in units of d."""

PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "d": 32,
        "n": (10, 30),
        "layers": (1, 3, 12),
        "draws": 5,
        "context": (0, 20, 80),
        "trained": (10, 20),
    },
    "laptop": {
        "d": 192,
        "n": (10, 40, 160),
        "layers": (1, 2, 3, 4, 6, 8, 12),
        "draws": 5,
        "context": (0, 20, 80, 200),
        "trained": (10, 40, 160),
    },
    "full": {
        "d": 384,
        "n": (10, 40, 160),
        "layers": tuple(range(1, 13)),
        "draws": 10,
        "context": (0, 20, 80, 200),
        "trained": (10, 40, 160),
    },
}
"""`n`, `layers` of random transformers; `trained`: words of a text of the trained model; `context`:
words in front or behind."""


def preset(
    scale: str,
    source: Embedded,
    seed: int,
    labels: str | None,
    *,
    model: str = "minilm",
    by: str | None = None,
) -> Grids:
    """S by layer of random transformers on real and Gaussian texts, and of a trained model on each
    kind of text.

    Args:
        scale, source, seed, labels: as for every experiment; nothing is learned.
        model: the trained one.
        by: a column of the source's table: its values are kinds of text. None: the source, and
            where that is the shipped reviews, the shipped questions and passages.

    Raises:
        InputError: no such model or column; no text has enough words.
    """
    sizes = PRESETS[scale]
    common = {"dtype": "float32", "draw": list(range(sizes["draws"]))}
    width = min(sizes["d"], load_encoder(source.encoder).dimension)
    grids: list[dict[str, Any]] = []
    real = [n for n in sizes["n"] if texts_at_least(source, n, seed=seed, most=1)]
    notices = [
        f"no text has {n} words: Gaussian texts are measured alone"
        for n in sizes["n"]
        if n not in real
    ]
    for text, lengths, d in (
        ({"kind": "gaussian"}, sizes["n"], sizes["d"]),
        (source.model_dump(mode="json"), real, width),
    ):
        of_texts = {**common, "map": "transformer", "n": list(lengths), "d": d, "text": text}
        for options in ARCHITECTURES if lengths else ():
            wide = {"mlp": options["mlp"] * d} if "mlp" in options else {}
            grids.append({**of_texts, "depth": list(sizes["layers"]), **options, **wide})
    trained, more = _trained(scale, source, seed, common, model, by)
    in_context = _context(sizes, source, seed, common, width)
    if not in_context:
        notices.append(
            f"no text has {sizes['context'][-1]} words and more: words in front and behind are not "
            "measured"
        )
    return [*grids, *trained, *in_context], [*notices, *more]


def _trained(
    scale: str, source: Embedded, seed: int, common: Mapping[str, Any], model: str, by: str | None
) -> Grids:
    phi = loaded_model(model)
    kinds: list[Any] = [source]
    if by is not None:
        if not isinstance(source, DatasetText):
            raise InputError(
                f"`by` (={by!r}) is a column of the texts' table; name a table with --texts, or "
                "drop it"
            )
        kinds = [
            source.model_copy(update={"where": f"{by}={value}"})
            for value in kinds_of_table(source, by)
        ]
    elif isinstance(source, ReviewsText):
        kinds += [QuestionsText(), PassagesText()]
    quick, last = scale == "quick", phi.attention_layers
    layers = sorted({1, (last + 1) // 2, last}) if quick else list(range(1, last + 1))
    grids, notices, around = [], [], phi.model.own_tokens
    for kind in kinds:
        # The model makes its rows itself; what a source says of an encoder is not for it.
        text = {
            key: value
            for key, value in kind.model_dump(mode="json").items()
            if key not in Embedded.model_fields
        }
        lengths = [n + around for n in PRESETS[scale]["trained"]]
        lengths = [n for n in lengths if texts_at_least(kind, n, seed=seed, most=1, model=phi)]
        if not lengths:
            notices.append(
                f"no {getattr(kind, 'where', None) or text['kind']} text is long enough for "
                f"{model}: left out"
            )
            continue
        grid = {**common, "map": "model", "model": model, "model_layer": layers, "text": text}
        grid |= {"n": lengths[-1:] if quick else lengths, "d": phi.model.dimension}
        grid |= {"search": "quick"} if quick else {}
        grids.append(grid)
        if not quick or kind is source:
            grids.append(
                {**grid, "random_weights": True, "model_layer": [last] if quick else layers}
            )
    return grids, notices


def _context(
    sizes: Mapping[str, Any], source: Embedded, seed: int, common: Mapping[str, Any], d: int
) -> list[Any]:
    """A word of ten, with words in front of them or behind them: under attention, and in the last
    row of a causal transformer."""
    n, longest = min(sizes["n"]), max(sizes["context"])
    if not texts_at_least(source, n + longest, seed=seed, most=1):
        return []
    grid = {**common, "n": n, "d": d, "text": source.model_dump(mode="json")}
    maps = ({"map": "raf"}, {"map": "transformer", "causal": True, "depth": 4, "last_row": True})
    places = ("front", "behind")
    return [
        {**grid, **options, place: list(sizes["context"])} for options in maps for place in places
    ]


def _figures(records: Sequence[Record]) -> Mapping[str, Any]:
    from wordsens.studies.depth.figures import depth_figures

    return depth_figures(records)


DEPTH = Experiment(
    name="depth",
    Cell=DepthCell,
    measure=measure_depth,
    preset=preset,
    summarize=summarize,
    figures=_figures,
    value="word sensitivity S",
)
