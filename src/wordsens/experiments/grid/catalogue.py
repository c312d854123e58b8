"""Sweeps by name: the paper's presets, and the examples that ship with wordsens."""

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from wordsens.errors import InputError, require_choice, shown
from wordsens.experiments.grid.sweep import Sweep
from wordsens.experiments.texts.source import DatasetText, ReviewsText
from wordsens.files import named_path, packaged_files

SCALE_NAMES = ("quick", "laptop", "full")
PRESETS = (
    "paper-sensitivity", "paper-generalization", "paper-departures", "paper-correlations", "paper-several-words",
    "paper-similarity", "paper-control",
)  # fmt: skip
INCLUDE_KEYS = ("preset", "scale", "data", "encoder", "seed")


@cache
def examples() -> dict[str, Path]:
    """The files of the example sweeps, by name."""
    return {path.stem: path for path in packaged_files("experiments/grid/examples").values()}


def preset_names() -> list[str]:
    """The paper's presets, one name a scale."""
    return [f"{preset}-{scale}" for preset in PRESETS for scale in SCALE_NAMES]


def preset(name: str, *, scale: str = "quick", data: Any = None, encoder: str = "minilm", seed: int = 0) -> Sweep:
    """A preset of the paper as a sweep: its texts are looked at, since their lengths decide the sizes."""
    kind = require_choice("preset", name, PRESETS).removeprefix("paper-")
    package = kind.replace("-", "_")
    made = getattr(importlib.import_module(f"wordsens.experiments.{package}.preset"), f"paper_{package}")
    source = ReviewsText(encoder=encoder) if data is None else DatasetText.parse({"path": data, "encoder": encoder})
    return made(scale, source, seed=seed).sweep


def included(entry: Any, folder: Path, *, load: Callable[[Path], Sweep], called: str = "include") -> Sweep:
    """The sweep that an entry of `include` stands for.

    Args:
        entry: a preset with its scale (paper-sensitivity-quick), an example's name, a file; or a mapping with `preset`
            and any of scale, data, encoder, seed.
        folder: where files are looked for.
        load: reads a file.
        called: the entry's name in messages.

    Raises:
        InputError: there is none.
    """
    if isinstance(entry, Mapping):
        for key in entry:
            require_choice("key", key, INCLUDE_KEYS)
        if "preset" not in entry:
            raise InputError(f"`include` (={shown(dict(entry))}) names no preset; give one of {', '.join(PRESETS)}")
        options = dict(entry)
        return preset(options.pop("preset"), **options)
    if not isinstance(entry, str):
        raise InputError(f"`{called}` (={shown(entry)}) must be a name, a file, or a mapping with a preset")
    path = folder / named_path(called, entry, home=False)
    if entry.endswith((".yaml", ".yml")) or "/" in entry or path.is_file():
        return load(path)
    remedy = "or the file of a sweep, .yaml" if called == "include" else "a .yaml file, or a folder that a sweep ran in"
    require_choice(called, entry, [*preset_names(), *examples()], remedy=remedy)
    if entry in examples():
        return load(examples()[entry])
    name, _, scale = entry.rpartition("-")
    return preset(name, scale=scale)
