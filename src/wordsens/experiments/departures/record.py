"""The record of one measurement under one protocol."""

from dataclasses import dataclass
from typing import ClassVar

from wordsens.experiments.store.record import MapRecord


@dataclass(frozen=True, kw_only=True)
class DepartureRecord(MapRecord):
    """S, or Err, as a protocol finds it: `value`.

    Attributes:
        measures: "sensitivity" or "error".
        protocol: see PROTOCOLS.
        texts, labels, training: of an error.
        searched: how many words were.
        padding: how many rows of the text are [PAD].
        length: ‖Delta‖ / radius of the best word's Delta, which a noisy ball lets exceed 1.
        gamma, alignment: of an error: |delta| and F at that Delta.
    """

    SPEC_COLUMNS: ClassVar[tuple[str, ...]] = (
        *MapRecord.SPEC_COLUMNS, "width", "activation", "temperature", "texts", "labels", "training",
    )  # fmt: skip

    measures: str
    protocol: str
    texts: int | None = None
    labels: str | None = None
    training: str | None = None
    searched: int | None = None
    padding: int | None = None
    length: float | None = None
    gamma: float | None = None
    alignment: float | None = None
