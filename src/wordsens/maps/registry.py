"""Feature maps by name: one entry a map, with its class, options, title and name for a reader who
has not met it.

Help texts, validation, the keys of sweeps, tables, figures and the page read this table. Torch is
loaded when a map is built. A further map of the package is one entry of `ENTRIES`; a map of one's
own needs none: `module:Name` names it. A name may have parameters, `raf(heads=4)`, which come
before options given beside it.
"""

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any

from wordsens.errors import InputError, require_choice, require_count, require_positive

MODEL = "model"
MOST_DEPTH = 10_000
"""Of drf: so many matrices take a second to name, and no activation passes anything on through
them."""


def _one_of(module: str, names: str) -> Callable[[str, Any], object]:
    """A check against the names that a module lists, which is loaded when something is checked."""

    def check(name: str, value: Any) -> None:
        require_choice(name, value, tuple(getattr(import_module(module), names)))

    return check


def _named(name: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise InputError(f"`{name}` (={value!r}) must be a name")


def _yes_or_no(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise InputError(f"`{name}` (={value!r}) must be True or False")


@dataclass(frozen=True)
class MapOption:
    """An option of maps; the default None stands for what suits the map, `check` raises InputError
    on a wrong value."""

    default: Any
    help: str
    check: Callable[[str, Any], object]


OPTIONS = {
    "depth": MapOption(
        4, "Layers of drf and transformer.", partial(require_count, most=MOST_DEPTH)
    ),
    "width": MapOption(None, "Features of rf and drf; default: n d.", require_count),
    "activation": MapOption(
        "relu",
        "Of rf and drf: relu, leaky_relu, identity, tanh, gelu or erf.",
        _one_of("wordsens.activations", "ACTIVATIONS"),
    ),
    "gaussian": MapOption(
        "auto",
        "How the matrices of rf and drf are kept: dense, lazy (never built) or auto.",
        _one_of("wordsens.maps.dense", "GAUSSIAN_KINDS"),
    ),
    "temperature": MapOption(1.0, "Divides the scores of the attention maps.", require_positive),
    "heads": MapOption(
        1, "Heads of the attention maps, each with weights of its own.", require_count
    ),
    "score": MapOption(
        "softmax",
        "How the scores of raf and transformer become weights.",
        _one_of("wordsens.maps.attention.scores", "SCORES"),
    ),
    "head_dimension": MapOption(
        None,
        "Rank of W = W_Q W_K^T of raf and transformer; default: independent entries.",
        require_count,
    ),
    "residual": MapOption(True, "Whether a layer of transformer adds its input.", _yes_or_no),
    "norm": MapOption(
        "pre",
        "LayerNorm of transformer: pre, post or None.",
        lambda name, value: (
            value is None or require_choice(name, value, ("pre", "post"), remedy="or None")
        ),
    ),
    "mlp": MapOption(
        0, "Width of the MLP of transformer; 0: none.", partial(require_count, least=0)
    ),
    "values": MapOption(
        None,
        "Whether transformer has values; default: all but attention alone.",
        lambda name, value: value is None or _yes_or_no(name, value),
    ),
    "causal": MapOption(False, "Whether rows of transformer see earlier rows only.", _yes_or_no),
    "model": MapOption(
        "minilm", "The transformer: minilm, a folder, or a name on the Hugging Face hub.", _named
    ),
    "model_layer": MapOption(
        -1,
        "The transformer's layer; 0 is what enters the first, -1 the last.",
        partial(
            require_count, least=-1000, remedy="0 is what enters the first layer, -1 the last layer"
        ),
    ),
    "pool": MapOption(
        None,
        "One vector a text of the transformer: own, mean, cls, last or max; default: all rows.",
        _one_of("wordsens.models.text_model", "POOL_NAMES"),
    ),
}
"""Every option that fixes a map beside its name, the size of the text and the seed."""

DEFAULTS = {name: option.default for name, option in OPTIONS.items()}


def checked_options(**options: Any) -> dict[str, Any]:
    """All options, the defaults among them; InputError for an unknown one or a wrong value.

    >>> checked_options(depth=2)["depth"], checked_options()["depth"]
    (2, 4)
    """
    for name, value in options.items():
        require_choice("option", name, tuple(OPTIONS))
        if value != DEFAULTS[name]:
            OPTIONS[name].check(name, value)
    return DEFAULTS | options


@dataclass(frozen=True, kw_only=True)
class MapEntry:
    """A map by name.

    Attributes:
        name: as specs and the command line write it.
        title: in tables and figures.
        plain: for a reader who has not met it, a format of the depth.
        family: dense, attention, stack (of random layers), transformer (a trained model) or own.
        maker: the name of its class; of a map of one's own, where it lies.
        options: those that it looks at; no other changes its features or its records' names.
        fixed: the options that its name decides.
        recorded: what records call it, a format of the options.
        dtype: where none is asked for.
    """

    name: str
    title: str
    plain: str = ""
    family: str
    maker: str
    options: tuple[str, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)
    recorded: str = ""
    dtype: str = "float64"


_dense = partial(MapEntry, family="dense")
_attention = partial(
    MapEntry, family="attention", maker="RandomAttentionFeatures", options=("temperature", "heads")
)

ENTRIES = (
    _dense(
        name="rf",
        title="RF",
        plain="a fully connected layer",
        maker="RandomFeatures",
        options=("width", "activation", "gaussian"),
    ),
    _dense(
        name="drf",
        title="DRF",
        plain="{depth} fully connected layers",
        maker="DeepRandomFeatures",
        options=("depth", "width", "activation", "gaussian"),
        recorded="drf{depth}",
    ),
    _attention(
        name="raf",
        title="RAF (softmax)",
        plain="attention",
        options=("score", "temperature", "heads", "head_dimension"),
    ),
    _attention(
        name="relu-raf",
        title="ReLU-RAF",
        plain="attention with ReLU scores",
        fixed={"score": "relu"},
    ),
    _attention(
        name="relu-unnormalized-raf",
        title="ReLU-RAF, not divided",
        plain="attention with ReLU scores, not divided",
        fixed={"score": "relu-unnormalized"},
    ),
    _attention(
        name="sigmoid-raf",
        title="sigmoid RAF",
        plain="attention with sigmoid scores",
        fixed={"score": "sigmoid"},
    ),
    _attention(
        name="linear-raf",
        title="linear RAF",
        plain="attention with linear scores",
        fixed={"score": "linear"},
    ),
    MapEntry(
        name=MODEL,
        title="trained model",
        plain="a trained model",
        family="transformer",
        maker="TransformerFeatures",
        options=("model", "model_layer", "pool"),
        recorded="{model} layer {model_layer}",
        dtype="float32",
    ),
    MapEntry(
        name="transformer",
        title="random transformer",
        plain="a random transformer of {depth} layers",
        family="stack",
        maker="RandomTransformer",
        recorded="transformer{depth}",
        options=(
            "depth",
            "heads",
            "residual",
            "norm",
            "mlp",
            "values",
            "causal",
            "score",
            "temperature",
            "head_dimension",
        ),
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
    if ":" not in base:
        entry = MAPS[
            require_choice("map", base, MAP_NAMES, remedy="module:Name names a map of your own")
        ]
    elif re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", base):
        entry = MapEntry(name=base, title=base.rpartition(":")[2], family="own", maker=base)
    else:
        raise InputError(
            f"`map` (={base!r}) must be module:Name, a module that Python can import and a name in "
            "it"
        )
    if not parameters:
        return entry
    if entry.family != "own":
        if unknown := sorted(set(parameters) - set(entry.options)):
            takes = ", ".join(entry.options)
            raise InputError(
                f"`map` (={name!r}) has no parameter {', '.join(unknown)}; {base} takes {takes}"
            )
        checked_options(**parameters)
    listed, rest = (
        ", ".join(
            f"{key}={value}" for key, value in parameters.items() if f"{{{key}}}" not in unless
        )
        for unless in ("", entry.recorded)
    )
    return replace(
        entry,
        name=f"{base}({listed})",
        title=f"{entry.title}, {listed}",
        options=tuple(option for option in entry.options if option not in parameters),
        fixed={**entry.fixed, **parameters},
        recorded=(entry.recorded or base) + (f"({rest})" if rest else ""),
    )


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
    if not listed.endswith(")") or any(
        not key.strip().isidentifier() or not value.strip() for key, _, value in pairs
    ):
        raise InputError(
            f"`map` (={name!r}) must be a name, alone or with parameters as in raf(heads=4, "
            "score=relu)"
        )
    parameters = {key.strip(): _value(value.strip()) for key, _, value in pairs}
    if len(parameters) < len(pairs):
        raise InputError(f"`map` (={name!r}) has a parameter twice; give each once")
    return base.strip(), parameters


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
    name: str, n: int, d: int, *, seed: int, dtype: Any = None, device: Any = "cpu", **options: Any
) -> Any:
    """The FeatureMap of that name for texts of n words and d coordinates; `dtype` None for what
    suits the map.

    `options` are some of OPTIONS.

    >>> build_map("relu-raf", 4, 8, seed=0).name
    'relu-raf'
    """
    import torch

    entry, chosen = map_entry(name), checked_options(**options)
    dtype = getattr(torch, entry.dtype) if dtype is None else dtype
    made_with = {option: chosen[option] for option in entry.options} | dict(entry.fixed)
    common = {"seed": seed, "dtype": dtype, "device": device}
    if entry.family == "dense":
        from wordsens.maps import dense

        phi = getattr(dense, entry.maker)(n, d, **made_with, **common)
    elif entry.family == "attention":
        from wordsens.maps.attention.features import RandomAttentionFeatures

        phi = RandomAttentionFeatures(d, **made_with, **common)
    elif entry.family == "stack":
        from wordsens.maps.random_transformer import RandomTransformer

        phi = RandomTransformer(d, **made_with, **common)
    elif entry.family == "transformer":
        from wordsens.maps.transformer.features import loaded_model

        own = made_with["pool"] == "own"
        phi = loaded_model(made_with["model"], dtype, str(device), own=own)
        phi = phi.at(layer=made_with["model_layer"], pool=made_with["pool"])
    else:
        from wordsens.maps.custom import build_custom

        phi = build_custom(entry.maker, {"n": n, "d": d, **common}, entry.fixed)
    if "(" in entry.name:
        phi.name = recorded_name(name, **options)
    return phi


def map_content(name: str, **options: Any) -> str | None:
    """A digest of what the name does not fix: a transformer's files, the file of a map of one's
    own; None for others.

    Raises:
        InputError: there is no such model or module.
    """
    entry = map_entry(name)
    if entry.family == "transformer":
        from wordsens.models.model_files import model_digest

        return model_digest((checked_options(**options) | dict(entry.fixed))["model"])
    if entry.family == "own":
        from wordsens.maps.custom import custom_content

        return custom_content(entry.maker)
    return None


def recorded_name(name: str, **options: Any) -> str:
    """The name of the map in records.

    >>> recorded_name("drf", depth=2), recorded_name("raf"), recorded_name("raf(heads=2)")
    ('drf2', 'raf', 'raf(heads=2)')
    """
    entry = map_entry(name)
    if not entry.recorded:
        return entry.name
    return entry.recorded.format(**(checked_options(**options) | dict(entry.fixed)))


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
    """  # noqa: E501
    name, (bare, opened, listed) = base_name(recorded), recorded.partition("(")
    if name not in MAPS:
        return recorded.rpartition(":")[2] if ":" in bare else recorded
    parameters, depth = listed.removesuffix(")"), bare.removeprefix(name)
    title = "RAF" if name == "raf" and "score=" in parameters else MAPS[name].title
    return title + (f", L = {depth}" if depth else "") + (f", {parameters}" if opened else "")


def plain_name(recorded: str) -> str:
    """A record's map for a reader who has not met its short name, with that name in brackets.

    >>> plain_name("raf"), plain_name("drf4"), plain_name("drf")
    ('attention (RAF, softmax)', '4 fully connected layers (DRF, L = 4)', 'several fully connected layers (DRF)')
    """  # noqa: E501
    base, title = base_name(recorded), map_title(recorded).replace(" (softmax)", ", softmax")
    if base not in MAPS:
        return title
    depth = recorded.partition("(")[0].removeprefix(base) or "several"
    return f"{MAPS[base].plain.format(depth=depth)} ({title})"
