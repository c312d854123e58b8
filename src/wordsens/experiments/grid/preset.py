"""A sweep of the paper, fitted to the data at hand."""

from dataclasses import dataclass

from wordsens.experiments.grid.sweep import Sweep


@dataclass(frozen=True)
class Preset:
    """A sweep, and what the user should know of how it was fitted to the data."""

    sweep: Sweep
    notices: tuple[str, ...]
