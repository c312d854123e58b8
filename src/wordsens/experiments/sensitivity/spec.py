"""The typed spec of one measurement: everything that can change its value, and a hash of exactly that."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator, model_serializer, model_validator

from wordsens.errors import InputError, require_choice
from wordsens.experiments.grid.device_key import CPU, Device
from wordsens.experiments.grid.map_keys import MapKeys
from wordsens.experiments.grid.strict_model import StrictModel
from wordsens.experiments.store.identity import SCHEMA_VERSION
from wordsens.experiments.texts.documents import fingerprint
from wordsens.experiments.texts.source import Embedded, TextSource, require_own_rows, spelled_out, text_identity
from wordsens.search.plan import EFFORTS, SearchPlan


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


class SensitivityCell(MapKeys):
    """One text, one map, one record.

    Attributes:
        map, n, d, depth, width, ...: see MapKeys.
        n, d: the text is its first n words, the first d coordinates of each, rows rescaled to sqrt(d); of a
            transformer, its own n rows (special tokens included), whose d coordinates are the model's.
        text: where it comes from.
        draw: 0, 1, ...: another text and other weights.
        seed: of the whole experiment; of a given text, the seed of the map and of the search itself.
        words: "all", {"sample": k} or {"indices": [...]}.
        radius: of the ball; None for the map's default, sqrt(d) but for a transformer.
        search: quick, normal or thorough.
        starts, steps, generations, tolerance: of the search; None for what suits the map.
        dtype: of the whole computation.
        device: where it is computed: cpu, cuda, ... Its kind belongs to the identity, its number does not.
    """

    SCHEMA: ClassVar[int] = SCHEMA_VERSION

    text: Annotated[TextSource, Field(discriminator="kind")]
    draw: Annotated[int, Field(ge=0)] = 0
    seed: int = 0
    words: WordChoice = WordChoice()
    radius: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    search: str = EFFORTS[1]
    starts: Annotated[int, Field(ge=1)] | None = None
    steps: Annotated[int, Field(ge=0)] | None = None
    generations: Annotated[int, Field(ge=0)] | None = None
    tolerance: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    dtype: Literal["float64", "float32"] = "float64"
    device: Device = CPU

    _text = field_validator("text", mode="before")(spelled_out)

    @field_validator("search")
    @classmethod
    def _known_effort(cls, search: str) -> str:
        return require_choice("search", search, EFFORTS)

    @model_validator(mode="after")
    def _text_and_words_fit(self) -> "SensitivityCell":
        if self.reads_texts_itself:
            require_own_rows(self.text)
        for word in self.words.indices or ():
            if not -self.n <= word < self.n:
                raise InputError(
                    f"`words` has {word}, but the text has n = {self.n} words; indices run from 0 to {self.n - 1}"
                )
        return self

    @property
    def search_options(self) -> dict[str, Any]:
        """The options of the search that the cell gives, for `word_sensitivity`."""
        names = ("starts", "steps", "generations", "tolerance")
        return {"search": SearchPlan(self.search, **{name: getattr(self, name) for name in names})}

    def identity_keys(self) -> dict[str, Any]:
        """The keys that can change the result: the options of this map alone, a dataset's content for its path."""
        keys = self.map_identity(super().identity_keys())
        if self.search == EFFORTS[1]:  # so were all cells before there was a choice
            del keys["search"]
        content = fingerprint(self.text) if isinstance(self.text, Embedded) else None
        return {**keys, "text": text_identity(keys["text"], content, own_rows=self.reads_texts_itself)}
