"""Lipschitz bounds of softmax attention against Jacobians by autograd, by hand, and on the worst
known texts."""

import math

import pytest
import torch
from torch.func import jacrev

import wordsens as ws
from wordsens.intervals import power_law
from wordsens.maps.attention.given_weights import AttentionBias
from wordsens.maps.attention.head import HeadWeights
from wordsens.theory.lipschitz import castin_constant, dasoulas_constant

ROUNDED = 1 + 1e-9
SHAPES = [(2, 3, None, False), (5, 4, None, False), (7, 3, "causal", True), (6, 2, None, True)]
"""n, d, mask, whether two heads are added by an output matrix; 250 texts and maps of each."""


def gaussian(stream, *shape):
    return torch.randn(*shape, generator=stream, dtype=torch.float64)


def random_problem(stream, n, d, mask, summed):
    """A map with weights and a text of random sizes, from nearly linear to saturated attention."""
    size = 10 ** (2 * torch.rand(3, generator=stream, dtype=torch.float64) - 1)
    heads = (2,) if summed else ()
    matrices = [gaussian(stream, *heads, d, d) for _ in range(4 if summed else 3)]
    phi = ws.AttentionFeatures(
        size[0] * matrices[0], matrices[1], size[1] * matrices[2], *matrices[3:], mask=mask
    )
    return phi, size[2] * gaussian(stream, n, d)


def jacobian(phi, X):
    """d phi / d X, (features, n, d)."""
    return jacrev(lambda rows: phi.features(rows).flatten())(X)


@pytest.mark.parametrize(("n", "d", "mask", "summed"), SHAPES)
def test_no_jacobian_exceeds_a_bound(n, d, mask, summed):
    stream = torch.Generator().manual_seed(n)
    for _ in range(250):
        phi, X = random_problem(stream, n, d, mask, summed)
        radius = float(X.norm(dim=1).mean())
        moved = X.clone()
        moved[1] += radius * torch.nn.functional.normalize(gaussian(stream, d), dim=0)
        at_text, on_ball = (ws.theory.lipschitz_bounds(phi, X, radius=r) for r in (0, radius))
        here, there = (jacobian(phi, rows) for rows in (X, moved))
        norm, beside = (
            float(torch.linalg.matrix_norm(matrix.flatten(1), ord=2)) for matrix in (here, there)
        )
        word = float(torch.linalg.matrix_norm(here[:, 0], ord=2))
        for name, local in at_text.items():
            assert word <= norm * ROUNDED <= local * ROUNDED**2
            assert max(norm, beside, local) <= on_ball[name] * ROUNDED


def worst_text(A, n, score):
    """One row R u and n - 1 rows R u / 2, u the eigenvector of A's largest eigenvalue, whose score
    R² u A u is given.

    The adversarial inputs of Castin et al.: every row attends to the first.
    """
    values, vectors = torch.linalg.eigh(A)
    u = math.sqrt(score / float(values[-1])) * vectors[:, -1]
    return torch.cat([u.unsqueeze(0), u.expand(n - 1, -1) / 2])


def symmetric(seed, d=4):
    matrix = gaussian(torch.Generator().manual_seed(seed), d, d)
    return matrix + matrix.T


def map_of(A):
    return ws.RandomAttentionFeatures.of_weight(A, temperature=1 / math.sqrt(len(A)))


@pytest.mark.parametrize("n", [6, 24])
@pytest.mark.parametrize("seed", range(10))
def test_the_worst_known_texts_stay_below_the_bounds(n, seed):
    phi = map_of(symmetric(seed))
    X = worst_text(symmetric(seed), n, (8.0, 16.0, 48.0)[seed % 3])
    norm = float(torch.linalg.matrix_norm(jacobian(phi, X).flatten(1), ord=2))
    assert norm <= min(ws.theory.lipschitz_bounds(phi, X, radius=0).values())


def test_worst_texts_grow_like_the_root_of_n_and_random_ones_do_not():
    sizes, A = (10, 20, 40, 80), symmetric(0)
    phi, stream = map_of(A), torch.Generator().manual_seed(0)
    length = float(worst_text(A, 2, 48.0)[0].norm())

    def norm(X):
        matrix = jacobian(phi, X)
        return float(torch.linalg.matrix_norm(matrix.flatten(1), ord=2))

    def random_text(n):
        return length * torch.nn.functional.normalize(gaussian(stream, n, len(A)), dim=1)

    worst, _ = power_law(sizes, [norm(worst_text(A, n, 48.0)) for n in sizes])
    random, _ = power_law(sizes, [sum(norm(random_text(n)) for _ in range(5)) for n in sizes])
    assert worst.value == pytest.approx(0.5, abs=0.03)
    assert random.value < worst.value - 0.2


