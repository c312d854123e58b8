"""Feature maps by name: one entry a map, with its title, options and builder.

Help texts, validation, the keys of sweeps, tables and figures read this table. Torch is loaded when a map is built.
A further map of the package is one entry of `ENTRIES`; a map of one's own needs none: `module:Name` names it. A name
may have parameters, `raf(heads=4)`, which come before options given beside it.
"""

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any

from wordsens.errors import InputError, require_choice, require_count, require_positive

FAMILIES = ("dense", "attention", "transformer", "own")
MODEL = "model"
SCORE_NAMES = ("softmax", "relu", "relu-unnormalized", "sigmoid", "linear")
MOST_DEPTH = 10_000
"""Of drf: so many matrices take a second to name, and no activation passes anything on through them."""


def _option(default: Any, description: str, check: Callable[[str, Any], object]) -> Any:
    return field(default=default, metadata={"help": description, "check": check})


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
    heads: int = _option(1, "Heads of the attention maps, each with weights of its own.", require_count)
    score: str = _option(
        "softmax",
        "Of raf: softmax, relu (normalized), relu-unnormalized, sigmoid or linear.",
        lambda name, value: require_choice(name, value, SCORE_NAMES),
    )
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
        parameters: those in the name, which are no options any more.
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
    parameters: Mapping[str, Any] = field(default_factory=dict)


def _rf(config: Build) -> Any:
    from wordsens.maps.dense import RandomFeatures

    chosen = config.options
    return RandomFeatures(
        config.n, config.d, chosen.width, chosen.activation, chosen.gaussian, config.seed,
        dtype=config.dtype, device=config.device,
    )  # fmt: skip


def _drf(config: Build) -> Any:
    from wordsens.maps.dense import DeepRandomFeatures

    chosen = config.options
    return DeepRandomFeatures(
        config.n, config.d, chosen.depth, chosen.width, chosen.activation, chosen.gaussian, config.seed,
        dtype=config.dtype, device=config.device,
    )  # fmt: skip


def _attention(name: str, title: str, score: str | None, features: str) -> MapEntry:
    """One entry a score; None for the score that the options name."""

    def build(config: Build) -> Any:
        from wordsens.maps.attention.features import RandomAttentionFeatures

        chosen = config.options
        return RandomAttentionFeatures(
            config.d, chosen.score if score is None else score, config.seed, config.dtype,
            temperature=chosen.temperature, heads=chosen.heads, device=config.device,
        )  # fmt: skip

    options = ("temperature", "heads") if score else ("score", "temperature", "heads")
    return MapEntry(name=name, title=title, features=features, family="attention", build=build, options=options)


def _transformer(config: Build) -> Any:
    from wordsens.maps.transformer.features import loaded_model

    chosen = config.options
    phi = loaded_model(chosen.model, config.dtype, str(config.device))
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
    _attention("raf", "RAF (softmax)", None, "random attention with softmax scores"),
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
    """The entry of that name; of `module:Name`, one for the map that lies there (`maps.custom`).

    >>> map_entry("drf").options
    ('depth', 'width', 'activation', 'gaussian')
    >>> map_entry("drf( width = 8 )").name, map_entry("drf(width=8)").options
    ('drf(width=8)', ('depth', 'activation', 'gaussian'))
    """
    base, parameters = _split(name)
    entry = _custom(base, parameters) if ":" in base else MAPS.get(base)
    if entry is None:
        try:
            require_choice("map", base, MAP_NAMES)
        except InputError as error:
            raise InputError(f"{error}; module:Name names a map of your own") from None
        raise AssertionError(base)
    if not parameters:
        return entry
    if entry.family != "own":
        if unknown := sorted(set(parameters) - set(entry.options)):
            takes = ", ".join(entry.options)
            raise InputError(f"`map` (={name!r}) has no parameter {', '.join(unknown)}; {base} takes {takes}")
        MapOptions(**parameters)
    listed, rest = (
        ", ".join(f"{key}={value}" for key, value in parameters.items() if f"{{{key}}}" not in unless)
        for unless in ("", entry.recorded)
    )
    left = tuple(option for option in entry.options if option not in parameters)
    recorded = (entry.recorded or base) + (f"({rest})" if rest else "")
    return replace(
        entry, name=f"{base}({listed})", title=f"{entry.title}, {listed}", options=left, recorded=recorded,
        parameters=parameters,
    )  # fmt: skip


