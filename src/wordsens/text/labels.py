"""Reading labels: the names that data sets give to positive and negative, as +1 and -1."""

import math
from collections.abc import Sequence
from contextlib import suppress

from wordsens.errors import InputError

_WORDS = {"pos": 1, "positive": 1, "neg": -1, "negative": -1}
_UNDERSTOOD = "1 and 0, +1 and -1, 'pos' and 'neg', 'positive' and 'negative', or nothing where it is unknown"


class LabelReader:
    """Reads the labels of one data set; a missing one (None, "", NaN) is None.

    Args:
        class_names: what the data set's label numbers stand for, where it says so; -1 then means unknown.
    """

    def __init__(self, class_names: Sequence[str] | None = None):
        self._class_names = class_names
        self._negative: int | None = None

    def read(self, value: object, where: str) -> int | None:
        """+1, -1 or None.

        Raises InputError for anything else, and when 0 and -1 both occur: -1 could mean negative or unknown.

        >>> reader = LabelReader()
        >>> [reader.read(value, "row 1") for value in (1, "Positive", 0, True, None)]
        [1, 1, -1, 1, None]
        """
        names = self._class_names
        if names is not None and isinstance(value, int):
            if not -1 <= value < len(names):
                raise InputError(f"{where}: the label {value} is not one of the {len(names)} classes of the data set")
            return None if value == -1 else self._number(names[value], where)
        number = self._number(value, where)
        if number is None or number == 1:
            return number
        if self._negative is None:
            self._negative = number
        if self._negative != number:
            raise InputError(
                f"{where}: the labels 0 and -1 both occur, so that -1 could mean negative or unknown; "
                "keep one of them, or pass labels=False"
            )
        return -1

    def _number(self, value: object, where: str) -> int | None:
        unknown = not value.strip() if isinstance(value, str) else isinstance(value, float) and math.isnan(value)
        if value is None or unknown:
            return None
        number = value
        if isinstance(value, str):
            with suppress(ValueError):
                word = value.strip().lower()
                number = _WORDS[word] if word in _WORDS else float(word)
        if isinstance(number, (bool, int, float)) and number in (-1, 0, 1):
            return int(number)
        raise InputError(
            f"{where}: the label {value!r} is not understood; use {_UNDERSTOOD}, or pass labels=False to read none"
        )
