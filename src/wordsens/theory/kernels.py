"""The map of the geometry of two inputs by a random layer that is infinitely wide."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.activations import Activation

_LEAK = 0.01
_NODES = 64

CLOSED_FORMS = ("identity", "relu", "leaky_relu", "erf")
"""The activations whose dual kernel needs no quadrature."""


@dataclass(frozen=True)
class Moments:
    """Second moments of a pair of pre-activations (u, v) that are jointly Gaussian with mean zero: E u², E v², E uv."""

    first: Float[Tensor, "*points"]
    second: Float[Tensor, "*points"]
    product: Float[Tensor, "*points"]


def dual_kernel(activation: Activation, moments: Moments) -> Float[Tensor, "*points"]:
    """E[act(u) act(v)].

    Closed forms for relu, leaky_relu (arc-cosine kernel: Cho and Saul, 2009), erf (Williams, 1997) and identity;
    Gauss-Hermite quadrature with 64 x 64 nodes for the others, which are smooth.

    >>> one = torch.ones((), dtype=torch.float64)
    >>> from wordsens.activations import activation_named
    >>> dual_kernel(activation_named("relu"), Moments(one, one, one))
    tensor(0.5000, dtype=torch.float64)
    """
    if activation.name == "identity":
        return moments.product
    if activation.name == "relu":
        return _relu_kernel(moments, 1.0)
    if activation.name == "leaky_relu":
        # act(u) = relu(u) - leak relu(-u), and (-u, -v) has the law of (u, v).
        return (1 + _LEAK**2) * _relu_kernel(moments, 1.0) - 2 * _LEAK * _relu_kernel(moments, -1.0)
    if activation.name == "erf":
        scale = torch.sqrt((1 + 2 * moments.first) * (1 + 2 * moments.second))
        return 2 / math.pi * torch.asin(2 * moments.product / scale)
    return quadrature_kernel(activation, moments)


def quadrature_kernel(activation: Activation, moments: Moments) -> Float[Tensor, "*points"]:
    """E[act(u) act(v)] by Gauss-Hermite quadrature, whatever the activation; exact to rounding for smooth ones only."""
    nodes, weights = gauss_hermite(_NODES)
    first, second = moments.first.sqrt(), moments.second.sqrt()
    along = moments.product / first
    across = (moments.second - along**2).clamp(min=0).sqrt()
    total = torch.zeros_like(second)
    for node, weight in zip(nodes, weights, strict=True):
        inner = activation(along.unsqueeze(-1) * node + across.unsqueeze(-1) * nodes) @ weights
        total = total + weight * activation(first * node) * inner
    return total


def mean_square(activation: Activation, variance: Float[Tensor, "*points"]) -> Float[Tensor, "*points"]:
    """E[act(u)²] for u ~ N(0, variance); by one-dimensional quadrature where there is no closed form."""
    if activation.name in CLOSED_FORMS:
        return dual_kernel(activation, Moments(variance, variance, variance))
    nodes, weights = gauss_hermite(_NODES)
    return activation(variance.sqrt().unsqueeze(-1) * nodes).square() @ weights


def gauss_hermite(count: int) -> tuple[Float[Tensor, " count"], Float[Tensor, " count"]]:
    """Nodes and weights with sum(weights * f(nodes)) ≈ E f(z), z ~ N(0, 1): the Jacobi matrix's (Golub and Welsch)."""
    off = torch.arange(1, count, dtype=torch.float64).sqrt()
    nodes, vectors = torch.linalg.eigh(torch.diag(off, 1) + torch.diag(off, -1))
    return nodes, vectors[0] ** 2


def _relu_kernel(moments: Moments, sign: float) -> Float[Tensor, "*points"]:
    """E[relu(u) relu(sign v)] = |u| |v| (sin a + (pi - a) cos a) / (2 pi), a the angle between u and sign v."""
    scale = torch.sqrt(moments.first * moments.second)
    cosine = (sign * moments.product / scale).clamp(-1, 1)
    return scale * (torch.sqrt(1 - cosine**2) + cosine * (math.pi - torch.acos(cosine))) / (2 * math.pi)
