"""The one-word experiment: its identity, its bound, its searches against what is known, and what it refuses."""

import math
import re

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import wordsens as ws
from wordsens.errors import InputError
from wordsens.generalization import OBJECTIVE_NAMES
from wordsens.maps.function import FunctionFeatures
from wordsens.regression import TRAININGS
from wordsens.seeds import generator

N_TEXTS, WORDS, D = 14, 5, 8
SHORT = {"search": ws.SearchPlan("quick", starts=3, steps=5)}


def build(name, seed=0):
    if name == "rf":
        return ws.RandomFeatures(WORDS, D, 60, gaussian="dense", seed=seed)
    return ws.RandomAttentionFeatures(D, {"raf": "softmax", "relu-raf": "relu"}[name], seed=seed)


def data(seed=0):
    texts = [ws.gaussian_text(WORDS, D, seed=100 * seed + index) for index in range(N_TEXTS + 1)]
    labels = torch.randn(N_TEXTS, generator=generator(seed, "labels")).sign().tolist()
    return texts[:-1], labels, texts[-1]


def dense_outputs(phi, texts, labels, x, y, variant, training):
    """f(X), f(X^i) before, f(X^i) after and F, by pseudo-inverse and a dense projector."""
    with torch.no_grad():
        Phi = np.stack([phi(text).flatten().numpy() for text in texts])
        psi, changed = phi(x).flatten().numpy(), phi(variant).flatten().numpy()
    inverse = np.linalg.pinv(Phi)
    theta = inverse @ np.array(labels)
    if training == "fine-tuned":
        after = theta + psi * (y - psi @ theta) / (psi @ psi)
        alignment = changed @ psi / (psi @ psi)
    else:
        after = np.linalg.pinv(np.vstack([Phi, psi])) @ np.append(labels, y)
        rest = psi - inverse @ (Phi @ psi)
        alignment = changed @ rest / (rest @ rest)
    return psi @ theta, changed @ theta, changed @ after, alignment


@pytest.mark.parametrize("name", ["rf", "raf", "relu-raf"])
@pytest.mark.parametrize("training", TRAININGS)
def test_every_reported_number_is_that_of_the_dense_formulas(name, training):
    texts, labels, x = data()
    phi = build(name)
    for y in (1, -1):
        g = ws.one_word_generalization(phi, texts, labels, x, y, word=1, training=training, objective="error", **SHORT)
        variant = x.rows.clone()
        variant[1] += g.perturbation
        before, variant_before, after, alignment = dense_outputs(phi, texts, labels, x, y, variant, training)
        assert g.output_before == pytest.approx(before, abs=1e-9)
        assert g.variant_output_before == pytest.approx(variant_before, abs=1e-9)
        assert g.output_after == pytest.approx(after, abs=1e-9)
        assert g.alignment == pytest.approx(alignment, abs=1e-9)
        assert g.error == pytest.approx((after + y) ** 2, abs=1e-8)
        assert g.gamma == pytest.approx(abs(variant_before - before), abs=1e-9)
        assert g.text_output_after == pytest.approx(y, abs=1e-12)
        assert float(g.perturbation.norm()) <= math.sqrt(D)


@settings(deadline=None, max_examples=60, derandomize=True)
@given(
    name=st.sampled_from(["rf", "raf", "relu-raf"]),
    training=st.sampled_from(TRAININGS),
    seed=st.integers(0, 1000),
    y=st.sampled_from([1, -1]),
    word=st.integers(0, WORDS - 1),
    length=st.floats(0.0, 3.0),
)
def test_the_identity_holds_and_the_finite_sample_bound_is_never_violated(name, training, seed, y, word, length):
    texts, labels, x = data(seed)
    phi = build(name, seed)
    delta = torch.nn.functional.normalize(torch.randn(D, generator=generator(seed, "d"), dtype=torch.float64), dim=0)
    variant = x.rows.clone()
    variant[word] += length * math.sqrt(D) * delta
    before, variant_before, after, alignment = dense_outputs(phi, texts, labels, x, y, variant, training)
    identity = (variant_before - before) + (alignment - 1) * (y - before)
    assert after - y == pytest.approx(identity, abs=1e-10 * max(1.0, abs(after), abs(alignment)) * 10)
    new = ws.NewText(ws.fit_min_norm(phi, texts, labels), x, y)
    outputs = new.outputs(word, variant[word] - x.rows[word], training)
    assert outputs.after - y == pytest.approx(outputs.shift + (outputs.alignment - 1) * new.surprise, abs=1e-10)
    assert outputs.after == pytest.approx(after, abs=1e-8)
    gamma, error = abs(variant_before - before), (after + y) ** 2
    bound = max(0.0, 2 - gamma - abs(alignment - 1) * abs(y - before)) ** 2
    assert error >= bound - 1e-9 * max(1.0, error)


