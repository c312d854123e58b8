"""Feature maps by name: one entry per map, with its maker, title and name for a reader.

Specs, the command line, tables, figures and the page read this table. A map's options are the
parameters of its maker, a class or a function: names, defaults, rules (annotations) and help (the
`Args:` of the docstring) are read from there, which loads torch. A further map of the package is
one entry of `MAPS`; a map of one's own needs none: `module:Name` names it. A name may fix options:
`raf(heads=4)`.
"""

import ast
import inspect
import pkgutil
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin

from wordsens.errors import InputError, argument, require_choice, require_kind

MODEL = "model"
TRAINED, OWN = "transformer", "own"

# What a measurement gives a maker, as far as it has parameters of these names.
GIVEN = ("n", "d", "seed", "dtype", "device")


@dataclass(frozen=True)
class MapEntry:
    """A map by name.

    Attributes:
        name: as specs and the command line write it.
        maker: `module:Name` of the class or function that makes it.
        family: dense, attention, stack (of random layers), transformer (TRAINED) or own (OWN).
        title: in tables and figures.
        plain: for a reader who has not met it, a format of the depth.
        fixed: the options that its name decides.
        recorded: what records call it, a format of the options; "" for its name.
    """

    name: str
    maker: str
    family: str
    title: str
    plain: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    recorded: str = ""

    @cached_property
    def options(self) -> dict[str, inspect.Parameter]:
        """The options that its name leaves open; a map of one's own takes them in its name only."""
        parameters = {} if self.family == OWN else parameters_of(self.maker)
        decided = {*GIVEN, *self.fixed}
        return {name: parameters[name] for name in parameters if name not in decided}


_DENSE = "wordsens.maps.dense"
_ATTENTION = "wordsens.maps.attention.features:RandomAttentionFeatures"

# Their order is that of the colours in figures. Of the maps of `_ATTENTION`, "raf" alone has a
# head_dimension: for the others it is no key of a cell.
MAPS = {
    entry.name: entry
    for entry in (
        MapEntry("rf", f"{_DENSE}:RandomFeatures", "dense", "RF", "a fully connected layer"),
        MapEntry(
            "drf",
            f"{_DENSE}:DeepRandomFeatures",
            "dense",
            "DRF",
            "{depth} fully connected layers",
            recorded="drf{depth}",
        ),
        MapEntry("raf", _ATTENTION, "attention", "RAF (softmax)", "attention"),
        MapEntry(
            "relu-raf",
            _ATTENTION,
            "attention",
            "ReLU-RAF",
            "attention with ReLU scores",
            {"score": "relu", "head_dimension": None},
        ),
        MapEntry(
            "relu-unnormalized-raf",
            _ATTENTION,
            "attention",
            "ReLU-RAF, not divided",
            "attention with ReLU scores, not divided",
            {"score": "relu-unnormalized", "head_dimension": None},
        ),
        MapEntry(
            "sigmoid-raf",
            _ATTENTION,
            "attention",
            "sigmoid RAF",
            "attention with sigmoid scores",
            {"score": "sigmoid", "head_dimension": None},
        ),
        MapEntry(
            "linear-raf",
            _ATTENTION,
            "attention",
            "linear RAF",
            "attention with linear scores",
            {"score": "linear", "head_dimension": None},
        ),
        MapEntry(
            MODEL,
            "wordsens.maps.transformer.features:loaded_model",
            TRAINED,
            "trained model",
            "a trained model",
            recorded="{model} layer {model_layer}",
        ),
        MapEntry(
            "transformer",
            "wordsens.maps.random_transformer:RandomTransformer",
            "stack",
            "random transformer",
            "a random transformer of {depth} layers",
            recorded="transformer{depth}",
        ),
    )
}


@cache
def map_entry(name: str) -> MapEntry:
    """The entry of that name; of `module:Name`, one for the map that lies there (`maps.custom`).

    >>> list(map_entry("drf( width = 8 )").options)
    ['depth', 'activation', 'gaussian', 'gaussian_bytes']
    """
    base, parameters = _split(name)
    if re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", base):
        entry = MapEntry(base, base, OWN, base.rpartition(":")[2])
    else:
        remedy = "module:Name names a map of your own"
        entry = MAPS[require_choice("map", base, MAPS, remedy=remedy)]
    for option, value in parameters.items() if entry.family != OWN else ():
        if option not in entry.options:
            raise InputError(
                f"{argument('map')} (={name!r}) has no parameter {option}; {base} takes "
                f"{', '.join(entry.options)}"
            )
        _require_allowed(entry.options[option], value)
    if not parameters:
        return entry
    spelled = {option: f"{option}={value}" for option, value in parameters.items()}
    listed = ", ".join(spelled.values())
    recorded = entry.recorded
    others = [text for option, text in spelled.items() if f"{{{option}}}" not in recorded]
    return replace(
        entry,
        name=f"{base}({listed})",
        title=f"{entry.title}, {listed}",
        fixed={**entry.fixed, **parameters},
        recorded=f"{recorded}({', '.join(others)})" if recorded and others else recorded,
    )


def _split(name: str) -> tuple[str, dict[str, Any]]:
    """The name without its parameters, and these.

    >>> _split("raf(heads=4, score=relu)")
    ('raf', {'heads': 4, 'score': 'relu'})
    """
    base, opened, listed = name.strip().partition("(")
    pairs = re.findall(r"([^\W\d]\w*)\s*=\s*([^,]*[^,\s])\s*[,)]", listed)
    parameters = {option: _value(text) for option, text in pairs}
    if opened and (listed[-1:] != ")" or len(parameters) != listed.count(",") + 1):
        raise InputError(
            f"{argument('map')} (={name!r}) must be a name, alone or with parameters, each once, "
            "as in raf(heads=4, score=relu)"
        )
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
    names = [part for part in parts if part.strip()] or [listed]
    return list(dict.fromkeys(map_entry(name).name for name in names))


