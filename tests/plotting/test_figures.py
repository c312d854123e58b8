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
