"""Ascents that look beside their points: on an objective with many kinks, where a climb from kink to kink jams."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.search.ascents import Ascents
from wordsens.search.ball import unit
from wordsens.search.climb import Climb
from wordsens.search.plan import NOISY_GENERATIONS

_STEPS, _CHILD_STEPS = 100, 50
"""Of a start, and of a child or of a copy of what was found. Of 400 random starts under divided ReLU, 9 words in 25
coordinates, 2 heads, 40 came to .841 and one to .8755 with such steps, none past .8161 without them."""

_LENGTH, _CHILD_LENGTH, _NEAR_LENGTH = 1.0, 0.3, 0.1
"""Of the first step, in radii: of a start, of a child, of a copy."""

_LOOKS = 4
"""Random points that are looked at for each that climbs."""

_CHILDREN, _COPIES = 16, 3
"""Children a round of crossing, and copies of each finalist at the end, which find its next hill."""

_LAST = 0.003
"""The length of the last step, in radii; those between shrink by a constant factor."""

_BESIDE, _KEEP = 0.3, 0.6
"""The distance at which the gradient is taken, in steps, and the share of past directions that is kept."""


def noisily_crossed(ascents: Ascents, best: Climb, candidates: Float[Tensor, "c w size"]) -> Climb:
    """The points, on the ground, and what noisy ascents find there: from the highest of the candidates and of random
    points, from other random ones, from mixtures of what was found, and next to it."""
    plan, breeder = ascents.plan, ascents.breeder
    many = torch.cat([candidates, breeder.random(_LOOKS * plan.noisy)])
    starts = torch.cat([ascents.best_of(many, -(-plan.noisy // 2), ascents.ground), breeder.random(plan.noisy // 2)])
    best = best.joined(_climbed(ascents, starts, _LENGTH, _STEPS))
    for _ in range(NOISY_GENERATIONS[plan.rule]):
        best = ascents.fittest(best, plan.population)
        children = breeder.children(ascents.ranked(best), _CHILDREN)
        best = best.joined(_climbed(ascents, children, _CHILD_LENGTH, _CHILD_STEPS))
    best = ascents.either_way(best, plan.finalists)
    near = ascents.ranked(best).repeat(_COPIES, 1, 1)
    return ascents.either_way(best.joined(_climbed(ascents, near, _NEAR_LENGTH, _CHILD_STEPS)), plan.finalists)


def _climbed(ascents: Ascents, points: Float[Tensor, "ranks w size"], length: float, steps: int) -> Climb:
    """Climbs of the ground from where noisy ascents from the points lead."""
    ranks = len(points)
    words, radius = ascents.words.repeat(ranks), ascents.radius.repeat(ranks)
    climb = Climb(ascents.ground, words, radius, points.flatten(end_dim=1), ascents.blocks)
    _climb_noisily(climb, lambda: ascents.breeder.random(ranks).flatten(end_dim=1), length, steps)
    ascents.spend(words, 1 + steps)
    return ascents.climb(ascents.ranked(climb), ascents.ground)


def _climb_noisily(climb: Climb, draw: Callable[[], Tensor], first: float, steps: int) -> None:
    """Moves each ascent to the best point that a noisy one sees: steps of shrinking length, whatever they gain.

    m <- 0.6 m + g/‖g‖, x <- x + s m, g the gradient at x + 0.3 s z. At a kink the gradients beside the point average to
    what lies along the kink, which the gradient at the point does not know.

    Args:
        climb: the ascents, left at the best of their own points and those seen.
        draw: gives z, one random direction an ascent.
        first: the length of the first step.
        steps: so many, an evaluation each.
    """
    x, memory = climb.x.clone(), torch.zeros_like(climb.x)
    for at in range(steps):
        size = first * (_LAST / first) ** (at / (steps - 1))
        beside = climb.into_ball(x + _BESIDE * size * draw())
        squared, slope = climb.evaluate(beside)
        climb.keep_better(beside, squared, slope)
        memory = _KEEP * memory + unit(slope).nan_to_num()
        x = climb.into_ball(x + size * memory)
