"""Scores of one's own whose weights are a function of their own score each: their closed form, found by looking."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import wordsens as ws
from wordsens.maps.attention.any_score import AnyScoreChange
from wordsens.maps.attention.scores import Elementwise, Softmax, elementwise
from wordsens.maps.attention.word_change import AttentionWordChange


def own(rule, *, normalized: bool = False) -> ws.Score:
    """A score with that rule."""

    class Own(ws.Score):
        name = "own"

        def attention(self, scores):
            return rule(scores)

    Own.normalized = normalized
    return Own()


ELEMENTWISE = {
    "tanh": torch.tanh,
    "sign": torch.sign,
    "cube": lambda scores: scores**3,
    "gelu": torch.nn.functional.gelu,
    "divided by the length": lambda scores: torch.relu(scores) / scores.shape[-1],
    "constant": torch.ones_like,
    "in float64": lambda scores: torch.sin(scores.double()),
}
TOGETHER = {
    "centred": lambda scores: scores - scores.mean(dim=-1, keepdim=True),
    "divided": lambda scores: scores.square() / scores.square().sum(dim=-1, keepdim=True),
    "largest": lambda scores: (scores == scores.amax(dim=-1, keepdim=True)).to(scores.dtype),
    "running": lambda scores: torch.tanh(scores.cumsum(dim=-1)),
    "previous": lambda scores: torch.tanh(scores + 0.01 * scores.roll(1, -1)),
}


def scores_of(n: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(n, n, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("rule", ELEMENTWISE.values(), ids=ELEMENTWISE)
def test_a_closed_form_of_each_rule_that_looks_at_one_score(rule):
    assert isinstance(elementwise(own(rule), [scores_of(7)]), Elementwise)


@pytest.mark.parametrize("n", [2, 3, 7])
@pytest.mark.parametrize("rule", TOGETHER.values(), ids=TOGETHER)
def test_none_for_rules_that_look_at_a_row(rule, n):
    assert elementwise(own(rule), [scores_of(n)]) is None


def test_none_for_divided_scores_hidden_words_and_one_head_of_several_that_shows_it():
    assert elementwise(Softmax(), [scores_of(5)]) is None
    assert elementwise(own(torch.tanh), [scores_of(5).index_fill(1, torch.tensor([2]), -torch.inf)]) is None
    capped = own(lambda scores: torch.where(scores.amax(dim=-1, keepdim=True) > 5, 0 * scores, scores))
    quiet, loud = 0.1 * scores_of(5), 10 * scores_of(5)
    assert isinstance(elementwise(capped, [quiet]), Elementwise)
    assert elementwise(capped, [quiet, loud]) is None


@pytest.mark.parametrize(("name", "homogeneous"), [("cube", True), ("tanh", False), ("sign", True), ("gelu", False)])
def test_whether_the_temperature_is_a_unit(name, homogeneous):
    for size in (1e-20, 1.0, 1e20):
        found = elementwise(own(ELEMENTWISE[name]), [size * scores_of(6)])
        assert found is not None
        assert found.homogeneous is homogeneous


def test_scores_that_are_all_alike_do_not_make_a_score_homogeneous():
    found = elementwise(own(torch.tanh), [torch.full((5, 5), 3e-7, dtype=torch.float64)])
    assert found is not None
    assert not found.homogeneous


@given(seed=st.integers(0, 1000), heads=st.integers(1, 3), name=st.sampled_from(["tanh", "cube", "gelu"]))
def test_its_change_and_gradient_are_those_by_definition(seed, heads, name):
    phi = ws.RandomAttentionFeatures(5, own(ELEMENTWISE[name]), seed=seed, heads=heads)
    rows = ws.gaussian_text(4, 5, seed=seed).rows
    change = phi.word_change(rows)
    assert isinstance(change, AttentionWordChange)
    words = torch.arange(4)
    delta = torch.randn(4, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).requires_grad_()
    texts = torch.stack([rows.index_add(0, words[[at]], delta[[at]]) for at in range(4)])
    expected = (phi(texts) - phi(rows)).flatten(start_dim=1).square().sum(dim=1)
    (slope,) = torch.autograd.grad(expected.sum(), delta)
    squared, gradient = change.value_and_gradient(delta.detach(), words)
    torch.testing.assert_close(squared, expected.detach(), rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(gradient, slope, rtol=1e-8, atol=1e-10)


def test_a_rule_that_looks_at_a_row_is_searched_as_before():
    phi = ws.RandomAttentionFeatures(5, own(TOGETHER["previous"]), seed=0)
    assert isinstance(phi.word_change(ws.gaussian_text(4, 5, seed=0).rows), AnyScoreChange)
