"""Figures as data: the numbers that they show, what they leave out, and their still pictures."""

import io
from itertools import pairwise

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from wordsens.figures.axis_panels import axis_panels, numeric_axes
from wordsens.figures.panels import Curve, FigureData, Mark, Panel
from wordsens.figures.sensitivity_panels import sensitivity_panels
from wordsens.figures.still import still_figure
from wordsens.figures.styles import MOST_SERIES

STYLE = ("#0072B2", "o", False)


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


def test_bounds_far_above_are_told_not_drawn(falling, make_record):
    far = [make_record(n=n, value=1.0, upper=50.0, rigor="certified", map="rf") for n in (10, 40)]
    data = sensitivity_panels([*falling, *far], title="t")
    own = next(curve for curve in data.panels[0].curves if curve.name == "RF")
    assert own.band == ()
    assert "at most 50 (certified)" in own.marks[0].told
    assert "Bounds far above everything else are told on hover, not drawn." in data.caption


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


@pytest.mark.parametrize("panels", [1, 2, 3, 4, 5, 9])
def test_long_names_do_not_press_a_still_picture_flat(panels):
    curves = [Curve("a name that is as long as names of many keys are " * 2, STYLE, (Mark(10, 1.0), Mark(10, 2.0)))]
    made = tuple(Panel("a title that is longer than its panel is wide " * 2, tuple(curves)) for _ in range(panels))
    figure = still_figure(FigureData("t", "c", "x", "y", made))
    figure.savefig(io.BytesIO(), format="png", dpi=50)  # warnings are errors: a flat panel is one
    widths = [axes.get_position().width for axes in figure.axes if axes.get_visible()]
    assert len(widths) == panels
    assert min(widths) * figure.get_size_inches()[0] > 1.5


def test_long_labels_of_panels_abreast_do_not_meet():
    curve = Curve("one", STYLE, (Mark(0.5, 1.0, 0.9, 1.1, ()), Mark(1.5, 1.0, 0.9, 1.1, ())))
    data = FigureData(
        title="t",
        caption="",
        x_label="γ: how well the model before told the two texts apart",
        y_label="error",
        panels=tuple(Panel(name, (curve,)) for name in ("a", "b", "c")),
        logarithmic=(None, None),
    )
    figure = still_figure(data)
    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    labels = [axes.xaxis.label.get_window_extent(renderer) for axes in figure.axes]
    assert all(left.x1 < right.x0 for left, right in pairwise(labels))
    assert labels[0].x0 >= 0 and labels[-1].x1 <= figure.bbox.width
