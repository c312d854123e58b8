"""Witnesses at the edge of a jump, where rounding decides which side they are on."""

import torch

from wordsens.search.ball import Ball
from wordsens.search.result import SearchResult
from wordsens.sensitivity.jumps import moved_back


def beside(edge: float):
    """1 minus the distance to the plane Delta_0 = edge on its upper side, nothing on the other."""

    def attained(words, moved):
        return torch.where(moved[:, 0] > edge, 1 - (moved[:, 0] - edge).abs(), torch.zeros(len(moved)).double())

    return attained


def found_at(points: torch.Tensor) -> SearchResult:
    w = len(points)
    return SearchResult(points, torch.ones(w).double(), torch.ones(w).long(), torch.ones(w).bool())


def test_a_witness_on_the_wrong_side_is_moved_to_the_right_one_and_stays_in_the_ball():
    points = torch.tensor([[0.5, 0.0], [0.5 + 1e-9, 0.0], [0.5, 0.75**0.5]], dtype=torch.float64)
    words, ball = torch.tensor([4, 2, 7]), Ball(torch.ones(3, dtype=torch.float64))
    attained = beside(0.5)
    before = attained(words, points)
    assert before.tolist()[0] == 0.0
    found, per_word = moved_back(attained, words, ball, found_at(points), before, torch.ones(3).double(), 0)
    assert (per_word > 1 - 1e-8).all()
    assert ball.contains(found.perturbations, relative_slack=0.0)
    torch.testing.assert_close(per_word, attained(words, found.perturbations))
    assert found.spent.tolist() == [81, 1, 81]


def test_what_attains_what_was_seen_or_nothing_better_nearby_is_left():
    points = torch.zeros(2, 3, dtype=torch.float64)
    words, ball, found = torch.arange(2), Ball(torch.ones(2, dtype=torch.float64)), found_at(points)

    def nothing(words, moved):
        return torch.zeros(len(moved)).double()

    per_word = torch.tensor([0.999, 0.0], dtype=torch.float64)
    after, values = moved_back(nothing, words, ball, found, per_word, torch.tensor([1.0, 1.0]).double(), 0)
    assert values.equal(per_word)
    assert after.perturbations.equal(points)
    same, _ = moved_back(nothing, words, ball, found, per_word, torch.tensor([1.0, torch.inf]).double(), 0)
    assert same is found
