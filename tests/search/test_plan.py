"""What a search may spend: efforts, plans, and the stages that come of them for a map."""

from dataclasses import asdict, replace

import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError
from wordsens.search.plan import EFFORTS, RULE_NAMES, SearchPlan, Stages

OWN = Stages(starts=48, inner=8, chosen=32, soft_steps=8, explored_share=0.003, generations=4, children=48, relays=64)


@pytest.mark.parametrize("kind", [SearchPlan, Stages])
class TestRanges:
    @pytest.mark.parametrize("name", ["starts", "population", "children", "finalists"])
    @pytest.mark.parametrize("value", [0, -1, 1.5, True])
    def test_counts_are_at_least_one(self, kind, name, value, unchecked_types):
        with pytest.raises(InputError) as caught:
            kind(**{name: value})
        assert str(caught.value) == f"`{name}` (={value!r}) must be a whole number, at least 1"

    @pytest.mark.parametrize("name", ["climb_steps", "generations", "relays", "steps", "inner", "chosen", "kick_steps"])
    def test_steps_and_rounds_may_be_none_at_all(self, kind, name):
        assert getattr(kind(**{name: 0}), name) == 0
        with pytest.raises(InputError) as caught:
            kind(**{name: -1})
        assert str(caught.value) == f"`{name}` (=-1) must be a whole number, at least 0"

    @pytest.mark.parametrize("tolerance", [-1e-9, 1.0, float("nan"), float("inf")])
    def test_the_tolerance_is_a_share(self, kind, tolerance):
        with pytest.raises(InputError) as caught:
            kind(tolerance=tolerance)
        assert str(caught.value) == f"`tolerance` (={tolerance!r}) must be at least 0 and less than 1"

    def test_rules_have_names(self, kind):
        assert [kind(rule=name).rule for name in RULE_NAMES] == list(RULE_NAMES)
        with pytest.raises(InputError, match="did you mean 'momentum'"):
            kind(rule="momentun")


class TestPlans:
    def test_the_normal_effort_is_the_maps_own_stages(self):
        assert SearchPlan().stages(OWN) is OWN
        assert SearchPlan.of("normal").stages(OWN) is OWN

    def test_named_values_replace_the_maps_and_others_stay(self):
        varied = SearchPlan(starts=64, tolerance=0.0).stages(OWN)
        assert varied == replace(OWN, starts=64, tolerance=0.0)

    def test_a_plan_that_names_every_value_replaces_the_maps(self):
        other = Stages()
        assert SearchPlan(**asdict(other)).stages(OWN) == other

    def test_candidates_are_no_more_than_the_starts_that_are_named(self):
        assert SearchPlan(starts=5).stages(OWN).chosen == 5
        assert SearchPlan(starts=5, chosen=9).stages(OWN).chosen == 9

    def test_without_generations_the_map_itself_is_climbed_from_the_starts_alone(self):
        varied = SearchPlan(generations=0).stages(OWN)
        assert (varied.chosen, varied.soft_steps, varied.explored_share) == (0, 0, 0.0)
        assert SearchPlan(generations=0, soft_steps=3).stages(OWN).soft_steps == 3

    def test_efforts_are_in_order_for_every_number(self):
        quick, normal, thorough = (SearchPlan.of(name).stages(OWN) for name in EFFORTS)
        for name in ("starts", "chosen", "population", "generations", "children", "relays", "finalists", "steps"):
            assert getattr(quick, name) < getattr(normal, name) < getattr(thorough, name)
        assert quick.tolerance > normal.tolerance > thorough.tolerance
        assert quick.rounds() < normal.rounds() < thorough.rounds()

    @pytest.mark.parametrize("effort", EFFORTS)
    def test_the_least_stages_have_efforts_too(self, effort):
        least = Stages(starts=1, climb_steps=0, population=1, children=1, finalists=1, steps=0, tolerance=0.0)
        assert SearchPlan(effort).stages(least).starts >= 1

    def test_a_plan_says_what_was_asked_for(self):
        assert [str(SearchPlan()), repr(SearchPlan())] == ["normal", "SearchPlan(effort='normal')"]
        plan = SearchPlan("quick", starts=4)
        assert str(plan) == "quick, starts=4"
        assert eval(repr(plan)) == plan

    def test_an_unknown_search_is_refused_with_the_remedy(self, unchecked_types):
        for wrong in ("thorogh", 64, None, Stages()):
            with pytest.raises(InputError, match=r"`search` .* must be one of quick, normal, thorough.*SearchPlan\("):
                SearchPlan.of(wrong)
        with pytest.raises(InputError, match="did you mean 'thorough'"):
            ws.word_sensitivity(lambda X: X, ws.gaussian_text(3, 4), search="thorogh")


