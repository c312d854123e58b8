"""What a search may spend: efforts, plans, and the stages that come of them."""

import pytest
import torch

import wordsens as ws
from tests.search.functions import Function, quadratic
from wordsens.errors import InputError
from wordsens.search.maximize import maximize
from wordsens.search.objective import Ball
from wordsens.search.plan import EFFORTS, SearchPlan, Stages
from wordsens.seeds import generator

OWN = Stages(starts=32, steps=20, halvings=(12,), generations=4, leaders=6)


def test_an_unknown_effort_is_refused_with_the_remedy(unchecked_types):
    for wrong in ("thorogh", 64, None, Stages()):
        with pytest.raises(
            InputError, match=r"`search` .* must be one of quick, normal, thorough.*SearchPlan\("
        ):
            SearchPlan.of(wrong)
    with pytest.raises(InputError, match="did you mean 'thorough'"):
        SearchPlan("thorogh")


def searched(effort, objective, count=4, seed=0, progress=None):
    ball = Ball(torch.linspace(1.0, 2.0, count, dtype=torch.float64))
    return maximize(
        objective,
        torch.arange(count),
        ball,
        SearchPlan.of(effort),
        generator=generator(seed, "plan"),
        progress=progress,
    )


def hilly(stages=OWN):
    f, _, _ = quadratic(6, 3, linear=1.0)
    return Function(
        lambda delta: f(delta) * (2 + torch.cos(3 * delta).sum(dim=-1)), (6,), stages=stages
    )


def test_more_effort_spends_more_and_thorough_is_never_less_than_normal():
    for seed in range(3):
        quick, normal, thorough = (searched(effort, hilly(), seed=seed) for effort in EFFORTS)
        assert 2.5 * quick.evaluations < normal.evaluations < thorough.evaluations / 2.5
        assert bool((thorough.squared >= normal.squared).all())
        # With one seed the thorough search begins with the normal one.
        assert bool((thorough.spent > normal.spent).all())


@pytest.mark.parametrize(
    "stages", [OWN, Stages(starts=1, steps=1, children=1, finish=1, tolerance=0.0)]
)
@pytest.mark.parametrize("effort", EFFORTS)
def test_what_is_spent_is_what_was_evaluated(effort, stages):
    objective = hilly(stages)
    evaluations = searched(effort, objective).evaluations
    # Ascents that stand still run beside others to the end of a round, and are not counted.
    assert 0.9 * objective.evaluated <= evaluations <= objective.evaluated


@pytest.mark.parametrize("effort", EFFORTS)
def test_progress_rises_to_its_total(effort):
    calls = []
    searched(effort, hilly(), progress=lambda *call: calls.append(call))
    done = [call[0] for call in calls]
    assert done == sorted(done)
    assert len({total for _, total in calls}) == 1
    assert calls[-1][0] == calls[-1][1]


@pytest.mark.parametrize(
    "phi", [ws.RandomAttentionFeatures(4), ws.RandomFeatures(6, 4, activation="tanh")], ids=str
)
def test_efforts_of_word_sensitivity(phi):
    X = ws.gaussian_text(6, 4, seed=1)
    quick, normal, thorough = (
        ws.word_sensitivity(phi, X, search=effort, certificate=False) for effort in EFFORTS
    )
    assert ws.word_sensitivity(phi, X, certificate=False) == normal
    assert [quick.search, normal.search, thorough.search] == list(EFFORTS)
    assert quick.evaluations < normal.evaluations < thorough.evaluations
    assert normal.evaluations == int(normal.evaluations_per_word.sum())
    assert quick.value >= 0.9 * normal.value
    assert bool((thorough.per_word >= normal.per_word * (1 - 1e-12)).all())


def test_the_words_that_lead_are_searched_longest():
    spent = ws.word_sensitivity(
        ws.RandomAttentionFeatures(6, seed=0), ws.gaussian_text(20, 6, seed=0), certificate=False
    ).evaluations_per_word
    assert int((spent > 1.5 * spent.median()).sum()) in range(1, 11)


def test_children_take_no_more_steps_than_were_asked_for():
    for steps, child_steps in ((5, 5), (100, OWN.child_steps)):
        (run,) = SearchPlan(steps=steps).runs(OWN)
        assert (run.steps, run.child_steps, run.finish) == (steps, child_steps, steps)
