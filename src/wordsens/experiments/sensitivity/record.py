"""The record of a sensitivity cell."""

from dataclasses import dataclass
from typing import ClassVar

from wordsens.experiments.store.record import MapRecord


@dataclass(frozen=True, kw_only=True)
class SensitivityRecord(MapRecord):
    """The result of one cell, and all that is needed to compute it again: the columns of the Parquet table.

    Attributes:
        cell, spec, status, ..., map, n, d, ...: see Record, TorchRecord and MapRecord.
        depth: layers of rf and drf.
        gaussian: how the matrices of rf and drf are kept.
        content: the characters of a given text, which `wordsens measure` has; None of others.
        tokens: a JSON list: what each of the n words is called; None of a synthetic text.
        whole_words: a JSON list of [word, [rows]], the words as a reader sees them with the rows of their tokens; None
            where they are not known.
        map_seed: the seed the map was built with.
        tolerance: of the search, as asked for; None for what suits the map.
        contenders, sampled: of a race, as asked for; None where every word is searched to the end.
        words: how many words were searched.
        searched: their indices; this and what follows here has an entry for each, in that order.
        per_word: what each attains: lower bounds; of a race, low for all but its contenders and sampled words.
        upper_per_word: an upper bound for each, where the map has one; of a race, as low as can be where it is largest.
        swap: of `measure --swaps`: the relative change by the best real word found in its place.
        swapped_for: a JSON list of strings, likewise: that word.
        moved: of `measure`, for maps whose features have a row a word: a JSON list with, for each, the rows that its
            witness moves most as [row, change, before, after] (`sensitivity.witness_effect`).
        value: the attained word sensitivity: a lower bound of the sup.
        cosine: the mean cosine of two rows of the text; None in records of before it was kept.
        median_word: the median over the searched words of what each attains; of a race, over its sampled words, None
            where it samples none. None in records of before it was kept.
        upper: an upper bound over the searched words, where the map has one.
        rigor: of the upper bound: "certified", or "with probability 1 - x over the weights, ..."; x speaks of one
            cell, and the bounds of m cells all hold but for probability m x.
        predicted: what theory predicts, where it does.
        predicted_of: what that is of: "the largest of 16 words" or "a typical word" (compare `median_word`).
        predicted_in_range: whether the sizes lie where the prediction was compared with measurements.
        radius: of the ball of that word.
        converged: the share of the words searched to the end (all, but in a race) whose search stopped at a stationary
            point before its steps ran out.
    """

    SPEC_COLUMNS: ClassVar[tuple[str, ...]] = (
        *MapRecord.SPEC_COLUMNS,
        "gaussian",
        "tolerance",
        "contenders",
        "sampled",
    )

    depth: int | None = None
    gaussian: str | None = None
    content: str | None = None
    tokens: str | None = None
    whole_words: str | None = None
    map_seed: int
    tolerance: float | None = None
    contenders: int | None = None
    sampled: int | None = None
    words: int | None = None
    searched: tuple[int, ...] | None = None
    per_word: tuple[float, ...] | None = None
    upper_per_word: tuple[float, ...] | None = None
    swap: tuple[float, ...] | None = None
    swapped_for: str | None = None
    moved: str | None = None
    cosine: float | None = None
    median_word: float | None = None
    upper: float | None = None
    rigor: str | None = None
    predicted: float | None = None
    predicted_of: str | None = None
    predicted_in_range: bool | None = None
    radius: float | None = None
    converged: float | None = None