MAPS = {"raf": ws.RandomAttentionFeatures(4), "rf tanh": ws.RandomFeatures(3, 4, activation="tanh")}


@pytest.mark.slow_cases("raf")
@pytest.mark.parametrize("name", MAPS)
def test_more_effort_spends_more_and_finds_no_less(name):
    X = ws.gaussian_text(3, 4, seed=1)
    quick, normal, thorough = (
        ws.word_sensitivity(MAPS[name], X, [0], search=effort, certificate=False) for effort in EFFORTS
    )
    assert [quick.search, normal.search, thorough.search] == list(EFFORTS)
    assert quick.evaluations < normal.evaluations < thorough.evaluations
    assert 0.8 * normal.value <= quick.value <= normal.value * (1 + 1e-6)
    assert thorough.value >= normal.value * (1 - 1e-6)
    assert quick.seconds > 0


def test_the_default_is_normal():
    X, phi = ws.gaussian_text(3, 4, seed=1), ws.RandomFeatures(3, 4)
    assert ws.word_sensitivity(phi, X) == ws.word_sensitivity(phi, X, search="normal")


def test_the_words_that_lead_are_searched_longest():
    phi, text = ws.DeepRandomFeatures(8, 6, 2, 8, seed=0), ws.gaussian_text(8, 6, seed=0)
    once, raced = (
        ws.word_sensitivity(phi, text, certificate=False, search=ws.SearchPlan(starts=2, steps=2, leaders=count))
        for count in (0, 5)
    )
    spent = raced.evaluations_per_word - once.evaluations_per_word
    # One word in four at most, those with the largest values.
    assert set(spent.argsort()[-2:].tolist()) == set(once.per_word.argsort()[-2:].tolist())
    assert int((spent > 0).sum()) == 2
    assert raced.evaluations == int(raced.evaluations_per_word.sum())
    assert raced.value >= once.value
    assert "leaders=5" in raced.search


@pytest.mark.slow_cases("relu")
@pytest.mark.parametrize("score", ["softmax", "relu"])
def test_a_race_finds_s_and_searches_few_words_to_the_end(score):
    phi = ws.RandomAttentionFeatures(16, score=score, seed=3)
    text = ws.gaussian_text(40, 16, seed=3)
    plan = ws.SearchPlan(contenders=6, sampled=4)
    whole = ws.word_sensitivity(phi, text, certificate=False)
    race = ws.word_sensitivity(phi, text, certificate=False, search=plan)
    assert race.value >= 0.998 * whole.value
    finished = race.evaluations_per_word > 2 * race.evaluations_per_word.min()
    assert int(finished.sum()) == 10 == plan.searched_to_the_end(40)
    assert bool(finished[race.word])
    sampled = plan.representative(40)
    assert sampled == [5, 15, 25, 35] and bool(finished[sampled].all())
    assert not bool((race.converged & ~finished).any())
    torch.testing.assert_close(race.per_word[finished], whole.per_word[finished], rtol=0.05, atol=0)
    # A lower bound of every word's all the same: nothing exceeds what a longer search attains by more than its luck.
    assert bool((race.per_word <= 1.05 * whole.per_word).all())
    assert race.evaluations < 0.65 * whole.evaluations


