"""What is attained never exceeds what is certified: every score, any radius, hostile texts and
temperatures.

The attained values are recomputed in NumPy's long double, from the weights alone: float64 would
round more than some of the radii are long.
"""

import math

import numpy as np
import pytest
import torch

import wordsens as ws
from tests.laws.feature_map_laws import QUICK
from tests.maps.own_scores import Arctangent
from tests.peers import numpy_maps
from tests.search.functions import on_spheres
from wordsens.errors import InputError, ZeroFeaturesError
from wordsens.maps.attention.scores import SCORES
from wordsens.search.objective import Ball
from wordsens.seeds import generator

N, D = 6, 4
RADII = [factor * math.sqrt(D) for factor in (1e-12, 1e-6, 1e-2, 1.0, 1e2, 1e4)]
EXTREME_RADII = [1e-300, 1e-170, 1e-40, 1e40, 1e90, 1e300]
TEMPERATURES = [1e-20, 1.0, 1e20]
CERTIFIED = {**{name: name for name in SCORES}, "arctangent": Arctangent()}
FORMULAS = {**numpy_maps.SCORES, "arctangent": np.arctan}
HIDDEN = {
    ("zero sum", "softmax", 1e20),
    ("zero sum", "sigmoid", 1e20),
    ("repeated", "softmax", 1e-20),
}
"""Rounding hides phi(X): weights all but equal on rows that add up to zero; scores of 1e20 that are
tied. Besides, the arctangent's own terms say nothing of scores that are off by more than 1."""
LONG = np.finfo(np.longdouble).eps


def gaussian(n: int, d: int, seed: int) -> torch.Tensor:
    return torch.randn(n, d, generator=generator(seed, "rows"), dtype=torch.float64)


def rows_of(kind: str) -> torch.Tensor:
    rows = gaussian(N, D, 5)
    match kind:
        case "one huge row":
            rows[2] *= 1e6
        case "zero sum":
            rows[0] = -rows[1:].sum(dim=0)
        case "repeated":
            rows[3:] = rows[:3]
        case "parallel":
            rows = rows[:1] * torch.tensor(
                [[1.0], [1.0], [2.0], [-1.0], [0.5], [1e-3]], dtype=torch.float64
            )
        case "nearly parallel":
            rows = rows[:1] + 1e-9 * rows
    return rows


def features(phi: ws.RandomAttentionFeatures, texts: np.ndarray) -> np.ndarray:
    """(*batch, heads n d), in long double."""
    scale = np.longdouble(phi.temperature) * np.sqrt(np.longdouble(texts.shape[-1]))
    heads = []
    for matrix in phi.matrices.numpy().astype(np.longdouble):
        with np.errstate(over="ignore", under="ignore"):
            scores = np.matmul(np.matmul(texts, matrix), np.swapaxes(texts, -1, -2)) / scale
            heads.append(np.matmul(FORMULAS[phi.score.name](scores), texts))
    return np.concatenate(heads, axis=-1).reshape(*texts.shape[:-2], -1)


def attained(
    phi: ws.RandomAttentionFeatures, rows: torch.Tensor, word: int, deltas: torch.Tensor
) -> float:
    """The largest relative change, less what long double may have put it off by."""
    X = rows.numpy().astype(np.longdouble)
    texts = np.broadcast_to(X, (len(deltas), *X.shape)).copy()
    texts[:, word] += deltas.numpy().astype(np.longdouble)
    base = features(phi, X)
    size = np.sqrt((base**2).sum())
    changes = np.sqrt(((features(phi, texts) - base) ** 2).sum(axis=-1))
    return float(changes.max() / size) - 64 * float(LONG)


