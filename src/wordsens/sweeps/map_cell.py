"""The keys of a cell that searches texts for perturbations under a map, and what follows from
them."""

from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field, field_validator, model_validator

from wordsens.errors import InputError, require_choice
from wordsens.maps.registry import (
    build_map,
    map_content,
    map_entry,
    map_options,
    option_names,
    recorded_name,
)
from wordsens.search.plan import EFFORTS, SearchPlan
from wordsens.seeds import derive_seed
from wordsens.sweeps.spec import Cell, ModelName
from wordsens.sweeps.texts import (
    Embedded,
    GivenText,
    TextKey,
    fingerprint,
    require_own_rows,
    text_spec,
)

MOST_NUMBERS = 2**27
"""Of one text in a cell: 1 GiB in float64, and a search holds several such."""


class MapCell(Cell, frozen=True):
    """One map, texts of one source and size, one search. An experiment adds its keys.

    Attributes:
        map: one of the registry, or `module:Name`.
        n, d: words of a text, and coordinates of a word.
        depth, width, activation, gaussian, temperature, heads, score, head_dimension, residual,
            norm, mlp, values, causal, model, model_layer, pool: of the maps; a map takes its own.
        text: where texts come from.
        draw: 0, 1, ...: other texts and other weights.
        seed: of the whole experiment; of a given text, the seed of the map and of the search
            itself.
        radius: of the ball; None for the map's default, sqrt(d) but for a transformer.
        search: what the search spends: quick, normal or thorough.
        starts, steps: of the search; None for what suits the map.
        dtype: of the whole computation.
    """

    COUNTS: ClassVar[tuple[str, ...]] = ("starts", "steps")
    """Keys that say what the search spends in place of `search`."""

    DECIDED: ClassVar[dict[str, Any]] = {}
    """Options of the map that the experiment decides itself."""

    map: str
    n: Annotated[int, Field(ge=2)]
    d: Annotated[int, Field(ge=1)]
    depth: int = 4
    width: int | None = None
    activation: str = "relu"
    gaussian: str = "auto"
    temperature: float = 1.0
    heads: int = 1
    score: str = "softmax"
    head_dimension: int | None = None
    residual: bool = True
    norm: str | None = "pre"
    mlp: int = 0
    values: bool | None = None
    causal: bool = False
    model: ModelName = "minilm"
    model_layer: int = -1
    pool: str | None = None
    text: TextKey
    draw: Annotated[int, Field(ge=0)] = 0
    seed: int = 0
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
        for name in sorted(self.model_fields_set & option_names() - set(used)):
            takes = f"which takes {', '.join(used) or 'none'}"
            raise InputError(
                f"`{name}` (={getattr(self, name)!r}) is not an option of the map "
                f"{self.map!r}, {takes}; drop it, or put the maps into grids of their own"
            )
        _ = self.map_options
        if self.reads_texts_itself:
            require_own_rows(self.text)
        return self

    @property
    def used_options(self) -> tuple[str, ...]:
        """The options that the map looks at and the cell has keys for."""
        fields = type(self).model_fields.keys()
        return tuple(sorted(map_entry(self.map).options.keys() & fields - self.DECIDED.keys()))

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
        dtype, seed = getattr(torch, self.dtype), self.seed_of("map")
        return build_map(
            self.map, self.n, self.d, seed=seed, dtype=dtype, device=self.device, **self.map_options
        )

    def spec(self) -> dict[str, Any]:
        """The keys that can change the result: the options of this map alone, content in place of
        files."""
        unused = option_names() - set(self.used_options) | {"model"}
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
