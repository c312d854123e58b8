"""`key=value` on top of a sweep."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wordsens.errors import InputError, require_choice, shortened, shown
from wordsens.experiments.grid.axes import ZIP, keys_of
from wordsens.experiments.grid.yaml_text import Path, read_yaml
from wordsens.experiments.kinds import KIND_NAMES, kind_named

_OF_SWEEP = ("name", "seeds")
MAP = "map"


@dataclass(frozen=True)
class Override:
    """A key, the value it gets, and the place where that was said."""

    key: str
    value: Any
    place: str


def parse_override(text: str) -> Override:
    """The override that `key=value` stands for; the value is YAML.

    >>> parse_override("n=[10, 20]")
    Override(key='n', value=[10, 20], place='override n=[10, 20]')
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise InputError(f"`override` (={shown(text)}) must be key=value, for example n=[10, 20]")
    place = f"override {shortened(' '.join(text.split()))}"
    return Override(key.strip(), read_yaml(value, where=place).data, place)


def apply_override(override: Override, data: dict[str, Any], places: dict[Path, str]) -> None:
    """Set the key in the data of a sweep, and its place.

    `name`, `seeds`: of the sweep. `common.KEY`, `grids.0.KEY`: there. KEY alone: in `common` and in every grid that
    has it, and where nothing has it, in `common`. KEY.PART: a part of a value that is a mapping, `text.layer` for one.
    `map` alone: where the grids have all the maps it names, they are cut down to these, since a grid's other keys are
    those of its maps; grids that are left without a map go.

    Raises:
        InputError: there is no such key; with the place.
    """
    parts = override.key.split(".")
    kind = data.get("kind", "sensitivity")
    cell_keys = [*kind_named(kind).cell_type.model_fields] if kind in KIND_NAMES else []
    if parts[0] in _OF_SWEEP and len(parts) == 1:
        data[parts[0]] = override.value
        places[(parts[0],)] = override.place
        return
    common, grids = _mapping(data, "common"), data.get("grids")
    grids = list(grids) if isinstance(grids, list | tuple) else []
    if parts[0] == "common" and len(parts) > 1:
        _known(override, parts[1], cell_keys)
        _set(override, common, parts[1:], ("common",), places)
    elif parts[0] == "grids" and len(parts) > 2:
        if not parts[1].isdigit() or int(parts[1]) >= len(grids):
            raise InputError(f"{override.place}: there is no grid {parts[1]}; the grids are 0 to {len(grids) - 1}")
        _known(override, parts[2], cell_keys)
        at = int(parts[1])
        grids[at] = _without_zipped(grids[at], parts[2])
        _set(override, grids[at], parts[2:], ("grids", at), places)
    else:
        _known(override, parts[0], [*cell_keys, *_OF_SWEEP])
        if override.key == MAP and (cut := _cut_down(override, common, grids)) is not None:
            _move_places(places, cut)
            data["common"], data["grids"] = common, [grid for _, grid in cut]
            return
        found = parts[0] in common
        for at, grid in enumerate(grids):
            if isinstance(grid, Mapping) and any(key == parts[0] for key, _ in keys_of(grid)):
                grids[at] = grid = _without_zipped(grid, parts[0])
                _set(override, grid, parts, ("grids", at), places)
                found = True
        if parts[0] == "seed":
            data.pop("seeds", None)
        if not found or parts[0] in common:
            _set(override, common, parts, ("common",), places)
    data["common"], data["grids"] = common, grids


def _cut_down(override: Override, common: dict[str, Any], grids: list[Any]) -> list[tuple[int, dict[str, Any]]] | None:
    """The grids that have maps which the override names, with only these, and their numbers; None where it names
    others, or where a grid's maps stand elsewhere than under its own key `map`.
    """
    wanted = _listed(override.value)
    if MAP in common or len(grids) < 2 or not all(isinstance(grid, Mapping) and MAP in grid for grid in grids):
        return None
    if not {str(one) for one in wanted} <= {str(one) for grid in grids for one in _listed(grid[MAP])}:
        return None
    left = [(at, [one for one in _listed(grid[MAP]) if one in wanted]) for at, grid in enumerate(grids)]
    return [
        (at, {**grids[at], MAP: maps if isinstance(grids[at][MAP], list) else maps[0]}) for at, maps in left if maps
    ]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple) else [value]


def _move_places(places: dict[Path, str], cut: list[tuple[int, dict[str, Any]]]) -> None:
    """The places of the grids that are left, under their new numbers."""
    numbers = {old: new for new, (old, _) in enumerate(cut)}
    moved = {path: place for path, place in places.items() if path[:1] != ("grids",) or len(path) < 2}
    for path, place in places.items():
        if path[:1] == ("grids",) and len(path) > 1 and path[1] in numbers:
            moved["grids", numbers[path[1]], *path[2:]] = place
    places.clear()
    places.update(moved)


def _mapping(data: dict[str, Any], key: str) -> dict[str, Any]:
    held = data.get(key)
    return dict(held) if isinstance(held, Mapping) else {}


def _known(override: Override, key: str, keys: list[str]) -> None:
    try:
        require_choice("key", key, keys)
    except InputError as error:
        raise InputError(f"{override.place}: {error}") from error


def _without_zipped(grid: Mapping[str, Any], key: str) -> dict[str, Any]:
    """The grid without the key in its zips; what moved together with it goes on without it."""
    held = grid.get(ZIP)
    if held is None:
        return dict(grid)
    groups = held if isinstance(held, list | tuple) else [held]
    if not all(isinstance(one, Mapping) for one in groups):
        return dict(grid)  # whoever counts the cells refuses it, with its place
    groups = [left for one in groups if (left := {name: value for name, value in one.items() if name != key})]
    rest = {name: value for name, value in grid.items() if name != ZIP}
    return {**rest, ZIP: groups} if groups else rest


def _set(override: Override, target: dict[str, Any], parts: list[str], path: Path, places: dict[Path, str]) -> None:
    if len(parts) > 1:
        target[parts[0]] = _with_part(override, target.get(parts[0]), parts)
    else:
        target[parts[0]] = override.value
    for known in [one for one in places if one[: len(path) + len(parts)] == (*path, *parts)]:
        del places[known]
    places[(*path, *parts)] = override.place


def _with_part(override: Override, value: Any, parts: list[str]) -> Any:
    """The value with one part of it set; in a list, in each of its mappings."""
    if isinstance(value, list):
        return [_with_part(override, one, parts) for one in value]
    if parts[0] == "text" and isinstance(value, str):
        value = {"kind": value}
    if not isinstance(value, Mapping):
        raise InputError(f"{override.place}: `{parts[0]}` (={value!r}) has no parts; set it as a whole")
    inner = dict(value)
    if len(parts) > 2:
        inner[parts[1]] = _with_part(override, inner.get(parts[1]), parts[1:])
    else:
        inner[parts[1]] = override.value
    return inner
