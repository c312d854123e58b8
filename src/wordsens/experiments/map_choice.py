"""Feature maps by the names that specs and the command line use."""

from dataclasses import dataclass

import torch

from wordsens.errors import InputError, require_choice
from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.contract import FeatureMap
from wordsens.maps.dense.features import DeepRandomFeatures, RandomFeatures

SCORE_OF = {
    "raf": "softmax",
    "relu-raf": "relu",
    "relu-unnormalized-raf": "relu-unnormalized",
    "sigmoid-raf": "sigmoid",
    "linear-raf": "linear",
}
"""The attention maps, and the score of each."""

DENSE_MAPS = ("rf", "drf")
MAP_NAMES = (*DENSE_MAPS, *SCORE_OF)

_TITLES = {
    "rf": "RF",
    "raf": "RAF (softmax)",
    "relu-raf": "ReLU-RAF",
    "relu-unnormalized-raf": "ReLU-RAF, not divided",
    "sigmoid-raf": "sigmoid RAF",
    "linear-raf": "linear RAF",
}

DEFAULT_DEPTH = 4
"""Layers of `drf` where nobody names a depth."""


@dataclass(frozen=True)
class MapOptions:
    """What fixes a random map, apart from its name, the size of the text and the seed.

    Attributes:
        depth: layers of drf.
        width: features of rf and of each layer of drf; None for n d.
        activation: of rf and drf.
        gaussian: how the matrices of rf and drf are kept.
        temperature: divides the scores of the attention maps.
    """

    depth: int = DEFAULT_DEPTH
    width: int | None = None
    activation: str = "relu"
    gaussian: str = "auto"
    temperature: float = 1.0


def options_used_by(name: str) -> frozenset[str]:
    """Which MapOptions the map of that name looks at.

    >>> sorted(options_used_by("raf"))
    ['temperature']
    """
    if name in SCORE_OF:
        return frozenset({"temperature"})
    dense = {"width", "activation", "gaussian"}
    return frozenset(dense | {"depth"} if require_choice("map", name, MAP_NAMES) == "drf" else dense)


def map_names(listed: str) -> list[str]:
    """The names of a comma-separated list, each checked and none twice.

    >>> map_names("rf, raf")
    ['rf', 'raf']
    """
    names = [require_choice("map", part.strip(), MAP_NAMES) for part in listed.split(",") if part.strip()]
    if not names:
        raise InputError(f"`map` (={listed!r}) names no map; choose from {', '.join(MAP_NAMES)}")
    return list(dict.fromkeys(names))


def build_map(
    name: str,
    n: int,
    d: int,
    *,
    options: MapOptions,
    seed: int,
    dtype: torch.dtype = torch.float64,
    device: torch.device | str = "cpu",
) -> FeatureMap:
    """The map of that name for texts of n words and d coordinates.

    >>> build_map("relu-raf", 4, 8, options=MapOptions(), seed=0).name
    'relu-raf'
    """
    require_choice("map", name, MAP_NAMES)
    if name in SCORE_OF:
        return RandomAttentionFeatures(d, SCORE_OF[name], seed, dtype, temperature=options.temperature, device=device)
    if name == "rf":
        return RandomFeatures(
            n, d, options.width, options.activation, options.gaussian, seed, dtype=dtype, device=device
        )
    return DeepRandomFeatures(
        n,
        d,
        options.depth,
        options.width,
        options.activation,
        options.gaussian,
        seed,
        dtype=dtype,
        device=device,
    )


def map_title(name: str) -> str:
    """What a record's map is called.

    >>> map_title("drf4"), map_title("relu-raf")
    ('DRF, L = 4', 'ReLU-RAF')
    """
    return f"DRF, L = {name.removeprefix('drf')}" if name.startswith("drf") else _TITLES.get(name, name)
