"""Maps of one's own by `module:Name`: imported from where Python looks, and from the current
folder."""

import copy
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import torch
from torch import nn

from wordsens.errors import InputError, running
from wordsens.maps.arguments import as_feature_map
from wordsens.maps.base import FeatureMap
from wordsens.sources import source_digest

GIVEN = ("n", "d", "seed", "dtype", "device")
"""Arguments for a class or function that makes a map, as far as it has parameters of these
names."""


def build_custom(
    name: str, given: Mapping[str, Any], parameters: Mapping[str, Any] = MappingProxyType({})
) -> FeatureMap:
    """The map that `module:Name` stands for.

    Name is a FeatureMap or a torch module, as it is; a class of either, or a function of (n, d,
    seed), which is called with what it asks for of `given`, a value for each of GIVEN, and with the
    further `parameters`; or a differentiable function of (n, d), which is the map itself. Weights
    that torch draws meanwhile come from the seed in `given`, those that it draws while the module
    is imported from 0; torch's own state stays as it was.

    Raises:
        InputError: there is no such module or name, or it is none of these.
    """
    module_name, _, attribute = name.partition(":")
    _source(module_name)
    with running(f"`map` (={module_name!r}): the import ended"), _current_folder(), _drawn_from(0):
        module = importlib.import_module(module_name)
    if not hasattr(module, attribute):
        raise InputError(f"`map` (={name!r}): {module.__file__} has no {attribute!r}")
    source: Any = getattr(module, attribute)
    if _makes_maps(source, parameters):
        several = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        signature = inspect.signature(source).parameters.values()
        wanted = {
            parameter.name: parameter for parameter in signature if parameter.kind not in several
        }
        needed = {
            parameter.name for parameter in wanted.values() if parameter.default is parameter.empty
        }
        if unknown := sorted(set(parameters) - set(wanted)):
            raise InputError(
                f"`map` (={name!r}) has no parameter {', '.join(unknown)}; it has "
                f"{', '.join(sorted(wanted))}"
            )
        if missing := [
            parameter for parameter in wanted if parameter in needed - {*GIVEN, *parameters}
        ]:
            raise InputError(
                f"`map` (={name!r}) asks for {', '.join(missing)}; it is given {', '.join(GIVEN)}, "
                "so give the rest a "
                f"default, or write {name}({missing[0]}=...)"
            )
        with running(f"`map` (={name!r}) ended"), _drawn_from(given["seed"]):
            source = source(
                **{key: given[key] for key in GIVEN if key in wanted} | dict(parameters)
            )
    elif parameters:
        raise InputError(
            f"`map` (={name!r}) takes no parameters: it is no class or function that makes a map"
        )
    if not callable(source):
        raise InputError(
            f"`map` (={name!r}) is a {type(source).__name__}; give a FeatureMap, a torch module, a "
            "class "
            "of either, or a function"
        )
    phi = copy.copy(as_feature_map(cast("Any", source)))
    phi.name = name
    return phi


def custom_content(name: str) -> str:
    """SHA-256 of the module's file and of those beside it that it imports, as this process first
    saw them."""
    return _source(name.partition(":")[0])


def _makes_maps(thing: Any, given: Mapping[str, Any]) -> bool:
    if inspect.isclass(thing):
        return issubclass(thing, (FeatureMap, nn.Module))
    if not inspect.isfunction(thing):
        return False
    parameters = inspect.signature(thing).parameters.values()
    return all(
        each.name in (*GIVEN, *given) or each.default is not each.empty for each in parameters
    )


@cache
def _source(module: str) -> str:
    with running(f"`map` names the module {module!r}: the search for it ended"), _current_folder():
        spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise InputError(
            f"`map` names the module {module!r}, which is neither installed nor a file of the "
            "current folder"
        )
    return source_digest({module: Path(spec.origin)}, package=False)


@contextmanager
def _drawn_from(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@contextmanager
def _current_folder() -> Iterator[None]:
    """The current folder on Python's path, behind everything else, where it is not there yet."""
    here = str(Path.cwd())
    added = here not in sys.path
    if added:
        sys.path.append(here)
    importlib.invalidate_caches()
    try:
        yield
    finally:
        if added:
            sys.path.remove(here)
