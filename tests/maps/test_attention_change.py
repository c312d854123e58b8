"""The closed form of attention against the plain evaluation, on texts made to break it."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import wordsens as ws
from tests.search.functions import plain_change, word_change
from wordsens.maps.attention.scores import SCORES
from wordsens.maps.base import FeatureMap


def gaussian(*shape, seed):
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def rows_of(kind, n, d, seed):
    """Texts that are hard: copies, nearly parallel rows, one word that every row attends to."""
    rows = gaussian(n, d, seed=seed)
    if kind == "copies":
        rows = rows[torch.arange(n) // 2]
    elif kind == "all the same":
        rows = rows[:1].repeat(n, 1)
    elif kind == "parallel":
        rows = rows[:1] + 1e-3 * rows
    elif kind == "nearly the same":
        rows = rows[:1] + 1e-6 * rows
    elif kind == "one long word":
        rows[0] *= 8
    return rows / rows.norm(dim=1, keepdim=True) * math.sqrt(d) if kind != "one long word" else rows


cases = st.fixed_dictionaries(
    {
        "n": st.integers(2, 9),
        "d": st.integers(1, 7),
        "seed": st.integers(0, 10**6),
        "score": st.sampled_from(sorted(SCORES)),
        "kind": st.sampled_from(
            ["plain", "copies", "all the same", "parallel", "nearly the same", "one long word"]
        ),
        "temperature": st.sampled_from([1.0, 0.1, 0.005, 30.0]),
        "radius": st.sampled_from([1e-3, 1.0, 10.0]),
    }
)


def compare(case, dtype, tolerance):
    """|S_closed - S_plain| <= tolerance max(S_plain, 1).

    Relative to 1, not to S: where the change is far below the features the plain way subtracts and
    loses the digits that the closed form keeps.
    """
    n, d = case["n"], case["d"]
    X = rows_of(case["kind"], n, d, case["seed"])
    phi = ws.RandomAttentionFeatures(
        d, score=case["score"], seed=case["seed"], temperature=case["temperature"], dtype=dtype
    )
    exact = ws.RandomAttentionFeatures.of_weight(
        phi.weight.double(), case["score"], temperature=case["temperature"]
    )
    X = X.to(dtype).double()
    norm = float(exact(X).norm())
    if norm < 1e-6:
        return
    words = torch.arange(n).repeat(3)
    delta = gaussian(3 * n, d, seed=case["seed"] + 1)
    delta = (delta / delta.norm(dim=1, keepdim=True) * case["radius"]).to(dtype)
    change = word_change(phi, X)
    value, slope = change.value_and_gradient(delta.unsqueeze(1), words)
    plain = plain_change(exact, X)
    wanted, _ = plain.value_and_gradient(delta.double().unsqueeze(1), words)
    assert bool(torch.isfinite(slope).all())
    assert bool((value >= 0).all()) or float(value.min()) > -tolerance * norm**2
    have, want = value.double().clamp(min=0).sqrt() / norm, wanted.sqrt() / norm
    error = ((have - want).abs() / want.clamp(min=1)).max()
    assert float(error) <= tolerance, (case, float(error))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(cases)
def test_float64(case):
    """1e-11; scores at ±700 and steeper lose digits to their own rounding, eps times the score, in
    both ways."""
    steepness = (
        20.0 / min(1.0, case["temperature"]) * (64 if case["kind"] == "one long word" else 1)
    )
    compare(case, torch.float64, max(1e-11, 1e-14 * steepness * 10))


@settings(max_examples=150, deadline=None, derandomize=True)
@given(cases.filter(lambda case: case["temperature"] >= 0.1 and case["kind"] != "one long word"))
def test_float32(case):
    compare(case, torch.float32, 1e-4 if case["temperature"] >= 1 else 1e-3)


@pytest.mark.parametrize("score", ["softmax", "sigmoid", "relu"])
def test_scores_of_seven_hundred(score):
    """Weights that put scores near ±700: nothing overflows, and both ways agree."""
    X = gaussian(6, 4, seed=0)
    X = X / X.norm(dim=1, keepdim=True) * 2
    weight = gaussian(4, 4, seed=1)
    weight *= 700 / float((X @ weight @ X.T / 2).abs().max())
    phi = ws.RandomAttentionFeatures.of_weight(weight, score)
    assert float(phi.scores(X).abs().max()) == pytest.approx(700)
    delta, words = gaussian(30, 4, seed=2), torch.arange(6).repeat(5)
    delta = delta.unsqueeze(1)
    value, slope = word_change(phi, X).value_and_gradient(delta, words)
    wanted, wanted_slope = plain_change(phi, X).value_and_gradient(delta, words)
    torch.testing.assert_close(value, wanted, rtol=1e-10, atol=1e-10 * float(wanted.max()))
    torch.testing.assert_close(
        slope, wanted_slope, rtol=1e-8, atol=1e-8 * float(wanted_slope.abs().max())
    )


def test_a_word_that_takes_all_the_attention():
    """a = 1 to rounding for word 0: what is left of the others is found by logs, not by subtraction
    from one."""
    X = gaussian(5, 4, seed=3)
    X = X / X.norm(dim=1, keepdim=True) * 2
    weight = torch.linalg.pinv(X[:, :4]) @ torch.ones(5, 4, dtype=torch.float64)
    weight = 60 * torch.outer(weight.sum(dim=1), X[0])
    phi = ws.RandomAttentionFeatures.of_weight(weight)
    attention = phi.attention(X)
    assert float(attention[:, 0].median()) > 1 - 1e-12
    # Push the word away: the attention returns to the others, from 1 - a below the rounding of 1.
    delta = -X[:1] * 1.9
    words = torch.tensor([0])
    value = word_change(phi, X).value(delta.unsqueeze(1), words)
    wanted = plain_change(phi, X).value(delta.unsqueeze(1), words)
    torch.testing.assert_close(value, wanted, rtol=1e-9, atol=0)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    n=st.integers(3, 8),
    d=st.integers(1, 6),
    moved=st.integers(1, 3),
    heads=st.integers(1, 2),
    score=st.sampled_from(sorted(SCORES)),
    temperature=st.sampled_from([1.0, 0.05, 0.002]),
    seed=st.integers(0, 10**6),
)
def test_equals_the_map(n, d, moved, heads, score, temperature, seed):
    phi = ws.RandomAttentionFeatures(
        d, score=score, heads=heads, temperature=temperature, seed=seed
    )
    X = gaussian(n, d, seed=seed)
    words = torch.stack(
        [
            torch.randperm(n, generator=torch.Generator().manual_seed(seed + at))[:moved]
            for at in range(4)
        ]
    )
    delta = gaussian(4, moved, d, seed=seed + 1)
    plain = FeatureMap.perturbed(phi, X)(words, delta)
    shared = phi.perturbed(X)(words, delta)
    # A score of several hundred is rounded by eps times itself, and so are the weights that follow
    # from it.
    steep = float(phi.scores(X).abs().max()) + 100 / temperature
    torch.testing.assert_close(
        shared,
        plain,
        rtol=1e-15 * steep + 1e-12,
        atol=(1e-15 * steep + 1e-12) * float(plain.abs().max()),
    )
