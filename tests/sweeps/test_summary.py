"""Exponents, and what is said of them."""

from dataclasses import replace

import pytest

from wordsens.display.numbers import Estimate
from wordsens.studies.sensitivity.series import Series, SizePoint, sensitivity_series
from wordsens.studies.sensitivity.summary import claims


def test_series_by_map_text_and_dimension(make_record):
    records = [
        make_record(n=n, draw=draw, value=value, source=f"text {n} {draw}")
        for n, values in ((10, (1.0, 3.0)), (40, (0.5, 1.5)))
        for draw, value in enumerate(values)
    ]
    records.append(make_record(map="rf", n=10, value=0.3))
    records.append(make_record(n=10, status="failed", value=None))
    raf, rf = sensitivity_series(records)
    assert (raf.map, raf.text, raf.d, raf.texts) == ("raf", "gaussian", 8, 4)
    assert [(point.n, point.value.value, point.value.n) for point in raf.points] == [
        (10, 2.0, 2),
        (40, 1.0, 2),
    ]
    assert raf.exponent.value == pytest.approx(-0.5)
    assert rf.exponent is None
    assert rf.points == (SizePoint(10, Estimate(0.3, n=1)),)
    assert raf.all_words
    assert not sensitivity_series([make_record(words=2)])[0].all_words
    assert sensitivity_series([]) == []


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
    (one,) = sensitivity_series(records)
    assert [(point.upper, point.predicted) for point in one.points] == [(4.0, 3.0), (2.0, 1.5)]
    assert (one.bracket_ratio, one.rigor) == (2.0, likely)
    assert sensitivity_series(records[::2])[0].rigor == sure
    (partly,) = sensitivity_series([*records, make_record(n=10, draw=2, value=1.0)])
    assert partly.points[0].upper is None
    sizes = ((10, 2.0), (20, 3.0), (40, 10.0))
    (uneven,) = sensitivity_series([make_record(n=n, value=1.0, upper=up) for n, up in sizes])
    assert uneven.bracket_ratio == 3.0
    (without,) = sensitivity_series([make_record()])
    assert (without.bracket_ratio, without.rigor) == (None, None)


def test_what_differs_in_more_than_its_seeds_is_a_series_of_its_own(make_record):
    records = [
        make_record(
            n=n,
            draw=draw,
            value=t * n ** (-t / 2),
            temperature=t,
            asked={"temperature": t, "steps": 9},
        )
        for t in (2.0, 0.5)
        for n in (10, 20, 40)
        for draw in (0, 1)
    ]
    found = sensitivity_series(records)
    assert [one.varied for one in found] == [("temperature = 0.5",), ("temperature = 2",)]
    assert [one.exponent.value for one in found] == pytest.approx([-0.25, -1.0])
    assert {point.value.n for one in found for point in one.points} == {2}
    assert [one.varied for one in sensitivity_series(records[:6])] == [()]
    said = " ".join(claim.sentence for claim in claims(found))
    assert "(RAF, softmax) at temperature = 0.5 by" in said and "exponent −0.25" in said
    assert "(RAF, softmax) at temperature = 2 by" in said and "exponent −1.00" in said


def series(name, exponent, *, text="gaussian", error=0.01, last=0.5):
    points = (SizePoint(10, Estimate(1.0, 0.8, 1.2, n=3)), SizePoint(100, Estimate(last, n=3)))
    interval = Estimate(exponent, exponent - 2 * error, exponent + 2 * error)
    return Series(name, text, 8, points, interval, 1.0, 6, 10, True)


@pytest.mark.parametrize(
    ("exponent", "error", "words"),
    [
        (-0.5, 0.005, "falls as 1/√n"),
        (-0.55, 0.01, "falls faster than 1/√n"),
        (-0.3, 0.01, "falls, but slower than 1/√n"),
        (0.0, 0.005, "hardly changes"),
        (0.05, 0.1, "shows no trend"),
        (0.4, 0.01, "grows"),
    ],
)
def test_the_words_follow_the_exponents_interval(exponent, error, words):
    one = series("raf", exponent, error=error)
    (claim,) = claims([one])
    shown = f"{exponent:.2f}".replace("-", "−")
    assert "in Gaussian texts of 100 words" in claim.sentence
    assert claim.sentence.endswith(f"; with length it {words}, exponent {shown}.")
    assert f"from 10 to 100 words exponent {one.exponent}" in claim.known


def test_theory_stands_beside_the_exponent():
    points = tuple(
        SizePoint(n, Estimate(n**-0.6, n=3), predicted=n**-0.55, in_range=True) for n in (10, 100)
    )
    one = Series(
        "rf",
        "gaussian",
        8,
        points,
        Estimate(-0.6, -0.602, -0.598),
        1.0,
        6,
        10,
        True,
        predicted_of="a typical word",
    )
    (claim,) = claims([one])
    assert claim.sentence.endswith(
        "falls faster than 1/√n, exponent −0.60 (theory at these lengths: −0.55)."
    )
    short = replace(one, points=(replace(points[0], in_range=False), points[1]))
    assert (
        "−0.55, not compared with measurements at all of these sizes)."
        in claims([short])[0].sentence
    )


def test_given_texts_are_draws_of_one_series(make_record):
    records = [
        make_record(
            n=n,
            text="given",
            source=name,
            asked={"text": {"content": name}, "words": {"indices": [n - 1]}},
        )
        for n, name in ((3, "one"), (3, "other"), (5, "third"))
    ]
    (one,) = sensitivity_series(records)
    assert [(point.n, point.value.n) for point in one.points] == [(3, 2), (5, 1)]
    assert (one.texts, one.varied) == (3, ())