def test_a_race_bounds_s_as_low_as_a_search_of_all_words():
    phi, text = ws.RandomAttentionFeatures(8, score="relu", seed=3), ws.gaussian_text(40, 8, seed=4)
    race = ws.word_sensitivity(phi, text, search=ws.SearchPlan("quick", contenders=4, sampled=2))
    bounds = ws.certify(phi, text)
    assert race.upper == pytest.approx(float(bounds.max()), rel=1e-9)
    # Bounds that are searched for apart end alike but for how the search's sums were rounded.
    assert bool((race.upper_per_word >= bounds * (1 - 1e-3)).all())
    assert bool((race.upper_per_word > bounds * (1 + 1e-4)).any())


def test_texts_too_short_for_a_race_are_searched_whole():
    phi, text = ws.RandomAttentionFeatures(8, seed=0), ws.gaussian_text(8, 8, seed=0)
    whole = ws.word_sensitivity(phi, text, certificate=False, search=ws.SearchPlan())
    same = ws.word_sensitivity(phi, text, certificate=False, search=ws.SearchPlan(contenders=3, sampled=1))
    assert torch.equal(same.per_word, whole.per_word)
    assert ws.SearchPlan(contenders=3, sampled=1).representative(8) == list(range(8))


@pytest.mark.slow
def test_texts_race_together_as_they_would_alone():
    phi = ws.RandomAttentionFeatures(8, score="relu", seed=0)
    texts = [ws.gaussian_text(12, 8, seed=seed) for seed in (1, 2)]
    plan = ws.SearchPlan("quick", contenders=3, sampled=2)
    together = ws.word_sensitivities(phi, texts, search=plan, certificate=False)
    for text, found in zip(texts, together, strict=True):
        alone = ws.word_sensitivity(phi, text, search=plan, certificate=False)
        torch.testing.assert_close(found.per_word, alone.per_word, rtol=1e-6, atol=0)
        assert torch.equal(found.evaluations_per_word > 100, alone.evaluations_per_word > 100)


def test_rounding_kinks_off_takes_no_more_steps_than_polishing_may():
    phi, text = ws.RandomAttentionFeatures(8, score="relu", seed=0), ws.gaussian_text(5, 8, seed=0)
    few, more = (
        ws.word_sensitivity(
            phi, text, certificate=False, search=ws.SearchPlan(starts=1, steps=steps, generations=0, relays=0)
        )
        for steps in (1, 30)
    )
    assert int(few.evaluations_per_word.max()) < 60 < int(more.evaluations_per_word.max())


def test_a_gap_that_a_quick_search_meets_ends_it():
    phi, text = ws.RandomAttentionFeatures(8, seed=0), ws.gaussian_text(5, 8, seed=0)
    met, missed = (ws.word_sensitivity(phi, text, gap=gap) for gap in (100.0, 1.0))
    quick, normal = (ws.word_sensitivity(phi, text, search=search) for search in ("quick", "normal"))
    assert met == quick
    assert met.upper <= 100 * met.value
    assert missed == normal
    with pytest.raises(InputError, match="`gap`"):
        ws.word_sensitivity(phi, text, gap=-1.0)


def test_the_words_with_the_largest_values_are_searched_again():
    # Wider than the layers whose corners a search starts from: on those one search finds all.
    phi, text = ws.DeepRandomFeatures(5, 6, 2, 80, seed=2), ws.gaussian_text(5, 6, seed=0)
    once, again = (
        ws.word_sensitivity(phi, text, certificate=False, search=ws.SearchPlan(starts=2, steps=2, again=count))
        for count in (0, 2)
    )
    better = again.per_word > once.per_word * (1 + 1e-9)
    assert 1 <= int(better.sum()) <= 2
    torch.testing.assert_close(again.per_word[~better], once.per_word[~better], rtol=1e-9, atol=0)
