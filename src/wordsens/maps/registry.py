"""Feature maps by name: one entry a map, with its title, options and builder.

Help texts, validation, the keys of sweeps, tables and figures read this table. Torch is loaded when a map is built.
A further map of the package is one entry of `ENTRIES`; a map of one's own needs none: `module:Name` names it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from wordsens.errors import InputError, require_choice, require_count, require_positive

FAMILIES = ("dense", "attention", "transformer", "own")
MODEL = "model"
MOST_DEPTH = 10_000
"""Of drf: so many matrices take a second to name, and no activation passes anything on through them."""


def _option(default: Any, told: str, check: Callable[[str, Any], object]) -> Any:
    return field(default=default, metadata={"help": told, "check": check})


def _named(name: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise InputError(f"`{name}` (={value!r}) must be a name")


def _whole(name: str, value: object) -> None:
    require_count(name, value, least=-1000, remedy="0 is what enters the first layer, -1 the last layer")


@dataclass(frozen=True, kw_only=True)
class MapOptions:
    """The options that fix a map beside its name, the size of the text and the seed. Every option is declared here.

    `metadata` has the `help` of each and the `check` that refuses a wrong value. None stands for what suits the map.
    """

    depth: int = _option(4, "Layers of drf.", partial(require_count, most=MOST_DEPTH))
    width: int | None = _option(None, "Features of rf and drf; default: n d.", require_count)
    activation: str = _option(
        "relu",
        "Of rf and drf: relu, leaky_relu, identity, tanh, gelu or erf.",
        lambda name, value: require_choice(name, value, ("relu", "leaky_relu", "identity", "tanh", "gelu", "erf")),
    )
    gaussian: str = _option(
        "auto",
        "How the matrices of rf and drf are kept: dense, lazy (never built) or auto.",
        lambda name, value: require_choice(name, value, ("auto", "dense", "lazy")),
    )
    temperature: float = _option(1.0, "Divides the scores of the attention maps.", require_positive)
    model: str = _option("minilm", "The transformer: minilm, a folder, or a name on the Hugging Face hub.", _named)
    model_layer: int = _option(-1, "The transformer's layer; 0 is what enters the first, -1 the last.", _whole)
    pool: str | None = _option(
        None,
        "One vector a text of the transformer: own, mean, cls, last or max; default: all rows.",
        lambda name, value: require_choice(name, value, ("own", "mean", "cls", "last", "max")),
    )

    def __post_init__(self) -> None:
        for one in fields(self):
            if (value := getattr(self, one.name)) is not None:
                one.metadata["check"](one.name, value)


OPTION_NAMES = tuple(one.name for one in fields(MapOptions))
DEFAULTS = MapOptions()


@dataclass(frozen=True, kw_only=True)
class Build:
    """The arguments of a builder. `dtype` and `device` are torch's; `seed` fixes the weights."""

    n: int
    d: int
    seed: int
    dtype: Any
    device: Any
    options: MapOptions


@dataclass(frozen=True, kw_only=True)
class MapEntry:
    """A map by name.

    Attributes:
        name: as specs and the command line write it.
        title: in tables and figures.
        features: what it is, a few words for `--map`'s help.
        family: one of FAMILIES.
        build: gives the FeatureMap.
        options: those of MapOptions that it looks at; no other changes its features or its records' names.
        recorded: what records call it, a format of the options.
        content: function of the options that gives a digest of what the name leaves open; None where it fixes all.
        dtype: where none is asked for.
    """

    name: str
    title: str
    features: str
    family: str
    build: Callable[[Build], Any]
    options: tuple[str, ...] = ()
    recorded: str = ""
    content: Callable[[MapOptions], str] | None = None
    dtype: str = "float64"


def _rf(asked: Build) -> Any:
    from wordsens.maps.dense import RandomFeatures

    chosen = asked.options
    return RandomFeatures(
        asked.n, asked.d, chosen.width, chosen.activation, chosen.gaussian, asked.seed,
        dtype=asked.dtype, device=asked.device,
    )  # fmt: skip


def _drf(asked: Build) -> Any:
    from wordsens.maps.dense import DeepRandomFeatures

    chosen = asked.options
    return DeepRandomFeatures(
        asked.n, asked.d, chosen.depth, chosen.width, chosen.activation, chosen.gaussian, asked.seed,
        dtype=asked.dtype, device=asked.device,
    )  # fmt: skip


def _attention(name: str, title: str, score: str, features: str) -> MapEntry:
    def build(asked: Build) -> Any:
        from wordsens.maps.attention.features import RandomAttentionFeatures

        temperature = asked.options.temperature
        return RandomAttentionFeatures(
            asked.d, score, asked.seed, asked.dtype, temperature=temperature, device=asked.device
        )

    return MapEntry(
        name=name, title=title, features=features, family="attention", build=build, options=("temperature",)
    )


def _transformer(asked: Build) -> Any:
    from wordsens.maps.transformer.features import loaded_model

    chosen = asked.options
    phi = loaded_model(chosen.model, asked.dtype, str(asked.device))
    return phi.at(layer=chosen.model_layer, pool=chosen.pool)


