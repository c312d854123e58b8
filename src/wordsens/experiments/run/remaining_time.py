"""An estimate of the time that the cells still to come will take, from those that have finished."""

import math
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

Point = tuple[object, ...]

_COSTED = "costed"


class RemainingTime:
    """Seconds that the cells still to come will take, from those that have finished.

    A cell is expected to take the mean of the finished cells that differ from it in the draw alone; where
    there is none, of those that differ in n too, scaled by n²; else the mean of all. Cells that know their
    `relative_cost` take the median of the finished ones', scaled by it: the first of a worker loads its model besides.

    Args:
        cells: those still to come; `observe` takes them away, and `left` adds up the others.
    """

    def __init__(self, cells: Iterable[Any] = ()) -> None:
        self._by_point: dict[Point, _Mean] = defaultdict(_Mean)
        self._by_series: dict[Point, _Mean] = defaultdict(_Mean)
        self._all = _Mean()
        self._rates: list[float] = []
        self._to_come = Counter(_point(cell) for cell in cells)

    def observe(self, cell: Any, seconds: float) -> None:
        """A cell has finished, and took that long."""
        point = _point(cell)
        self._by_point[point].add(seconds)
        self._by_series[point[1:]].add(seconds / _size(point) ** 2)
        self._all.add(seconds)
        if (cost := getattr(cell, "relative_cost", None)) is not None:
            insort(self._rates, seconds / cost)
        self._to_come[point] -= 1

    def left(self) -> float | None:
        """The seconds that the cells still to come will take, one after another; None before any has finished."""
        return self._total(self._to_come)

    def of(self, cells: Iterable[Any]) -> float | None:
        """The seconds that the cells will take, one after another; None before any has finished."""
        return self._total(Counter(_point(cell) for cell in cells))

    def of_its_like(self, cell: Any) -> float | None:
        """The mean seconds of finished cells that differ from it in the draw alone; None before any has finished."""
        same = self._by_point.get(_point(cell))
        return None if same is None else same.mean

    def _total(self, points: Counter[Point]) -> float | None:
        if not self._all.count:
            return None
        return math.fsum(count * self._expected(point) for point, count in points.items() if count > 0)

    def _expected(self, point: Point) -> float:
        if self._rates and point[0] == _COSTED:
            return self._rates[len(self._rates) // 2] * float(str(point[1]))
        if same := self._by_point.get(point):
            return same.mean
        if alike := self._by_series.get(point[1:]):
            return alike.mean * _size(point) ** 2
        return self._all.mean


class _Mean:
    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, value: float) -> None:
        self.total += value
        self.count += 1

    @property
    def mean(self) -> float:
        return self.total / self.count


def _point(cell: Any) -> Point:
    """n, then everything else that tells how long a cell takes, whatever its kind has of it."""
    if (cost := getattr(cell, "relative_cost", None)) is not None:
        return (_COSTED, cost)
    names = ("map", "d", "depth", "objective", "texts", "protocol", "measures", "count", "work", "pause")
    text = getattr(getattr(cell, "text", None), "kind", None)
    return (getattr(cell, "n", 1), *(getattr(cell, name, None) for name in names), text)


def _size(point: Point) -> int:
    size = point[0]
    return size if isinstance(size, int) else 1
