"""The four figures: what is drawn is what the columns hold."""

import itertools

import pytest
from matplotlib.colors import to_hex

import wordsens as ws
from wordsens.display.numbers import Estimate
from wordsens.display.view import Chart
from wordsens.errors import InputError
from wordsens.plotting.style import styles_of

COLUMNS = {
    "n": [8, 16, 8, 16, 32, 8],
    "S": [0.4, 0.3, 3.0, 2.9, None, 1.0],
    "S low": [0.3, 0.2, 2.5, 2.8, None, None],
    "S high": [0.6, 0.4, 3.5, 3.0, None, None],
    "place": [0, 1, 2, 3, 4, 5],
    "map": ["rf", "rf", "raf", "raf", "raf", None],
    "kind": ["a", None, "a", "b", "b", "b"],
}
KINDS = {
    "lines": {"x": "n", "y": "S", "colour": "map", "panel": "kind", "log": "xy"},
    "points": {"x": "n", "y": "S", "colour": ["map", "kind"]},
    "bars": {"x": "n", "y": "S", "colour": ["map", "kind"]},
    "heat": {"x": "place", "y": "n", "colour": "S", "panel": "kind"},
}


def letters(texts):
    return [[text.count(letter) + 0.1 for letter in "abcdefghij"] for text in texts]


def series(axes):
    """The mark of each row, its colour, and the ends of its interval."""
    for bars in axes.containers:
        line, _, reaches = bars.lines
        ends = [part[:, 1] for reach in reaches for part in reach.get_segments()]
        yield line.get_color(), list(zip(*line.get_data(), strict=True)), ends


@pytest.mark.parametrize("kind", KINDS)
def test_every_row_with_x_and_y_is_drawn_through_a_chart(kind):
    figure = ws.plotting.draw(Chart(kind, COLUMNS, KINDS[kind]))
    heights = {
        "heat": lambda axes: [v for image in axes.images for v in image.get_array().compressed()],
        "bars": lambda axes: [bar.get_height() for bar in axes.patches],
    }.get(kind, lambda axes: [y for _, marks, _ in series(axes) for _, y in marks])
    drawn = sorted(value for axes in figure.axes for value in heights(axes))
    assert drawn == pytest.approx(sorted(value for value in COLUMNS["S"] if value is not None))


def test_intervals_are_those_of_the_columns_as_of_estimates():
    ends = zip(COLUMNS["S"], COLUMNS["S low"], COLUMNS["S high"], strict=True)
    cells = [None if value is None else Estimate(value, low, high) for value, low, high in ends]
    estimates = {"n": COLUMNS["n"], "S": cells}
    for columns in (COLUMNS, estimates):
        ((_, _, drawn),) = series(ws.plotting.points(columns, x="n", y="S").axes[0])
        assert {(0.3, 0.6), (2.5, 3.5)} <= {tuple(map(float, pair)) for pair in drawn}


def test_lines_join_marks_in_the_order_of_x_and_a_fit_takes_their_place():
    columns = {"n": [4, 1, 2], "S": [1.0, 3.0, 2.0], "fit": [1.1, 2.9, 2.1]}
    for fit in ("", "fit"):
        axes = ws.plotting.lines(columns, x="n", y="S", fit=fit).axes[0]
        ((line, *_),) = axes.containers
        assert list(line.get_xdata()) == [1, 2, 4]
        assert line.get_linestyle() == ("None" if fit else "-")
    assert list(axes.lines[-1].get_ydata()) == [2.9, 2.1, 1.1]


def test_on_a_logarithmic_axis_an_interval_reaches_down_to_a_third_at_most():
    columns = {"n": [1, 2], "S": [Estimate(1.0, -1.0, 2.0), Estimate(1.0, 0.5, 2.0)]}
    for log, lows in (("y", [1 / 3, 0.5]), ("", [-1.0, 0.5])):
        ((_, _, ends),) = series(ws.plotting.points(columns, x="n", y="S", log=log).axes[0])
        assert [low for low, _ in ends] == pytest.approx(lows)


def test_values_that_differ_in_the_last_digit_alone_are_one_place_on_a_logarithmic_axis():
    x = [3.232965231970001, 3.2329652319700015, 5.0]
    rows = {"S": x, "AUC": [0.1, 0.4, 0.6], "panel": ["a", "a", "b"], "map": ["raf", "rf", "rf"]}
    drawn = ws.plotting.points(
        rows, x="S", y="AUC", colour="map", panel="panel", log="x", guides={"chance": [(None, 0.5)]}
    )
    low, high = drawn.axes[0].get_xlim()
    assert low < x[0] / 1.1 and high > x[0] * 1.1


