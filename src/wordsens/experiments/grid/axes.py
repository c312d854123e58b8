"""The axes of a grid: values, lists, ranges and zips, and every combination of them."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from wordsens.errors import InputError, shown

ZIP = "zip"
RANGE = "range"
MOST_CELLS = 200_000
"""Of a sweep, over all its grids: they are checked one by one before anything runs, in 25 µs and 1.5 kB each."""

Place = Callable[[tuple[str | int, ...]], str]
"""From the path of a key inside a grid to what names its place."""


def combinations(grid: Mapping[str, Any], place: Place) -> Iterator[dict[str, Any]]:
    """Every combination of the grid's axes, as the keys of one cell each.

    A list is an axis; so is `{range: [first, last]}` or `{range: [first, last, step]}`, whose last value belongs to it.
    `zip: {n: [10, 20], d: [32, 64]}` is one axis whose keys move together; several such mappings can stand in a list.

    Raises:
        InputError: an empty axis, a zip of unequal lengths, a range that is none, more than MOST_CELLS cells; with the
            place.

    >>> list(combinations({"n": [4, 6], "zip": {"d": [8, 16], "seed": [0, 1]}, "map": "rf"}, lambda path: "here"))[1]
    {'n': 4, 'd': 16, 'seed': 1, 'map': 'rf'}
    """
    require_cells(count_of(grid, place), place(()))
    steps = [[dict(zip(axis, values, strict=True)) for values in zip(*axis.values(), strict=True)]
             for axis in _axes(grid, place)]  # fmt: skip
    for parts in itertools.product(*steps):
        yield {key: value for part in parts for key, value in part.items()}


def count_of(grid: Mapping[str, Any], place: Place) -> int:
    """The number of the grid's combinations, none of which is made."""
    return math.prod(len(next(iter(axis.values()))) for axis in _axes(grid, place))


def require_cells(count: int, where: str) -> None:
    """InputError for more than MOST_CELLS cells."""
    if count > MOST_CELLS:
        many = f"{count:,}" if count < 10**30 else "more than 10^30"
        raise InputError(f"{where}: {many} cells; at most {MOST_CELLS:,}: take fewer values an axis, or several sweeps")


def _axes(grid: Mapping[str, Any], place: Place) -> list[dict[str, Sequence[Any]]]:
    """Every axis as its keys with their values, equally many."""
    axes: list[dict[str, Sequence[Any]]] = []
    for key, value in grid.items():
        if key == ZIP:
            axes += [_zipped(one, place, path) for one, path in zips(value)]
        else:
            axes.append({key: _values(key, value, place, (key,))})
    return axes


def zips(value: Any) -> list[tuple[Any, tuple[str | int, ...]]]:
    """The mappings that stand under `zip`, each with its path."""
    if isinstance(value, list | tuple):
        return [(one, (ZIP, at)) for at, one in enumerate(value)]
    return [(value, (ZIP,))]


def keys_of(grid: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str | int, ...]]]:
    """Every cell key that the grid gives, with its path; those in a zip too."""
    for key, value in grid.items():
        if key != ZIP:
            yield key, (key,)
            continue
        for one, path in zips(value):
            if isinstance(one, Mapping):
                yield from ((name, (*path, name)) for name in one)


def _zipped(group: Any, place: Place, path: tuple[str | int, ...]) -> dict[str, Sequence[Any]]:
    if not isinstance(group, Mapping) or not group:
        raise InputError(f"{place(path)}: `zip` (={shown(group)}) must map keys to lists of one length")
    columns = {key: _values(key, value, place, (*path, key)) for key, value in group.items()}
    lengths = {key: len(column) for key, column in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{key} has {length}" for key, length in lengths.items())
        raise InputError(f"{place(path)}: `zip` needs lists of one length, but {listed}; add or drop values")
    return columns


def _values(key: str, value: Any, place: Place, path: tuple[str | int, ...]) -> Sequence[Any]:
    if isinstance(value, Mapping) and set(value) == {RANGE}:
        return _ranged(key, value[RANGE], place, path)
    if not isinstance(value, list | tuple):
        return [value]
    if not value:
        raise InputError(f"{place(path)}: `{key}` is an empty list; give it at least one value")
    return value


def _ranged(key: str, bounds: Any, place: Place, path: tuple[str | int, ...]) -> Sequence[int]:
    whole = isinstance(bounds, list | tuple) and all(
        isinstance(one, int) and not isinstance(one, bool) for one in bounds
    )
    if not whole or len(bounds) not in (2, 3) or (len(bounds) == 3 and bounds[2] < 1) or bounds[1] < bounds[0]:
        raise InputError(
            f"{place(path)}: `{key}` has the range {shown(bounds)}; give whole numbers [first, last] or "
            "[first, last, step] with first <= last and step >= 1"
        )
    step = bounds[2] if len(bounds) == 3 else 1
    # Python counts a range's values only where they fit a machine's word.
    if (bounds[1] - bounds[0]) // step >= MOST_CELLS:
        raise InputError(f"{place(path)}: `{key}` has the range {shown(bounds)}; at most {MOST_CELLS:,} values")
    return range(bounds[0], bounds[1] + 1, step)
