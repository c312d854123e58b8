"""Thorough certificates: Newton's derivatives, a weight for every row, and bounds that no perturbation exceeds."""

import numpy as np
import pytest
import torch
from benchmarks.plain import plain_ascent
from hypothesis import given, settings
from tests.certificates.attention_cases import Case, cases, gaussian_rows, random_perturbations

import wordsens as ws
from wordsens.certificates.attention.interior_point import InteriorPoint, Point
from wordsens.certificates.attention.multipliers import MultiplierSearch
from wordsens.certificates.attention.relaxation import bound_at, centre_of, pairs_of
from wordsens.certificates.attention.text import attention_text
from wordsens.errors import InputError, ZeroFeaturesError
from wordsens.seeds import generator


def prepared(score: str, n: int = 9, d: int = 14, seed: int = 3):
    rows = gaussian_rows(n, d, seed)
    phi = ws.RandomAttentionFeatures(d, score=score, seed=seed)
    text = attention_text(rows, phi.head_weights(n, torch.float64), phi.score)
    words = torch.tensor([0, 4])
    radius = torch.full((2,), d**0.5, dtype=torch.float64)
    pairs = pairs_of(text, words, radius, torch.ones_like(radius), fineness=2)
    z = torch.tensor([0.3, -0.2], dtype=torch.float64)
    search = MultiplierSearch(text.geometry)
    by = search.multipliers(pairs, search.improve(pairs, search.start(pairs), z, [0.5, 0.3, 0.2]), z)
    method = InteriorPoint(text.geometry, pairs)
    return text, pairs, z, method, method.point(by, centre_of(text.geometry, pairs, by))


@pytest.mark.parametrize("score", ["softmax", "relu"])
def test_newton_steps_lower_the_bound_and_the_weights_fit_the_joint_constraint(score):
    text, pairs, z, method, point = prepared(score, n=24, d=48)
    across = (1 - z.square()).sqrt()

    def bound(of: Point) -> torch.Tensor:
        return bound_at(text.geometry, pairs, method.ray(of).place(z), z, across).value

    better = method.improved(point, z, range(24))
    assert bool((bound(better) < 0.99 * bound(point)).all())
    again = method.improved(better, z, range(18, 26))
    assert torch.allclose(bound(again), bound(better), rtol=5e-3)
    by = method.ray(better).place(z)
    points = torch.nn.functional.normalize(gaussian_rows(4000, 48, 8), dim=1)
    scores, outputs = (points @ part.T for part in (text.geometry.queries, text.geometry.offsets))
    held = scores.square() @ by.a.T + by.b.T * outputs.square().sum(dim=1, keepdim=True)
    assert float(held.max()) <= 1
    for weights, b in zip(by.a, by.b, strict=True):
        form = text.geometry.queries.T @ (weights.unsqueeze(1) * text.geometry.queries)
        form = form + b * text.geometry.offsets.T @ text.geometry.offsets
        assert 0.99 < float(torch.linalg.eigvalsh(form)[-1]) <= 1  # the optimum is at the edge
    assert float(by.a.amax() / by.a[by.a > 0].median()) > 1.05  # rows differ


@settings(max_examples=4)
@given(cases())
def test_no_random_perturbation_exceeds_a_thorough_bound(case: Case):
    try:
        plain = ws.certify(case.phi, case.rows, radius=case.radius)
        thorough = ws.certify(case.phi, case.rows, radius=case.radius, effort="thorough")
    except ZeroFeaturesError:
        return
    assert bool((thorough <= plain * (1 + 1e-3)).all())
    base = case.phi(case.rows)
    for word, points in enumerate(random_perturbations(case, 30, 1).unbind(1)):
        texts = case.rows.expand(len(points), -1, -1).clone()
        texts[:, word] += points
        changes = torch.linalg.vector_norm((case.phi(texts) - base).flatten(1), dim=1) / torch.linalg.vector_norm(base)
        assert float(changes.max()) <= float(thorough[word]) * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize(("score", "heads", "radius"), [("softmax", 2, 2.0), ("relu", 1, None)])
