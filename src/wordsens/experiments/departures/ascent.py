"""Two ascents in balls around given centres: steps of the raw gradient, and steps that must gain."""

from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.search.ball import Ball, unit
from wordsens.search.objective import Objective

Gradient = Callable[[Tensor], Tensor]
"""From Delta (w, d) to the direction (w, d) in which a step of length `rate` goes."""

_REFINING_STEPS = 40
_FIRST_STEP = 0.1
"""Of the radius; halved whenever a step does not gain."""


def raw_ascent(
    gradient: Gradient,
    start: Float[Tensor, "w d"],
    centre: Float[Tensor, "w d"],
    ball: Ball,
    *,
    rate: float,
    steps: int,
) -> Float[Tensor, "w d"]:
    """The last of the points Delta <- centre + P(Delta + rate g(Delta) - centre), P the projection to the ball.

    No step is refused, and the last point need not be the best: the search of the published experiments. A point that
    a step leaves where it is, bit for bit, is the last: so would all further steps.
    """
    delta = start
    # A step of one word costs its calls: without what autograd would note of them they take a fifth less.
    with torch.inference_mode():
        for _ in range(steps):
            before, delta = delta, centre + ball.project(delta + rate * gradient(delta) - centre)
            if torch.equal(before, delta):
                break
    return delta.clone()


def refined(
    objective: Objective,
    words: Int[Tensor, " w"],
    start: Float[Tensor, "w d"],
    centre: Float[Tensor, "w d"],
    ball: Ball,
) -> Float[Tensor, "w d"]:
    """Points of the balls around the centre, climbed to from those nearest to the start; no step loses."""
    delta = centre + ball.project(start - centre)
    value, slope = objective.value_and_gradient(delta, words)
    step = _FIRST_STEP * ball.radius.to(delta.dtype).unsqueeze(1)
    for _ in range(_REFINING_STEPS):
        ahead = delta + step * unit(slope)
        tried = centre + ball.project(ahead - centre)
        found, turned = objective.value_and_gradient(tried, words)
        gains = (found > value).unsqueeze(1)
        delta, slope = torch.where(gains, tried, delta), torch.where(gains, turned, slope)
        value, step = torch.maximum(found, value), torch.where(gains, step, step / 2)
    return delta