def test_a_band_of_the_interval_takes_the_place_of_its_bars_and_guides_end_the_legend():
    band, guides = ("S low", "S high"), {"guide": [(None, 1.0)]}
    figure = ws.plotting.lines(COLUMNS, x="n", y="S", colour="map", band=band, guides=guides)
    (axes,) = figure.axes
    assert [ends for _, _, ends in series(axes)] == [[], [], []]
    shaded = [band.get_datalim(axes.transData).intervaly.tolist() for band in axes.collections]
    assert shaded == [[0.2, 0.6], [2.5, 3.5]]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["RF", "RAF (softmax)", "guide"]


def test_a_page_says_of_a_mark_what_its_column_or_its_number_says():
    columns = {"n": [1, 2], "S": [0.5, 0.25], "text": ["first", None]}
    figure = ws.plotting.points(columns, x="n", y="S", about="text")
    assert list(figure.titles.values()) == [("first", "0.250 at 2")]


def test_the_largest_bar_stands_out_and_colours_reach_as_far_on_both_sides_of_zero():
    bars = ws.plotting.bars({"word": ["a", "b", "c"], "S": [1.0, 3.0, 2.0]}, x="word", y="S")
    colours = [bar.get_facecolor() for bar in bars.axes[0].patches]
    assert colours[0] == colours[2] != colours[1]
    for values, ends in (([1.0, -2.0], (-2, 2)), ([1.0, 2.0], (0, 2))):
        columns = {"to": [0, 1], "from": [0, 0], "S": values}
        heat = ws.plotting.heat(columns, x="to", y="from", colour="S")
        assert heat.axes[1].get_xlim() == ends
        assert heat.axes[0].images[0].get_clim() == (-2, 2)


def test_a_map_has_one_colour_and_counts_have_whole_ticks():
    both = ws.plotting.lines(COLUMNS, x="n", y="S", colour="map").axes[0]
    alone = {"n": [1, 2, 3], "S": [1, 2, 4], "map": ["raf"] * 3}
    (one,) = ws.plotting.points(alone, x="n", y="S", colour="map").axes
    colours = [{colour for colour, *_ in series(axes)} for axes in (both, one)]
    assert colours[1] < colours[0]
    assert colours[1] == {styles_of({"a": "raf"})["a"][0]}
    bars = ws.plotting.bars(alone, x="n", y="S", colour="map").axes[0].patches
    assert {to_hex(bar.get_facecolor()).upper() for bar in bars} == colours[1]
    assert all(tick % 1 == 0 for tick in (*one.get_xticks(), *one.get_yticks()))


def test_texts_are_places_in_their_order():
    columns = {"word": ["not", "a", "good"], "S": [0.8, 0.1, 0.3]}
    for figure in (ws.plotting.lines, ws.plotting.bars):
        names = [
            label.get_text() for label in figure(columns, x="word", y="S").axes[0].get_xticklabels()
        ]
        assert names == columns["word"]


def test_series_hide_no_intervals_of_each_other():
    columns = {"n": [8, 16] * 3, "S": [Estimate(1.0, 0.8, 1.2)] * 6, "name": list("aabbcc")}
    figure = ws.plotting.lines(columns, x="n", y="S", colour="name", log="x")
    figure.canvas.draw()
    reaches = [bars.lines[2][0] for bars in figure.axes[0].containers]
    places = [line.get_transform().transform(line.get_segments()[0])[0, 0] for line in reaches]
    assert min(right - left for left, right in itertools.pairwise(places)) > 2


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"n": [1]}, r"`columns` \(='S'\) must be one of n"),
        ({"n": [1], "S": [None]}, "`columns` has no row with n, S"),
        ({"n": [1], "S": [1.0, 2.0]}, r"`columns` differ in length \(n 1, S 2"),
        ({"n": [1, 0], "S": [1.0, 1.0]}, "needs numbers above 0, but n has 0"),
        ({"n": [1] * 15, "S": [1.0] * 15, "map": [*"abcdefghijklmno"]}, "`colour` gives 15 series"),
    ],
)
def test_a_mistake_is_one_line(columns, said):
    with pytest.raises(InputError, match=said):
        ws.plotting.lines(columns, x="n", y="S", colour=list(columns)[2:], log="x")


def test_the_charts_of_check_and_calibrate_have_their_threshold_and_budget():
    check, calibration = ws.check(letters, kinds=["role"]), ws.calibrate(letters, None, 0.1)
    for result, place in ((check, check.threshold), (calibration, 0.1)):
        (axes,) = result.plot().axes
        assert len(axes.containers) == 2
        assert [place, place] in [list(line.get_xdata()) for line in axes.lines]
