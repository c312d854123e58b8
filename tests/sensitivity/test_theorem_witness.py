"""Theorem 3's witness: what it promises holds, and attention is drawn as the construction says."""

import math

import pytest
import torch

import wordsens as ws


def unit_rows(n, d, seed):
    rows = torch.randn(n, d, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return rows / rows.norm(dim=1, keepdim=True) * math.sqrt(d)


@pytest.mark.parametrize(("n", "d", "seed"), [(5, 20, 0), (20, 100, 1), (60, 200, 2), (2, 3, 3)])
def test_the_better_of_the_two_is_at_least_the_guarantee(n, d, seed):
    phi = ws.RandomAttentionFeatures(d, seed=seed)
    X = unit_rows(n, d, seed)
    witness = ws.theorem_witness(phi, X, word=n - 1)
    assert witness.value >= witness.opposite_value
    assert witness.value >= witness.guarantee * (1 - 1e-12) > 0
    for delta, value in [
        (witness.perturbation, witness.value),
        (witness.opposite, witness.opposite_value),
    ]:
        assert float(delta.norm()) <= math.sqrt(d) * (1 + 1e-12)
        moved = X.clone()
        moved[n - 1] += delta
        change = float((phi(moved) - phi(X)).norm() / phi(X).norm())
        assert change == pytest.approx(value, rel=1e-12)
    torch.testing.assert_close(phi.attention(X)[:, n - 1], witness.attention_before)
    moved = X.clone()
    moved[n - 1] += witness.perturbation
    torch.testing.assert_close(phi.attention(moved)[:, n - 1], witness.attention_after)


def test_the_two_outputs_differ_by_exactly_the_drawn_attention():
    """Rows j != i: phi(X + Delta+) - phi(X + Delta-) = p_j (Delta+ - Delta-), the identity behind
    the guarantee."""
    phi, X = ws.RandomAttentionFeatures(64, seed=4), unit_rows(12, 64, 4)
    witness = ws.theorem_witness(phi, X, word=3)
    outputs = []
    for delta in (witness.perturbation, witness.opposite):
        moved = X.clone()
        moved[3] += delta
        outputs.append(phi(moved))
    rows = torch.arange(12) != 3
    expected = witness.attention_after[:, None] * (witness.perturbation - witness.opposite)
    torch.testing.assert_close(
        (outputs[0] - outputs[1])[rows], expected[rows], rtol=1e-10, atol=1e-10
    )
    apart = float((outputs[0] - outputs[1])[rows].norm() / phi(X).norm())
    assert witness.guarantee == pytest.approx(apart / 2, rel=1e-10)


def test_attention_is_drawn_to_the_word_and_sensitivity_does_not_fall_with_length():
    """Theorem 3 in small: at d much larger than n the witness holds the mass, and S stays of order
    one."""
    values = []
    for n in (8, 16, 32):
        phi = ws.RandomAttentionFeatures(512, seed=n)
        witness = ws.theorem_witness(phi, unit_rows(n, 512, n))
        assert witness.mass > 3 * float(witness.attention_before.mean())
        values.append(witness.value)
    assert min(values) > 0.8


def test_the_search_never_ends_below_the_witness():
    phi, X = ws.RandomAttentionFeatures(96, seed=6), unit_rows(24, 96, 6)
    found = ws.word_sensitivity(phi, X, words=[0, 7])
    for word, value in zip((0, 7), found.per_word, strict=True):
        assert float(value) >= ws.theorem_witness(phi, X, word=word).value


@pytest.mark.parametrize(
    ("phi", "X", "options", "message"),
    [
        (
            ws.RandomAttentionFeatures(9, score="relu"),
            unit_rows(4, 9, 0),
            {},
            "must be one head of softmax attention",
        ),
        (
            ws.RandomAttentionFeatures(9, heads=2),
            unit_rows(4, 9, 0),
            {},
            "must be one head of softmax attention",
        ),
        (
            ws.RandomAttentionFeatures(4),
            unit_rows(4, 4, 0),
            {},
            "needs fewer words than coordinates",
        ),
        (
            ws.RandomAttentionFeatures(9),
            unit_rows(4, 9, 0),
            {"word": 4},
            "`word` (=4) is out of range",
        ),
        (
            ws.RandomAttentionFeatures(9),
            unit_rows(4, 9, 0),
            {"radius": -1.0},
            "`radius` (=-1.0) must be a positive",
        ),
    ],
)
def test_what_the_construction_does_not_cover_is_refused(phi, X, options, message):
    with pytest.raises(ws.InputError) as caught:
        ws.theorem_witness(phi, X, **options)
    assert message in str(caught.value)
