"""An estimate of the time that the cells still to come will take, from those that have finished."""

import math
import operator
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable
from typing import Any

Point = tuple[object, ...]

_COSTED = "costed"


class RemainingTime:
    """Seconds that the cells still to come will take, from those that have finished.

    A cell is expected to take the mean of the finished cells that differ from it in the draw alone. Where there is
    none, of those nearest in n that differ in as few other things as can be, in proportion to a power of n: the one
    that finished cells follow, where they differ in nothing but n and draw. Cells that know their
    `relative_cost` take the median of the finished ones', scaled by it: the first of a worker loads its model besides.
    Of cells that share a fit and a search the first takes their time: they count when all have finished.

    Args:
        cells: those still to come; `observe` takes them away, and `left` adds up the others.
    """

    def __init__(self, cells: Iterable[Any] = ()) -> None:
        self._by_series: dict[Point, dict[int, _Mean]] = defaultdict(lambda: defaultdict(_Mean))
        self._rates: list[float] = []
        cells = list(cells)
        self._to_come = Counter(_point(cell) for cell in cells)
        self._groups = Counter(group for cell in cells if (group := _of_group(cell)) is not None)
        self._of_groups: dict[Hashable, _Mean] = defaultdict(_Mean)

    def observe(self, cell: Any, seconds: float) -> None:
        """A cell has finished, and took that long."""
        point, group = _point(cell), _of_group(cell)
        if group is None:
            self._by_series[point[1:]][_size(point)].add(seconds)
        else:
            of_group = self._of_groups[group]
            of_group.add(seconds)
            if of_group.count == self._groups[group]:
                self._by_series[point[1:]][_size(point)].add(of_group.mean)
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
        point = _point(cell)
        same = self._by_series.get(point[1:], {}).get(_size(point))
        return None if same is None else same.mean

    def _total(self, points: Counter[Point]) -> float | None:
        if not self._by_series:
            return None
        power = self._power()
        return math.fsum(count * self._expected(point, power) for point, count in points.items() if count > 0)

    def _expected(self, point: Point, power: float) -> float:
        if self._rates and point[0] == _COSTED:
            return self._rates[len(self._rates) // 2] * float(str(point[1]))
        n, series = _size(point), self._by_series
        if point[1:] in series:
            return _nearest(series[point[1:]], n, power)
        alike = {other: sum(map(operator.eq, other, point[1:])) for other in series}
        most = max(alike.values())
        values = [_nearest(series[other], n, power) for other, count in alike.items() if count == most]
        return math.fsum(values) / len(values)

    def _power(self) -> float:
        """The slope of log seconds over log n within series, between 0 and 3; 1 before any series has two sizes."""
        products = squares = 0.0
        for sizes in self._by_series.values():
            logs = [(math.log(n), math.log(max(1e-6, mean.mean))) for n, mean in sizes.items()]
            middle = [math.fsum(column) / len(logs) for column in zip(*logs, strict=True)]
            products += math.fsum((x - middle[0]) * (y - middle[1]) for x, y in logs)
            squares += math.fsum((x - middle[0]) ** 2 for x, _ in logs)
        return min(3.0, max(0.0, products / squares)) if squares else 1.0


class _Mean:
    def __init__(self) -> None:
        self.total, self.count = 0.0, 0

    def add(self, value: float) -> None:
        self.total += value
        self.count += 1

    @property
    def mean(self) -> float:
        return self.total / self.count


def _nearest(sizes: dict[int, _Mean], n: int, power: float) -> float:
    """The mean of the nearest size, in proportion to that power of n."""
    near = min(sizes, key=lambda size: (abs(math.log(size / n)), size))
    return sizes[near].mean * (n / near) ** power


def _point(cell: Any) -> Point:
    """n, then everything else that tells how long a cell takes, whatever its kind has of it."""
    if (cost := getattr(cell, "relative_cost", None)) is not None:
        return (_COSTED, cost)
    names = ("map", "d", "depth", "objective", "texts", "protocol", "measures", "count", "work", "pause")
    shared = ("objective",) if _of_group(cell) is not None else ()
    text = getattr(getattr(cell, "text", None), "kind", None)
    return (getattr(cell, "n", 1), *(None if name in shared else getattr(cell, name, None) for name in names), text)


def _of_group(cell: Any) -> Hashable:
    """Equal for the cells that share a fit and their searches; None of others."""
    return cell.of_fit() if getattr(cell, "together", False) else None


def _size(point: Point) -> int:
    size = point[0]
    return max(1, size) if isinstance(size, int) else 1
