"""Two sides for numbers, such that the changes that texts make to them mostly lead from one side to the other."""

import math
import random

_CHANGES = ((2, 0, 3), (10, 0, 3), (1, 1, 2), (1, 10, 1.5))
"""A factor, what is added, and the weight of that change."""

_ROUND = ((5, 1), (10, 2), (100, 1))
"""Steps between multiples of themselves, and their weights."""

_STARTS = 30

_Graph = list[dict[int, float]]
"""Of every number, those that a usual change turns it into, either way, with weights."""


def number_sides(most: int) -> list[bool]:
    """The side of every number from 0 to `most`: the heaviest of 30 local maxima of the cut through usual changes.

    Doubling, ten times as many, one or ten more, and steps between round numbers; small and round numbers weigh more,
    as they are more common. Each climb starts at random and lets numbers change sides while that makes the cut
    heavier; the starts are always the same. 1 has side False. O(most) a round, of which a climb has a few.

    >>> sides = number_sides(1000)
    >>> [sides[number] != sides[other] for number, other in ((30, 60), (5, 50), (2, 3), (14, 28))]
    [True, True, True, True]
    """
    near = _usual_changes(most)
    sides = max((_climb(near, start) for start in range(_STARTS)), key=lambda found: _weight(near, found))
    return [side != sides[1] for side in sides]


def _usual_changes(most: int) -> _Graph:
    near: _Graph = [{} for _ in range(most + 1)]
    for number in range(1, most + 1):
        common = (1 if number % 5 else 1.5) * (1 if number % 10 else 2) / math.sqrt(number)
        changed = [(factor * number + added, weight) for factor, added, weight in _CHANGES]
        changed += [(number + step, weight) for step, weight in _ROUND if number % step == 0]
        for other, weight in changed:
            if other <= most:
                near[number][other] = near[other][number] = max(weight * common, near[number].get(other, 0))
    return near


def _climb(near: _Graph, start: int) -> list[bool]:
    chance = random.Random(start)
    sides = [chance.random() < 0.5 for _ in near]
    moved = True
    while moved:
        moved = False
        for number, others in enumerate(near):
            if sum(weight if sides[number] == sides[other] else -weight for other, weight in others.items()) > 1e-9:
                sides[number] = not sides[number]
                moved = True
    return sides


def _weight(near: _Graph, sides: list[bool]) -> float:
    return sum(
        weight for at, others in enumerate(near) for other, weight in others.items() if sides[at] != sides[other]
    )