@cache
def parameters_of(maker: str) -> Mapping[str, inspect.Parameter]:
    """The parameters of the class or function at `module:Name`."""
    return inspect.signature(pkgutil.resolve_name(maker)).parameters


def option_names() -> set[str]:
    """The options of all maps of the package."""
    return {name for entry in MAPS.values() for name in entry.options}


def map_options(name: str, **options: Any) -> dict[str, Any]:
    """The value of every option of the map: of its name, or of `options`, or the maker's default.

    Options of other maps are left out.

    Raises:
        InputError: a value that the annotation of its parameter does not allow.

    >>> map_options("relu-raf(heads=2)", temperature=2.0, width=8)
    {'temperature': 2.0, 'score': 'relu', 'head_dimension': None, 'heads': 2}
    """
    entry = map_entry(name)
    chosen = {
        option: options.get(option, parameter.default)
        for option, parameter in entry.options.items()
    }
    for option, value in chosen.items():
        _require_allowed(entry.options[option], value)
    return chosen | dict(entry.fixed)


def _require_allowed(parameter: inspect.Parameter, value: Any) -> None:
    """InputError where the parameter's annotation does not allow the value: it is a class, or
    `Annotated` with a rule, which is a function of name and value or the names to choose from."""
    annotation = parameter.annotation
    kinds = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    if value is None and NoneType in kinds:
        return
    rule = getattr(kinds[0], "__metadata__", [partial(require_kind, kind=kinds[0])])[0]
    if not callable(rule):
        rule = partial(require_choice, choices=rule, remedy="or None" if len(kinds) > 1 else "")
    rule(parameter.name, value)


def option_help(name: str) -> str:
    """What an option is: the maps that take it, what a maker's `Args:` says of it, its default.

    >>> option_help("temperature")[-46:]
    'transformer: divides the scores. Default: 1.0.'
    """
    takers = [entry for entry in MAPS.values() if name in entry.options]
    names = ", ".join(entry.name for entry in takers)
    help_texts = [_argument_help(entry.maker, name) for entry in takers]
    default = takers[0].options[name].default
    shown = "" if default is None else f" Default: {default}."
    return f"For {names}: {max(help_texts, key=len)}{shown}"


def _argument_help(maker: str, name: str) -> str:
    docstring = inspect.getdoc(pkgutil.resolve_name(maker)) or ""
    match = re.search(rf"^    (?:\w+, )*{name}(?:, \w+)*: (.*(?:\n {{8}}.*)*)", docstring, re.M)
    return " ".join(match[1].split()) if match else ""


def build_map(
    name: str, n: int, d: int, *, seed: int, dtype: Any = None, device: Any = "cpu", **options: Any
) -> Any:
    """The FeatureMap of that name for texts of n words and d coordinates; `dtype` None for what
    suits the map.

    `options`: of any maps (`map_options`).

    >>> build_map("relu-raf", 4, 8, seed=0).name
    'relu-raf'
    """
    entry, chosen = map_entry(name), map_options(name, **options)
    given = {"n": n, "d": d, "seed": seed, "device": device}
    if dtype is not None:
        given["dtype"] = dtype
    if entry.family == OWN:
        from wordsens.maps.custom import build_custom

        phi = build_custom(entry.maker, given, chosen)
    else:
        parameters = parameters_of(entry.maker)
        taken = {key: value for key, value in given.items() if key in parameters}
        phi = pkgutil.resolve_name(entry.maker)(**taken, **chosen)
    if entry.fixed:
        phi.name = recorded_name(name, **options)
    return phi


def map_content(name: str, **options: Any) -> str | None:
    """A digest of what the name does not fix: a transformer's files, the file of a map of one's
    own; None for others.

    Raises:
        InputError: there is no such model or module.
    """
    entry = map_entry(name)
    if entry.family == TRAINED:
        from wordsens.models.model_files import model_digest

        return model_digest(map_options(name, **options)["model"])
    if entry.family == OWN:
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
    return entry.recorded.format(**map_options(name, **options))


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

    >>> map_title("drf4"), map_title("own_map:Means"), map_title("raf(heads=2)")
    ('DRF, L = 4', 'Means', 'RAF (softmax), heads=2')
    """
    name, (bare, opened, listed) = base_name(recorded), recorded.partition("(")
    if name not in MAPS:
        return recorded.rpartition(":")[2] if ":" in bare else recorded
    parameters, depth = listed.removesuffix(")"), bare.removeprefix(name)
    title = "RAF" if name == "raf" and "score=" in parameters else MAPS[name].title
    return title + (f", L = {depth}" if depth else "") + (f", {parameters}" if opened else "")


def plain_name(recorded: str) -> str:
    """A record's map for a reader who has not met its short name, with that name in brackets.

    >>> plain_name("raf"), plain_name("drf4")
    ('attention (RAF, softmax)', '4 fully connected layers (DRF, L = 4)')
    """
    base, title = base_name(recorded), map_title(recorded).replace(" (softmax)", ", softmax")
    if base not in MAPS:
        return title
    depth = recorded.partition("(")[0].removeprefix(base) or "several"
    return f"{MAPS[base].plain.format(depth=depth)} ({title})"
