"""The budget of a measurement."""

import pytest
import torch

import wordsens as ws
from wordsens.sensitivity.result import Budget


def test_its_memory_and_progress_are_those_of_the_search():
    X, told = ws.gaussian_text(6, 4, seed=0).rows, []
    budget = Budget(ws.SearchPlan(starts=2, steps=4), progress=lambda *call: told.append(call))
    phi = ws.RandomAttentionFeatures(4, seed=0)
    found = ws.group_sensitivity(phi, X, [(0, 1), (2, 3)], search=budget)
    assert told and told[-1][0] <= told[-1][1]
    tight = Budget(budget.search, memory_budget=40_000)
    torch.testing.assert_close(ws.group_sensitivity(phi, X, [(0, 1), (2, 3)], search=tight).per_group, found.per_group)


@pytest.mark.parametrize(
    ("options", "message"), [({"memory_budget": 0}, "`memory_budget` (=0)"), ({"search": "quik"}, "quick")]
)
def test_a_wrong_budget_is_refused(options, message):
    with pytest.raises(ws.InputError) as error:
        Budget(**options)
    assert message in str(error.value)
