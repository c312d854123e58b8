"""The typed spec of one measurement of several words that move at once."""

from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from wordsens.errors import InputError
from wordsens.experiments.texts.map_cell import MapCell


class SeveralWordsCell(MapCell):
    """One text, one map, sets of `count` words whose balls have the radius each.

    Attributes:
        map, n, d, text, draw, ...: see MapCell.
        count: k, how many words move at once.
    """

    KIND: ClassVar[str | None] = "several-words"

    count: Annotated[int, Field(ge=1)]

    @model_validator(mode="after")
    def _words_enough(self) -> "SeveralWordsCell":
        if self.count > self.n:
            raise InputError(f"`count` (={self.count}) must be at most `n` (={self.n}), the words of the text")
        return self
