"""Maps that answer differently each time are refused in one line; what a search touches is left as it was."""

import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError

X = ws.gaussian_text(5, 6, seed=0).rows


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
    yield lambda: ws.word_sensitivity(phi, X)
    yield lambda: ws.jacobian_sensitivity(phi, X)
    yield lambda: ws.group_sensitivity(phi, X, [(0, 1)])
    yield lambda: ws.word_sensitivities(phi, [X, X])


@pytest.mark.parametrize("kind", ["dropout", "batch norm over the batch", "batch norm then dropout", "randn"])
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
    """Each text is normalised by its own words: that is a map, and its witness attains what is reported."""
    norm = torch.nn.BatchNorm1d(6, dtype=torch.float64)
    phi = norm if held == "module" else lambda text: norm(text).tanh()
    before = {name: value.clone() for name, value in norm.state_dict().items()}
    r = ws.word_sensitivity(phi, X)
    assert all(torch.equal(value, before[name]) for name, value in norm.state_dict().items())
    assert norm.training
    moved = X.clone()
    moved[r.word] += r.perturbations[r.word]
    with torch.no_grad():
        by_hand = float((phi(moved) - phi(X)).norm() / phi(X).norm())
    assert r.value == pytest.approx(by_hand, rel=1e-12)


def test_eval_mode_is_measured():
    phi = noisy("batch norm then dropout")
    phi._function.eval()
    assert ws.word_sensitivity(phi, X).value > 0


def test_a_map_that_changes_only_away_from_the_text_is_refused():
    phi = ws.FunctionFeatures(
        lambda text: text if torch.equal(text, X) or torch.equal(text, 2 * X) else text * (1 + 0.1 * torch.rand(()))
    )
    with pytest.raises(InputError, match=r"\.eval\(\)"):
        ws.word_sensitivity(phi, X)
