"""How steep an activation can be between a known pre-activation and any point within a known distance of it."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.activations import Activation

LEAKS = {"identity": 1.0, "relu": 0.0, "leaky_relu": 0.01}
"""The slope below 0 of the activations that have slope 1 above it and no other."""
_GRID = 65
# Below this distance a quotient of rounded differences is worth less than the derivative plus its growth.
_SHORT = 1e-4

# sup |act''|: where act''' = 0. tanh: at tanh(z)² = 1/3; erf: at z² = 1/2; gelu: (2 - z²) phi(z) at z = 0.
CURVATURE = {
    "tanh": 4 / (3 * math.sqrt(3)),
    "erf": 4 / math.sqrt(math.pi) * math.sqrt(0.5) * math.exp(-0.5),
    "gelu": 2 / math.sqrt(2 * math.pi),
}


def steepest_secant(
    activation: Activation, preactivation: Float[Tensor, " k"], reach: Float[Tensor, " k"]
) -> Float[Tensor, " k"]:
    """An upper bound c of |act(h + t) - act(h)| / |t| over 0 < |t| <= T, for every unit; h `preactivation`, T `reach`.

    ReLU: 1 where h >= 0; max(0, 1 - |h| / T) where h < 0, since such a unit must first cross 0. leaky_relu: likewise
    above its leak. Smooth activations: the largest secant slope on a grid of t, plus what it can grow between grid
    points, the slope's derivative being at most sup |act''| / 2; never more than the Lipschitz constant. Rounding of
    the result: a few units of the last place, which the caller's slack covers.
    """
    if activation.name in LEAKS:
        leak = LEAKS[activation.name]
        beyond = 1 - preactivation.abs() / torch.where(reach > 0, reach, torch.ones_like(reach))
        crossing = leak + (1 - leak) * beyond.clamp(0, 1)
        return torch.where(preactivation >= 0, torch.ones_like(crossing), torch.where(reach > 0, crossing, leak))
    curvature = CURVATURE.get(activation.name)
    if curvature is None:
        return torch.full_like(preactivation, activation.lipschitz)
    base = activation(preactivation)
    steepest = activation.derivative(preactivation).abs()
    for fraction in torch.linspace(-1, 1, _GRID, dtype=torch.float64).tolist():
        step = fraction * reach
        rise = (activation(preactivation + step) - base).abs()
        slope = rise / torch.where(step != 0, step.abs(), torch.ones_like(step))
        steepest = torch.maximum(steepest, slope)
    # The secant slope changes by at most sup |act''| / 2 per unit of t, and grid points are 2 reach / 64 apart.
    by_grid = steepest + 0.5 * curvature * reach / (_GRID - 1)
    by_derivative = activation.derivative(preactivation).abs() + 0.5 * curvature * reach
    slope = torch.where(reach > _SHORT, torch.minimum(by_grid, by_derivative), by_derivative)
    return slope.clamp(max=activation.lipschitz)
