"""The keys of a cell that searches texts for perturbations under a map, and what follows from
them."""

from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, get_args

import torch
from pydantic import Field, create_model, field_validator, model_validator

from wordsens.errors import InputError, require_choice
from wordsens.maps.registry import (
    MAPS,
    build_map,
    map_content,
    map_entry,
    map_options,
    recorded_name,
)
from wordsens.search.plan import EFFORTS, SearchPlan
from wordsens.seeds import derive_seed
from wordsens.sweeps.spec import Cell, ModelName
from wordsens.sweeps.texts import (
    ROW_KEYS,
    Embedded,
    GivenText,
    TextKey,
    fingerprint,
    text_spec,
)

# Of one text in a cell: 1 GiB in float64, and a search holds several such.
MOST_NUMBERS = 2**27


def _key_type(annotation: Any) -> Any:
    """The type of a key for a maker's parameter: the first that its annotation names, and None
    where that is one of them. The parameter's own rule checks the value.

    >>> _key_type(Annotated[str | list[str], "a rule"] | None)
    str | None
    """
    kinds = get_args(annotation)
    kind = _key_type(kinds[0]) if kinds else annotation
    return kind | None if NoneType in kinds else kind


_PARAMETERS = [parameter for entry in MAPS.values() for parameter in entry.options.values()]

# The options of all maps as keys of a cell, with their types and defaults. A matrix on demand has
# its budget of memory from its maker.
OPTIONS: dict[str, Any] = {
    parameter.name: (_key_type(parameter.annotation), parameter.default)
    for parameter in _PARAMETERS
    if parameter.name != "gaussian_bytes"
}

_MapOptions = create_model("_MapOptions", __base__=Cell, **OPTIONS)


class MapCell(_MapOptions, frozen=True):
    """One map with its options, texts of one source and size, one search. A study adds its keys.

    Attributes:
        map: one of the registry, or `module:Name`.
        n, d: words of a text, and coordinates of a word.
        text: where texts come from.
        draw: 0, 1, ...: other texts and other weights.
        seed: of the whole experiment; of a given text, the seed of the map and of the search
            itself.
        model: of the map "model".
        radius: of the ball; None for the map's default, sqrt(d) but for a transformer.
        search: what the search spends: quick, normal or thorough.
        starts, steps: of the search; None for what suits the map.
        dtype: of the whole computation.
    """

    # Keys that say what the search spends in place of `search`.
    COUNTS: ClassVar[tuple[str, ...]] = ("starts", "steps")

    # Options of the map that the study decides itself.
    DECIDED: ClassVar[dict[str, Any]] = {}

    map: str
    n: Annotated[int, Field(ge=2)]
    d: Annotated[int, Field(ge=1)]
    text: TextKey
    draw: Annotated[int, Field(ge=0)] = 0
    seed: int = 0
    model: ModelName = OPTIONS["model"][1]
    radius: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    search: str = EFFORTS[1]
    starts: Annotated[int, Field(ge=1)] | None = None
    steps: Annotated[int, Field(ge=1)] | None = None
    dtype: Literal["float64", "float32"] = "float64"

    @field_validator("map")
    @classmethod
    def _known_map(cls, name: str) -> str:
        return map_entry(name).name

    @field_validator("search")
    @classmethod
    def _known_effort(cls, name: str) -> str:
        return require_choice("search", name, EFFORTS)

    @model_validator(mode="after")
    def _options_of_the_map(self) -> "MapCell":
        if self.n * self.d > MOST_NUMBERS:
            raise InputError(
                f"`n` times `d` (={self.n} times {self.d}) must be at most {MOST_NUMBERS:,}, the "
                "numbers of a text; "
                "measure shorter texts"
            )
        used = self.used_options
        for name in sorted(self.model_fields_set & OPTIONS.keys() - set(used)):
            takes = f"which takes {', '.join(used) or 'none'}"
            raise InputError(
                f"`{name}` (={getattr(self, name)!r}) is not an option of the map "
                f"{self.map!r}, {takes}; drop it, or put the maps into grids of their own"
            )
        _ = self.map_options
        if self.reads_texts_itself:
            for name in sorted(self.text.model_fields_set.intersection(ROW_KEYS)):
                raise InputError(
                    f"`{name}` is not for the map {self.map!r}, which makes the rows of its texts "
                    "itself; drop it"
                )
        return self

    @property
    def used_options(self) -> tuple[str, ...]:
        """The options that the map looks at and the cell has keys for."""
        return tuple(
            sorted(map_entry(self.map).options.keys() & OPTIONS.keys() - self.DECIDED.keys())
        )

    @property
    def map_options(self) -> dict[str, Any]:
        """The map's options, checked."""
        chosen = {name: getattr(self, name) for name in self.used_options}
        return map_options(self.map, **chosen, **self.DECIDED)

    @property
    def reads_texts_itself(self) -> bool:
        """True for a transformer, which makes rows of real texts itself."""
        return map_entry(self.map).family == "transformer"

    @property
    def search_plan(self) -> SearchPlan:
        """The plan of the searches."""
        return SearchPlan(self.search, **{name: getattr(self, name) for name in self.COUNTS})

    def seed_of(self, purpose: str) -> int:
        """A seed of its own for a purpose: cells that differ in no text, size, draw or seed share
        it."""
        if isinstance(self.text, GivenText):
            return self.seed
        return derive_seed(self.seed, purpose, self.text.kind, self.n, self.d, self.draw)

    def build(self) -> Any:
        """The map."""
        return build_map(
            self.map,
            self.n,
            self.d,
            seed=self.seed_of("map"),
            dtype=getattr(torch, self.dtype),
            device=self.device,
            **self.map_options,
        )

    def spec(self) -> dict[str, Any]:
        """The keys that can change the result: the options of this map alone, content in place of
        files."""
        unused = OPTIONS.keys() - set(self.used_options) | {"model"}
        keys = {name: value for name, value in super().spec().items() if name not in unused}
        if (made_of := map_content(self.map, **self.map_options)) is not None:
            keys["map_content"] = made_of
        content = self.content_of(self.text) if isinstance(self.text, Embedded) else None
        return {**keys, "text": text_spec(self.text, content, own_rows=self.reads_texts_itself)}

    def described(self) -> dict[str, Any]:
        return {"map": recorded_name(self.map, **self.map_options)}

    def content_of(self, source: Embedded) -> str:
        """The digest of what the cell reads of a real source."""
        return fingerprint(source)
