"""A sweep of the paper, fitted to the data at hand."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wordsens.experiments.grid.sweep import Sweep


@dataclass(frozen=True)
class Preset:
    """A sweep, and what the user should know of how it was fitted to the data."""

    sweep: Sweep
    notices: tuple[str, ...]


_COUNTS = ("starts", "steps", "generations", "tolerance", "contenders", "sampled")


def with_effort(keys: Mapping[str, Any], effort: str | None) -> dict[str, Any]:
    """The keys of a grid with what its searches may spend: its own counts, unless an effort takes their place.

    >>> with_effort({"starts": 2, "dtype": "float32"}, "thorough")
    {'dtype': 'float32', 'search': 'thorough'}
    """
    if effort is None:
        return dict(keys)
    return {**{name: value for name, value in keys.items() if name not in _COUNTS}, "search": effort}
