"""The modules behind the count, against the count's parity and against the kernel in closed form."""

import math

import pytest
import torch
from torch import nn

import wordsens as ws
from wordsens.training.adapter.parity.kernel import discriminant, waves
from wordsens.training.adapter.parity.modules import MOST, parity_modules

D, SHARE, SHARPNESS = 24, 0.4, 9.0
COUNT, ONE = 5, 17


@pytest.fixture(scope="module")
def parts():
    """Vectors, the matrix of a kernel, and the modules, with 4,096 waves."""
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(400, D, generator=generator)
    vectors[:, [COUNT, ONE]] = 0
    vectors = nn.functional.normalize(vectors, dim=1)
    changes = 0.05 * torch.randn(300, D, generator=generator) * torch.linspace(0.2, 2, D)
    changes[:, [COUNT, ONE]] = 0
    matrix = discriminant(vectors, changes)
    drawn = waves(vectors, matrix, SHARPNESS, 2048, seed=1)
    modules = parity_modules(drawn, vectors, count=(COUNT, ONE), least=1e-5, share=SHARE, seed=2)
    return vectors, matrix, nn.Sequential(*modules)


def with_count(vectors, count, one):
    """The vectors with these in the count's places."""
    vectors = vectors.clone()
    vectors[:, ONE] = one
    vectors[:, COUNT] = count * one
    return vectors


def test_cosines_are_those_of_the_kernel(parts):
    """To four standard deviations of 2,048 random frequencies, and the wave's third harmonic."""
    vectors, matrix, modules = parts
    some = vectors[:60]
    near = nn.functional.normalize(some + 0.02 * torch.randn(60, D, generator=torch.Generator().manual_seed(3)), dim=1)
    near[:, [COUNT, ONE]] = 0
    u, v = torch.cat([some, some[:30]]), torch.cat([near, some[30:]])
    u, v = nn.functional.normalize(u, dim=1), nn.functional.normalize(v, dim=1)
    kernel = torch.exp(-SHARPNESS * ((u - v) @ matrix.T).square().sum(dim=1))
    assert kernel.max() > 0.5 and kernel.min() < 0.01
    for first, second in ((2, 4), (3, 8), (7, 1)):
        left, right = modules(with_count(u, first, 1e-3)), modules(with_count(v, second, 5e-4))
        found = nn.functional.cosine_similarity(left, right, dim=1)
        sign = (-1) ** (first + second)
        expected = (1 - SHARE) * (u * v).sum(dim=1) + SHARE * sign * kernel
        assert (found - expected).abs().max() < SHARE * (4 / math.sqrt(2 * 2048) + 0.03)


def test_the_sign_is_that_of_the_count(parts):
    vectors, _, modules = parts
    even = modules(with_count(vectors[:1], 0, 1e-3))[0, D - 2 :]
    cases = [
        (count, count + off, one)
        for one in (1e-5, 1e-3, 0.02)
        for count in range(MOST + 1)
        for off in ((-0.3, 0, 0.3) if count else (0, 0.3))
    ]
    given = torch.cat([with_count(vectors[:1], found, one) for _, found, one in cases])
    signs = modules(given)[:, D - 2 :] @ even / even.square().sum()
    expected = torch.tensor([(-1.0) ** count for count, _, _ in cases])
    assert (signs - expected).abs().max() < 0.1


def test_beyond_the_most_the_sign_stays(parts):
    vectors, _, modules = parts
    last, beyond = (modules(with_count(vectors[:3], count, 1e-3)) for count in (MOST, MOST + 9))
    assert torch.allclose(last, beyond, atol=1e-4)


def test_the_discriminant_is_fishers():
    """Against scipy's generalized eigenvectors: the same subspace, and the median distance is 1."""
    linalg = pytest.importorskip("scipy.linalg")
    generator = torch.Generator().manual_seed(5)
    vectors = torch.randn(500, 9, generator=generator) * torch.linspace(1, 3, 9)
    changes = torch.randn(400, 9, generator=generator) * torch.linspace(3, 1, 9)
    rows = discriminant(vectors, changes)
    within = (changes.T @ changes / len(changes)).double().numpy()
    within = within + 0.1 * within.trace() / 9 * torch.eye(9).numpy()
    _, found = linalg.eigh(torch.cov(vectors.T).double().numpy(), within)
    expected = torch.from_numpy(found[:, -6:].T.copy()).float()
    assert rows.shape == (6, 9)
    ratio = (rows.T @ rows) / (expected.T @ expected)
    assert torch.allclose(ratio, ratio[0, 0].expand(9, 9), rtol=1e-3)
    assert ((vectors[:250] - vectors[250:]) @ rows.T).square().sum(dim=1).median() == pytest.approx(1, abs=1e-4)


def test_the_plan_refuses_what_makes_no_sense():
    for changes, message in (
        ({"waves": 7}, r"`waves` \(=7\) must be even"),
        ({"share": 1.0}, r"`share` \(=1.0\) must lie between 0 and 1"),
        ({"sharpness": 0.0}, "`sharpness`"),
        ({"changes": 0}, "`changes`"),
    ):
        with pytest.raises(ws.InputError, match=message):
            ws.training.ParityPlan(**changes)
