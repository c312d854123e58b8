"""A sweep: grids of cells of one kind."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PrivateAttr, field_validator

from wordsens.errors import InputError, require_choice
from wordsens.experiments.grid.axes import MOST_CELLS, ZIP, combinations, count_of, keys_of, require_cells
from wordsens.experiments.grid.strict_model import StrictModel
from wordsens.experiments.grid.yaml_text import yaml_of
from wordsens.experiments.kinds import KIND_NAMES, CellKind, kind_named

CellPath = tuple[str | int, ...]

MOST_GRIDS = 1000
"""Of a sweep: its places are searched for each grid, 1 ms each at this number."""


class Sweep(StrictModel):
    """Grids of cells. In a grid a key with a list is an axis: every combination of the axes is a cell.

    Attributes:
        name: what the sweep is called.
        kind: of its cells: sensitivity, generalization, ...
        seeds: how many seeds (0, 1, ...), or which, for every grid that names none.
        common: keys of every cell, unless its grid says otherwise.
        grids: for each grid, the keys of a cell with a value or an axis (`axes.combinations`).

    >>> sweep = Sweep.parse(
    ...     {"name": "two", "kind": "dry-run", "seeds": 2, "grids": [{"draw": [0, 1], "work": 3}]}
    ... )
    >>> [(cell.draw, cell.seed) for cell in sweep.cells()]
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """

    name: Annotated[str, Field(min_length=1)]
    kind: str = "sensitivity"
    seeds: (
        Annotated[int, Field(ge=1, le=MOST_CELLS)]
        | Annotated[tuple[int, ...], Field(min_length=1, strict=False)]
        | None
    ) = None
    common: dict[str, Any] = Field(default_factory=dict)
    grids: Annotated[tuple[dict[str, Any], ...], Field(min_length=1, max_length=MOST_GRIDS, strict=False)]

    _places: Mapping[CellPath, str] = PrivateAttr(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _names_a_folder(cls, name: str) -> str:
        if not name.strip(". ") or any(one in "/\\" or not one.isprintable() for one in name):
            raise InputError(
                f"`name` (={name!r}) becomes a folder: it must have more than dots and spaces, no slash and no control "
                "character; give the folder with --out instead"
            )
        return name

    @field_validator("kind")
    @classmethod
    def _known_kind(cls, name: str) -> str:
        return require_choice("kind", name, KIND_NAMES)

    @property
    def cell_kind(self) -> CellKind:
        """The kind of its cells."""
        return kind_named(self.kind)

    def placed(self, places: Mapping[CellPath, str]) -> "Sweep":
        """The sweep, with the place of each path in it, which errors will name."""
        self._places = places
        return self

    @property
    def places(self) -> Mapping[CellPath, str]:
        """The places of paths in it, where they are known."""
        return self._places

    def whole_grids(self) -> list[tuple[dict[str, Any], dict[CellPath, CellPath]]]:
        """Each grid with what `seeds` and `common` add to it, and from each path in it the path in the sweep."""
        found = []
        for index, grid in enumerate(self.grids):
            own = {key for key, _ in keys_of(grid)}
            seeds = {} if self.seeds is None else {"seed": self._seed_list()}
            rest = {key: value for key, value in {**seeds, **self.common}.items() if key not in own}
            origin: dict[CellPath, CellPath] = {(): ("grids", index)}
            for key in rest:
                origin[(key,)] = ("common", key) if key in self.common else ("seeds",)
            for _, path in keys_of(grid):
                origin[path] = ("grids", index, *path)
            found.append(({**rest, **grid}, origin))
        return found

    def cells(self) -> list[Any]:
        """The cells, equal ones once; draw after draw, so that an interrupted run has measured every point.

        Raises:
            InputError: for an unknown key, an empty axis, or a cell that is not valid: the place, the key, the rule.
        """
        cells: dict[Any, None] = {}
        kind = self.cell_kind.cell_type
        grids = []
        for index, (grid, origin) in enumerate(self.whole_grids()):

            def place(path: CellPath, index: int = index, origin: dict[CellPath, CellPath] = origin) -> str:
                return self._place(index, path, origin)

            known = [*kind.model_fields]
            seen: set[str] = set()
            for key, path in keys_of(grid):
                if key not in known:
                    message = self._refused(key, [*known, ZIP])
                    raise InputError(f"{place(path)}: {message}")
                if key in seen:
                    raise InputError(f"{place(path)}: `{key}` is given twice in this grid; keep one of the two")
                seen.add(key)
            grids.append((grid, place))
        require_cells(sum(count_of(grid, place) for grid, place in grids), self.name)
        for grid, place in grids:
            for keys in combinations(grid, place):
                cells[kind.parse(keys, where=lambda loc, keys=keys, place=place: place(_actual(loc, keys)))] = None
        return sorted(cells, key=lambda cell: getattr(cell, "draw", 0))

    def to_yaml(self) -> str:
        """The sweep as YAML, which `sweep_file.parse_sweep` reads back."""
        data = self.model_dump(mode="json")
        if self.seeds is None:
            del data["seeds"]
        if not self.common:
            del data["common"]
        return yaml_of(data)

    def save(self, path: str | Path) -> None:
        """Write the sweep as YAML."""
        Path(path).write_text(self.to_yaml(), encoding="utf-8")

    def _seed_list(self) -> list[int]:
        return list(range(self.seeds)) if isinstance(self.seeds, int) else list(self.seeds or ())

    def _place(self, index: int, path: CellPath, origin: Mapping[CellPath, CellPath]) -> str:
        """The place of a path in a whole grid: of its own, or of the nearest thing around it."""
        named = next((key for key in origin if key and key[-1] == (path[0] if path else None)), None)
        start = origin.get(path[:1]) or (origin[named] if named else None) or origin[()]
        if path[:1] == (ZIP,):
            full: CellPath = ("grids", index, *path)
        else:
            full = (*start, *path[1:])
        for end in range(len(full), 1, -1):
            if (place := self._places.get(full[:end])) is not None:
                return place
        return f"{self.name}: grids.{index}"

    def _refused(self, key: str, known: list[str]) -> str:
        try:
            require_choice("key", key, known)
        except InputError as error:
            return str(error)
        return ""


def _actual(loc: CellPath, data: Any) -> CellPath:
    """The path without what pydantic adds to it: the name of the alternative that it tried."""
    path: list[str | int] = []
    for part in loc:
        if isinstance(data, Mapping) and part in data:
            path.append(part)
            data = data[part]
    return tuple(path)
