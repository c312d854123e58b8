"""Reading sweeps: YAML files that include presets and other files, with overrides on top."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from wordsens.errors import InputError, require_choice, shown
from wordsens.experiments.grid.catalogue import included
from wordsens.experiments.grid.override import Override, apply_override, parse_override
from wordsens.experiments.grid.sweep import MOST_GRIDS, CellPath, Sweep
from wordsens.experiments.grid.yaml_text import Placed, read_yaml
from wordsens.files import MOST_BYTES, named_path, small_text

INCLUDE, OVERRIDE = "include", "override"
MOST_INCLUDES = 20
MOST_FILES = 100
"""Included by one sweep in all: two that each include two, and so on, would be read for hours."""


def load_sweep(path: str | Path, *, overrides: Iterable[str] = ()) -> Sweep:
    """The sweep in a YAML file.

    Args:
        path: of the file; files that it includes are looked for next to it.
        overrides: `key=value`, applied in order.

    Raises:
        InputError: the file cannot be read, or is no sweep: one line with the line of the file.
    """
    return _loaded(named_path("path", path, home=False), overrides, 0, [])


def parse_sweep(text: str, *, where: str, folder: Path | None = None, overrides: Iterable[str] = ()) -> Sweep:
    """The sweep that a YAML text describes; see `load_sweep`.

    >>> text = "name: a\\nkind: dry-run\\ngrids:\\n- draw: [0, 1]"
    >>> len(parse_sweep(text, where="a.yaml", overrides=["draw=[4, 5, 6]"]).cells())
    3
    """
    return _parsed(text, where, folder or Path(), [parse_override(one) for one in overrides], 0, [])


def overridden(sweep: Sweep, overrides: Iterable[str]) -> Sweep:
    """The sweep with overrides applied in order."""
    data, places = sweep.model_dump(exclude_none=True), dict(sweep.places)
    for one in overrides:
        apply_override(parse_override(one), data, places)
    return _built(data, places, sweep.name)


def on_device(sweep: Sweep, device: str) -> Sweep:
    """The sweep with every cell on the device, as torch names it.

    >>> sweep = parse_sweep("name: a\\nkind: dry-run\\ngrids: [{draw: [0, 1]}]", where="a.yaml")
    >>> {cell.device for cell in on_device(sweep, "cuda:1").cells()}
    {'cuda:1'}
    """
    data, places = sweep.model_dump(exclude_none=True), dict(sweep.places)
    apply_override(Override("device", device, f"--device {device}"), data, places)
    return _built(data, places, sweep.name)


def _loaded(path: Path, overrides: Iterable[str], depth: int, read: list[int]) -> Sweep:
    """`read` holds the length of every file that was read for the whole sweep so far."""
    if len(read) > MOST_FILES:
        raise InputError(f"more than {MOST_FILES} files are included; include each once")
    text = small_text(path, "path", most=MOST_BYTES - sum(read))
    read.append(len(text))
    return _parsed(text, str(path), path.parent, [parse_override(one) for one in overrides], depth, read)


def _parsed(text: str, where: str, folder: Path, overrides: list[Override], depth: int, read: list[int]) -> Sweep:
    placed = read_yaml(text, where=where)
    keys = [*Sweep.model_fields, INCLUDE, OVERRIDE]
    if not isinstance(placed.data, dict):
        raise InputError(f"{where}: a sweep is a mapping with the keys {', '.join(keys)}")
    for key in placed.data:
        try:
            require_choice("key", key, keys)
        except InputError as error:
            raise InputError(f"{placed.at((key,))}: {error}") from error
    data = dict(placed.data)
    wanted = data.pop(INCLUDE, None)
    own = _own_overrides(data.pop(OVERRIDE, None), placed)
    places: dict[CellPath, str] = dict(placed.places)
    if wanted is not None:
        data, places = _with_included(wanted, data, placed, folder, depth, read)
    for one in (*own, *overrides):
        apply_override(one, data, places)
    return _built(data, places, where)


def _built(data: dict[str, Any], places: dict[CellPath, str], where: str) -> Sweep:
    return Sweep.parse(data, where=Placed(data, places, where).at).placed(places)


def _own_overrides(given: Any, placed: Placed) -> list[Override]:
    if given is None:
        return []
    if not isinstance(given, dict):
        raise InputError(f"{placed.at((OVERRIDE,))}: `override` (={shown(given)}) must map keys to values")
    return [Override(key, value, placed.at((OVERRIDE, key))) for key, value in given.items()]


def _with_included(
    wanted: Any, data: dict[str, Any], placed: Placed, folder: Path, depth: int, read: list[int]
) -> tuple[dict[str, Any], dict[CellPath, str]]:
    """The data with what is included before its own grids; `common` and `seeds` are of its own grids only."""
    if depth >= MOST_INCLUDES:
        raise InputError(f"{placed.at((INCLUDE,))}: more than {MOST_INCLUDES} files include each other; break the ring")
    entries = wanted if isinstance(wanted, list) else [wanted]
    if not entries:
        raise InputError(f"{placed.at((INCLUDE,))}: `include` is an empty list; name a sweep, or leave it out")
    sweeps = []
    for at, entry in enumerate(entries):
        place = placed.at((INCLUDE, at))
        try:
            sweeps.append(included(entry, folder, load=lambda path: _loaded(path, (), depth + 1, read)))
        except InputError as error:
            message = str(error)
            raise InputError(message if message.startswith(place) else f"{place}: {message}") from error
    own = [str(data["kind"])] if "kind" in data else []
    kinds = list(dict.fromkeys([sweep.kind for sweep in sweeps] + own))
    if len(kinds) > 1:
        raise InputError(f"{placed.at((INCLUDE,))}: cells of several kinds ({', '.join(kinds)}); a sweep has one kind")
    grids: list[dict[str, Any]] = []
    places: dict[CellPath, str] = {
        path: place for path, place in placed.places.items() if path[:1] in (("name",), ("kind",))
    }
    if "grids" in data:
        outer = Sweep.parse({**data, "name": sweeps[0].name, "kind": kinds[0]}, where=placed.at)
        sweeps.append(outer.placed(placed.places))
    elif set(data) & {"common", "seeds"}:
        key = "common" if "common" in data else "seeds"
        raise InputError(
            f"{placed.at((key,))}: `{key}` is for the grids of this file, which has none; change what is included "
            "with `override`"
        )
    for sweep in sweeps:
        for grid, origin in sweep.whole_grids():
            near = {source[:2] for source in origin.values()}
            of_grid = [(known, place) for known, place in sweep.places.items() if known[:2] in near or len(known) < 2]
            for path, source in origin.items():
                for known, place in of_grid:
                    if known[: len(source)] == source:
                        places[("grids", len(grids), *path, *known[len(source) :])] = place
            grids.append(grid)
        if len(grids) > MOST_GRIDS:
            raise InputError(f"{placed.at((INCLUDE,))}: more than {MOST_GRIDS:,} grids; include fewer sweeps")
    name = data.get("name") or sweeps[0].name
    return {"name": name, "kind": kinds[0], "grids": grids}, places
