"""The maps in NumPy float64, from the paper's formulas and the weights alone: no line is shared
with the library."""

import math

import numpy as np
from scipy.special import erf, softmax

ACTIVATIONS = {
    "relu": lambda z: np.maximum(z, 0),
    "leaky_relu": lambda z: np.where(z > 0, z, 0.01 * z),
    "identity": lambda z: z,
    "tanh": np.tanh,
    "gelu": lambda z: z * (1 + erf(z / math.sqrt(2))) / 2,
    "erf": erf,
}


def divided(weights):
    """Rows divided by their sums; a row of zeros stays a row of zeros."""
    total = weights.sum(axis=-1, keepdims=True)
    return np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


SCORES = {
    "softmax": lambda scores: softmax(scores, axis=-1),
    "relu": lambda scores: divided(np.maximum(scores, 0)),
    "relu-unnormalized": lambda scores: np.maximum(scores, 0),
    "sigmoid": lambda scores: 0.5 + 0.5 * np.tanh(scores / 2),
    "linear": lambda scores: scores,
}


def fully_connected(weights, activation, X):
    """act(V_L ... act(V_1 flat(X))), eq. 2; X of shape (*batch, n, d)."""
    hidden = X.reshape(*X.shape[:-2], -1)
    for V in weights:
        hidden = ACTIVATIONS[activation](hidden @ V.T)
    return hidden


def attention(W, score, X, temperature=1.0):
    """score(X W X^T / (temperature sqrt(d))) X, eq. 3; X of shape (*batch, n, d)."""
    scores = X @ W @ np.swapaxes(X, -1, -2) / (temperature * math.sqrt(X.shape[-1]))
    return SCORES[score](scores) @ X


def relative_change(features, X, word, delta):
    """‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖, eq. 1, for one Delta (d,) or for many (m, d)."""
    moved = np.broadcast_to(X, (*delta.shape[:-1], *X.shape)).copy()
    moved[..., word, :] += delta
    base = features(X)
    change = (features(moved) - base).reshape(*delta.shape[:-1], -1)
    return np.linalg.norm(change, axis=-1) / np.linalg.norm(base)
