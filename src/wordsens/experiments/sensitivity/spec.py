"""The typed spec of one measurement: everything that can change its value, and a hash of exactly that."""

import json
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_serializer, model_validator

from wordsens.activations import ACTIVATIONS
from wordsens.errors import InputError, require_choice
from wordsens.experiments.grid.device_key import CPU, Device, with_kind_of_device
from wordsens.experiments.grid.strict_model import StrictModel
from wordsens.experiments.map_choice import DEFAULT_DEPTH, MAP_NAMES, MapOptions, options_used_by
from wordsens.experiments.store.identity import SCHEMA_VERSION, hash_identity
from wordsens.experiments.texts.documents import fingerprint
from wordsens.experiments.texts.source import DatasetText, ReviewsText, TextSource, spelled_out
from wordsens.maps.dense.features import GAUSSIAN_KINDS

_MAP_OPTIONS = ("depth", "width", "activation", "gaussian", "temperature")


class WordChoice(StrictModel):
    """Which words of the text are searched: all of them, a random sample, or those listed."""

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


class SensitivityCell(StrictModel):
    """One text, one map, one record.

    Attributes:
        map: rf, drf, raf, relu-raf, relu-unnormalized-raf, sigmoid-raf or linear-raf.
        n, d: the text is its first n words, the first d coordinates of each, rows rescaled to sqrt(d).
        text: where it comes from.
        draw: 0, 1, ...: another text and other weights.
        seed: of the whole experiment.
        depth: layers; drf only.
        width, activation, gaussian: rf and drf only.
        temperature: attention maps only.
        words: "all", {"sample": k} or {"indices": [...]}.
        radius: of the ball; None for sqrt(d).
        starts, steps, generations, tolerance: of the search; None for what suits the map.
        dtype: of the whole computation.
        device: where it is computed: cpu, cuda, ... Its kind belongs to the identity, its number does not.
    """

    map: str
    n: Annotated[int, Field(ge=2)]
    d: Annotated[int, Field(ge=1)]
    text: Annotated[TextSource, Field(discriminator="kind")]
    draw: Annotated[int, Field(ge=0)] = 0
    seed: int = 0
    depth: Annotated[int, Field(ge=1)] = DEFAULT_DEPTH
    width: Annotated[int, Field(ge=1)] | None = None
    activation: str = "relu"
    gaussian: str = "auto"
    temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    words: WordChoice = WordChoice()
    radius: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    starts: Annotated[int, Field(ge=1)] | None = None
    steps: Annotated[int, Field(ge=0)] | None = None
    generations: Annotated[int, Field(ge=0)] | None = None
    tolerance: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    dtype: Literal["float64", "float32"] = "float64"
    device: Device = CPU

    _text = field_validator("text", mode="before")(spelled_out)

    @field_validator("map")
    @classmethod
    def _known_map(cls, name: str) -> str:
        return require_choice("map", name, MAP_NAMES)

    @field_validator("activation")
    @classmethod
    def _known_activation(cls, name: str) -> str:
        return require_choice("activation", name, ACTIVATIONS)

    @field_validator("gaussian")
    @classmethod
    def _known_gaussian(cls, name: str) -> str:
        return require_choice("gaussian", name, GAUSSIAN_KINDS)

    @model_validator(mode="after")
    def _options_of_the_map(self) -> "SensitivityCell":
        used = options_used_by(self.map)
        for name in _MAP_OPTIONS:
            if name in self.model_fields_set and name not in used:
                raise InputError(
                    f"`{name}` (={getattr(self, name)!r}) is not an option of the map {self.map!r}, which takes "
                    f"{', '.join(sorted(used))}; drop it, or put the maps into grids of their own"
                )
        for word in self.words.indices or ():
            if not -self.n <= word < self.n:
                raise InputError(
                    f"`words` has {word}, but the text has n = {self.n} words; indices run from 0 to {self.n - 1}"
                )
        return self

    @property
    def search_options(self) -> dict[str, Any]:
        """What `word_sensitivity` is told of the search."""
        names = ("starts", "steps", "generations", "tolerance")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    @property
    def map_options(self) -> MapOptions:
        """What `build_map` takes."""
        return MapOptions(**{name: getattr(self, name) for name in _MAP_OPTIONS})

    def identity(self) -> str:
        """Canonical JSON of what can change the result: the map's options, a dataset's content for its path."""
        fields = with_kind_of_device(self.model_dump(mode="json"))
        for name in set(_MAP_OPTIONS) - options_used_by(self.map):
            del fields[name]
        if isinstance(self.text, DatasetText):
            for name in ("path", "text_column", "split", "limit"):
                del fields["text"][name]
        if isinstance(self.text, ReviewsText | DatasetText):
            fields["text"]["content"] = fingerprint(self.text)
        return json.dumps({"schema": SCHEMA_VERSION, **fields}, sort_keys=True, separators=(",", ":"))

    def content_hash(self) -> str:
        """The cell's name in the store: SHA-256 of `identity`, the first 32 hexadecimal digits."""
        return hash_identity(self.identity())
