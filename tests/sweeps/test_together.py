"""Cells of attention that differ in draw and seed are searched as one problem."""

import copy

import pytest

import wordsens as ws
from tests.search.functions import word_change
from wordsens.sweeps.measurement import (
    SensitivityCell,
    alike,
    measure_sensitivities,
    measure_sensitivity,
)


def attention_cells(score, **keys):
    usual = {
        "map": "raf",
        "score": score,
        "n": 6,
        "d": 12,
        "text": {"kind": "gaussian"},
        "dtype": "float64",
    }
    return [
        SensitivityCell.parse({**usual, **keys, "draw": draw, "seed": seed})
        for draw in range(3)
        for seed in (0, 4)
    ]


# Of searches that run to their end: on the way an ascent magnifies rounding, and from kink to kink
# of ReLU scores rounding decides where it turns.
@pytest.mark.parametrize(
    ("score", "keys", "close"),
    [
        ("softmax", {}, 1e-6),
        ("softmax", {"words": {"sample": 3}}, 1e-6),
        ("relu", {"heads": 2}, 1e-2),
    ],
    ids=str,
)
def test_cells_together_give_what_each_gives_alone(score, keys, close):
    cells = attention_cells(score, **keys)
    assert len({alike(cell) for cell in cells}) == 1
    for cell, together in zip(cells, measure_sensitivities(cells), strict=True):
        alone = measure_sensitivity(cell)
        assert alone["value"] > 0
        assert score == "relu" or alone["converged"] == 1
        for name in ("upper", "average", "radius"):
            assert together[name] == pytest.approx(alone[name], rel=1e-9), name
        for name in ("rows", "words"):
            assert together["arrays"][name].equal(alone["arrays"][name]), name
        assert together["arrays"]["per_word"].numpy() == pytest.approx(
            alone["arrays"]["per_word"].numpy(), rel=close
        )


def test_cells_that_differ_in_more_are_not_alike():
    first, *_ = attention_cells("softmax")
    others = [
        attention_cells("softmax", **keys)[0] for keys in ({"n": 7}, {"radius": 1.0}, {"starts": 7})
    ]
    assert len({alike(cell) for cell in (first, *others)}) == 4
    dense = SensitivityCell.parse({"map": "rf", "n": 6, "d": 12, "text": {"kind": "gaussian"}})
    assert alike(dense) != alike(dense.model_copy(update={"draw": 1}))


def test_texts_under_scores_that_may_differ_are_not_searched_as_one_problem():
    phi, rows = ws.RandomAttentionFeatures(12, "softmax", 0), ws.gaussian_text(6, 12).rows
    own = ws.RandomAttentionFeatures(12, copy.copy(phi.score), 1)
    changes = [
        word_change(each, rows) for each in (phi, ws.RandomAttentionFeatures(12, "softmax", 1), own)
    ]
    assert changes[0].joins == changes[1].joins != changes[2].joins
