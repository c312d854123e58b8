"""Real swaps: the best word of a vocabulary, by trying them all."""

import pytest
import torch

import wordsens as ws

WORDS, D, N_TEXTS = 4, 6, 9
NAMES = [f"w{index}" for index in range(25)]


def setting(label=1):
    texts = [ws.gaussian_text(WORDS, D, seed=index) for index in range(N_TEXTS + 1)]
    new = ws.NewText(
        ws.fit_min_norm(ws.RandomAttentionFeatures(D), texts[:-1], [1, -1, 1] * 3), texts[-1], label
    )
    rows = ws.gaussian_text(len(NAMES), D, seed=77).rows
    return new, rows


@pytest.mark.parametrize("training", ["fine-tuned", "retrained"])
@pytest.mark.parametrize("label", [1, -1])
@pytest.mark.parametrize(("radius", "gamma_limit"), [(None, None), (3.0, None), (None, 0.2)])
def test_the_swap_is_the_best_of_all_words_by_definition(training, label, radius, gamma_limit):
    new, rows = setting(label)
    g = new.swap(
        None, training=training, vocabulary=(NAMES, rows), radius=radius, gamma_limit=gamma_limit
    )
    found = {}
    for word in range(WORDS):
        for name, row in zip(NAMES, rows, strict=True):
            outputs = new.outputs(word, row - new.rows[word], training)
            near = radius is None or float((row - new.rows[word]).norm()) <= radius
            if near and (gamma_limit is None or abs(outputs.shift) <= gamma_limit):
                found[word, name] = (outputs.after + label) ** 2
    best = min(found, key=found.__getitem__)
    assert (g.word, g.swapped_for) == best
    assert g.error == pytest.approx(found[best], abs=1e-9)
    variant = new.rows[g.word] + g.perturbation
    assert torch.allclose(variant, rows[NAMES.index(g.swapped_for)])
    assert g.evaluations == WORDS * len(NAMES)


def test_phrases_take_the_place_of_a_group():
    new, rows = setting()
    phrases = rows[:24].view(12, 2, D)
    g = new.swap((3, 1), vocabulary=lambda position: (NAMES[:12], phrases))
    errors = [new.outputs((3, 1), rows - new.rows[[3, 1]], "fine-tuned").error for rows in phrases]
    assert g.error == pytest.approx(min(errors), abs=1e-9)
    assert g.swapped_for == NAMES[errors.index(min(errors))] and g.word == (3, 1)
    assert torch.allclose(new.rows[[3, 1]] + g.perturbation, phrases[errors.index(min(errors))])
    with pytest.raises(ws.InputError, match="no vocabulary word"):
        new.swap(0, vocabulary=(NAMES, rows * torch.nan))
    with pytest.raises(ws.InputError, match=r"give one array of shape \(2, 6\) per word"):
        new.swap((3, 1), vocabulary=(NAMES, rows))


def test_a_phrase_stays_in_the_joint_ball():
    new, rows = setting()
    phrases = rows[:24].view(12, 2, D)
    lengths = (phrases - new.rows[[3, 1]]).flatten(1).norm(dim=1)
    radius = float(lengths.sort().values[6])
    g = new.swap((3, 1), vocabulary=(NAMES[:12], phrases), radius=radius)
    errors = [new.outputs((3, 1), rows - new.rows[[3, 1]], "fine-tuned").error for rows in phrases]
    near = [error for error, length in zip(errors, lengths, strict=True) if length <= radius]
    assert float(g.perturbation.norm()) <= radius
    assert g.error == pytest.approx(min(near), abs=1e-9)