@pytest.mark.parametrize("name", ["rf", "raf", "relu-raf"])
def test_objectives_come_lowest_where_they_are_asked_for(name):
    texts, labels, x = data()
    fit = ws.fit_min_norm(build(name), texts, labels)
    new = ws.NewText(fit, x, 1)
    found = {
        objective: ws.one_word_generalization(new, objective=objective, search=ws.SearchPlan(starts=8))
        for objective in OBJECTIVE_NAMES
    }
    error = {objective: g.error for objective, g in found.items()}
    assert error["error"] <= min(error.values()) + 1e-4
    penalized = {objective: g.error + g.gamma**2 for objective, g in found.items()}
    assert penalized["penalized-error"] <= min(penalized.values()) + 1e-2
    assert abs(found["alignment"].alignment + 1) <= min(abs(g.alignment + 1) for g in found.values()) + 1e-2
    assert found["alignment"].alignment == pytest.approx(found["fine-tuned-alignment"].alignment, abs=2e-2)
    for objective, g in found.items():
        assert g.bound <= g.error + 1e-9
        assert g.objective == objective
        if objective.endswith("alignment") and objective != "retrained-alignment":
            assert g.loss == pytest.approx((g.alignment + 1) ** 2, abs=1e-9)


def linear_problem():
    """The identity map: delta and F are linear in Delta, so the least error is known."""
    texts, labels, x = data(3)
    return FunctionFeatures(lambda X: X, batched=True, name="identity"), texts, labels, x


@pytest.mark.parametrize("training", TRAININGS)
@pytest.mark.parametrize("radius", [0.05, 0.3, 1.0])
def test_the_linear_map_reaches_the_known_optimum_at_every_word(training, radius):
    phi, texts, labels, x = linear_problem()
    new = ws.NewText(ws.fit_min_norm(phi, texts, labels), x, 1)
    # f(X^i(Delta)) - f(X) = Delta . theta_i: Cauchy and Schwarz give the least output.
    theta = (new.fit.theta + new.update(training).direction * new.surprise).view(WORDS, D)
    reach = radius * theta.norm(dim=1)
    for word in (0, 3):
        g = ws.one_word_generalization(new, word=word, training=training, objective="error", radius=radius, **SHORT)
        assert g.error == pytest.approx(max(0.0, 2 - float(reach[word])) ** 2, abs=1e-4)
    best = ws.one_word_generalization(new, word="all", training=training, objective="error", radius=radius, **SHORT)
    assert best.error == pytest.approx(max(0.0, 2 - float(reach.max())) ** 2, abs=1e-4)
    if best.error > 1e-3:
        assert best.word == int(reach.argmax())


def test_a_map_that_ignores_the_word_meets_the_bound_of_four():
    phi = FunctionFeatures(lambda X: X[..., 1:, :], batched=True, name="deaf")
    texts, labels, x = data()
    g = ws.one_word_generalization(phi, texts, labels, x, -1, training="retrained", objective="error", **SHORT)
    assert g.error == pytest.approx(4.0, abs=1e-12) and g.bound == pytest.approx(4.0, abs=1e-12)
    assert g.gamma == 0 and not g.distinguished


