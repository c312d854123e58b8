"""Figures as data: the numbers that they show, what they leave out, and their still pictures."""

import pytest

from wordsens.figures.axis_panels import axis_panels, numeric_axes
from wordsens.figures.sensitivity_panels import sensitivity_panels
from wordsens.figures.styles import MOST_SERIES


@pytest.fixture
def falling(make_record):
    return [
        make_record(n=n, draw=draw, value=4 * n**-0.5, upper=5 * n**-0.5, rigor="certified", source=f"{n}-{draw}")
        for n in (10, 40, 160)
        for draw in range(2)
    ]


def test_marks_bands_and_fits_are_the_records_numbers(falling):
    data = sensitivity_panels(falling, title="t")
    (panel,) = data.panels
    (curve,) = panel.curves
    assert [(mark.x, mark.y) for mark in curve.marks] == [(n, pytest.approx(4 * n**-0.5)) for n in (10, 40, 160)]
    assert [point[1:] for point in curve.band] == [
        (pytest.approx(4 * n**-0.5), pytest.approx(5 * n**-0.5)) for n in (10, 40, 160)
    ]
    assert curve.fit[-1] == pytest.approx((160, 4 * 160**-0.5))
    assert curve.marks[0].told[0] == "2 draws"
    assert "Shaded up to the certified bound" in data.caption


def test_series_past_the_colours_are_left_out_with_a_note(make_record):
    records = [make_record(d=d) for d in range(2, 4 + MOST_SERIES)]
    data = sensitivity_panels(records, title="t")
    assert len(data.panels[0].curves) == MOST_SERIES
    assert data.left_out == f"2 more series are in the tables; a figure tells {MOST_SERIES} apart."


def test_nothing_finished_is_no_figure(make_record):
    assert sensitivity_panels([make_record(status="failed", value=None)], title="t") is None


def test_numeric_axes_are_found_and_drawn(make_record):
    records = [
        make_record(
            asked={"temperature": value}, temperature=value, value=1 / value, draw=draw, source=f"{draw}{value}"
        )
        for value in (1.0, 2.0, 4.0)
        for draw in range(2)
    ]
    assert numeric_axes(records, besides=("n",)) == ["temperature"]
    data = axis_panels(records, "temperature", title="t")
    assert [mark.y for mark in data.panels[0].curves[0].marks] == pytest.approx([1, 0.5, 0.25])
