"""The record of several words that move at once."""

from dataclasses import dataclass
from typing import ClassVar

from wordsens.experiments.store.record import MapRecord


@dataclass(frozen=True, kw_only=True)
class SeveralWordsRecord(MapRecord):
    """The sensitivity to k words at once. `value` is attained: a lower bound of the sup over all sets of k words.

    Attributes:
        count: k.
        group: the words of the best set.
        sets: how many sets were searched.
        upper: an upper bound over every set of k words, where the map has one.
        rigor: of that bound.
        converged: the share of sets whose search stopped at a stationary point.
    """

    SPEC_COLUMNS: ClassVar[tuple[str, ...]] = (*MapRecord.SPEC_COLUMNS, "width", "activation", "temperature", "count")

    count: int
    group: tuple[int, ...] | None = None
    sets: int | None = None
    upper: float | None = None
    rigor: str | None = None
    converged: float | None = None
