"""Attention with given weights: values, biases, masks and heads, against NumPy and random attention
features."""

import math

import numpy as np
import pytest
import torch

import wordsens as ws
from tests.peers import numpy_maps
from tests.search.functions import word_change
from wordsens.errors import InputError
from wordsens.maps.attention.given_weights import AttentionBias
from wordsens.sensitivity.one_word import relative_change

N, D, M, MV = 6, 9, 2, 3
SCORES = ("softmax", "relu", "relu-unnormalized", "sigmoid", "linear")


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def masks() -> dict[str, object]:
    seen = drawn(N, N, seed=1) > 0
    return {
        "none": None,
        "causal": "causal",
        "seen": seen | torch.eye(N, dtype=torch.bool),
        "added": drawn(N, N, seed=2),
    }


def layer(kind: str, score: str = "softmax", mask: object = None) -> ws.AttentionFeatures:
    """One head without anything, with values, with biases too; two heads side by side, and
    summed."""
    query, key, value = drawn(D, M, seed=3), drawn(D, M, seed=4), drawn(D, MV, seed=5)
    bias = AttentionBias(drawn(M, seed=6), drawn(M, seed=7), drawn(MV, seed=8))
    if kind == "words":
        return ws.AttentionFeatures(query, key, score=score, mask=mask)
    if kind == "values":
        return ws.AttentionFeatures(query, key, value, drawn(MV, 5, seed=9), score=score, mask=mask)
    if kind == "biases":
        return ws.AttentionFeatures(query, key, value, score=score, mask=mask, bias=bias)
    query, key, value = drawn(2, D, M, seed=3), drawn(2, D, M, seed=4), drawn(2, D, MV, seed=5)
    bias = AttentionBias(drawn(2, M, seed=6), drawn(2, M, seed=7), drawn(2, MV, seed=8))
    output = drawn(2, MV, 4, seed=9) if kind == "summed" else None
    return ws.AttentionFeatures(query, key, value, output, score=score, mask=mask, bias=bias)


KINDS = ("words", "values", "biases", "heads", "summed")


