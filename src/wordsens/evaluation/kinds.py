"""A model's figures for each kind of opposite, against texts that mean the same."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, overload

import numpy as np
from jaxtyping import Float

from wordsens.errors import InputError
from wordsens.seeds import Seed, derive_seed
from wordsens.statistics.auc import auc_interval
from wordsens.statistics.operating_point import operating_point
from wordsens.text.pairs import LENGTHS, Pair

SYNONYM = "synonym"
"""The kind of the easy control: one word is replaced by another of its meaning."""

_SAME_VECTOR = 1e-12
"""The distance of a cosine from 1 up to which two vectors are equal: rounding in float64 moves it by some 1e-16."""

Numbers = Float[np.ndarray, " m"]


@dataclass(frozen=True, kw_only=True)
class KindRow:
    """One kind of opposite; similarities are cosines, or the scores of a model that scores pairs.

    Attributes:
        kind: its name.
        pairs: how many opposites.
        auc, auc_low, auc_high: the chance that an opposite is less alike than a paraphrase, ties half, with its 95 %
            interval; 1 is perfect, .5 a coin, 0 means that every opposite is more alike than every paraphrase.
        median_opposite, median_same: the median similarity of the opposites, and of the paraphrases.
        threshold: the smallest similarity that at most the budget of the opposites reach; None where no paraphrase
            reaches it.
        recall: the share of paraphrases that do; None likewise.
        threshold_low, threshold_high, recall_low, recall_high: 95 % intervals; a threshold of None: nothing is left.
        false_hits_at_most: the share of opposites that may reach the threshold in truth, 95 %, so few being pairs.
        auc_synonym, auc_synonym_low, auc_synonym_high: as `auc`, against one-word synonyms; None where there are none.
        indistinct: the opposites whose two texts have the same vector.
        false_hits, hits: the share of opposites and of paraphrases that reach the user's own threshold; None without.
    """

    kind: str
    pairs: int
    auc: float
    auc_low: float
    auc_high: float
    median_opposite: float
    median_same: float
    threshold: float | None
    recall: float | None
    threshold_low: float | None
    threshold_high: float | None
    recall_low: float
    recall_high: float
    false_hits_at_most: float
    auc_synonym: float | None
    auc_synonym_low: float | None
    auc_synonym_high: float | None
    indistinct: int
    false_hits: float | None
    hits: float | None

    def __getitem__(self, name: str) -> Any:
        """The value of that name, as in the JSON document."""
        return asdict(self)[name]


@dataclass(frozen=True, kw_only=True)
class LengthRow:
    """One kind at one length: the same numbers over the pairs of that length alone.

    Attributes:
        kind, length: which.
        pairs, paraphrases: how many of each.
        auc, auc_low, auc_high, median_opposite, median_same: as in KindRow.
    """

    kind: str
    length: str
    pairs: int
    paraphrases: int
    auc: float
    auc_low: float
    auc_high: float
    median_opposite: float
    median_same: float


@dataclass(frozen=True, kw_only=True)
class ControlRow:
    """Pairs that mean the same: the median of their similarities, and where the middle 90 % lie."""

    kind: str
    pairs: int
    median: float
    low: float
    high: float


class KindTable(Sequence[KindRow]):
    """The rows of a check, one a kind; `table["negation"]` is the row of that kind."""

    def __init__(self, rows: Sequence[KindRow]):
        self._rows = tuple(rows)

    @overload
    def __getitem__(self, key: int | str) -> KindRow: ...
    @overload
    def __getitem__(self, key: slice) -> "KindTable": ...
    def __getitem__(self, key: int | str | slice) -> "KindRow | KindTable":
        if isinstance(key, slice):
            return KindTable(self._rows[key])
        if isinstance(key, int):
            return self._rows[key]
        for row in self._rows:
            if row.kind == key:
                return row
        raise KeyError(f"{key!r} is not a kind of this check; it has {', '.join(self.names)}")

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[KindRow]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return f"KindTable({list(self._rows)!r})"

    @property
    def names(self) -> tuple[str, ...]:
        """The kinds."""
        return tuple(row.kind for row in self._rows)


def require_both_sides(pairs: Sequence[Pair]) -> None:
    """InputError where there is no opposite, or nothing that means the same."""
    sides = {pair.same for pair in pairs}
    if len(sides) < 2:
        missing = "opposite (same=false)" if sides == {True} else "pair that means the same (same=true)"
        raise InputError(f"`pairs` holds no {missing}; a check compares the two")


class Measured:
    """Pairs with the similarities that a model gave them.

    Args:
        pairs: opposites, and texts that mean the same: one-word synonyms by their kind, all others paraphrases; where
            there are only synonyms, they stand for paraphrases.
        values: one a pair.
        cosines: whether they are cosines, where 1 means equal vectors.

    Raises:
        InputError: no opposites, or none that mean the same.
    """

    def __init__(self, pairs: Sequence[Pair], values: Float[np.ndarray, " pairs"], *, cosines: bool = True):
        self.pairs, self.values, self.cosines = tuple(pairs), values, cosines
        require_both_sides(pairs)
        kinds = np.array([pair.kind for pair in pairs])
        same = np.array([pair.same for pair in pairs])
        self.opposites = {str(kind): (kinds == kind) & ~same for kind in dict.fromkeys(kinds[~same])}
        synonyms = same & (kinds == SYNONYM)
        self.paraphrases = same & ~synonyms if (same & ~synonyms).any() else same
        self.synonyms = synonyms if not np.array_equal(synonyms, self.paraphrases) else np.zeros_like(same)
        self._lengths = np.array([pair.length for pair in pairs])

    def kind_rows(self, *, budget: float, threshold: float | None, seed: Seed) -> KindTable:
        """One row a kind."""
        return KindTable(
            [self._kind_row(kind, members, budget, threshold, seed) for kind, members in self.opposites.items()]
        )

    def length_rows(self, *, seed: Seed) -> list[LengthRow]:
        """One row a kind and length that both opposites and paraphrases have."""
        rows = []
        for kind, members in self.opposites.items():
            for length in LENGTHS:
                here = self._lengths == length
                opposite, same = self.values[members & here], self.values[self.paraphrases & here]
                if len(opposite) and len(same):
                    found = auc_interval(opposite, same, seed=derive_seed(seed, kind, length))
                    rows.append(
                        LengthRow(
                            kind=kind, length=length, pairs=len(opposite), paraphrases=len(same),
                            auc=found.value, auc_low=found.low, auc_high=found.high,
                            median_opposite=float(np.median(opposite)), median_same=float(np.median(same)),
                        )
                    )  # fmt: skip
        return rows

    def control_rows(self) -> list[ControlRow]:
        """The paraphrases, and the one-word synonyms where there are any."""
        rows = []
        for name, members in (("paraphrase", self.paraphrases), (SYNONYM, self.synonyms)):
            if members.any():
                low, median, high = (float(each) for each in np.quantile(self.values[members], [0.05, 0.5, 0.95]))
                rows.append(ControlRow(kind=name, pairs=int(members.sum()), median=median, low=low, high=high))
        return rows

    def _kind_row(self, kind: str, members: np.ndarray, budget: float, threshold: float | None, seed: Seed) -> KindRow:
        opposite, same, synonyms = (self.values[each] for each in (members, self.paraphrases, self.synonyms))
        stream = derive_seed(seed, kind)
        found = auc_interval(opposite, same, seed=stream)
        easy = auc_interval(opposite, synonyms, seed=stream) if len(synonyms) else None
        point = operating_point(opposite, same, budget, seed=stream)
        return KindRow(
            kind=kind, pairs=len(opposite), auc=found.value, auc_low=found.low, auc_high=found.high,
            median_opposite=float(np.median(opposite)), median_same=float(np.median(same)),
            threshold=point.threshold, recall=point.recall, threshold_low=point.threshold_low,
            threshold_high=point.threshold_high, recall_low=point.recall_low, recall_high=point.recall_high,
            false_hits_at_most=point.unwanted_high,
            auc_synonym=easy and easy.value, auc_synonym_low=easy and easy.low, auc_synonym_high=easy and easy.high,
            indistinct=int((opposite >= 1 - _SAME_VECTOR).sum()) if self.cosines else 0,
            false_hits=None if threshold is None else float((opposite >= threshold).mean()),
            hits=None if threshold is None else float((same >= threshold).mean()),
        )  # fmt: skip
