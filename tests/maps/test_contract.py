"""The contract of a feature map, functions as maps, and maps that answer differently each time."""

import math

import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError, ZeroFeaturesError

X = ws.gaussian_text(4, 3, seed=0).rows


def refused(call, *arguments, **options):
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


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


def test_features_that_carry_no_gradient_are_refused():
    """A silent zero gradient would leave the search blind."""

    def detached(text):
        return text.detach().square()

    assert refused(ws.word_sensitivity, detached, X) == (
        "detached changes with the text, but its features carry no gradient; "
        "write it with torch operations, without detach or no_grad"
    )


def test_features_of_norm_zero_have_no_relative_change():
    with pytest.raises(ZeroFeaturesError) as caught:
        ws.word_sensitivity(ws.FunctionFeatures(lambda text: 0 * text, name="nothing"), X)
    assert str(caught.value) == (
        "nothing maps this text to zero, so the relative change of its features is not defined; "
        "use another text, seed or map"
    )


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_features_must_be_finite_on_the_text(bad):
    phi = ws.FunctionFeatures(lambda text: bad * text.abs(), name="broken")
    assert refused(ws.word_sensitivity, phi, X) == (
        f"broken gives features with norm {bad} on this text; use float64 or rescale the rows"
    )


@pytest.mark.parametrize(
    "weight", [torch.ones(3, 2), torch.ones(4), torch.full((2, 2), float("nan"))]
)
def test_a_weight_of_ones_own_is_checked(weight):
    with pytest.raises(
        ws.InputError, match=r"must be a finite tensor of shape \(d, d\) or \(heads, d, d\)"
    ):
        ws.RandomAttentionFeatures.of_weight(weight)


TEXT = ws.gaussian_text(5, 6, seed=0).rows


class NormOverTexts(torch.nn.Module):
    """Batch norm whose statistics are those of all words of all texts of a batch."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(6, dtype=torch.float64)

    def forward(self, texts):
        return self.norm(texts.reshape(-1, 6)).view(texts.shape).tanh()


def noisy(kind):
    torch.manual_seed(0)
    body = torch.nn.Linear(6, 8, dtype=torch.float64)
    if kind == "dropout":
        return ws.FunctionFeatures(torch.nn.Sequential(body, torch.nn.Dropout(0.3)))
    if kind == "batch norm over the batch":
        return ws.FunctionFeatures(NormOverTexts(), batched=True)
    if kind == "batch norm then dropout":
        norm = torch.nn.BatchNorm1d(8, dtype=torch.float64)
        return ws.FunctionFeatures(torch.nn.Sequential(body, norm, torch.nn.Dropout(0.3)))
    return ws.FunctionFeatures(lambda text: text @ text.T + torch.randn(5, 5, dtype=torch.float64))


def measures(phi):
    yield lambda: ws.word_sensitivity(phi, TEXT)
    yield lambda: ws.jacobian_sensitivity(phi, TEXT)
    yield lambda: ws.group_sensitivity(phi, TEXT, [(0, 1)])
    yield lambda: ws.word_sensitivities(phi, [TEXT, TEXT])


@pytest.mark.parametrize(
    "kind", ["dropout", "batch norm over the batch", "batch norm then dropout", "randn"]
)
def test_what_changes_is_refused_and_left_as_it_was(kind):
    phi = noisy(kind)
    module = phi._function if isinstance(phi._function, torch.nn.Module) else torch.nn.Identity()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    state = torch.random.get_rng_state()
    for measure in measures(phi):
        with pytest.raises(InputError, match=r"\.eval\(\)") as caught:
            measure()
        assert "\n" not in str(caught.value)
    assert module.training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("held", ["module", "lambda"])
def test_batch_norm_over_the_words_of_one_text_keeps_its_statistics(held):
    """Each text is normalised by its own words: that is a map, and its witness attains what is
    reported."""
    norm = torch.nn.BatchNorm1d(6, dtype=torch.float64)
    phi = norm if held == "module" else lambda text: norm(text).tanh()
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    r = ws.word_sensitivity(phi, TEXT)
    assert all(torch.equal(value, before[name]) for name, value in norm.state_dict().items())
    assert norm.training
    moved = TEXT.clone()
    moved[r.word] += r.perturbations[r.word]
    with torch.no_grad():
        by_hand = float((phi(moved) - phi(TEXT)).norm() / phi(TEXT).norm())
    assert r.value == pytest.approx(by_hand, rel=1e-12)


def test_parameters_that_want_gradients_do_not_hide_that_the_text_has_none():
    weight = torch.ones(3, dtype=torch.float64, requires_grad=True)
    r = ws.word_sensitivity(lambda text: 2 * weight, X)
    assert r.value == 0
    assert weight.grad is None
    assert "carry no gradient" in refused(
        ws.word_sensitivity, lambda text: weight * text.detach(), X
    )
