"""The theorems' conditions in words."""

import pytest
import torch

import wordsens as ws


def by_name(phi, rows):
    return {condition.name: condition for condition in ws.theory.check_conditions(phi, rows)}


def test_rows_that_are_not_rescaled_are_found():
    rows = ws.gaussian_text(4, 9, seed=0).rows
    assert by_name(ws.RandomFeatures(4, 9), rows)["rows of length sqrt(d)"].holds is True
    for row in (slice(None), 2):
        longer = rows.clone()
        longer[row] *= 1.1
        found = by_name(ws.RandomFeatures(4, 9), longer)["rows of length sqrt(d)"]
        assert found.holds is False


def test_unknown_constants_stay_open():
    found = by_name(ws.DeepRandomFeatures(4, 9, 3), ws.gaussian_text(4, 9, seed=0).rows)
    assert found["width"].holds is None
    assert "see Theorem 2 of the paper" in found["width"].detail
    assert "L = 3" in found["fixed depth"].detail
    assert found["Lipschitz activation"].holds is True


@pytest.mark.parametrize(("score", "holds"), [("softmax", True), ("relu", False)])
def test_only_softmax_meets_theorem_three(score, holds):
    found = by_name(ws.RandomAttentionFeatures(9, score), ws.gaussian_text(4, 9, seed=0).rows)
    assert found["softmax scores"].holds is holds
    assert "d / n = 2.25" in found["d large compared with n"].detail


def test_the_mean_cosine_is_that_of_the_rows():
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
    found = by_name(ws.RandomAttentionFeatures(2), rows)["correlation of the words"]
    assert "mean cosine 0.471" in found.detail
    assert str(found).startswith("[open] correlation")


def test_a_map_that_no_theorem_speaks_of_says_so():
    (only,) = ws.theory.check_conditions(
        ws.FunctionFeatures(lambda X: X), torch.ones(3, 2, dtype=torch.float64)
    )
    assert only.holds is False
