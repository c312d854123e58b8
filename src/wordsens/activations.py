"""Activation functions of the random layers, with what the search and the bounds need to know of
them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from jaxtyping import Float
from scipy.special import ndtr
from torch import Tensor

from wordsens.errors import InputError, argument, require_choice, require_positive

Elementwise = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Activation:
    """An elementwise activation act.

    Attributes:
        name: the key in `ACTIVATIONS`.
        function: act.
        derivative: act', with act'(0) = 0 for ReLU (torch's convention).
        lipschitz: an L with |act(a) - act(b)| <= L |a - b|; inf where none is known; maps with it
            then have no upper bound.
        mean_square: E[act(z)²] for z ~ N(0, 1).
    """

    name: str
    function: Elementwise
    derivative: Elementwise
    lipschitz: float
    mean_square: float

    @classmethod
    def of(
        cls,
        function: Elementwise,
        *,
        lipschitz: float | None = None,
        derivative: Elementwise | None = None,
    ) -> "Activation":
        """A torch function, applied entry by entry, as an activation.

        Args:
            function: act, such as torch.sin.
            lipschitz: its Lipschitz constant, which upper bounds rely on; None: maps with it have
                no upper bound.
            derivative: act'; None for autograd's.

        Raises:
            InputError: no function, or one that does not keep the shape or gives numbers that are
                not finite.

        >>> Activation.of(torch.sin, lipschitz=1.0).derivative(torch.zeros(2))
        tensor([1., 1.])
        """
        name = getattr(function, "__name__", type(function).__name__)
        nodes = torch.linspace(-_FAR, _FAR, _NODES, dtype=torch.float64)
        try:
            values = function(nodes)
        except Exception as error:
            raise InputError(
                f"{argument('activation')} ({name}) cannot be applied to a tensor: {error}"
            ) from error
        if (
            not isinstance(values, Tensor)
            or values.shape != nodes.shape
            or not bool(values.isfinite().all())
        ):
            raise InputError(
                f"{argument('activation')} ({name}) must give one finite number for each entry of "
                "a tensor, such as torch.sin"
            )
        density = torch.exp(-nodes.square() / 2) / math.sqrt(2 * math.pi)
        mean_square = float(torch.trapezoid(values.square() * density, nodes))
        return cls(
            f"custom {name}" if name in ACTIVATIONS else name,
            function,
            partial(_slope, function) if derivative is None else derivative,
            math.inf if lipschitz is None else require_positive("lipschitz", lipschitz),
            mean_square,
        )

    def __call__(self, preactivation: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        return self.function(preactivation)

    def __reduce__(self) -> tuple[Callable[..., "Activation"], tuple[object, ...]]:
        """Pickled and copied by its name, if it is one of `ACTIVATIONS`."""
        if ACTIVATIONS.get(self.name) is self:
            return as_activation, (self.name,)
        return Activation, (
            self.name,
            self.function,
            self.derivative,
            self.lipschitz,
            self.mean_square,
        )

    @property
    def saturates(self) -> bool:
        """True if act is bounded. At large radii a search then finds a local maximum for nearly
        every pattern of signs."""
        far = self.function(torch.tensor([-1e6, 1e6], dtype=torch.float64))
        return bool((far.abs() < 10).all())

    @property
    def kinked(self) -> bool:
        """True where act' jumps at 0."""
        below, above = self.derivative(torch.tensor([-1e-9, 1e-9], dtype=torch.float64)).tolist()
        return abs(above - below) > 1e-6

    @property
    def he_variance(self) -> float:
        """fan_in times the variance of the next layer's weights that keeps pre-activations at
        variance 1.

        1 / E[act(z)²]; 2 for ReLU, as in He et al. (2015).
        """
        return 1.0 / self.mean_square


_FAR, _NODES = 12.0, 100_001
"""Of the trapezoidal rule for E[act(z)²]: kinks cost it 1e-9, and N(0, 1) is 1e-33 past 12."""


def _slope(function: Elementwise, z: Tensor) -> Tensor:
    """act' by autograd."""
    with torch.enable_grad():
        point = z.detach().requires_grad_()
        return torch.autograd.grad(function(point).sum(), point)[0]


def _gaussian_mean_square(function: Callable[[np.ndarray], np.ndarray]) -> float:
    """E[function(z)²], z ~ N(0, 1), by 200-point Gauss-Hermite quadrature; for smooth functions."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    return float(np.sum(weights * function(nodes) ** 2) / math.sqrt(2 * math.pi))


def _below(z: Tensor) -> Tensor:
    """P(g <= z) for g ~ N(0, 1). torch's own, and its gelu, cancel in the tail: 2e-6 off at z = -7,
    0 below -9."""
    return 0.5 * torch.special.erfc(-math.sqrt(0.5) * z)


LEAK = 0.01
"""The slope of leaky_relu below 0, torch's default."""

# GELU'(z) = Phi(z) + z phi(z) is largest where GELU'' = (2 - z²) phi(z) = 0, at z = sqrt(2).
_GELU_LIPSCHITZ = 0.5 * (1 + math.erf(1.0)) + math.sqrt(2) * math.exp(-1.0) / math.sqrt(2 * math.pi)

ACTIVATIONS: dict[str, Activation] = {
    activation.name: activation
    for activation in (
        Activation("relu", torch.relu, lambda z: (z > 0).to(z.dtype), 1.0, 0.5),
        Activation(
            "leaky_relu",
            lambda z: torch.nn.functional.leaky_relu(z, LEAK),
            # Two plain numbers would make a float32 tensor, and round the slope to it.
            lambda z: torch.where(z > 0, torch.ones_like(z), LEAK),
            1.0,
            0.5 * (1 + LEAK**2),
        ),
        Activation("identity", lambda z: z, torch.ones_like, 1.0, 1.0),
        Activation(
            "tanh",
            torch.tanh,
            lambda z: 1 - torch.tanh(z) ** 2,
            1.0,
            _gaussian_mean_square(np.tanh),
        ),
        Activation(
            "gelu",
            lambda z: z * _below(z),
            lambda z: _below(z) + z * torch.exp(-0.5 * z * z) / math.sqrt(2 * math.pi),
            math.nextafter(_GELU_LIPSCHITZ, 2.0),
            _gaussian_mean_square(lambda z: z * ndtr(z)),
        ),
        Activation(
            "erf",
            torch.erf,
            lambda z: 2 / math.sqrt(math.pi) * torch.exp(-z * z),
            math.nextafter(2 / math.sqrt(math.pi), 2.0),
            2 / math.pi * math.asin(2 / 3),
        ),
    )
}


def as_activation(activation: "str | Activation | Elementwise") -> Activation:
    """An Activation as it is, the one of that name, or of any other function `Activation.of` it.

    >>> as_activation("relu").he_variance, as_activation(torch.cos).name
    (2.0, 'cos')
    """
    if isinstance(activation, Activation):
        return activation
    if not callable(activation):
        return activation_named(activation)
    known = next((each for each in ACTIVATIONS.values() if each.function is activation), None)
    return Activation.of(activation) if known is None else known


def activation_named(name: str) -> Activation:
    """The activation of that name: one of relu, leaky_relu (slope 0.01), identity, tanh, gelu
    (exact), erf.

    >>> activation_named("relu").he_variance
    2.0
    """
    return ACTIVATIONS[require_choice("activation", name, ACTIVATIONS)]