def test_a_lazy_rf_searches_all_words_and_its_numbers_are_consistent():
    texts, labels, x = data()
    phi = ws.RandomFeatures(WORDS, D, 60, gaussian="lazy", seed=1)
    g = ws.one_word_generalization(phi, texts, labels, x, 1, word=None, objective="error")
    fixed = ws.one_word_generalization(phi, texts, labels, x, 1, word=g.word, objective="error")
    assert g.error == pytest.approx(fixed.error, abs=1e-6)
    variant = x.rows.clone()
    variant[g.word] += g.perturbation
    assert dense_outputs(phi, texts, labels, x, 1, variant, "fine-tuned")[2] == pytest.approx(g.output_after, abs=1e-9)


def test_theorem_conditions_say_what_is_known():
    texts, labels, x = data()
    for name, random in (("rf", True), ("raf", False)):
        fit = ws.fit_min_norm(build(name), texts, labels)
        tuned = ws.one_word_generalization(fit, x=x, y_x=1, **SHORT)
        again = ws.one_word_generalization(fit, x=x, y_x=1, training="retrained", **SHORT)
        assert (tuned.conditions.theorem, again.conditions.theorem) == (4, 5)
        assert tuned.conditions.hold is (random and tuned.gamma < 2)
        assert again.conditions.texts_per_coordinate == N_TEXTS / (WORDS * D)
        assert again.conditions.condition == fit.conditioning.condition


def test_ridge_keeps_the_identity_and_leaves_x_short_of_its_label():
    texts, labels, x = data()
    g = ws.one_word_generalization(
        build("raf"), texts, labels, x, 1, training="retrained", objective="error", ridge=2.0, **SHORT
    )
    shift = g.variant_output_before - g.output_before
    assert g.output_after - 1 == pytest.approx(shift + (g.alignment - 1) * (1 - g.output_before), abs=1e-10)
    assert g.text_output_after < 1 - 1e-3


def test_the_theorems_conditions_do_not_hold_where_float64_cannot_solve():
    """A training text twice, up to 1e-7: the kernel's condition number is some 1e15, and RF's gamma is below 2."""
    texts, labels, x = data()
    phi = ws.RandomFeatures(WORDS, D, 400, seed=0)
    usual = {"y_x": 1, "word": 0, "search": ws.SearchPlan(starts=1, steps=5), "seed": 0}
    well = ws.one_word_generalization(phi, texts, labels, x, **usual)
    assert (well.conditions.solved, well.conditions.hold) == (True, True)
    twin = ws.gaussian_text(WORDS, D, seed=99).rows
    rows = [*texts, twin, twin + 1e-7 * torch.ones_like(twin)]
    ill = ws.one_word_generalization(phi, rows, [*labels, 1, 1], x, **usual)
    assert ill.conditions.condition > 1e13
    assert ill.gamma < 2
    assert (ill.conditions.solved, ill.conditions.hold) == (False, False)
    assert ill.to_dict()["theorem_conditions_hold"] is False


def test_the_map_its_fit_and_the_new_text_give_the_same_result():
    texts, labels, x = data()
    fit = ws.fit_min_norm(build("raf"), texts, labels)
    of_map = ws.one_word_generalization(build("raf"), texts, labels, x, 1, **SHORT)
    of_fit = ws.one_word_generalization(fit, x=x, y_x=1, **SHORT)
    of_text = ws.one_word_generalization(ws.NewText(fit, x, 1), **SHORT)
    assert of_map == of_fit == of_text


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (lambda texts, labels, x, fit: (fit.phi, texts), "`texts` or `y` is missing"),
        (lambda texts, labels, x, fit: (fit.phi, texts, labels, x), "`x` or `y_x` is missing"),
        (lambda texts, labels, x, fit: (fit, texts), "`texts` is given, but `phi` (a MinNormFit) already holds it"),
        (lambda texts, labels, x, fit: (ws.NewText(fit, x, 1), None, None, x), "`x` is given, but `phi` (a NewText)"),
    ],
)
def test_missing_and_repeated_arguments_are_refused(arguments, named):
    texts, labels, x = data()
    fit = ws.fit_min_norm(build("raf"), texts, labels)
    for function in (ws.one_word_generalization, ws.one_word_frontier, ws.one_word_outcomes):
        with pytest.raises(InputError, match=re.escape(named)):
            function(*arguments(texts, labels, x, fit))
