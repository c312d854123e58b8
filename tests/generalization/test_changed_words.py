"""Several words that change at once, each in a ball of its own: against explicit solves in plain
numpy, and the lower bound of the error."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import wordsens as ws
from wordsens.errors import InputError
from wordsens.generalization import TRAININGS
from wordsens.studies.generalization_words import least_error
from wordsens.studies.several_words import bound_of_every_set

N_TEXTS, WORDS, D = 9, 5, 6
SHORT = {"search": ws.SearchPlan("quick", starts=3, steps=8)}


def build(name, seed=0):
    if name == "rf":
        return ws.RandomFeatures(WORDS, D, 40, gaussian="dense", seed=seed)
    return ws.RandomAttentionFeatures(D, seed=seed)


def plain_map(name, phi):
    """The features of a text in numpy."""
    if name == "rf":
        (layer,) = phi.weights
        return lambda rows: np.maximum(layer.numpy() @ rows.ravel(), 0)
    weight = phi.weight.numpy()

    def attention(rows):
        scores = np.exp(rows @ weight @ rows.T / np.sqrt(D))
        return (scores / scores.sum(axis=1, keepdims=True) @ rows).ravel()

    return attention


def learned(name, seed, y=1):
    """A text that a model of nine others is about to learn; and by training the parameters after,
    the direction and the model before, from explicit solves."""
    phi, random = build(name, seed), np.random.default_rng(seed)
    texts = random.normal(size=(N_TEXTS + 1, WORDS, D))
    texts *= np.sqrt(D) / np.linalg.norm(texts, axis=2, keepdims=True)
    labels = random.choice([-1.0, 1.0], N_TEXTS)
    new = ws.NewText(ws.fit_min_norm(phi, texts[:-1], labels), torch.from_numpy(texts[-1]), y)
    features = plain_map(name, phi)
    rows = np.array([features(text) for text in texts])
    every = rows.T @ np.linalg.solve(rows @ rows.T, np.append(labels, y))
    Phi, psi = rows[:-1], rows[-1]
    inverse = np.linalg.solve(Phi @ Phi.T, np.column_stack([labels, Phi @ psi]))
    old, rest = Phi.T @ inverse[:, 0], psi - Phi.T @ inverse[:, 1]
    tuned = old + psi * (y - psi @ old) / (psi @ psi)
    after = {"fine-tuned": (tuned, psi / (psi @ psi)), "retrained": (every, rest / (rest @ rest))}
    return new, features, texts[-1], old, after


def moved(random, text, group, length):
    """The text with the words of the group moved by `length` √d in random directions."""
    variant = text.copy()
    step = random.normal(size=(len(group), D))
    variant[group] += length * np.sqrt(D) * step / np.linalg.norm(step, axis=1, keepdims=True)
    return variant


@settings(deadline=None, max_examples=80, derandomize=True)
@given(
    name=st.sampled_from(["rf", "raf"]),
    training=st.sampled_from(TRAININGS),
    seed=st.integers(0, 500),
    y=st.sampled_from([1, -1]),
    count=st.integers(1, WORDS),
    length=st.floats(0.0, 1.0),
)
def test_the_identity_and_the_bounds_hold_for_any_number_of_words(
    name, training, seed, y, count, length
):
    new, features, text, old, after = learned(name, seed, y)
    random = np.random.default_rng(seed)
    group = random.permutation(WORDS)[:count]
    variant = moved(random, text, group, length)
    psi, changed = features(text), features(variant)
    theta, direction = after[training]
    shift, alignment = (changed - psi) @ old, changed @ direction
    surprise, error = y - psi @ old, (changed @ theta + y) ** 2
    scale = 1e-8 * max(1.0, abs(surprise), abs(alignment * surprise)) ** 2
    assert changed @ theta - y == pytest.approx(shift + (alignment - 1) * surprise, abs=scale)
    measured = new.outputs(group.tolist(), torch.from_numpy(variant - text)[group], training)
    assert measured.error == pytest.approx(error, abs=scale)
    floor = least_error(new, training, count, np.sqrt(D), abs(shift))
    if name == "raf":
        assert floor is None
        return
    assert error >= floor - scale
    if training == "fine-tuned":
        assert alignment >= 0


def test_the_bound_is_met_where_a_text_is_erased():
    # Without a bias phi(0) = 0: F = 0 and delta = -f(X), so Err = 1, whatever the old model said.
    met = 0
    for seed in range(40):
        new, *_ = learned("rf", seed)
        before = new.output_before
        erased = new.outputs(range(WORDS), -new.rows, "fine-tuned")
        floor = least_error(new, "fine-tuned", WORDS, np.sqrt(D), erased.gamma)
        assert erased.error == pytest.approx(1.0, abs=1e-9)
        assert floor <= erased.error + 1e-9
        if 0 <= before <= 1:
            met += 1
            assert floor == pytest.approx(1.0, abs=1e-9)
    assert met > 5


@pytest.mark.parametrize("training", TRAININGS)
@pytest.mark.parametrize("count", [1, 3, 5])
def test_no_search_passes_the_bound(training, count):
    for seed in range(6):
        new, *_ = learned("rf", seed)
        frontier = new.frontier(
            range(count), training=training, gammas=[0.2, 1.5], ball="each", **SHORT
        )
        for limit, error in zip(frontier.gammas.tolist(), frontier.errors.tolist(), strict=True):
            assert error >= least_error(new, training, count, np.sqrt(D), limit) - 1e-9


@pytest.mark.parametrize("training", TRAININGS)
@pytest.mark.parametrize("radius", [0.05, 0.5, 2.0])
def test_the_bound_is_the_larger_of_both_formulas(training, radius):
    for seed in range(8):
        new, features, text, old, after = learned("rf", seed, y=-1)
        psi, direction = features(text), after[training][1]
        before, bound = -psi @ old, bound_of_every_set(new.fit.phi, new.rows, 2, radius).value
        lengths = np.linalg.norm(psi) * np.linalg.norm(direction)
        floors = [2 - 0.5 - bound * lengths * abs(-1 - psi @ old), 0.0]
        if training == "fine-tuned" and before <= 1:
            floors.append(1 + before - 0.5)
        floor = least_error(new, training, 2, radius, 0.5)
        assert floor == pytest.approx(max(floors) ** 2, rel=1e-8)


def test_no_step_from_the_witness_lowers_the_error_within_the_balls_and_the_limit():
    new, features, text, old, after = learned("raf", 5)
    frontier = new.frontier((0, 1, 3), gammas=[0.3], ball="each")
    theta, before = after["fine-tuned"][0], features(text) @ old

    def changed(step):
        variant = text.copy()
        variant[[0, 1, 3]] += step.reshape(3, D)
        return features(variant)

    limits = [
        {"type": "ineq", "fun": lambda step: 0.09 - (changed(step) @ old - before) ** 2},
        {"type": "ineq", "fun": lambda step: D - (step.reshape(3, D) ** 2).sum(axis=1)},
    ]
    start = frontier.perturbations[0].numpy().ravel()
    found = minimize(
        lambda step: (changed(step) @ theta + 1) ** 2, start, constraints=limits, method="SLSQP"
    )
    assert float(frontier.errors[0]) > 0.1
    assert found.fun > 0.998 * float(frontier.errors[0])


def test_each_word_has_a_ball_of_its_own_and_reaches_more_than_in_a_joint_one():
    new, *_ = learned("raf", 3)
    options = {"objective": "fine-tuned-alignment", "radius": 1.3}
    each = new.generalization((0, 2, 3), ball="each", **options)
    joint = new.generalization((0, 2, 3), **options)
    lengths = each.perturbation.norm(dim=1)
    assert bool((lengths <= 1.3).all()) and float(lengths.norm()) > 1.5 * 1.3
    assert float(joint.perturbation.norm()) <= 1.3
    assert each.loss < joint.loss
    with pytest.raises(InputError, match="`ball`"):
        new.frontier((0, 1), ball="both")


def test_one_word_has_the_same_numbers_in_either_ball():
    new, *_ = learned("rf", 1)
    one, other = (new.frontier([2], ball=ball, **SHORT) for ball in ("joint", "each"))
    assert one.errors.tolist() == other.errors.tolist()
    assert torch.equal(one.perturbations, other.perturbations)
