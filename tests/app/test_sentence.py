"""The sentence above a measured text."""

import pytest

pytest.importorskip("nicegui")

FOUND = {"word": "not", "value": 3.0, "upper": 3.46, "predicted": 3.2, "text": {"low": 1.0, "high": 3.0}}


def sentence(**changed):
    from wordsens.app.view.measurement import sentence

    return sentence({**FOUND, **changed})


def test_a_prediction_is_an_estimate():
    assert "Theory predicts about 3.2 for such a text: an estimate, no limit." in sentence()
    assert "Theory predicts about 3.2" in sentence(upper=None)


def test_a_prediction_above_what_is_proved_is_said_to_be_so():
    told = sentence(predicted=3.5)
    assert "Proved: no push of any one word’s vector, that far, moves it by more than 3.46." in told
    assert "Theory’s estimate, 3.5, is above what is proved" in told
    assert "Theory predicts" not in told


def test_what_is_not_known_is_not_said():
    told = sentence(upper=None, predicted=None)
    assert "“not” moves the whole output by 3 times its size" in told
    assert "Proved" not in told
    assert "Theory" not in told


def test_words_that_hardly_differ_are_said_to():
    assert "The colours exaggerate" in sentence(text={"low": 2.9, "high": 3.0})
    assert "The colours exaggerate" not in sentence()