def assert_bounded(
    phi: ws.RandomAttentionFeatures, rows: torch.Tensor, radii: list[float], *, search: bool
) -> None:
    """For each word with its radius: random perturbations on the sphere and in the ball, and a
    search's."""
    upper = ws.certify(phi, rows, words=range(len(radii)), radius=radii)
    assert bool(upper.isfinite().all())
    ball = Ball(torch.tensor(radii, dtype=torch.float64))
    stream = generator(1, "perturbations")
    drawn = on_spheres(ball, 48, dimension=rows.shape[1], generator=stream)
    drawn[::3] *= torch.rand(len(drawn[::3]), len(radii), 1, generator=stream, dtype=torch.float64)
    if search:
        found = ws.word_sensitivity(phi, rows, words=range(len(radii)), radius=radii, **QUICK)
        drawn = torch.cat([drawn, found.perturbations.unsqueeze(0)])
    for word, bound in enumerate(upper.tolist()):
        value = attained(phi, rows, word, drawn[:, word])
        assert value <= bound, (phi.name, word, radii[word], value, bound)


@pytest.mark.parametrize(
    ("name", "heads"), [*((name, 1) for name in CERTIFIED), ("linear", 2), ("softmax", 2)]
)
def test_no_radius_attains_more_than_is_certified(name: str, heads: int) -> None:
    phi = ws.RandomAttentionFeatures(D, score=CERTIFIED[name], seed=heads, heads=heads)
    assert_bounded(phi, gaussian(N, D, heads), RADII, search=True)


@pytest.mark.parametrize(
    "kind", ["one huge row", "zero sum", "repeated", "parallel", "nearly parallel"]
)
@pytest.mark.parametrize("name", CERTIFIED)
def test_hostile_texts_at_hostile_temperatures(name: str, kind: str, loose_bounds) -> None:
    rows = rows_of(kind)
    for temperature in TEMPERATURES:
        phi = ws.RandomAttentionFeatures(D, score=CERTIFIED[name], seed=3, temperature=temperature)
        if (kind, name, temperature) in HIDDEN or (name, temperature) == ("arctangent", 1e-20):
            with pytest.raises(ZeroFeaturesError, match="rounding cannot tell from zero"):
                ws.certify(phi, rows)
        else:
            assert_bounded(phi, rows, RADII, search=False)


@pytest.mark.parametrize("name", SCORES)
def test_extreme_radii(name: str) -> None:
    """Finite and of the right order where float64 can hold the answer; refused where it cannot.
    Balls below 1e-140 are bounded as that one."""
    phi, rows = ws.RandomAttentionFeatures(D, score=name, seed=0), gaussian(N, D, 0)
    slopes, radii = (
        ws.jacobian_sensitivity(phi, rows).per_word,
        torch.tensor(EXTREME_RADII, dtype=torch.float64),
    )
    if name in {"linear", "relu-unnormalized"}:
        with pytest.raises(InputError, match="overflows float64 at `radius`"):
            ws.certify(phi, rows, radius=1e300)
        radii[-1] = 1e90
    upper = ws.certify(phi, rows, radius=radii)
    assert bool(upper.isfinite().all())
    small, large = radii < 1, radii > 1
    assert bool((upper >= radii * slopes)[small].all())
    assert bool((upper <= 16 * radii.clamp(min=1e-138) * slopes)[small].all())
    if name not in {"linear", "relu-unnormalized"}:
        # A weight is at most one: every row may take all of word i.
        assert bool((upper <= 2 * radii * math.sqrt(N) / float(phi(rows).norm()))[large].all())


def test_the_jacobians_norm_bounds_the_smallest_radii_from_below() -> None:
    phi, rows = ws.RandomAttentionFeatures(16, seed=0), ws.gaussian_text(16, 16, seed=0).rows
    slope = float(ws.jacobian_sensitivity(phi, rows, words=[0]).per_word[0])
    assert slope > 0.2
    for radius in (1e-20, 1e-130):
        upper = float(ws.certify(phi, rows, words=[0], radius=radius)[0])
        assert slope * radius <= upper <= 16 * slope * radius


@pytest.mark.parametrize("name", ["relu", "relu-unnormalized", "linear"])
def test_the_temperature_of_a_homogeneous_score_does_not_matter(name: str) -> None:
    X = ws.gaussian_text(4, 4)
    at_one = ws.certify(ws.RandomAttentionFeatures(4, score=name, seed=1), X)
    for temperature in (1e-20, 1e5):
        phi = ws.RandomAttentionFeatures(4, score=name, seed=1, temperature=temperature)
        torch.testing.assert_close(ws.certify(phi, X), at_one, rtol=1e-9, atol=0)
