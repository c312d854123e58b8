"""Symmetric attention: the lemma on columns attacked by random and optimised kernels, and no text
above the certificate. Formulas are written here in plain NumPy and torch, not taken from the
library."""

import math

import numpy as np
import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError
from wordsens.maps.random_transformer import RandomTransformer

ALONE = {"norm": None, "values": False, "tied": True}
KINDS = ("l2", "normalized-dot")
# Of rows of length sqrt(d) and a radius of sqrt(d).
CONSTANT = math.sqrt((1 + 2 * math.sqrt(2)) ** 2 + 16)


def columns(kernel):
    """The column sums of squares of D^-1 K."""
    return ((kernel / kernel.sum(axis=-1, keepdims=True)) ** 2).sum(axis=-2)


def random_kernel(random):
    """A positive semidefinite K >= 0 with K_jj = 1, of one of six kinds."""
    n, rank = random.integers(2, 12), random.integers(1, 8)
    points = random.standard_normal((n, rank)) * 10 ** random.uniform(-1.5, 1.5)
    points[random.random(n) < 0.3] = points[0]  # words that are repeated
    apart = ((points[:, None] - points) ** 2).sum(axis=2)
    units = points / np.linalg.norm(points, axis=1, keepdims=True)
    positive = np.abs(units) ** random.uniform(0.2, 5)
    positive /= np.linalg.norm(positive, axis=1, keepdims=True)
    loadings = random.random(n) ** random.uniform(0.1, 5)
    return [
        np.exp(-apart),
        np.exp(-np.sqrt(apart)),
        1 / (1 + apart),
        np.exp((units @ units.T - 1) / 10 ** random.uniform(-2, 2)),
        positive @ positive.T,
        np.outer(loadings, loadings) + np.diag(1 - loadings**2),
    ][random.integers(6)]


def test_no_column_of_ten_thousand_random_kernels_is_longer_than_one():
    random = np.random.default_rng(0)
    largest = max(columns(random_kernel(random)).max() for _ in range(10_000))
    assert 0.999 < largest <= 1 + 1e-12  # K = I has columns of exactly 1


def test_a_smaller_diagonal_entry_is_covered():
    """K_ii <= K_jj is all that column i needs: what a query of length 0 gives. A larger one is
    not."""
    random = np.random.default_rng(1)
    shortest, longest = [], []
    for _ in range(2_000):
        kernel = random_kernel(random)
        scales = np.sort(random.random(len(kernel)))
        kernel = scales[:, None] * kernel * scales
        sums = columns(kernel)
        shortest.append(sums[0])
        longest.append(sums[-1])
    assert max(shortest) <= 1 + 1e-12 and max(longest) > 1.5


def test_no_column_of_a_hundred_optimised_kernels_is_longer_than_one():
    """Gradient ascent of the first column of K = F F^T, F >= 0 with rows of length 1, from a
    hundred starts at once."""
    stream = torch.Generator().manual_seed(0)
    for n, rank in [(2, 2), (5, 3), (9, 9), (30, 6)]:
        factors = torch.randn(25, n, rank, generator=stream, dtype=torch.float64).requires_grad_()
        optimiser = torch.optim.Adam([factors], lr=0.05)
        for _ in range(400):
            rows = torch.nn.functional.normalize(factors.square(), dim=2)
            kernel = rows @ rows.mT
            column = (kernel / kernel.sum(dim=2, keepdim=True))[:, :, 0].square().sum(dim=1)
            optimiser.zero_grad()
            (-column.sum()).backward()
            optimiser.step()
            assert column.max().item() <= 1 + 1e-12
        assert rank < n or column.max().item() > 0.99


def test_a_causal_mask_breaks_the_lemma():
    """Nine equal words: the sum of 1/j² over nine rows. With K_jl = c_j c_l it grows with log n."""

    def first_column(kernel):
        return columns(np.tril(kernel))[0]

    assert first_column(np.ones((9, 9))) == pytest.approx(1.5398, abs=1e-4)
    found = []
    for n in (100, 3000):
        loadings, total = [1.0], 1.0
        for _ in range(n - 1):
            loadings.append(min(1.0, 1 / total))
            total += loadings[-1]
        c = np.array(loadings)
        found.append(first_column(np.outer(c, c) + np.diag(1 - c**2)))
    assert found[1] - found[0] > 0.9 * math.log(30) / 8


