"""All that a comparison holds."""

from dataclasses import dataclass

from wordsens.evaluation.compare.difference import Difference
from wordsens.evaluation.compare.neighbours import ChangedNeighbour


@dataclass(frozen=True, eq=False, repr=False)
class Compared:
    """The differences between two models, over pairs and over texts; `Comparison` lists the attributes."""

    first: str
    second: str
    identities: tuple[str, str]
    texts: int
    apart: float | None
    rows: tuple[Difference, ...]
    changed: tuple[ChangedNeighbour, ...]
    tolerance: float
    failures: tuple[str, ...]
    requirements: tuple[str, ...]
    notes: tuple[str, ...]
