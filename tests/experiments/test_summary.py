"""Exponents, and what is said of them."""

import math

import pytest

from wordsens.experiments.sensitivity.findings import exponent_text, findings, text_title
from wordsens.experiments.sensitivity.summary import Series, SizePoint, summarise
from wordsens.statistics.power_law import PowerLaw


def test_series_by_map_text_and_dimension(make_record):
    records = [
        make_record(n=n, draw=draw, value=value, source=f"text {n} {draw}")
        for n, values in ((10, (1.0, 3.0)), (40, (0.5, 1.5)))
        for draw, value in enumerate(values)
    ]
    records.append(make_record(map="rf", n=10, value=0.3))
    records.append(make_record(n=10, status="failed", value=None))
    raf, rf = summarise(records)
    assert (raf.map, raf.text, raf.d, raf.texts) == ("raf", "gaussian", 8, 4)
    assert [(point.n, point.mean, point.draws) for point in raf.points] == [(10, 2.0, 2), (40, 1.0, 2)]
    assert raf.points[0].standard_deviation == pytest.approx(math.sqrt(2))
    assert raf.fit.exponent == pytest.approx(-0.5)
    assert rf.fit is None
    assert rf.points == (SizePoint(10, 0.3, 0.0, 1, compared=0.3),)
    assert raf.all_words
    assert not summarise([make_record(words=2)])[0].all_words
    assert summarise([]) == []


def test_maps_of_one_name_come_by_depth(make_record):
    names = ["raf", "drf8", "drf16", "rf", "drf2"]
    found = summarise([make_record(map=name) for name in names])
    assert [one.map for one in found] == ["raf", "drf2", "drf8", "drf16", "rf"]


def test_bounds_and_predictions_are_averaged_and_the_weakest_rigor_is_told(make_record):
    sure, likely = "certified", "with probability 1 - 1e-09"
    records = [
        make_record(
            n=n,
            draw=draw,
            value=value,
            upper=2 * value,
            predicted=1.5 * value,
            rigor=rigor,
            predicted_of="the largest of 4 words",
        )
        for n, value in ((10, 2.0), (20, 1.0))
        for draw, rigor in enumerate((sure, likely))
    ]
    (one,) = summarise(records)
    assert [(point.upper, point.predicted) for point in one.points] == [(4.0, 3.0), (2.0, 1.5)]
    assert (one.bracket_ratio, one.prediction_ratio, one.rigor) == (2.0, 1.5, likely)
    assert summarise(records[::2])[0].rigor == sure
    (partly,) = summarise([*records, make_record(n=10, draw=2, value=1.0)])
    assert partly.points[0].upper is None
    (without,) = summarise([make_record()])
    assert (without.bracket_ratio, without.prediction_ratio, without.rigor) == (None, None, None)


def test_what_differs_in_more_than_its_seeds_is_a_series_of_its_own(make_record):
    records = [
        make_record(n=n, draw=draw, value=t * n ** (-t / 2), temperature=t, asked={"temperature": t, "steps": 9})
        for t in (2.0, 0.5)
        for n in (10, 20, 40)
        for draw in (0, 1)
    ]
    found = summarise(records)
    assert [one.varied for one in found] == [("temperature = 0.5",), ("temperature = 2",)]
    assert [one.fit.exponent for one in found] == pytest.approx([-0.25, -1.0])
    assert {point.draws for one in found for point in one.points} == {2}
    assert [one.varied for one in summarise(records[:6])] == [()]
    told = findings(found)[0]
    assert "n^−0.25 (−0.25 to −0.25) on Gaussian texts at temperature = 0.5" in told
    assert "n^−1.00 (−1.00 to −1.00) on Gaussian texts at temperature = 2" in told


def test_texts_of_several_mean_cosines_are_not_averaged(make_record):
    records = [
        make_record(n=n, text="correlated", value=1 + q, asked={"text": {"mean_cosine": q}})
        for q in (0.0, 0.5)
        for n in (10, 20)
    ]
    records += [make_record(n=n, value=3.0) for n in (10, 20)]
    assert [(one.text, one.varied, one.points[0].mean) for one in summarise(records)] == [
        ("gaussian", (), 3.0),
        ("correlated", ("mean cosine = 0",), 1.0),
        ("correlated", ("mean cosine = 0.5",), 1.5),
    ]


