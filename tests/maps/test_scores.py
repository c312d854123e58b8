"""Anyone's score is a score: measured like the others, bounded only where it says itself what
bounds need."""

from itertools import product

import numpy as np
import pytest
import torch

import wordsens as ws
from tests.laws.feature_map_laws import QUICK
from tests.maps.own_scores import Arctangent, DividedSquares
from tests.search.functions import word_change
from wordsens.errors import InputError
from wordsens.maps.attention.scores import SCORES, Certified, Softmax, offered
from wordsens.sensitivity.one_word import relative_change
from wordsens.theory import check_conditions, predict

X = ws.gaussian_text(5, 6, seed=3)


class Doubled(Softmax):
    """Softmax at half the temperature, by other means."""

    def attention(self, scores):
        return super().attention(2 * scores)


def test_a_score_of_ones_own_is_evaluated_by_its_formula():
    phi = ws.RandomAttentionFeatures(6, score=DividedSquares(), seed=1, heads=2)
    rows = X.rows.numpy()
    for head, W in enumerate(phi.weight.numpy()):
        squares = (rows @ W @ rows.T / np.sqrt(6)) ** 2
        expected = squares / squares.sum(axis=1, keepdims=True) @ rows
        np.testing.assert_allclose(phi(X)[head].numpy(), expected, rtol=1e-12)
    assert phi.name == "squares-raf"


def test_a_score_of_ones_own_is_searched_like_any_function():
    phi = ws.RandomAttentionFeatures(6, score=DividedSquares(), seed=1)
    plain = ws.FunctionFeatures(phi.features, batched=True)
    mine, other = (ws.word_sensitivity(map_, X) for map_ in (phi, plain))
    torch.testing.assert_close(
        mine.per_word, other.per_word, rtol=0.01, atol=0
    )  # two searches, of other stages
    same = relative_change(plain, X.rows, mine.words.unsqueeze(1), mine.perturbations.unsqueeze(1))
    torch.testing.assert_close(mine.per_word, same, rtol=1e-9, atol=0)
    assert mine.upper is None and mine.upper_per_word is None and mine.rigor is None
    assert mine.map_name == "squares-raf"
    slopes = ws.jacobian_sensitivity(phi, X).per_word
    torch.testing.assert_close(
        slopes, ws.jacobian_sensitivity(plain, X).per_word, rtol=1e-9, atol=0
    )
    pair = ws.group_sensitivity(phi, X, [[0, 1]], search=QUICK["search"])
    assert float(pair.value) > 0


def test_without_the_terms_there_is_no_certificate_and_no_prediction():
    phi = ws.RandomAttentionFeatures(6, score=DividedSquares(), seed=1)
    assert ws.certificate(phi, X) is None
    with pytest.raises(InputError, match=r"`phi` \(squares-raf\) has no certificate"):
        ws.certify(phi, X)
    assert predict(phi, X.rows) is None
    softmax = next(
        condition for condition in check_conditions(phi, X) if condition.name == "softmax scores"
    )
    assert softmax.holds is False


@pytest.mark.parametrize("heads", [1, 3])
def test_a_score_that_brings_the_terms_is_bounded(heads):
    phi = ws.RandomAttentionFeatures(6, score=Arctangent(), seed=2, heads=heads)
    found = ws.word_sensitivity(phi, X, search=ws.SearchPlan("quick", starts=8, steps=60))
    assert found.rigor == "certified"
    assert bool((found.per_word <= found.upper_per_word).all())
    assert bool((found.upper_per_word <= 3 * found.per_word).all())


def test_a_subclass_inherits_neither_the_bounds_nor_the_closed_form():
    phi = ws.RandomAttentionFeatures(6, score=Doubled(), seed=1)
    half = ws.RandomAttentionFeatures(6, seed=1, temperature=0.5)
    assert ws.certificate(phi, X) is None
    words, points = torch.arange(5), 2 * ws.gaussian_text(5, 6, seed=4).rows
    squares, other = (
        word_change(map_, X.rows).value(points.unsqueeze(1), words) for map_ in (phi, half)
    )
    torch.testing.assert_close(squares, other, rtol=1e-9, atol=0)
    torch.testing.assert_close(
        ws.jacobian_sensitivity(phi, X).per_word,
        ws.jacobian_sensitivity(half, X).per_word,
        rtol=1e-9,
        atol=0,
    )
    assert predict(phi, X.rows) is None
    with pytest.raises(InputError, match="must be one head of softmax attention"):
        ws.theorem_witness(phi, X)
    between = type("Between", (Softmax,), {})
    assert offered(type("Below", (between,), {})(), Certified) is None


def test_what_is_no_score_is_refused(unchecked_types):
    with pytest.raises(
        InputError, match=r"`score` .* must be one of softmax, .* derived from wordsens\.Score"
    ):
        ws.RandomAttentionFeatures(6, score=DividedSquares)  # pyright: ignore[reportArgumentType]
    nameless = type("Nameless", (ws.Score,), {"attention": lambda self, scores: scores})
    with pytest.raises(
        InputError, match=r"`score` \(Nameless\) must have a `name` .* set name and normalized"
    ):
        ws.RandomAttentionFeatures(6, score=nameless())


class Squares(ws.Score):
    name, normalized = "squares", True

    def attention(self, scores):
        squares = scores.square()
        return squares / squares.sum(-1, keepdim=True).clamp(min=torch.finfo(scores.dtype).tiny)


@pytest.mark.parametrize("name", sorted(SCORES))
@pytest.mark.parametrize("error", [1e-6, 0.01, 0.5])
def test_no_weight_is_further_off_than_its_bound(name, error):
    """At every corner of the box of scores that are each off by `error`."""
    score, scores = SCORES[name], 2 * ws.gaussian_text(30, 4, seed=7).rows
    attention = score.attention(scores)
    bound = score.weight_errors(scores, attention, torch.full((30, 1), error, dtype=scores.dtype))
    for signs in product((-error, error), repeat=4):
        moved = score.attention(scores + torch.tensor(signs, dtype=scores.dtype)) - attention
        assert bool((moved.abs() <= bound * (1 + 1e-9) + 1e-14).all())


@pytest.mark.parametrize("left", [0.0, 1e-14])
@pytest.mark.parametrize("batch", [1, 2, 8, 33])
def test_a_row_that_vanishes_has_the_value_of_the_map_in_every_batch(left, batch):
    phi = ws.RandomAttentionFeatures(3, heads=2, score=Squares(), seed=1)
    X = ws.gaussian_text(6, 3, seed=2).rows
    X[4] *= 1e5
    delta = left * X[1] - X[0]
    moved = X.clone()
    moved[0] = X[0] + delta
    wanted = float((phi(moved) - phi(X)).square().sum())
    change = word_change(phi, X, memory_budget=10**8)
    found = change.value(delta.repeat(batch, 1, 1), torch.zeros(batch, dtype=torch.long))
    assert found.tolist() == pytest.approx([wanted] * batch, rel=1e-6)
