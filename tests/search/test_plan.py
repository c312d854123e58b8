"""What a search may spend."""

import pytest

from wordsens.errors import InputError
from wordsens.search.plan import RULE_NAMES, SearchPlan


def test_wishes_replace_values_and_none_does_not():
    plan = SearchPlan(starts=3, steps=7)
    assert plan.changed() == plan
    changed = plan.changed(starts=5, generations=2, tolerance=0.0)
    assert (changed.starts, changed.steps, changed.generations, changed.tolerance) == (5, 7, 2, 0.0)
    assert plan.starts == 3


@pytest.mark.parametrize("name", ["starts", "population", "children", "finalists"])
@pytest.mark.parametrize("value", [0, -1, 1.5, True, None])
def test_counts_are_at_least_one(name, value, unchecked_types):
    with pytest.raises(InputError) as caught:
        SearchPlan(**{name: value})
    assert str(caught.value) == f"`{name}` (={value!r}) must be a whole number, at least 1"


@pytest.mark.parametrize("name", ["climb_steps", "generations", "relays", "steps"])
def test_steps_and_rounds_may_be_none_at_all(name):
    assert getattr(SearchPlan(**{name: 0}), name) == 0
    with pytest.raises(InputError) as caught:
        SearchPlan(**{name: -1})
    assert str(caught.value) == f"`{name}` (=-1) must be a whole number, at least 0"


@pytest.mark.parametrize("tolerance", [-1e-9, 1.0, float("nan"), float("inf")])
def test_the_tolerance_is_a_share(tolerance):
    with pytest.raises(InputError) as caught:
        SearchPlan(tolerance=tolerance)
    assert str(caught.value) == f"`tolerance` (={tolerance!r}) must be at least 0 and less than 1"


def test_rules_have_names():
    assert [SearchPlan(rule=name).rule for name in RULE_NAMES] == list(RULE_NAMES)
    with pytest.raises(InputError) as caught:
        SearchPlan(rule="newton")
    assert str(caught.value) == (
        "`rule` (='newton') must be one of quasi-newton, momentum; did you mean 'quasi-newton'?"
    )
