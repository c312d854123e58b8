"""The record of one comparison of similarities."""

from dataclasses import dataclass
from typing import ClassVar

from wordsens.experiments.store.record import MapRecord


@dataclass(frozen=True, kw_only=True)
class SimilarityRecord(MapRecord):
    """How well the cosine of two texts' features tells a flipped meaning from the same one.

    `value` is the AUC: P(cos of an opposite < cos of a pair that means the same) + half of ties, over all pairs of
    pairs. What means the same: a one-word synonym in swaps, a paraphrase in the pairs of check.

    Attributes:
        pairs, length, count, depth, model_layer, pool: of the cell.
        opposites, same, synonyms: how many pairs there were; in swaps `same` are the synonyms.
        auc_low, auc_high: a 95 % interval of `value` over the pairs.
        auc_synonym: in check, the AUC against one-word synonyms.
        kinds: a JSON list: the kinds of opposites.
        auc_by_kind, auc_synonym_by_kind: the AUC of each kind alone; the second in check.
        moved_flip, moved_synonym: the median of ‖phi(X') - phi(X)‖ / ‖phi(X)‖ over opposites, and over synonyms.
        changed: a JSON list of [what stood there, what stands there now], one a pair: opposites, then the others.
        rows: the mean number of rows of a text, without padding and special tokens.
        sensitivity: S of the first text over a few random words, attained by the cell's search; None without one.
    """

    SPEC_COLUMNS: ClassVar[tuple[str, ...]] = (
        *MapRecord.SPEC_COLUMNS, "width", "activation", "temperature", "depth", "model_layer", "pool", "length",
    )  # fmt: skip

    pairs: str
    length: str | None = None
    count: int
    depth: int | None = None
    model_layer: int | None = None
    pool: str | None = None
    opposites: int | None = None
    same: int | None = None
    synonyms: int | None = None
    auc_low: float | None = None
    auc_high: float | None = None
    auc_synonym: float | None = None
    kinds: str | None = None
    auc_by_kind: tuple[float, ...] | None = None
    auc_synonym_by_kind: tuple[float, ...] | None = None
    moved_flip: float | None = None
    moved_synonym: float | None = None
    changed: str | None = None
    rows: float | None = None
    sensitivity: float | None = None