def test_a_thorough_bound_is_above_what_is_attained_and_below_the_plain_one(score, heads, radius):
    phi, X = ws.RandomAttentionFeatures(24, score=score, heads=heads, seed=5), ws.gaussian_text(9, 24, seed=6)
    words = [0, 6]
    found = ws.word_sensitivity(phi, X, words, radius, search="thorough", certificate=False)
    plain, thorough = (ws.certify(phi, X, words, radius, effort=effort) for effort in ("normal", "thorough"))
    assert bool((thorough >= found.per_word).all())
    assert bool((thorough <= plain * (1 + 1e-3)).all())


def test_softmax_brackets_close_further_than_plain_multipliers_close_them():
    phi, X = ws.RandomAttentionFeatures(192, seed=11), ws.gaussian_text(60, 192, seed=12)
    words = [3]
    plain, thorough = (ws.certify(phi, X, words, effort=effort) for effort in ("normal", "thorough"))
    attained = torch.tensor([plain_ascent(phi.weight, X.rows, word, steps=400)[0] for word in words])
    found = ws.word_sensitivity(phi, X, words, certificate=False).per_word
    assert bool((thorough < 0.95 * plain).all())
    assert bool((thorough >= torch.maximum(attained, found)).all())
    assert bool((thorough < 1.17 * found).all())


def test_trained_heads_have_thorough_bounds_too():
    stream = generator(2, "heads")
    query, key, value = (torch.randn(12, 6, generator=stream, dtype=torch.float64) for _ in range(3))
    phi, X = ws.AttentionFeatures(query, key, value), ws.gaussian_text(10, 12, seed=1)
    found = ws.word_sensitivity(phi, X, [0, 6], search="thorough", certificate=False).per_word
    plain, thorough = (ws.certify(phi, X, [0, 6], effort=effort) for effort in ("normal", "thorough"))
    assert bool((thorough >= found).all())
    assert bool((thorough <= plain * (1 + 1e-3)).all())
    assert float((thorough / plain).min()) < 0.99


def test_a_word_is_left_where_its_bound_is_within_the_gap():
    phi, X = ws.RandomAttentionFeatures(32, seed=1), ws.gaussian_text(7, 32, seed=2)
    attained = ws.word_sensitivity(phi, X, certificate=False).per_word
    plain, whole = (ws.certify(phi, X, effort=effort) for effort in ("normal", "thorough"))
    gap = float((plain / attained).median())
    upper = ws.certify(phi, X, effort="thorough", attained=attained, gap=gap)
    left = upper > whole * (1 + 1e-9)
    assert bool(left.any()) and not bool(left.all())
    assert float((upper / attained)[left].max()) <= gap
    torch.testing.assert_close(upper[~left], whole[~left], rtol=1e-9, atol=0)


def test_bad_arguments_are_named():
    phi, X = ws.RandomAttentionFeatures(6), ws.gaussian_text(4, 6)
    with pytest.raises(InputError, match=r"`effort`.*'extreme'"):
        ws.certify(phi, X, effort="extreme")
    with pytest.raises(InputError, match=r"`certificate`.*'extreme'"):
        ws.word_sensitivity(phi, X, certificate="extreme")
    with pytest.raises(InputError, match="give both or none"):
        ws.certify(phi, X, effort="thorough", gap=1.1)
    with pytest.raises(InputError, match=r"`attained`.*4 words"):
        ws.certify(phi, X, effort="thorough", gap=1.1, attained=torch.ones(3))
    with pytest.raises(InputError, match="`attained`"):
        ws.certify(phi, X, effort="thorough", gap=1.1, attained=torch.tensor([1.0, np.nan, 1.0, 1.0]))
    with pytest.raises(InputError, match="`gap`"):
        ws.certify(phi, X, effort="thorough", gap=-1.0, attained=torch.ones(4))
