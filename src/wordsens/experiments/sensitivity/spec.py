"""The typed spec of one measurement: everything that can change its value, and a hash of exactly that."""

from typing import Annotated, Any, ClassVar

from pydantic import Field, model_serializer, model_validator

from wordsens.errors import InputError, require_choice
from wordsens.experiments.grid.strict_model import StrictModel
from wordsens.experiments.store.record import SCHEMA_VERSION
from wordsens.experiments.texts.map_cell import MapCell


class WordChoice(StrictModel):
    """The searched words of a text: all of them, a random sample, or those listed."""

    sample: Annotated[int, Field(ge=1)] | None = None
    indices: tuple[int, ...] | None = Field(default=None, strict=False)

    @model_validator(mode="before")
    @classmethod
    def _spelled_out(cls, value: Any) -> Any:
        if isinstance(value, str):
            require_choice("words", value, ["all"])
            return {}
        return value

    @model_validator(mode="after")
    def _one_way(self) -> "WordChoice":
        if self.sample is not None and self.indices is not None:
            raise InputError("`words` has both a sample and indices; give one of them")
        return self

    @model_serializer
    def _short(self) -> Any:
        if self.sample is not None:
            return {"sample": self.sample}
        return "all" if self.indices is None else {"indices": list(self.indices)}


_RACE = ("contenders", "sampled")


class SensitivityCell(MapCell):
    """One text, one map, one record.

    Attributes:
        map, n, d, text, draw, ...: see MapCell.
        n, d: the text is its first n words, the first d coordinates of each, rows rescaled to sqrt(d); of a
            transformer, its own n rows (special tokens included), whose d coordinates are the model's.
        words: "all", {"sample": k} or {"indices": [...]}.
        tolerance: of the search; None for what suits the map.
        contenders, sampled: of a race, in which only so many words, those that lead after a quick search and others
            evenly spaced, are searched to the end (see `SearchPlan`); None for no race.
    """

    SCHEMA: ClassVar[int] = SCHEMA_VERSION
    COUNTS: ClassVar[tuple[str, ...]] = (*MapCell.COUNTS, "tolerance", "contenders", "sampled")

    words: WordChoice = WordChoice()
    tolerance: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    contenders: Annotated[int, Field(ge=1)] | None = None
    sampled: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _a_race_has_contenders(self) -> "SensitivityCell":
        if self.sampled is not None and self.contenders is None:
            raise InputError(
                f"`sampled` (={self.sampled}) is the number of words searched beside `contenders`; give both, or "
                "neither for a search of all words to the end"
            )
        if self.contenders is not None and self.map == "rf":
            raise InputError(
                f"`contenders` (={self.contenders}) is for maps of several layers and attention; one fully connected "
                "layer is searched without a race: leave it out"
            )
        return self

    def identity_keys(self) -> dict[str, Any]:
        """As of a MapCell; a cell without a race is named as it was before there were any."""
        keys = super().identity_keys()
        return {name: value for name, value in keys.items() if name not in _RACE or value is not None}

    @model_validator(mode="after")
    def _words_fit(self) -> "SensitivityCell":
        for word in self.words.indices or ():
            if not -self.n <= word < self.n:
                raise InputError(
                    f"`words` has {word}, but the text has n = {self.n} words; indices run from 0 to {self.n - 1}"
                )
        return self
