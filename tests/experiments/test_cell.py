"""One cell: the record says what was measured, and depends on the spec alone."""

import math

import pytest
import torch

from wordsens import RandomAttentionFeatures, SearchPlan, word_sensitivity
from wordsens.experiments.sensitivity.cell import KIND as SENSITIVITY
from wordsens.experiments.sensitivity.spec import SensitivityCell
from wordsens.experiments.texts.documents import load_text

RAF = SensitivityCell.parse({"map": "raf", "n": 5, "d": 8, "text": "gaussian", "starts": 2, "steps": 10})


def changed(cell, **changes):
    return SensitivityCell.parse({**cell.model_dump(exclude_unset=True, mode="json"), **changes})


def test_the_record_can_be_recomputed_from_what_it_says():
    record = SENSITIVITY.run(RAF)
    text = load_text(RAF.text, 5, 8, draw=0, seed=0)
    phi = RandomAttentionFeatures(8, seed=record.map_seed)
    again = word_sensitivity(phi, text, words=[record.word], search=SearchPlan(starts=2, steps=10))
    assert record.status == "done"
    assert (record.map, record.n, record.d, record.text) == ("raf", 5, 8, "gaussian")
    assert record.source == text.source
    assert record.words == 5
    assert record.token == text.word(record.word)
    assert record.radius == pytest.approx(math.sqrt(8))
    assert record.value >= again.value * 0.9
    assert record.seconds > 0
    assert record.evaluations >= 5
    assert 0 <= record.converged <= 1
    assert record.cell == RAF.content_hash()


def test_values_do_not_depend_on_what_ran_before():
    other = changed(RAF, draw=1)
    forth = [SENSITIVITY.run(RAF), SENSITIVITY.run(other)]
    back = [SENSITIVITY.run(other), SENSITIVITY.run(RAF)]
    assert forth[0].value == back[1].value
    assert forth[1].value == back[0].value
    assert forth[0].value != forth[1].value


def test_maps_of_one_draw_see_the_same_text():
    relu = changed(RAF, map="relu-raf")
    rf = SensitivityCell.parse({"map": "rf", "n": 5, "d": 8, "text": "gaussian", "steps": 5})
    assert SENSITIVITY.run(RAF).source == SENSITIVITY.run(relu).source == SENSITIVITY.run(rf).source


@pytest.mark.parametrize(
    ("words", "searched"), [("all", 5), ({"sample": 2}, 2), ({"sample": 9}, 5), ({"indices": [3, -1]}, 2)]
)
def test_the_searched_words(words, searched):
    record = SENSITIVITY.run(changed(RAF, words=words))
    assert record.words == searched
    if words == {"indices": [3, -1]}:
        assert record.word in (3, 4)


def test_of_a_race_the_typical_word_is_the_sampled_ones():
    keys = {"n": 12, "starts": 4, "steps": 30, "generations": 0}
    whole, race = (SENSITIVITY.run(changed(RAF, **keys, **more)) for more in ({}, {"contenders": 2, "sampled": 3}))
    assert (race.contenders, race.sampled, whole.contenders) == (2, 3, None)
    assert race.value == pytest.approx(whole.value, rel=0.02)
    assert race.evaluations < whole.evaluations
    # Of 12 words the middles of three stretches.
    assert race.median_word == sorted(race.per_word[i] for i in (2, 6, 10))[1]
    assert race.median_word == pytest.approx(sorted(whole.per_word[i] for i in (2, 6, 10))[1], rel=0.02)
    assert whole.median_word == pytest.approx(torch.tensor(whole.per_word).double().quantile(0.5).item())
    assert SENSITIVITY.run(changed(RAF, **keys, contenders=2)).median_word is None


def test_float32_agrees_with_float64():
    low = SENSITIVITY.run(changed(RAF, dtype="float32"))
    assert low.dtype == "float32"
    assert low.value == pytest.approx(SENSITIVITY.run(RAF).value, rel=1e-3)


def test_options_reach_the_map():
    drf = SensitivityCell.parse(
        {"map": "drf", "n": 4, "d": 6, "text": "gaussian", "depth": 3, "width": 10, "activation": "tanh", "steps": 3}
    )
    record = SENSITIVITY.run(drf)
    assert (record.map, record.depth, record.width, record.activation) == ("drf3", 3, 10, "tanh")
    assert record.temperature is None
    warm = SENSITIVITY.run(changed(RAF, temperature=2.0))
    assert (warm.temperature, warm.activation, warm.depth) == (2.0, None, None)


def test_a_failure_is_a_record_with_its_error():
    # Two orthogonal rows do not fit into one dimension: known only once the text is drawn.
    broken = SensitivityCell.parse({"map": "drf", "n": 3, "d": 2, "text": "orthogonal", "depth": 2})
    record = SENSITIVITY.attempt(broken)
    assert (record.status, record.value, record.map) == ("failed", None, "drf2")
    assert record.error.startswith("InputError: `n` (=3) must be at most `d` (=2)")
    assert "\n" not in record.error
    assert record.cell == broken.content_hash()


def test_the_global_generator_is_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    SENSITIVITY.run(RAF)
    assert torch.equal(torch.rand(1), expected)