def attention(rows, projection, kind, temperature):
    """Tied weights by their kernel, in NumPy."""
    queries = rows @ projection
    d, m = projection.shape
    if kind == "l2":
        apart = ((queries[:, None] - queries) ** 2).sum(axis=2)
        kernel = np.exp(-apart / (2 * temperature * math.sqrt(d)))
    else:
        units = queries / np.linalg.norm(queries, axis=1, keepdims=True)
        kernel = np.exp(math.sqrt(m) * (units @ units.T - 1) / temperature)
    return kernel / kernel.sum(axis=1, keepdims=True)


def bound(rows, radius, norm, residual):
    """The theorem, word by word."""
    found = []
    for word in range(len(rows)):
        to_word = max(np.linalg.norm(rows[word] - row) for row in rows)
        farthest = max(np.linalg.norm(one - row) for one in rows for row in rows)
        own = residual * radius + max(farthest, to_word + radius)
        found.append(math.hypot(radius + math.sqrt(2) * to_word, own) / norm)
    return np.array(found)


@pytest.mark.parametrize("kind", KINDS)
def test_none_of_two_hundred_problems_crosses_the_certificate(kind):
    """A hundred of each kind: rows of any length, with repetitions and without, temperatures from
    .03 to 30, radii from .1 to 3 sqrt(d). The certificate is the theorem's number."""
    random, closest = np.random.default_rng(2), 0.0
    for seed in range(100):
        n, d = int(random.integers(2, 9)), int(random.integers(1, 9))
        residual, temperature = seed % 4 > 0, 10 ** random.uniform(-1.5, 1.5)
        phi = RandomTransformer(
            d, 1, attention=kind, residual=residual, temperature=temperature, seed=seed, **ALONE
        )
        rows = random.standard_normal((n, d)) * 10 ** random.uniform(-1, 1, (n, 1))
        rows[random.random(n) < 0.2] = rows[0]
        radius = math.sqrt(d) * random.uniform(0.1, 3)
        plan = ws.SearchPlan("quick", starts=12, steps=20)
        measured = ws.word_sensitivity(phi, torch.from_numpy(rows), radius=radius, search=plan)
        projection = phi.layers[0].queries[0].numpy()
        features = residual * rows + attention(rows, projection, kind, temperature) @ rows
        expected = bound(rows, radius, np.linalg.norm(features), residual)
        np.testing.assert_allclose(ws.certify(phi, rows, radius=radius), expected, rtol=1e-6)
        assert measured.rigor == "certified"
        assert (measured.per_word.numpy() <= expected).all()
        closest = max(closest, (measured.per_word.numpy() / expected).max())
    assert closest > 0.5  # it is no idle bound


def test_rows_of_length_sqrt_d_have_the_constant_of_the_paper():
    assert pytest.approx(5.54, abs=0.005) == CONSTANT
    for seed in range(20):
        phi = RandomTransformer(6, 1, attention=KINDS[seed % 2], seed=seed, **ALONE)
        rows = ws.gaussian_text(5, 6, seed=seed).rows
        upper = ws.certify(phi, rows)
        assert (upper * phi(rows).norm() <= CONSTANT * math.sqrt(6) * (1 + 1e-9)).all()
    opposite = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)  # the farthest rows
    phi = RandomTransformer(1, 1, attention="l2", seed=0, **ALONE)
    assert (ws.certify(phi, opposite) * phi(opposite).norm()).tolist() == pytest.approx(
        [CONSTANT] * 2
    )


def test_a_residual_keeps_the_features_long():
    """The corollary of docs/proofs.md on 2,000 random texts of each kind, and two groups of words
    for which its factor is needed."""
    random = np.random.default_rng(3)
    for trial in range(4_000):
        n, d = random.integers(2, 12), random.integers(1, 8)
        rows = random.standard_normal((n, d)) * 10 ** random.uniform(-1, 1, (n, 1))
        rows[random.random(n) < 0.3] = -rows[0]
        projection = random.standard_normal((d, d)) * 10 ** random.uniform(-1, 1)
        weights = attention(rows, projection, KINDS[trial % 2], 1.0)
        sums = 1 / weights.diagonal()  # Z_j, since K_jj = 1
        squared = ((rows + weights @ rows) ** 2).sum()
        assert squared >= (sums @ (rows**2).sum(axis=1)) / sums.max() * (1 - 1e-9)
    loadings = np.repeat([0.02, 1.0], [2500, 500])
    kernel = np.outer(loadings, loadings) + np.diag(1 - loadings**2)
    rows = np.repeat([1.0, -1.0], [2500, 500])
    squared = ((rows + kernel @ rows / kernel.sum(axis=1)) ** 2).mean()
    assert squared < 0.7  # at least 1 would hold without the factor


