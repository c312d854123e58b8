"""Dense random layers in plain NumPy: how much one moved word changes phi(X), and the gradient, by hand.

h_1 = act(V_1 flat(X)), h_l = act(V_l h_{l-1}). The change is carried from layer to layer: act(z + b) - act(z), where
b is V_i Delta in the first layer and V_l times the change before it later; small differences do not cancel.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, ndtr

Array = NDArray[np.float64]
LEAK = 0.01  # the slope of leaky_relu below zero, as in the library's docstring
NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(8)


@dataclass(frozen=True)
class Activation:
    """act and its derivative; `kinked` ones are linear on either side of zero."""

    function: Callable[[Array], Array]
    derivative: Callable[[Array], Array]
    kinked: bool

    def difference(self, z: Array, b: Array) -> Array:
        """act(z + b) - act(z): by cases when kinked, by quadrature of act' over [z, z + b] where all |b| < .1."""
        if self.kinked:
            same = (z > 0) == (z + b > 0)
            return np.where(same, self.derivative(z + 0 * b) * b, self.function(z + b) - self.function(z))
        if np.abs(b).max(initial=0.0) < 0.1:
            nodes = (self.derivative(z + 0.5 * (1 + at) * b) * w for at, w in zip(NODES, NODE_WEIGHTS, strict=True))
            return 0.5 * b * sum(nodes)
        return self.function(z + b) - self.function(z)


def _density(z: Array) -> Array:
    return np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi)


ACTIVATIONS = {
    "relu": Activation(lambda z: np.maximum(z, 0.0), lambda z: (z > 0).astype(float), True),
    "leaky_relu": Activation(lambda z: np.where(z > 0, z, LEAK * z), lambda z: np.where(z > 0, 1.0, LEAK), True),
    "identity": Activation(lambda z: z, np.ones_like, True),
    "tanh": Activation(np.tanh, lambda z: 1 / np.cosh(np.clip(z, -350, 350)) ** 2, False),
    "erf": Activation(erf, lambda z: 2 / math.sqrt(math.pi) * np.exp(-z * z), False),
    "gelu": Activation(lambda z: z * ndtr(z), lambda z: ndtr(z) + z * _density(z), False),
}


class DenseMap:
    """‖phi(X^i(Delta)) - phi(X)‖² and its gradient for many words and many Delta at once.

    Args:
        X: the text, (n, d).
        weights: V_1 (k, n d), then (k, k).
        activation: a key of `ACTIVATIONS`.
        sharpness: every pre-activation is multiplied by it, which changes the map; 1 for the map itself.
    """

    def __init__(self, X: Array, weights: list[Array], activation: str, sharpness: float = 1.0):
        self.X, self.weights, self.name, self.sharpness = X, weights, activation, sharpness
        self.words, self.coordinates = X.shape
        self.activation = ACTIVATIONS[activation]
        self.blocks = weights[0].reshape(len(weights[0]), *X.shape).transpose(1, 0, 2) * sharpness
        self.later = [V * sharpness if self.saturates else V for V in weights[1:]]
        self.blocks_back = np.ascontiguousarray(self.blocks.transpose(0, 2, 1))
        self.before = []
        wide = [V.astype(np.longdouble) for V in (weights[0] * sharpness, *self.later)]
        hidden = X.reshape(-1).astype(np.longdouble)
        for V in wide:
            self.before.append((V @ hidden).astype(float))
            hidden = self.activation.function(self.before[-1]).astype(np.longdouble)

    @property
    def saturates(self) -> bool:
        return self.name in ("tanh", "erf")

    def softened(self, factor: float) -> "DenseMap":
        """The map with every pre-activation divided by `factor`: less saturated."""
        return DenseMap(self.X, self.weights, self.name, self.sharpness / factor)

    def reach(self, radius: float) -> float:
        """About how far Delta moves a pre-activation within the radius."""
        return radius * float(np.linalg.norm(self.blocks, axis=2).max())

    def features(self, X: Array) -> Array:
        """phi(X) by the definition, in float64: (k,)."""
        hidden = X.reshape(-1)
        for V in self.weights:
            hidden = self.activation.function(V @ hidden)
        return hidden

    def change(self, words: NDArray[np.intp], delta: Array, with_gradient: bool = True) -> tuple[Array, Array | None]:
        """‖phi(X^i(Delta)) - phi(X)‖² (w, s) and its gradient (w, s, d) for words (w,) and Delta (w, s, d)."""
        moved = delta @ self.blocks_back[words]
        slopes = []
        for at, z in enumerate(self.before):
            if at:
                moved = moved @ self.later[at - 1].T
            slopes.append(self.activation.derivative(z + moved) if with_gradient else None)
            moved = self.activation.difference(z, moved)
        square = np.einsum("wsk,wsk->ws", moved, moved)
        if not with_gradient:
            return square, None
        back = 2 * moved
        for at in range(len(self.before) - 1, -1, -1):
            back = back * slopes[at]
            if at:
                back = back @ self.later[at - 1]
        return square, back @ self.blocks[words]

    def points(self, word: int, radius: float) -> Array:
        """Points (m, d), in radii, at which a search may start: none."""
        return np.zeros((0, self.X.shape[1]))

    def directions(self, word: int, rng: np.random.Generator) -> Array:
        """Vectors (m, d) along which a search may start, of any length."""
        block, z = self.blocks[word], self.before[0]
        rows = [self.X[[word]], -self.X[[word]]]
        for kept in (z > 0, z <= 0, np.ones_like(z, dtype=bool)):
            if kept.any():
                axes = np.linalg.svd(block[kept], full_matrices=False)[2][:6]
                total = block[kept].sum(0, keepdims=True)
                rows += [axes, -axes, total, -total]
        signed = (np.sign(z) @ block)[None]
        loudest = block[np.argsort(-np.linalg.norm(block, axis=1))[:8]]
        subsets = rng.uniform(size=(24, len(z))) < rng.uniform(size=(24, 1))
        return np.concatenate(
            [*rows, signed, -signed, loudest, -loudest, subsets @ block, -(subsets * np.sign(z)) @ block]
        )
