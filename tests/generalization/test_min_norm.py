"""The fit and its updates against a pseudo-inverse, and what they refuse."""

import warnings

import numpy as np
import pytest
import torch

from wordsens.generalization.features import TrainingFeatures
from wordsens.generalization.min_norm import ConditioningWarning, SingularGramError, fit_min_norm
from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.dense import RandomFeatures
from wordsens.maps.function import FunctionFeatures
from wordsens.seeds import generator

IDENTITY = FunctionFeatures(lambda X: X, batched=True, name="identity")
SIZES = [(1, 5), (7, 30), (40, 90)]


def problem(count, size, seed=0):
    """Texts whose features are themselves, labels, and one more text."""
    stream = generator(seed, "problem", count, size)
    texts = torch.randn(count, 2, size // 2, generator=stream, dtype=torch.float64)
    labels = torch.randn(count, generator=stream, dtype=torch.float64).sign()
    return texts, labels, torch.randn(2, size // 2, generator=stream, dtype=torch.float64)


@pytest.mark.parametrize(("count", "size"), SIZES)
def test_theta_and_both_updates_agree_with_the_pseudo_inverse(count, size):
    for seed in range(3):
        texts, labels, x = problem(count, size, seed)
        Phi, psi = texts.flatten(start_dim=1).numpy(), x.flatten().numpy()
        fit = fit_min_norm(IDENTITY, texts, labels)
        theta = np.linalg.pinv(Phi) @ labels.numpy()
        assert np.abs(fit.theta.numpy() - theta).max() < 1e-9

        surprise = -1.0 - psi @ theta
        tuned = theta + psi * surprise / (psi @ psi)
        direction = fit.direction(x.flatten(), "fine-tuned")
        assert np.abs((fit.theta + direction * surprise).numpy() - tuned).max() < 1e-9

        stacked = np.linalg.pinv(np.vstack([Phi, psi])) @ np.append(labels.numpy(), -1.0)
        direction = fit.direction(x.flatten(), "retrained")
        assert np.abs((fit.theta + direction * surprise).numpy() - stacked).max() < 1e-9
        assert float(direction @ x.flatten()) == pytest.approx(1.0, abs=1e-12)


def descent(phi, theta, labels, step, steps=2000):
    """theta after steps of gradient descent on ‖phi theta - labels‖², in plain numpy."""
    for _ in range(steps):
        theta = theta - step * 2 * phi.T @ (phi @ theta - labels)
    return theta


@pytest.mark.parametrize("share", [0.05, 0.5, 0.95])
def test_both_trainings_are_limits_of_gradient_descent_from_the_old_parameters(share):
    texts, labels, x = problem(7, 30)
    Phi, psi, Y = texts.flatten(start_dim=1).numpy(), x.flatten().numpy()[None], labels.numpy()
    fit = fit_min_norm(IDENTITY, texts, labels)
    old, surprise = fit.theta.numpy(), -1.0 - psi[0] @ fit.theta.numpy()
    everything, answers = np.vstack([Phi, psi]), np.append(Y, -1.0)
    for training, rows, targets in (
        ("fine-tuned", psi, answers[-1:]),
        ("retrained", everything, answers),
    ):
        closed = old + fit.direction(x.flatten(), training).numpy() * surprise
        limit = share / np.linalg.norm(rows, 2) ** 2
        assert np.abs(descent(rows, old, targets, limit) - closed).max() < 1e-9
        # The limit depends on the start: from 0 the old texts would be forgotten.
        assert np.abs(descent(psi, 0 * old, answers[-1:], limit) - closed).max() > 0.01
        missed = rows @ descent(rows, old, targets, 1.05 * limit / share) - targets
        assert np.abs(missed).max() > abs(surprise)  # past 1 / ‖phi(X)‖² it diverges


def test_ridge_agrees_with_the_dense_formula_before_and_after_one_more_text():
    texts, labels, x = problem(20, 30)
    Phi, psi = texts.flatten(start_dim=1).numpy(), x.flatten().numpy()

    def dense(Phi, labels):
        return Phi.T @ np.linalg.solve(Phi @ Phi.T + 0.7 * np.eye(len(Phi)), labels)

    fit = fit_min_norm(IDENTITY, texts, labels, ridge=0.7)
    theta = dense(Phi, labels.numpy())
    direction = fit.direction(x.flatten(), "retrained")
    after = dense(np.vstack([Phi, psi]), np.append(labels.numpy(), 1.0))
    assert np.abs(fit.theta.numpy() - theta).max() < 1e-12
    assert np.abs((fit.theta + direction * (1.0 - psi @ theta)).numpy() - after).max() < 1e-12
    assert float(direction @ x.flatten()) < 1


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_streamed_features_give_what_stored_ones_give(dtype):
    phi = RandomAttentionFeatures(8, seed=1, dtype=dtype)
    texts = torch.randn(13, 4, 8, generator=generator(0, "texts"), dtype=torch.float64)
    stored = TrainingFeatures(phi, texts)
    streamed = TrainingFeatures(phi, texts, memory_budget=3 * 32 * 8)
    assert stored.stored is not None and streamed.stored is None
    tolerance = 1e-12 if dtype is torch.float64 else 1e-5
    assert stored.gram().dtype is torch.float64
    vectors = torch.randn(2, 32, generator=generator(0, "vectors"), dtype=torch.float64)
    weights = torch.randn(3, 13, generator=generator(0, "weights"), dtype=torch.float64)
    for product in (
        lambda features: features.gram(),
        lambda features: features.inner_products(vectors),
        lambda features: features.combine(weights),
    ):
        assert torch.allclose(product(stored), product(streamed), rtol=0, atol=10 * tolerance)


def test_a_lazy_map_and_a_dense_map_interpolate_alike():
    texts = torch.randn(12, 3, 6, generator=generator(0, "texts"), dtype=torch.float64)
    labels = torch.tensor([1.0, -1.0] * 6)
    for gaussian in ("dense", "lazy"):
        fit = fit_min_norm(RandomFeatures(3, 6, 40, gaussian=gaussian, seed=2), texts, labels)
        assert torch.allclose(fit.predict(texts), labels.double(), rtol=0, atol=1e-9)
        assert fit.accuracy(texts, labels) == 1.0


def test_the_residual_is_orthogonal_to_the_training_features_and_complements_the_rest():
    texts, labels, x = problem(40, 90)
    fit = fit_min_norm(IDENTITY, texts, labels)
    rest = fit.residual(x.flatten())
    Phi = texts.flatten(start_dim=1)
    assert float((Phi @ rest).abs().max()) < 1e-12
    assert float(fit.residual(rest).sub(rest).abs().max()) < 1e-12
    # Nearly all of it inside the span: the rounding of that part is removed too.
    nearly = fit.residual(rest + 1e7 * Phi.sum(dim=0))
    assert float((Phi @ nearly).abs().max()) < 1e-12


def test_conditioning_reports_the_extreme_eigenvalues():
    texts, labels, _ = problem(40, 90)
    Phi = texts.flatten(start_dim=1)
    values = torch.linalg.eigvalsh(Phi @ Phi.T)
    report = fit_min_norm(IDENTITY, texts, labels)
    assert report.jitter == 0 and report.missed < 1e-11
    assert report.smallest == pytest.approx(float(values[0]), rel=0.2)
    assert report.condition * report.smallest == pytest.approx(float(values[-1]), rel=0.05)


def test_a_repeated_text_is_repaired_with_a_stated_jitter_when_its_labels_agree():
    # Integers: the Gram matrix is exactly singular, and Cholesky meets an exact zero.
    texts = torch.tensor([[[3.0, 4.0, 0.0]], [[3.0, 4.0, 0.0]]], dtype=torch.float64)
    with pytest.warns(
        ConditioningWarning, match="singular to rounding; .* was added to its diagonal"
    ):
        fit = fit_min_norm(IDENTITY, texts, [1, 1])
    assert fit.jitter > 0
    assert torch.allclose(fit.predict(texts), torch.ones(2, dtype=torch.float64), atol=1e-6)
    with (
        warnings.catch_warnings(),
        pytest.raises(SingularGramError, match="leave out repeated texts"),
    ):
        warnings.simplefilter("ignore", ConditioningWarning)
        fit_min_norm(IDENTITY, texts, [1, -1])  # with two labels it is beyond repair


def test_more_texts_than_features_are_refused_without_a_ridge():
    texts, labels, _ = problem(9, 6)
    with pytest.raises(SingularGramError, match="9 texts have only 6 features"):
        fit_min_norm(IDENTITY, texts, labels)
    assert fit_min_norm(IDENTITY, texts, labels, ridge=1.0).missed < 1e-12


def test_float32_features_with_a_float64_gram_stay_close_to_float64():
    texts = torch.randn(30, 5, 16, generator=generator(0, "texts"), dtype=torch.float64)
    labels = torch.randn(30, generator=generator(0, "labels")).sign()
    fits = [
        fit_min_norm(RandomAttentionFeatures(16, seed=0, dtype=kind), texts, labels)
        for kind in (torch.float64, torch.float32)
    ]
    assert torch.allclose(
        fits[0].theta, fits[1].theta, rtol=0, atol=1e-4 * float(fits[0].theta.norm())
    )


def test_an_output_of_zero_has_neither_sign():
    texts = torch.eye(3, dtype=torch.float64).view(3, 1, 3)
    fit = fit_min_norm(lambda X: X.clamp(min=0), texts, [1, -1, 1])
    assert fit.accuracy(-texts, [1, -1, 1]) == 0.0
