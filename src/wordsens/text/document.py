"""Texts before they become numbers: rows of raw text and label, as readers give them, and checked documents."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from wordsens.errors import InputError, require_characters

DEFAULT_LABEL_COLUMN = "label"
DEFAULT_SPLIT = "train"


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
        require_characters(self.source or "the text", self.text)


@dataclass(frozen=True)
class Row:
    """A text and a label as they were stored, and what to call the place they came from."""

    text: object
    label: object
    where: str


@dataclass(frozen=True)
class Columns:
    """The columns that hold the text and the label.

    Attributes:
        text: must exist.
        label: must exist; None: `label`, where there is such a column.
        read_labels: whether labels are wanted at all.
    """

    text: str = "text"
    label: str | None = None
    read_labels: bool = True

    def label_in(self, present: Collection[str], where: str) -> str | None:
        """The label column to read, or None; refuses when a column that must exist is missing."""
        label = self.label if self.read_labels else None
        for name, argument in ((self.text, "text_column"), (label, "label_column")):
            if name is not None and name not in present:
                columns = ", ".join(map(repr, present)) or "none"
                raise InputError(f"{where} has no column {name!r}; its columns are {columns}; name one with {argument}")
        default = DEFAULT_LABEL_COLUMN if self.read_labels and DEFAULT_LABEL_COLUMN in present else None
        return default if label is None else label

    def rows(self, batches: Iterable[Mapping[str, list[Any]]], label: str | None, prefix: str) -> Iterator[Row]:
        """The rows of batches of columns, numbered from 1."""
        number = count(1)
        for batch in batches:
            texts = batch[self.text]
            labels = batch[label] if label else [None] * len(texts)
            for text, value in zip(texts, labels, strict=True):
                yield Row(text, value, f"{prefix}:{next(number)}")

    def to_read(self, label: str | None) -> list[str]:
        """The names of the columns that are read, without repetition."""
        return list(dict.fromkeys([self.text, *([label] if label else [])]))


def choose_split(split: str | None, splits: Collection[str], where: str) -> str:
    """The split asked for, `train` where none is asked for; InputError when it is not there."""
    wanted = DEFAULT_SPLIT if split is None else split
    if wanted not in splits:
        raise InputError(f"{where} has no split {wanted!r}; its splits are {', '.join(splits)}; name one with split")
    return wanted


def require_no_split(split: str | None, where: str) -> None:
    """Refuse a split where there are none to choose from."""
    if split is not None:
        raise InputError(f"`split` (={split!r}) cannot be chosen: {where} has no splits; leave split out")
