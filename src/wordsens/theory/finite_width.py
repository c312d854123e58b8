"""Predictions of word sensitivity for random features of finite width."""

import math

from wordsens.activations import activation_named
from wordsens.errors import require_count
from wordsens.theory.edge import jacobian_edge, linear_gain
from wordsens.theory.infinite_width import orthogonal_change, rf_sensitivity_infinite_width


def rf_sensitivity(
    n: int,
    d: int,
    width: int | None = None,
    depth: int = 1,
    *,
    activation: str = "relu",
    words: int | None = None,
) -> float:
    """A prediction of S for RF (depth 1) and DRF at finite width, with Delta chosen by looking at the weights.

    S ≈ sqrt(edge / n) * contraction. The edge is that of the Jacobian's spectrum, (1 + sqrt(2 d / k))² for one layer
    of ReLU and k features, min over z of (1 + 1/z) (1 + 2 d z / k)^L for L (free probability), with its Tracy-Widom
    shift at finite d and, over `words` words, the expected largest. The contraction is what a Delta of full length
    loses against the linearised map when it does not look at the weights: the ratio of `orthogonal_change` to its
    linearisation. A prediction, not a bound: ours, derived and measured in docs/theory/predictions.md.

    Args:
        n, d: words and coordinates; rows have length sqrt(d), the radius is sqrt(d).
        width: k; None for n d.
        depth: L.
        activation: one of relu, leaky_relu, identity, tanh, gelu, erf.
        words: over how many words the largest is taken; None for all n, as S is defined; 1 for a typical word.

    >>> round(rf_sensitivity(50, 192, words=1) * 50 ** 0.5, 2)
    1.18
    """
    n, d, depth = require_count("n", n, least=2), require_count("d", d), require_count("depth", depth)
    width = n * d if width is None else require_count("width", width)
    words = n if words is None else require_count("words", words)
    law = activation_named(activation)
    edge = jacobian_edge(law, depth=depth, dimension=d, width=width)
    steepness = linear_gain(law) ** depth
    contraction = orthogonal_change(n, depth, activation=activation) / math.sqrt(steepness / n)
    optimised = math.sqrt(edge.largest_of(words) / n) * contraction
    return max(optimised, rf_sensitivity_infinite_width(n, depth, activation=activation))
