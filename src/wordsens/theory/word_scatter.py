"""How the value of the scalar problem scatters from word to word, the weights being the same for all of them.

The value of word i is a sum over rows j of suprema at (s_j, g_j), s_j the row's score with the word, g_j what the best
Delta of the other rows does to it. docs/theory/sharp.md derives what is computed here; it is a prediction.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.theory.suprema import gaussian_nodes

_STEPS, _ITERATIONS, _SETTLED = 48, 300, 1e-9
_DEGREES = (16, 20)
"""Of polynomials in s and g; fewer where there are fewer nodes."""


def cumulants(values: Float[Tensor, " k"], weights: Float[Tensor, " k"]) -> tuple[float, float]:
    """The second and third."""
    away = values - weights @ values
    return float(weights @ away**2), float(weights @ away**3)


def overlapping_variance(
    values: Float[Tensor, "c s r g"], weights: Float[Tensor, "c r"], force: float
) -> tuple[float, float]:
    """The variance over words of a row's value, per row, as though Delta were chosen anew for every word; and in truth.

    The first is Var_s E_g F. For the second let words have scores of correlation rho with the rows, and their best
    Deltas the overlap q(rho): it is the integral over rho of E [F_s(s, g) F_s(s', g')], s, s' of correlation rho and
    g, g' of correlation q; and q = E [F_g(s, g) F_g(s', g')] / E F_g², since Delta is made of what rows are pulled by.
    With b_kl the coefficients of F in the orthonormal polynomials of s and g these are
    sum b_kl² k rho^(k-1) q^l and q = sum b_kl² l rho^k q^(l-1) / E F_g².

    Args:
        values: F at the nodes of s and g (`gaussian_nodes`), for kinds c and states r of rows that do not depend on
            the word.
        weights: of kinds and states, summing to one.
        force: E F_g².
    """
    _, count, _, fine = values.shape
    of_word, of_delta = (_polynomials(*some) for some in ((count, _DEGREES[0]), (fine, _DEGREES[1])))
    squares = torch.einsum("cr,crkl->kl", weights, torch.einsum("sk,csrg,gl->crkl", of_word, values, of_delta) ** 2)
    degree, power = (torch.arange(size, dtype=torch.float64) for size in squares.shape)
    overlap, total = 0.0, 0.0
    for step in range(_STEPS):
        rho = (step + 0.5) / _STEPS
        turned = squares[:, 1:] * power[1:] * (rho**degree).unsqueeze(1) / max(force, 1e-300)
        for _ in range(_ITERATIONS):
            found = min(1.0, float((turned * overlap ** (power[1:] - 1)).sum()))
            overlap, settled = found, abs(found - overlap) < _SETTLED
            if settled:
                break
        answer = squares[1:] * (degree[1:] * rho ** (degree[1:] - 1)).unsqueeze(1)
        total += float((answer * overlap**power).sum()) / _STEPS
    return float(squares[1:, 0].sum()), total


def _polynomials(count: int, degree: int) -> Float[Tensor, "nodes degree"]:
    """w p_k at the nodes, p_k the orthonormal polynomials of the nodes' weights w, k = 0, 1, ..."""
    nodes, weights = gaussian_nodes(count)
    powers = torch.stack([nodes**power for power in range(min(degree, count - 3) + 1)], dim=1)
    basis, upper = torch.linalg.qr(powers * weights.sqrt().unsqueeze(1))
    return basis * torch.sign(upper.diagonal()) * weights.sqrt().unsqueeze(1)
