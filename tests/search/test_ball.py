"""The ball: projections stay inside, are nearest, and survive lengths whose squares over- or
underflow."""

import math

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.search.functions import on_spheres
from wordsens.search.objective import Ball
from wordsens.seeds import generator

DTYPES = {torch.float64: 150, torch.float32: 30}
"""The powers of ten that lengths and radii reach."""


@st.composite
def balls_and_vectors(draw):
    """(radius, vectors): lengths and radii over many powers of ten, vectors in, on and outside the
    sphere."""
    dtype = draw(st.sampled_from(list(DTYPES)))
    exponents = st.floats(-DTYPES[dtype], DTYPES[dtype])
    w, d = draw(st.integers(1, 4)), draw(st.integers(1, 50))
    stream = torch.Generator().manual_seed(draw(st.integers(0, 2**16)))
    radius = 10.0 ** torch.tensor(
        draw(st.lists(exponents, min_size=w, max_size=w)), dtype=torch.float64
    )
    if draw(st.booleans()):
        lengths = (
            radius
            * torch.tensor(draw(st.lists(st.floats(0.5, 1.5), min_size=w, max_size=w))).double()
        )
    else:
        lengths = 10.0 ** torch.tensor(
            draw(st.lists(exponents, min_size=w, max_size=w)), dtype=torch.float64
        )
    directions = torch.randn(w, d, generator=stream, dtype=torch.float64)
    vectors = directions / directions.norm(dim=1, keepdim=True) * lengths.unsqueeze(1)
    return radius, vectors.to(dtype)


def exact_lengths(vectors):
    """‖.‖₂ in Python's arithmetic, without overflow."""
    return np.array([math.hypot(*row) for row in vectors.double().tolist()])


@given(balls_and_vectors())
def test_projections_are_inside_and_nearest(given_):
    radius, vectors = given_
    ball = Ball(radius)
    projected = ball.project(vectors)
    assert projected.dtype == vectors.dtype
    limits, before, after = radius.numpy(), exact_lengths(vectors), exact_lengths(projected)
    assert (after <= limits).all()
    assert ball.contains(projected)
    eps = torch.finfo(vectors.dtype).eps
    outside = before > limits * (1 - 4 * eps)
    # Those inside stay as they are; the others end on the sphere, in their own direction.
    assert torch.equal(projected[~outside], vectors[~outside])
    assert (after[outside] >= limits[outside] * (1 - 8 * eps)).all()
    for row in outside.nonzero()[0]:
        direction, onto = (part[row].double().numpy() for part in (vectors, projected))
        np.testing.assert_allclose(onto / after[row], direction / before[row], rtol=0, atol=4 * eps)


@given(balls_and_vectors())
def test_projecting_twice_changes_nothing(given_):
    radius, vectors = given_
    once = Ball(radius).project(vectors)
    assert torch.equal(Ball(radius).project(once), once)


@given(balls_and_vectors())
def test_the_linear_maximizer_is_on_the_sphere_and_no_sample_beats_it(given_):
    radius, directions = given_
    ball = Ball(radius)
    best = ball.linear_maximizer(directions)
    eps = torch.finfo(directions.dtype).eps
    lengths = exact_lengths(best)
    assert (lengths <= radius.numpy()).all() and (lengths >= radius.numpy() * (1 - 8 * eps)).all()
    unit = directions.double() / directions.double().abs().amax(dim=1, keepdim=True)
    samples = on_spheres(
        *(ball, 20),
        dimension=directions.shape[1],
        generator=generator(0, "x"),
        dtype=directions.dtype,
    )
    reached, sampled = (unit * best.double()).sum(dim=1), (unit * samples.double()).sum(dim=2)
    assert bool((sampled <= reached * (1 + 16 * eps)).all())


def test_what_a_zero_vector_becomes():
    ball, zero = Ball(torch.ones(2, dtype=torch.float64)), torch.zeros(2, 3, dtype=torch.float64)
    assert torch.equal(ball.project(zero), zero)
    assert torch.equal(ball.linear_maximizer(zero), zero)


def test_samples_are_on_the_spheres_and_uniform(device):
    """Each coordinate of 20,000 unit vectors: mean 0, mean square 1/d; 5 deviations allowed (6e-7 a
    statistic)."""
    d, count = 4, 20_000
    ball = Ball(torch.tensor([0.5, 3.0], dtype=torch.float64, device=device))
    samples = on_spheres(ball, count, dimension=d, generator=generator(0, "x")).cpu()
    unit = samples / torch.tensor([0.5, 3.0]).view(1, 2, 1)
    torch.testing.assert_close(
        unit.norm(dim=-1), torch.ones(count, 2, dtype=torch.float64), rtol=1e-14, atol=0
    )
    assert float(unit.mean(dim=0).abs().max()) < 5 * math.sqrt(1 / d / count)
    spread = math.sqrt(3 / (d * (d + 2)) - 1 / d**2)
    assert float((unit.square().mean(dim=0) - 1 / d).abs().max()) < 5 * spread / math.sqrt(count)
