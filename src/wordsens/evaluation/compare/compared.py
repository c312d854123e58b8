"""All that a comparison holds."""

from dataclasses import dataclass

from wordsens.evaluation.compare.difference import Difference
from wordsens.evaluation.compare.neighbours import ChangedNeighbour


@dataclass(frozen=True, eq=False, repr=False)
class Compared:
    """The differences between two models, over pairs and over the user's own texts.

    Attributes:
        first, second: the models' names.
        identities: of their weights, or what stands for them.
        texts: how many were compared, each once.
        apart: the mean distance of a text's two vectors, both at length one; None where they have not one dimension.
        rows: the differences, of which those that `differs` are findings.
        changed: the texts with another first neighbour, the clearest first.
        tolerance: differences up to this do not count.
        failures: a sentence for every requirement that is not met.
        requirements: as they were asked.
        notes: what a reader should know of texts and pairs.
    """

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
