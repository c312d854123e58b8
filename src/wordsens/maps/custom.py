"""Maps of one's own by `module:Name`: imported from where Python looks, and from the current
folder."""

import copy
import hashlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import torch

from wordsens.errors import InputError, argument, running
from wordsens.files import own_sources
from wordsens.maps.arguments import as_feature_map
from wordsens.maps.base import FeatureMap
from wordsens.models.function import load_named


def build_custom(name: str, given: Mapping[str, Any], parameters: Mapping[str, Any]) -> FeatureMap:
    """The map that `module:Name` stands for.

    Name is a FeatureMap or a torch module, as it is; a class of either, or a function that makes
    one, which is called with what it has parameters for of `given` (n, d, seed, dtype, device) and
    with the further `parameters`; or a differentiable function of (n, d), which is the map itself.
    Weights that torch draws meanwhile come from the seed in `given`, those that it draws while the
    module is imported from 0; torch's own state stays as it was.

    Raises:
        InputError: there is no such module or name, or it is none of these.
    """
    custom_content(name)
    with _drawn_from(0):
        source = load_named(name, "map")
    if inspect.isclass(source) or inspect.isfunction(source):
        source = _made(name, source, {"dtype": torch.float64, **given}, parameters)
    elif parameters:
        raise InputError(
            f"{argument('map')} (={name!r}) is an object and takes no parameters; drop them"
        )
    if not callable(source):
        raise InputError(
            f"{argument('map')} (={name!r}) is a {type(source).__name__}; give a FeatureMap, a "
            "torch module, a class of either, or a function"
        )
    phi = copy.copy(as_feature_map(cast("Any", source)))
    phi.name = name
    return phi


def _made(name: str, maker: Any, given: Mapping[str, Any], parameters: Mapping[str, Any]) -> Any:
    """What the class or function makes; a function that needs more arguments is a map itself."""
    signature = inspect.signature(maker)
    taken = {key: value for key, value in given.items() if key in signature.parameters}
    arguments = {**taken, **parameters}
    try:
        signature.bind(**arguments)
    except TypeError as error:
        if inspect.isfunction(maker) and not parameters:
            return maker
        raise InputError(
            f"{argument('map')} (={name!r}) takes {signature}: {error}; it is given "
            f"{', '.join(given)}, so write the rest behind its name, {name}(k=3), or give it "
            "defaults"
        ) from error
    with running(f"{argument('map')} (={name!r}) ended"), _drawn_from(given["seed"]):
        return maker(**arguments)


@contextmanager
def _drawn_from(seed: int) -> Iterator[None]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


@cache
def custom_content(name: str) -> str:
    """SHA-256 of the module's file and of those beside it that it imports, as this process first
    saw them.

    Raises:
        InputError: there is no such module.
    """
    module = name.partition(":")[0]
    sys.path.extend({str(Path.cwd())}.difference(sys.path))
    with running(f"{argument('map')} names the module {module!r}: the search for it ended"):
        spec = find_spec(module)
    if spec is None or spec.origin is None or not Path(spec.origin).is_file():
        raise InputError(
            f"{argument('map')} names the module {module!r}, which is neither installed nor a file "
            "of the current folder"
        )
    files = sorted(own_sources(module, Path(spec.origin)))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
