"""A text before it becomes numbers."""

from dataclasses import dataclass

from wordsens.errors import InputError


@dataclass(frozen=True)
class Document:
    """A text with what is known of it.

    Attributes:
        text: the characters, as they were read.
        label: +1 (positive), -1 (negative) or None (unknown).
        source: where the text came from, e.g. "shipped/review-001" or "reviews.parquet:17".
    """

    text: str
    label: int | None = None
    source: str = ""

    def __post_init__(self) -> None:
        if self.label not in (None, 1, -1) or isinstance(self.label, bool):
            raise InputError(f"`label` (={self.label!r}) must be +1, -1 or None")