def _custom(name: str, parameters: Mapping[str, Any]) -> MapEntry:
    if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", name):
        raise InputError(f"`map` (={name!r}) must be module:Name, a module that Python can import and a name in it")

    def build(config: Build) -> Any:
        from wordsens.maps.custom import build_custom

        return build_custom(name, vars(config), parameters)

    def content(options: MapOptions) -> str:
        from wordsens.maps.custom import custom_content

        return custom_content(name)

    title = name.rpartition(":")[2]
    return MapEntry(name=name, title=title, features="a map of your own", family="own", build=build, content=content)


def _split(name: str) -> tuple[str, dict[str, Any]]:
    """
    >>> _split("raf(heads=4, score=relu)")
    ('raf', {'heads': 4, 'score': 'relu'})
    """
    if not isinstance(name, str):
        return repr(name), {}
    base, opened, listed = name.strip().partition("(")
    if not opened:
        return base, {}
    pairs = [part.partition("=") for part in listed.removesuffix(")").split(",")]
    if not listed.endswith(")") or any(not key.strip().isidentifier() or not value.strip() for key, _, value in pairs):
        raise InputError(f"`map` (={name!r}) must be a name, alone or with parameters as in raf(heads=4, score=relu)")
    return base.strip(), {key.strip(): _value(value.strip()) for key, _, value in pairs}


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def map_names(listed: str) -> list[str]:
    """The names of a comma-separated list, each checked and none twice.

    >>> map_names("rf, raf, raf(heads=2, score=relu)")
    ['rf', 'raf', 'raf(heads=2, score=relu)']
    """
    parts = re.findall(r"[^,(]+(?:\([^)]*\)?)?", listed)
    names = [map_entry(part.strip()).name for part in parts if part.strip()]
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
    chosen = options if entry.family == "own" else replace(options, **entry.parameters)
    phi = entry.build(Build(n=n, d=d, seed=seed, dtype=kind, device=device, options=chosen))
    if entry.parameters:
        phi.name = recorded_name(name, options)
    return phi


def map_content(name: str, options: MapOptions = DEFAULTS) -> str | None:
    """A digest of what the name does not fix: a transformer's files, the file of a map of one's own; None for others.

    Raises:
        InputError: there is no such model or module.
    """
    content = map_entry(name).content
    return None if content is None else content(options)


def recorded_name(name: str, options: MapOptions = DEFAULTS) -> str:
    """The name of the map in records.

    >>> recorded_name("drf", MapOptions(depth=2)), recorded_name("raf"), recorded_name("raf(heads=2)")
    ('drf2', 'raf', 'raf(heads=2)')
    """
    entry = map_entry(name)
    if not entry.recorded:
        return entry.name
    return entry.recorded.format(**vars(options if entry.family == "own" else replace(options, **entry.parameters)))


def base_name(recorded: str) -> str:
    """The registry's name of a record's map, or the record's own where it has none.

    >>> base_name("drf4"), base_name("raf(heads=2)"), base_name("minilm layer 3")
    ('drf', 'raf', 'minilm layer 3')
    """
    bare = recorded.partition("(")[0]
    plain = bare.rstrip("0123456789")
    return bare if bare in MAPS else plain if plain in MAPS else recorded


def map_title(recorded: str) -> str:
    """A record's map in tables and figures.

    >>> map_title("drf4"), map_title("relu-raf"), map_title("own_map:Means"), map_title("raf(heads=2)")
    ('DRF, L = 4', 'ReLU-RAF', 'Means', 'RAF (softmax), heads=2')
    """
    name, (bare, opened, listed) = base_name(recorded), recorded.partition("(")
    if name not in MAPS:
        return recorded.rpartition(":")[2] if ":" in bare else recorded
    parameters = listed.removesuffix(")")
    if parameters and name == "raf" and "score=" in parameters:
        name = "RAF"
    title = MAPS[name].title if name in MAPS else name
    depth = bare.removeprefix(base_name(recorded))
    return title + (f", L = {depth}" if depth else "") + (f", {parameters}" if opened else "")
