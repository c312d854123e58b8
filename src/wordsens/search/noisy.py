"""An ascent that looks beside its points: on an objective with many kinks, where a climb from kink to kink jams."""

from collections.abc import Callable

import torch
from torch import Tensor

from wordsens.search.climb import Climb

NOISY_STEPS = 100
"""Of each point. Divided ReLU, 10 words in 56 coordinates, 3 heads: the lowest word was at .978 of the best known
without these steps, .978 after 50 of them and .992 after 100, which take a tenth of the search's time."""

_FIRST, _LAST = 1.0, 0.003
"""The lengths of the first and the last step, in radii; those between shrink by a constant factor."""

_BESIDE, _KEEP = 0.3, 0.6
"""The distance at which the gradient is taken, in steps, and the share of past directions that is kept."""


def climb_noisily(climb: Climb, draw: Callable[[], Tensor]) -> None:
    """Moves each ascent to the best point that a noisy one sees: steps of shrinking length, whatever they gain.

    m <- 0.6 m + g/‖g‖, x <- x + s m, g the gradient at x + 0.3 s z. At a kink the gradients beside the point average to
    what lies along the kink, which the gradient at the point does not know.

    Args:
        climb: the ascents, left at the best of their own points and those seen. NOISY_STEPS evaluations each.
        draw: gives z, one random direction an ascent.
    """
    x, memory = climb.x.clone(), torch.zeros_like(climb.x)
    for at in range(NOISY_STEPS):
        size = _FIRST * (_LAST / _FIRST) ** (at / (NOISY_STEPS - 1))
        beside = climb.into_ball(x + _BESIDE * size * draw())
        squared, slope = climb.evaluate(beside)
        climb.keep_better(beside, squared, slope)
        memory = _KEEP * memory + torch.nn.functional.normalize(slope, dim=1, eps=torch.finfo(slope.dtype).tiny)
        x = climb.into_ball(x + size * memory)
