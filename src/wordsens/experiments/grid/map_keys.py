"""The keys of a cell that name a map and the size of its texts, in every kind of cell that measures one."""

from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator, model_validator

from wordsens.errors import InputError
from wordsens.experiments.grid.cell import Cell
from wordsens.experiments.grid.cell_keys import ModelName
from wordsens.maps.registry import DEFAULTS, OPTION_NAMES, MapOptions, map_content, map_entry, recorded_name

MOST_NUMBERS = 2**27
"""Of one text in a cell: 1 GiB in float64, and a search holds several such."""


class MapKeys(Cell):
    """A map by name, and its options: those of `maps.registry`, which says which map takes which.

    Attributes:
        map: one of the registry, or `module:Name`.
        n, d: words of a text, and coordinates of a word.
        depth, width, activation, gaussian, temperature, model, model_layer, pool: see MapOptions.
    """

    DECIDED: ClassVar[dict[str, Any]] = {}
    """Options that a kind of cell decides itself; they are no keys of it."""

    map: str
    n: Annotated[int, Field(ge=2)]
    d: Annotated[int, Field(ge=1)]
    depth: int = DEFAULTS.depth
    width: int | None = DEFAULTS.width
    activation: str = DEFAULTS.activation
    gaussian: str = DEFAULTS.gaussian
    temperature: float = DEFAULTS.temperature
    model: ModelName = DEFAULTS.model
    model_layer: int = DEFAULTS.model_layer
    pool: str | None = DEFAULTS.pool

    @field_validator("map")
    @classmethod
    def _known_map(cls, name: str) -> str:
        return map_entry(name).name

    @model_validator(mode="after")
    def _options_of_the_map(self) -> "MapKeys":
        if self.n * self.d > MOST_NUMBERS:
            raise InputError(
                f"`n` times `d` (={self.n} times {self.d}) must be at most {MOST_NUMBERS:,}, the numbers of a text; "
                "measure shorter texts"
            )
        used = self.used_options
        for name in OPTION_NAMES:
            if name in self.model_fields_set and name not in used:
                takes = f"which takes {', '.join(used)}" if used else "which takes none"
                raise InputError(
                    f"`{name}` (={getattr(self, name)!r}) is not an option of the map {self.map!r}, {takes}; drop it, "
                    "or put the maps into grids of their own"
                )
        _ = self.map_options
        return self

    @property
    def used_options(self) -> tuple[str, ...]:
        """The options that the map looks at and the cell has keys for."""
        return tuple(sorted(set(map_entry(self.map).options) - set(self.DECIDED)))

    @property
    def map_options(self) -> MapOptions:
        """The options as `build_map` takes them."""
        return MapOptions(**{name: getattr(self, name) for name in OPTION_NAMES} | self.DECIDED)

    @property
    def reads_texts_itself(self) -> bool:
        """True for a transformer, which makes rows of real texts itself."""
        return map_entry(self.map).family == "transformer"

    @property
    def recorded_map(self) -> str:
        """The map's name in the cell's record, as far as it is known before the map is built."""
        return recorded_name(self.map, self.map_options)

    def map_identity(self, keys: dict[str, Any]) -> dict[str, Any]:
        """The cell's keys without options that its map does not use, and with the content that the name leaves open."""
        unused = set(OPTION_NAMES) - set(self.used_options) | {"model"}
        content = map_content(self.map, self.map_options)
        rest = {name: value for name, value in keys.items() if name not in unused}
        return rest if content is None else {**rest, "map_content": content}