def test_two_words_by_hand():
    """x = (1, -1), T = 1, a = W_Q: with k = exp(-2 a²) both rows are ± 2 / (1 + k). Word 1 at 1 + t
    has k' = exp(-(2 + t)² a² / 2), y_1 = (1 + t - k') / (1 + k') and y_2 = (k' (1 + t) - 1) /
    (1 + k')."""
    phi = RandomTransformer(1, 1, attention="l2", seed=3, **ALONE)
    a, t = phi.layers[0].queries.item(), np.linspace(-1, 1, 20_001)
    k, moved = math.exp(-2 * a**2), np.exp(-((2 + t) ** 2) * a**2 / 2)
    first = 1 + t + (1 + t - moved) / (1 + moved) - 2 / (1 + k)
    second = -1 + (moved * (1 + t) - 1) / (1 + moved) + 2 / (1 + k)
    exact = np.hypot(first, second).max() / (2 * math.sqrt(2) / (1 + k))
    text = torch.tensor([[1.0], [-1.0]], dtype=torch.float64)
    measured = ws.word_sensitivity(phi, text, [0])
    assert measured.value == pytest.approx(exact, rel=1e-6)
    assert measured.upper == pytest.approx(CONSTANT * (1 + k) / (2 * math.sqrt(2)), rel=1e-9)


def test_a_text_of_float32_and_one_of_huge_rows_are_bounded():
    phi = RandomTransformer(8, 1, attention="l2", dtype=torch.float32, seed=1, **ALONE)
    measured = ws.word_sensitivity(phi, ws.gaussian_text(6, 8, seed=2), search="quick")
    assert measured.value <= measured.upper < 5 * measured.value
    # Scores of 1e9: their rounding is still far below one.
    huge = 1e4 * ws.gaussian_text(6, 8, seed=2).rows
    phi = RandomTransformer(8, 1, attention="l2", seed=1, **ALONE)
    expected = bound(huge.numpy(), 1e4, phi(huge).norm().item(), True)
    np.testing.assert_allclose(ws.certify(phi, huge, radius=1e4), expected, rtol=1e-3)
    # Scores of 1e17 are not known to within 1.
    assert ws.certificate(phi, 1e4 * huge) is None


@pytest.mark.parametrize(
    "options",
    [
        {"tied": False},
        {"causal": True},
        {"values": True},
        {"attention": "dot"},
        {"norm": "pre"},
        {"mlp": 4},
        {"depth": 2},
        {"attention": "normalized-dot", "score": "sigmoid"},
    ],
    ids=str,
)
def test_other_maps_have_no_such_bound(options):
    phi = RandomTransformer(**{"d": 4, "depth": 1, "attention": "l2", **ALONE, **options})
    text = ws.gaussian_text(3, 4, seed=0)
    assert ws.certificate(phi, text) is None
    with pytest.raises(InputError, match="one layer of tied attention"):
        ws.certify(phi, text)


def test_queries_that_rounding_hides_have_no_bound():
    phi = RandomTransformer(4, 1, attention="normalized-dot", head_dimension=1, seed=0, **ALONE)
    rows = ws.gaussian_text(3, 4, seed=0).rows
    direction = phi.layers[0].queries[0, :, 0]
    rows[1] -= direction * (rows[1] @ direction) / direction.square().sum()
    assert ws.certificate(phi, rows) is None


def test_queries_too_short_to_be_normalised_have_no_bound():
    phi = RandomTransformer(4, 1, attention="normalized-dot", seed=0, **ALONE)
    rows = ws.gaussian_text(3, 4, seed=0).rows
    assert ws.certificate(phi, 1e-9 * rows) is not None
    assert ws.certificate(phi, 1e-13 * rows) is None