def by_hand(kind: str, score: str, mask: object, X: np.ndarray) -> np.ndarray:
    """phi(X) in NumPy, head by head and with each weight as it was drawn."""
    heads = 2 if kind in ("heads", "summed") else 1
    lead = (heads,) if heads == 2 else ()
    query, key, value = (
        drawn(*lead, D, size, seed=seed).numpy().reshape(heads, D, size)
        for size, seed in ((M, 3), (M, 4), (MV, 5))
    )
    biases = [
        drawn(*lead, size, seed=seed).numpy().reshape(heads, size)
        for size, seed in ((M, 6), (M, 7), (MV, 8))
    ]
    if kind in ("words", "values"):
        biases = [0 * bias for bias in biases]
    found = []
    for h in range(heads):
        scores = (X @ query[h] + biases[0][h]) @ (X @ key[h] + biases[1][h]).T / math.sqrt(M)
        seen = np.ones((N, N), dtype=bool)
        if isinstance(mask, str):
            seen = np.tril(seen)
        elif isinstance(mask, torch.Tensor):
            seen = mask.numpy() if mask.dtype == torch.bool else seen
            scores = scores if mask.dtype == torch.bool else scores + mask.numpy()
        hidden = -np.inf if score == "softmax" else 0.0
        weights = np.where(seen, numpy_maps.SCORES[score](np.where(seen, scores, hidden)), 0)
        values = X if kind == "words" else X @ value[h] + biases[2][h]
        if kind == "values":
            values = values @ drawn(MV, 5, seed=9).numpy()
        if kind == "summed":
            values = values @ drawn(2, MV, 4, seed=9).numpy()[h]
        found.append(weights @ values)
    return sum(found) if kind == "summed" else np.stack(found) if heads == 2 else found[0]


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("kind", KINDS)
def test_features_and_changes_are_those_of_plain_evaluation(kind: str, score: str) -> None:
    """The map, the closed form of its change in all and in few coordinates, gradients, and reported
    values."""
    X, delta, words = drawn(N, D, seed=10), drawn(4, D, seed=11), torch.tensor([0, 3, 5, 2])
    for mask in masks().values():
        phi = layer(kind, score, mask)
        base = by_hand(kind, score, mask, X.numpy())
        torch.testing.assert_close(phi(X), torch.from_numpy(base), rtol=1e-11, atol=1e-11)

        def squared(
            step: torch.Tensor, mask: object = mask, base: np.ndarray = base
        ) -> torch.Tensor:
            found = []
            for word, one in zip(words.tolist(), step, strict=True):
                moved = X.numpy().copy()
                moved[word] += one.numpy()
                found.append(np.square(by_hand(kind, score, mask, moved) - base).sum())
            return torch.tensor(found)

        change = word_change(phi, X)
        value, slope = change.value_and_gradient(delta.unsqueeze(1), words)
        slope = slope.squeeze(1)
        torch.testing.assert_close(value, squared(delta), rtol=1e-9, atol=1e-9)
        along, step = drawn(4, D, seed=12), 1e-6
        rise = (squared(delta + step * along) - squared(delta - step * along)) / (2 * step)
        torch.testing.assert_close(
            (slope * along).sum(dim=1), rise, rtol=1e-5, atol=1e-5 * float(rise.abs().max())
        )
        narrow = change.narrowed()
        assert (narrow is None) == (
            kind in ("words", "summed") or (kind == "heads" and 4 * M + 2 * MV >= D)
        )
        if narrow is not None:
            inside, basis = narrow
            there, back = inside.value_and_gradient((delta @ basis.mT).unsqueeze(1), words)
            torch.testing.assert_close(there, value, rtol=1e-9, atol=1e-9)
            torch.testing.assert_close(
                back.squeeze(1) @ basis, slope, rtol=1e-9, atol=1e-9 * float(slope.abs().max())
            )
        again = relative_change(
            phi, X, words.unsqueeze(1), delta.unsqueeze(1)
        ) * torch.linalg.vector_norm(phi(X))
        torch.testing.assert_close(again.square(), value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_groups_and_the_small_radius_limit(kind: str) -> None:
    X, phi = drawn(N, D, seed=10), layer(kind, mask="causal")
    groups = torch.tensor([[0, 3], [5, 2]])
    delta = drawn(2, 2, D, seed=13)
    value = phi.change(X, groups).value(delta, torch.arange(2))
    plain = relative_change(phi, X, groups, delta) * torch.linalg.vector_norm(phi(X))
    torch.testing.assert_close(value, plain.square(), rtol=1e-9, atol=1e-9)
    exact = ws.jacobian_sensitivity(phi, X).per_word
    torch.testing.assert_close(
        exact, ws.jacobian_sensitivity(lambda Y: phi(Y), X).per_word, rtol=1e-8, atol=1e-10
    )
    assert float(exact[0]) > 0


def test_without_values_it_is_random_attention_features() -> None:
    X = ws.gaussian_text(12, 16, seed=0).rows
    random = ws.RandomAttentionFeatures(16, seed=3)
    phi = ws.AttentionFeatures(random.weight, torch.eye(16, dtype=torch.float64))
    rotation = torch.linalg.qr(drawn(16, 16)).Q
    turned = ws.AttentionFeatures(random.weight, torch.eye(16, dtype=torch.float64), rotation)
    torch.testing.assert_close(phi(X), random(X), rtol=1e-12, atol=1e-12)
    want = ws.word_sensitivity(random, X, certificate=False)
    for same in (phi, turned):
        found = ws.word_sensitivity(same, X, certificate=False)
        torch.testing.assert_close(found.per_word, want.per_word, rtol=2e-3, atol=0)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"W_K": drawn(D, M + 1)},
            r"`W_K` \(shape \(9, 3\)\) must be a finite tensor of shape \(9, 2\)",
        ),
        ({"W_V": torch.full((D, 1), math.nan)}, "`W_V`"),
        ({"mask": "casual"}, r"`mask` \(='casual'\) must be 'causal'"),
        ({"mask": torch.full((4, 4), math.nan)}, "use -inf where"),
        ({"mask": torch.zeros(4, 4, dtype=torch.bool)}, "let it see itself"),
        ({"score": "sofmax"}, "did you mean 'softmax'"),
    ],
)
def test_what_does_not_fit_is_refused(change: dict, told: str) -> None:
    given = {"W_Q": drawn(D, M), "W_K": drawn(D, M), **change}
    with pytest.raises(InputError, match=told):
        ws.AttentionFeatures(
            given.pop("W_Q"),
            given.pop("W_K"),
            given.pop("W_V", None),
            given.pop("W_O", None),
            **given,
        )
