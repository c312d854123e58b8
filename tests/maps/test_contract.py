"""The contract of a feature map, and functions as maps."""

import math

import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError, ZeroFeaturesError
from wordsens.maps.mapping import features_by_text, perturbed_texts

X = ws.gaussian_text(4, 3, seed=0).rows


def refused(call, *arguments, **options):
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_map_says_which_size_it_takes():
    phi = ws.RandomFeatures(4, 3)
    assert refused(phi, X[:, :2]) == (
        "`X` (shape (4, 2)) does not fit rf, which takes (*batch, n, d) with (n, d) = (4, 3); "
        "build the map for this size or truncate the text"
    )
    assert "(n, d) = (any, 3)" in refused(ws.RandomAttentionFeatures(3), X[:, :2])
    assert "(shape (3,))" in refused(ws.RandomAttentionFeatures(3), X[0])


def test_perturbed_texts_move_the_named_rows_only():
    words = torch.tensor([[2, 0], [1, 3]])
    delta = torch.randn(2, 2, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    moved = perturbed_texts(X, words, delta)
    for pair in range(2):
        expected = X.clone()
        for word, shift in zip(words[pair].tolist(), delta[pair], strict=True):
            expected[word] += shift
        assert torch.equal(moved[pair], expected)


def test_functions_see_one_text_at_a_time_unless_batched():
    shapes = []

    def function(text):
        shapes.append(tuple(text.shape))
        return text.mean(dim=-2)

    batch = X.expand(2, 5, 4, 3)
    assert ws.FunctionFeatures(function)(batch).shape == (2, 5, 3)
    assert shapes == [(4, 3)] * 10
    shapes.clear()
    assert ws.FunctionFeatures(function, batched=True)(batch).shape == (2, 5, 3)
    assert shapes == [(2, 5, 4, 3)]


def test_a_function_that_drops_the_batch_axis_is_refused():
    phi = ws.FunctionFeatures(lambda texts: texts.sum(), batched=True, name="total")
    assert refused(features_by_text, phi, X.expand(5, 4, 3)) == (
        "total maps a batch of shape (5, 4, 3) to features of shape (); their first axis must be the batch's; "
        "a FunctionFeatures with batched=False maps one text at a time"
    )


def test_features_that_carry_no_gradient_are_refused():
    """A silent zero gradient would leave the search blind."""

    def detached(text):
        return text.detach().square()

    assert refused(ws.word_sensitivity, detached, X) == (
        "detached changes with the text, but its features carry no gradient; "
        "write it with torch operations, without detach or no_grad"
    )


def test_parameters_that_want_gradients_do_not_hide_that_the_text_has_none():
    weight = torch.ones(3, dtype=torch.float64, requires_grad=True)
    r = ws.word_sensitivity(lambda text: 2 * weight, X)
    assert r.value == 0
    assert weight.grad is None
    assert "carry no gradient" in refused(ws.word_sensitivity, lambda text: weight * text.detach(), X)


def test_features_of_norm_zero_have_no_relative_change():
    with pytest.raises(ZeroFeaturesError) as caught:
        ws.word_sensitivity(ws.FunctionFeatures(lambda text: 0 * text, name="nothing"), X)
    assert str(caught.value) == (
        "nothing maps this text to zero, so the relative change of its features is not defined; "
        "use another text, seed or map"
    )


def test_attention_that_attends_to_nothing_is_zero_too():
    """With W = -I and rows of positive entries every score is negative."""
    phi = ws.RandomAttentionFeatures.of_weight(-torch.eye(3), "relu")
    with pytest.raises(ZeroFeaturesError, match="relu-raf maps this text to zero"):
        ws.word_sensitivity(phi, X.abs())


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_features_must_be_finite_on_the_text(bad):
    phi = ws.FunctionFeatures(lambda text: bad * text.abs(), name="broken")
    assert refused(ws.word_sensitivity, phi, X) == (
        f"broken gives features with norm {bad} on this text; use float64 or rescale the rows"
    )


@pytest.mark.parametrize("weight", [torch.ones(3, 2), torch.ones(4), torch.full((2, 2), float("nan"))])
def test_a_weight_of_ones_own_is_checked(weight):
    with pytest.raises(ws.InputError, match=r"must be a finite tensor of shape \(d, d\) or \(heads, d, d\)"):
        ws.RandomAttentionFeatures.of_weight(weight)
