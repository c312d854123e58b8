"""What data sets call positive and negative."""

import math

import pytest

from wordsens.errors import InputError
from wordsens.text.labels import LabelReader


@pytest.mark.parametrize("value", [1, True, 1.0, "1", "+1", "1.0", "pos", "Positive", " POS "])
def test_positive(value):
    assert LabelReader().read(value, "row 1") == 1


@pytest.mark.parametrize("value", [0, False, 0.0, -1, -1.0, "0", "-1", "0.0", "neg", "Negative"])
def test_negative(value):
    assert LabelReader().read(value, "row 1") == -1


@pytest.mark.parametrize("value", [None, "", "  ", math.nan])
def test_unknown(value):
    assert LabelReader().read(value, "row 1") is None


@pytest.mark.parametrize("value", [2, 0.5, "maybe", "3", [1], b"pos", math.inf])
def test_not_understood(value):
    with pytest.raises(InputError) as caught:
        LabelReader().read(value, "reviews.csv:7")
    assert str(caught.value) == (
        f"reviews.csv:7: the label {value!r} is not understood; use 1 and 0, +1 and -1, 'pos' and 'neg', "
        "'positive' and 'negative', or nothing where it is unknown, or pass labels=False to read none"
    )


def test_zero_and_minus_one_together_are_ambiguous():
    reader = LabelReader()
    assert [reader.read(value, "row") for value in (1, 0, 1)] == [1, -1, 1]
    with pytest.raises(InputError, match="row 9: the labels 0 and -1 both occur"):
        reader.read(-1, "row 9")


def test_class_names_decide_what_a_number_means():
    reader = LabelReader(["neg", "pos"])
    assert [reader.read(value, "row") for value in (0, 1, -1, 0)] == [-1, 1, None, -1]
    swapped = LabelReader(["positive", "negative"])
    assert [swapped.read(value, "row") for value in (0, 1)] == [1, -1]
    with pytest.raises(InputError, match="row 2: the label 2 is not one of the 2 classes"):
        reader.read(2, "row 2")
    with pytest.raises(InputError, match="row 3: the label 'World' is not understood"):
        LabelReader(["World", "Sports"]).read(0, "row 3")
