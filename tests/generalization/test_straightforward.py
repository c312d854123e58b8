"""The straightforward implementation that the benchmarks compare with: it is right, and the library
is no worse."""

import pytest
import torch

import wordsens as ws
from benchmarks.plain import PlainRegression
from wordsens.generalization import TRAININGS

N, D, TEXTS = 6, 12, 20


@pytest.fixture(scope="module")
def both():
    """The same problem, for the library and for the other: fit, plain, a further text and its
    label."""
    texts = torch.stack([ws.gaussian_text(N, D, seed=seed).rows for seed in range(TEXTS + 1)])
    labels = torch.tensor([1.0, -1.0, -1.0] * (TEXTS // 3 + 1), dtype=torch.float64)
    phi = ws.RandomFeatures(N, D, gaussian="dense", seed=0)
    V = phi.layers[0].matrix
    fit = ws.fit_min_norm(phi, texts[:-1], labels[:-1])
    plain = PlainRegression(V, texts[:-1], labels[:-1])
    return ws.NewText(fit, texts[-1], float(labels[-1])), plain


@pytest.mark.parametrize("training", TRAININGS)
def test_the_same_perturbation_has_the_same_error_gamma_and_alignment(both, training):
    new, plain = both
    found = plain.descend(new.rows, new.label, 2, training, "error", steps=5)
    outputs = new.outputs(2, found.perturbation.detach(), training)
    assert (outputs.after + new.label) ** 2 == pytest.approx(found.error, abs=1e-9)
    assert abs(outputs.shift) == pytest.approx(found.gamma, abs=1e-9)
    assert outputs.alignment == pytest.approx(found.alignment, abs=1e-9)


@pytest.mark.parametrize("training", TRAININGS)
@pytest.mark.parametrize("objective", ["alignment", "error"])
def test_the_library_finds_no_worse_a_perturbation(both, training, objective):
    """ReLU's kinks leave several optima close by, so that either may be ahead by a little: 0.3 % of
    the loss."""
    new, plain = both
    found = plain.descend(new.rows, new.label, 2, training, objective, steps=100)
    ours = new.generalization(2, training=training, objective=objective)
    assert ours.loss <= found.loss * 1.003