def _files_of_model(options: MapOptions) -> str:
    from wordsens.maps.transformer.features import content_of

    return content_of(options.model)


_DENSE = ("width", "activation", "gaussian")

ENTRIES = (
    MapEntry(
        name="rf", title="RF", features="one fully connected random layer", family="dense", build=_rf, options=_DENSE
    ),
    MapEntry(
        name="drf",
        title="DRF",
        features="--depth such layers",
        family="dense",
        build=_drf,
        options=("depth", *_DENSE),
        recorded="drf{depth}",
    ),
    _attention("raf", "RAF (softmax)", "softmax", "random attention with softmax scores"),
    _attention("relu-raf", "ReLU-RAF", "relu", "with ReLU scores, divided by their sum"),
    _attention("relu-unnormalized-raf", "ReLU-RAF, not divided", "relu-unnormalized", "with ReLU scores, not divided"),
    _attention("sigmoid-raf", "sigmoid RAF", "sigmoid", "with sigmoid scores, not divided"),
    _attention("linear-raf", "linear RAF", "linear", "with plain scores, not divided"),
    MapEntry(
        name=MODEL,
        title="transformer",
        features="a pretrained transformer: --model, --layer, --pool",
        family="transformer",
        build=_transformer,
        options=("model", "model_layer", "pool"),
        recorded="{model} layer {model_layer}",
        content=_files_of_model,
        dtype="float32",
    ),
)
"""Every map of the package. Their order is that of the colours in figures."""

MAPS = {entry.name: entry for entry in ENTRIES}
MAP_NAMES = tuple(MAPS)


def map_entry(name: str) -> MapEntry:
    """The entry of that name; of `module:Name`, one for the map that lies there (`maps.own_map`).

    >>> map_entry("drf").options
    ('depth', 'width', 'activation', 'gaussian')
    """
    if not isinstance(name, str) or ":" not in name:
        if not isinstance(name, str) or name not in MAPS:
            try:
                require_choice("map", name, MAP_NAMES)
            except InputError as error:
                raise InputError(f"{error}; module:Name names a map of your own") from None
        return MAPS[name]
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", name):
        raise InputError(f"`map` (={name!r}) must be module:Name, a module that Python can import and a name in it")

    def build(asked: Build) -> Any:
        from wordsens.maps.custom import build_own

        return build_own(name, vars(asked))

    def content(options: MapOptions) -> str:
        from wordsens.maps.custom import content_of_own

        return content_of_own(name)

    return MapEntry(
        name=name, title=map_title(name), features="a map of your own", family="own", build=build, content=content
    )


def map_names(listed: str) -> list[str]:
    """The names of a comma-separated list, each checked and none twice.

    >>> map_names("rf, raf")
    ['rf', 'raf']
    """
    names = [map_entry(part.strip()).name for part in listed.split(",") if part.strip()]
    if not names:
        raise InputError(f"`map` (={listed!r}) names no map; choose from {', '.join(MAP_NAMES)}")
    return list(dict.fromkeys(names))


def build_map(
    name: str,
    n: int,
    d: int,
    *,
    options: MapOptions = DEFAULTS,
    seed: int,
    dtype: Any = None,
    device: Any = "cpu",
) -> Any:
    """The FeatureMap of that name for texts of n words and d coordinates; `dtype` None for what suits the map.

    >>> build_map("relu-raf", 4, 8, seed=0).name
    'relu-raf'
    """
    import torch

    entry = map_entry(name)
    kind = getattr(torch, entry.dtype) if dtype is None else dtype
    return entry.build(Build(n=n, d=d, seed=seed, dtype=kind, device=device, options=options))


def map_content(name: str, options: MapOptions = DEFAULTS) -> str | None:
    """A digest of what the name does not fix: a transformer's files, the file of a map of one's own; None for others.

    Raises:
        InputError: there is no such model or module.
    """
    content = map_entry(name).content
    return None if content is None else content(options)


def recorded_name(name: str, options: MapOptions = DEFAULTS) -> str:
    """The name of the map in records.

    >>> recorded_name("drf", MapOptions(depth=2)), recorded_name("raf")
    ('drf2', 'raf')
    """
    entry = map_entry(name)
    return entry.recorded.format(**vars(options)) if entry.recorded else entry.name


def base_name(recorded: str) -> str:
    """The registry's name of a record's map, or the record's own where it has none.

    >>> base_name("drf4"), base_name("minilm layer 3")
    ('drf', 'minilm layer 3')
    """
    plain = recorded.rstrip("0123456789")
    return plain if plain in MAPS and recorded not in MAPS else recorded


def map_title(recorded: str) -> str:
    """A record's map in tables and figures.

    >>> map_title("drf4"), map_title("relu-raf"), map_title("own_map:Means")
    ('DRF, L = 4', 'ReLU-RAF', 'Means')
    """
    name = base_name(recorded)
    if name not in MAPS:
        return recorded.rpartition(":")[2]
    return MAPS[name].title + (f", L = {recorded.removeprefix(name)}" if recorded != name else "")
