"""Rows as every reader gives them: raw text and label, before they are checked."""

from collections.abc import Collection
from dataclasses import dataclass

from wordsens.errors import InputError

DEFAULT_LABEL_COLUMN = "label"


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
        self._require(self.text, "text_column", present, where)
        if not self.read_labels:
            return None
        if self.label is not None:
            self._require(self.label, "label_column", present, where)
            return self.label
        return DEFAULT_LABEL_COLUMN if DEFAULT_LABEL_COLUMN in present else None

    @staticmethod
    def _require(name: str, argument: str, present: Collection[str], where: str) -> None:
        if name not in present:
            columns = ", ".join(repr(column) for column in present) or "none"
            raise InputError(f"{where} has no column {name!r}; its columns are {columns}; name one with {argument}")


def require_no_split(split: str | None, where: str) -> None:
    """Refuse a split where there are none to choose from."""
    if split is not None:
        raise InputError(f"`split` (={split!r}) cannot be chosen: {where} has no splits; leave split out")