@pytest.mark.parametrize(
    ("strength", "longest", "norms"),
    [(1, 2, (1.83, 1.48, 0.75, 0.35)), (1, 4, (2.23, 5.76, 11.65, 12.23)), (4, 6, None)],
)
def test_worst_texts_grow_until_log_n_meets_the_score(strength, longest, norms):
    """A = strength I, R = longest: along u row j >= 2 moves by p (1 + (1 - p) g) per unit of the
    first word, g = strength R² / 4 and p = 1 / (1 + (n - 1) e^-g) (docs/proofs.md)."""
    sizes, g = (4, 16, 64, 256), strength * longest**2 / 4
    phi, found = map_of(strength * torch.eye(2, dtype=torch.float64)), []
    for n in sizes:
        X = torch.zeros(n, 2, dtype=torch.float64)
        X[:, 0] = longest / 2
        X[0, 0] = longest

        def of_first(word, X=X):
            return phi.features(torch.cat([word.unsqueeze(0), X[1:]]))

        first = jacrev(of_first)(X[0])
        p = 1 / (1 + (n - 1) * math.exp(-g))
        assert first[1:, 0, 0].tolist() == pytest.approx([p * (1 + (1 - p) * g)] * (n - 1))
        found.append(float(torch.linalg.matrix_norm(first.flatten(0, 1), ord=2)))
    if norms is None:  # g = 36, far above log 256
        assert power_law(sizes[1:], found[1:])[0].value == pytest.approx(0.5, abs=0.03)
    else:
        assert found == pytest.approx(norms, abs=0.006)


def test_an_example_by_hand():
    """X = I, A = ln 3 I: the scores are ln 3 on the diagonal, the weights 3/4 there and 1/4 beside
    it."""
    head, X = (
        HeadWeights(2 * math.log(3) * torch.eye(2, dtype=torch.float64), 2.0),
        torch.eye(2, dtype=torch.float64),
    )
    assert castin_constant(head, 2, 1.0) == pytest.approx(math.sqrt(3 * (9 * math.log(3) ** 2 + 2)))
    # ‖P‖_F = sqrt(2 (9 + 1) / 16), ‖X A‖_F = sqrt(2) ln 3, ‖A x_l‖ = ln 3.
    expected = math.sqrt(5) / 2 + (math.sqrt(2) + 1) * math.log(3)
    assert dasoulas_constant(head, X, 0.0, 1.0) == pytest.approx(expected)
    # A word moves by 1: rows up to 2, sqrt(n) for ‖P‖_F, and ‖A‖ more on the rows and on the
    # longest.
    expected = math.sqrt(2) + 2 * (math.sqrt(2) + 1 + 2) * math.log(3)
    assert dasoulas_constant(head, X, 1.0, 2.0) == pytest.approx(expected)


def test_heads_and_values():
    X = ws.gaussian_text(4, 6, seed=0)
    one = ws.RandomAttentionFeatures(6, seed=0)
    twice = ws.RandomAttentionFeatures.of_weight(one.weight.repeat(2, 1, 1))
    single, double = (ws.theory.lipschitz_bounds(phi, X)["Castin-type"] for phi in (one, twice))
    assert double == pytest.approx(math.sqrt(2) * single)
    identity = torch.eye(6, dtype=torch.float64)
    tripled = ws.AttentionFeatures(one.weight, identity, 3 * identity)
    constants = ws.theory.lipschitz_bounds(tripled, X)
    assert constants["Castin-type"] == pytest.approx(3 * single)


def test_maps_without_a_bound():
    X, W = ws.gaussian_text(4, 6, seed=0), torch.eye(6, dtype=torch.float64)
    biased = ws.AttentionFeatures(W, W, bias=AttentionBias(query=W[0]))
    for phi in (ws.RandomFeatures(4, 6), ws.RandomAttentionFeatures(6, "relu"), biased):
        assert ws.theory.lipschitz_bounds(phi, X) == {}
