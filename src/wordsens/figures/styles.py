"""Colours and markers: a map has the same ones in every figure, as far as they go."""

import math
from collections.abc import Hashable, Sequence
from typing import Any

from wordsens.maps.registry import MAP_NAMES, base_name

# Okabe and Ito's colours, told apart by colour-blind readers; each has a marker of its own for print in
# black.
STYLES = (
    ("#0072B2", "o"),
    ("#D55E00", "s"),
    ("#009E73", "^"),
    ("#CC79A7", "D"),
    ("#E69F00", "v"),
    ("#56B4E9", "P"),
    ("#000000", "X"),
)
MOST_SERIES = 2 * len(STYLES)
"""So many series a figure can tell apart: each colour with a filled and with a hollow marker."""

Style = tuple[str, str, bool]
"""Colour, marker, whether the marker is hollow."""


def series_styles(keys: Sequence[tuple[Hashable, str | None]]) -> list[Style]:
    """A style for each series, given as (key, map of its records or None); no two are alike up to MOST_SERIES.

    The first series of a map of the registry has the map's own colour; the others take those that are left.

    >>> series_styles([("a", "drf2"), ("b", "rf"), ("c", "drf4")])[:2]
    [('#D55E00', 's', False), ('#0072B2', 'o', False)]
    """
    styles: list[Style | None] = [None] * len(keys)
    free = [(*style, hollow) for hollow in (False, True) for style in STYLES]
    for at, (_, name) in enumerate(keys):
        base = None if name is None else base_name(name)
        if base in MAP_NAMES and (place := MAP_NAMES.index(base)) < len(STYLES):
            own = (*STYLES[place], False)
            if own in free:
                styles[at] = own
                free.remove(own)
    return [style or free.pop(0) for style in styles]


def round_values(low: float, high: float, *, most: int = 7) -> list[float]:
    """Between 3 and `most` round numbers for the ticks of a logarithmic axis: 1-2-5 a decade, or even steps."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1,), (1, 3), (1, 2, 5)):
        inside = [value for power in decades for digit in digits if low <= (value := digit * 10.0**power) <= high]
        if 4 <= len(inside) <= most:
            return inside
    for step in (digit * 10.0**power for power in decades for digit in (0.1, 0.2, 0.5, 1, 2, 5)):
        inside = [step * count for count in range(math.ceil(low / step), math.floor(high / step) + 1)]
        if 3 <= len(inside) <= most:
            return inside
    return [low, high]


def spaced(sizes: Sequence[Any], *, least: float = 0.085) -> list[Any]:
    """The sizes whose labels do not touch on a logarithmic axis; the last one always stays."""
    span = math.log(sizes[-1] / sizes[0]) or 1.0
    kept: list[Any] = []
    for size in sizes[:-1]:
        clear_of_last = math.log(sizes[-1] / size) / span >= least
        if clear_of_last and (not kept or math.log(size / kept[-1]) / span >= least):
            kept.append(size)
    return [*kept, sizes[-1]]
