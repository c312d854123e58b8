"""Documents: checked texts with label and source; and the labels of data sets."""

from collections.abc import Sequence
from dataclasses import dataclass

from wordsens.errors import InputError, argument, require_characters

_LABELS = {
    **dict.fromkeys(("1", "+1", "1.0", "true", "pos", "positive"), 1),
    **dict.fromkeys(("0", "0.0", "-0.0", "false"), 0),
    **dict.fromkeys(("-1", "-1.0", "neg", "negative"), -1),
    **dict.fromkeys(("", "nan"), None),
}


@dataclass(frozen=True)
class Document:
    """A text with its label and source.

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


class LabelReader:
    """Reads the labels of one data set; a missing one (None, "", NaN) is None.

    Args:
        class_names: the names of the data set's label numbers, if it has them; -1 then means
            unknown.
    """

    def __init__(self, class_names: Sequence[str] | None = None):
        self._class_names = class_names
        self._seen: set[int | None] = set()

    def read(self, value: object, where: str) -> int | None:
        """+1, -1 or None.

        Raises InputError for anything else, and when 0 and -1 both occur: -1 could mean negative or
        unknown.

        >>> reader = LabelReader()
        >>> [reader.read(value, "row 1") for value in (1, "Positive", 0, True, None)]
        [1, 1, -1, 1, None]
        """
        names = self._class_names
        if names is not None and isinstance(value, int):
            if not -1 <= value < len(names):
                raise InputError(
                    f"{where}: the label {value} is not one of the {len(names)} classes of the "
                    "data set"
                )
            value = None if value == -1 else names[value]
        word = "" if value is None else str(value).strip().lower()
        if word not in _LABELS:
            raise InputError(
                f"{where}: the label {value!r} is not understood; use 1 and 0, +1 and -1, 'pos' "
                "and 'neg', 'positive' and 'negative', or nothing where it is unknown, or pass "
                f"{argument('labels', False)} to read none"
            )
        self._seen.add(_LABELS[word])
        if {-1, 0} <= self._seen:
            raise InputError(
                f"{where}: the labels 0 and -1 both occur, so that -1 could mean negative or "
                f"unknown; keep one of them, or pass {argument('labels', False)}"
            )
        return -1 if _LABELS[word] == 0 else _LABELS[word]