def test_a_typical_words_prediction_is_compared_with_the_median_word(make_record):
    typical = {"predicted": 1.2, "predicted_of": "a typical word", "value": 2.0}
    (one,) = summarise([make_record(n=n, median_word=1.0, predicted_in_range=True, **typical) for n in (10, 20)])
    assert one.prediction_ratio == pytest.approx(1.2)
    assert (one.predicted_of, one.in_range) == ("a typical word", True)
    (old,) = summarise([make_record(n=n, map="raf", value=2.0, predicted=1.2) for n in (10, 20)])
    assert (old.prediction_ratio, old.predicted_of, old.in_range) == (None, "a typical word", False)
    largest = {**typical, "predicted_of": "the largest of 10 words", "predicted_in_range": False}
    (dense,) = summarise([make_record(n=n, map="rf", median_word=1.0, **largest) for n in (10, 20)])
    assert dense.prediction_ratio == pytest.approx(0.6)
    assert (dense.predicted_of, dense.in_range) == ("the largest searched word", False)


def series(name, exponent, *, text="gaussian", error=0.01, last=0.5):
    points = (SizePoint(10, 1.0, 0.1, 3), SizePoint(100, last, 0.1, 3))
    return Series(name, text, 8, points, PowerLaw(exponent, error, 1.0), 6, 10, True, 1.0)


@pytest.mark.parametrize(
    ("exponent", "error", "words"),
    [
        (-0.5, 0.005, "falls as 1/√n: n^−0.50 (−0.51 to −0.49)"),
        (-0.55, 0.01, "falls faster than 1/√n: n^−0.55 (−0.57 to −0.53)"),
        (-0.3, 0.01, "falls, but slower than 1/√n: n^−0.30 (−0.32 to −0.28)"),
        (0.0, 0.005, "hardly changes: n^0.00 (−0.01 to 0.01)"),
        (0.05, 0.1, "shows no trend: n^0.05 (−0.15 to 0.25)"),
        (0.4, 0.01, "grows: n^0.40 (0.38 to 0.42)"),
    ],
)
def test_the_words_follow_the_exponents_interval(exponent, error, words):
    (sentence,) = findings([series("raf", exponent, error=error)])
    assert sentence == (
        f"RAF (softmax): S {words} on Gaussian texts, d = 8. "
        "At n = 100 one word moves the features by 0.5 times their norm."
    )


def test_texts_are_told_together_where_they_do_alike():
    (told,) = findings([series("raf", 0.0), series("raf", 0.001, text="reviews"), series("raf", -0.3, text="given")])
    assert " and n^0.00 (−0.02 to 0.02) on movie reviews, d = 8; S falls, but slower than 1/√n" in told


def test_brackets_are_told_map_by_map():
    points = (SizePoint(10, 1.0, 0.1, 3, upper=1.5), SizePoint(100, 0.5, 0.1, 3, upper=1.0))
    known = [Series("rf", text, 8, points, None, 6, 10, True, 1.0) for text in ("gaussian", "reviews")]
    assert findings(known) == ["No perturbation goes beyond the upper bounds, which are so many times S: RF 1.75."]


@pytest.mark.parametrize(
    ("relu", "words"), [(-0.4, "faster by 0.40 ± 0.01 in the exponent"), (-0.01, "no faster"), (0.3, "no faster")]
)
def test_relu_against_softmax(relu, words):
    *_, last = findings([series("raf", 0.0), series("relu-raf", relu)])
    assert last == f"Against softmax attention, ReLU attention falls {words} on Gaussian texts (d = 8)."
    assert len(findings([series("raf", 0.0), series("relu-raf", relu, text="reviews")])) == 2


def test_small_texts():
    assert exponent_text(None) == "too few points"
    assert text_title("my texts") == "my texts"
    assert findings([]) == []


def test_given_texts_are_draws_of_one_series(make_record):
    records = [
        make_record(n=n, text="given", source=name, asked={"text": {"content": name}, "words": {"indices": [n - 1]}})
        for n, name in ((3, "one"), (3, "other"), (5, "third"))
    ]
    (one,) = summarise(records)
    assert [(point.n, point.draws) for point in one.points] == [(3, 2), (5, 1)]
    assert (one.texts, one.varied) == (3, ())
