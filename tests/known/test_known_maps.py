"""Maps whose word sensitivity is known exactly, or by an exhaustive grid."""

import math

import pytest
import torch

import wordsens as ws
from wordsens.maps.attention.scores import SCORES


def gaussian_rows(n, d, seed):
    rows = torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return rows / rows.norm(dim=1, keepdim=True) * math.sqrt(d)


@pytest.mark.parametrize("radius", [None, 0.1, 30.0])
def test_linear_map(radius):
    """phi(X) = A flat(X): S of word i is radius ‖A_i‖_op / ‖A flat(X)‖, A_i the columns that
    multiply word i."""
    n, d, k = 4, 6, 9
    A = torch.randn(k, n * d, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    X = gaussian_rows(n, d, 1)
    r = ws.word_sensitivity(lambda text: A @ text.flatten(), X, radius=radius)
    blocks = [torch.linalg.matrix_norm(A[:, i * d : (i + 1) * d], 2) for i in range(n)]
    exact = (
        (math.sqrt(d) if radius is None else radius)
        * torch.stack(blocks)
        / (A @ X.flatten()).norm()
    )
    torch.testing.assert_close(r.per_word, exact, rtol=1e-7, atol=0)
    assert bool((r.per_word <= exact * (1 + 1e-12)).all())


def test_constant_map():
    r = ws.word_sensitivity(
        lambda X: torch.ones(3, dtype=X.dtype) + 0 * X.sum(), gaussian_rows(3, 4, 0)
    )
    assert r.value == 0.0
    assert r.per_word.tolist() == [0.0, 0.0, 0.0]


def test_selection_of_one_word():
    X = gaussian_rows(5, 4, 2)
    r = ws.word_sensitivity(lambda text: text[3], X, radius=0.5)
    assert r.word == 3
    assert r.value == pytest.approx(0.5 / 2.0, rel=1e-12)
    assert r.per_word[[0, 1, 2, 4]].tolist() == [0.0] * 4


def test_a_maximum_inside_the_ball():
    """phi(X) = 1 + exp(-‖x_0 - target‖²): largest at a point well inside the ball, where the
    gradient vanishes."""
    X = gaussian_rows(3, 4, 3)
    target = X[0] + torch.tensor([1.1, -0.3, 0.4, 0.1], dtype=torch.float64)

    def bump(text):
        return (1 + torch.exp(-(text[0] - target).square().sum())).unsqueeze(0)

    r = ws.word_sensitivity(bump, X, words=[0])
    before = float(bump(X))
    assert r.value == pytest.approx((2 - before) / before, rel=1e-6)
    torch.testing.assert_close(X[0] + r.perturbations[0], target, atol=1e-3, rtol=0)


@pytest.mark.parametrize(
    ("score", "seed"), [(score, 0) for score in SCORES] + [("softmax", 1), ("relu", 2)]
)
def test_two_words_in_the_plane_against_a_grid(score, seed):
    """n = 2, d = 2: the search must reach the maximum of a polar grid of 720 x 60 points; no bound
    may be below it."""
    X = gaussian_rows(2, 2, seed)
    phi = ws.RandomAttentionFeatures(2, score=score, seed=seed)
    if float(phi(X).norm()) == 0:
        pytest.skip("this draw maps the text to zero")
    angle = torch.linspace(0, 2 * math.pi, 721, dtype=torch.float64)[:-1]
    length = torch.linspace(0, math.sqrt(2), 61, dtype=torch.float64)[1:]
    grid = torch.stack(
        [torch.outer(length, angle.cos()), torch.outer(length, angle.sin())], dim=-1
    ).view(-1, 2)
    r = ws.word_sensitivity(phi, X)
    base = phi(X)
    for word in (0, 1):
        texts = X.repeat(len(grid), 1, 1)
        texts[:, word] += grid
        best = float(((phi(texts) - base).flatten(1).norm(dim=1) / base.norm()).max())
        assert float(r.per_word[word]) >= best * (1 - 1e-4)
        assert best <= float(r.upper_per_word[word]) <= 3.5 * best


@pytest.mark.parametrize("score", ["softmax", "sigmoid", "linear"])
def test_sensitivity_over_radius_tends_to_the_jacobian(score):
    """S(radius)/radius nears ws.jacobian_sensitivity at least in proportion to the radius."""
    X = gaussian_rows(6, 8, 7)
    phi = ws.RandomAttentionFeatures(8, score=score, seed=7)
    limit = ws.jacobian_sensitivity(phi, X).per_word
    off = [
        (
            ws.word_sensitivity(phi, X, radius=radius, certificate=False).per_word / radius / limit
            - 1
        ).abs()
        for radius in (1e-2, 1e-3, 1e-4)
    ]
    assert float(off[0].max()) > 1e-4
    assert float(off[2].max()) < 1e-4
    assert float(off[1].max()) < float(off[0].max()) / 8
    assert float(off[2].max()) < float(off[1].max()) / 8 + 1e-8
