"""Figures: what they show, and that it can be read."""

import html
import io
import math
import re

import matplotlib
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection

from wordsens.plotting import bars, of_experiment, svg
from wordsens.studies.sensitivity.figures import sensitivity_figure as sensitivity
from wordsens.theory import rf_sensitivity


@pytest.fixture
def records(make_record):
    def value(name, n, draw):
        rate = {"raf": 0.0, "relu-raf": -0.4}[name]
        return 4 * n**rate * (1 + 0.05 * draw)

    return [
        make_record(map=name, text=text, n=n, d=384, draw=draw, value=value(name, n, draw))
        for name in ("raf", "relu-raf")
        for text in ("reviews", "gaussian")
        for n in (10, 20, 50, 100, 150, 200, 250)
        for draw in (-1, 0, 1)
    ]


def drawn(figure):
    FigureCanvasAgg(figure).draw()
    return figure


def test_panels_axes_and_legends(records):
    figure = drawn(sensitivity(records, title="Attention"))
    left, right = figure.axes
    assert [panel.get_title() for panel in (left, right)] == [
        "Movie reviews, d = 384",
        "Gaussian texts, d = 384",
    ]
    assert (left.get_xscale(), left.get_yscale()) == ("log", "log")
    assert left.get_ylim() == right.get_ylim()
    told = [text.get_text() for text in left.get_legend().get_texts()]
    assert told[0].replace("−0.00", "0.00").startswith("RAF (softmax): exponent 0.00 [0.00, 0.00]")
    assert told[1].startswith("ReLU-RAF: exponent −0.400 [−")


def test_markers_are_means_and_bars_their_intervals(records):
    panel = sensitivity(records).axes[0]
    bars = panel.containers[0]
    assert list(bars.lines[0].get_xdata()) == [10, 20, 50, 100, 150, 200, 250]
    assert bars.lines[0].get_ydata() == pytest.approx([4.0] * 7)
    low, high = bars.lines[2][0].get_segments()[0][:, 1]
    student = 4.302653  # of two degrees of freedom
    assert (high - low) / 2 == pytest.approx(student * 4 * 0.05 / 3**0.5)


def test_everything_drawn_lies_inside_the_axes(records):
    panel = sensitivity(records).axes[0]
    low, high = panel.get_ylim()
    for line in panel.lines:
        assert all(low <= value <= high for value in line.get_ydata())


def test_the_legend_covers_neither_data_nor_labels_and_nothing_is_cut_off(records):
    figure = drawn(sensitivity(records, title="Attention"))
    renderer = figure.canvas.get_renderer()
    width, height = figure.canvas.get_width_height()
    for panel in figure.axes:
        legend = panel.get_legend().get_window_extent(renderer)
        assert not legend.overlaps(panel.get_window_extent(renderer))
        assert not legend.overlaps(panel.xaxis.label.get_window_extent(renderer))
        assert legend.x0 >= 0
        assert legend.y0 >= -1
        assert legend.x1 <= width
    assert (
        not figure.axes[0]
        .get_legend()
        .get_window_extent(renderer)
        .overlaps(figure.axes[1].get_legend().get_window_extent(renderer))
    )
    assert figure.get_suptitle() == "Attention"
    assert figure._suptitle.get_window_extent(renderer).y1 <= height


def test_a_band_reaches_from_the_mean_to_the_upper_bound_and_predictions_are_dashed(make_record):
    records = [
        make_record(
            map="raf",
            n=n,
            draw=draw,
            value=1.0 + draw,
            upper=2.5 + draw,
            predicted=1.4,
            rigor="certified",
            predicted_of="a typical word",
            predicted_in_range=True,
        )
        for n in (10, 20, 50)
        for draw in (0, 1)
    ]
    panel = sensitivity(records).axes[0]
    (band,) = (
        piece
        for piece in panel.collections
        if isinstance(piece, PolyCollection) and not piece.get_hatch()
    )
    corners = {(round(x, 9), round(y, 9)) for x, y in band.get_paths()[0].vertices}
    assert corners == {(n, y) for n in (10, 20, 50) for y in (1.5, 3.0)}
    (predicted,) = (line for line in panel.lines if line.is_dashed() and len(line.get_xdata()) == 3)
    assert list(predicted.get_ydata()) == [1.4] * 3
    told = [text.get_text() for text in panel.get_legend().get_texts()]
    assert told[-2:] == [
        "hatched: up to the certified upper bound",
        "theory at these n and d, no bound",
    ]
    assert panel.get_ylim()[1] > 3.0


def test_pyplot_holds_no_figure(records):
    sensitivity(records)
    assert matplotlib._pylab_helpers.Gcf.get_all_fig_managers() == []


def test_a_map_that_no_word_moves_is_drawn_beside_the_others(make_record):
    records = [
        make_record(n=n, map=name, value=value, per_word=(0.0, value))
        for name, value in (("rf", 0.0), ("raf", 2.0))
        for n in (4, 8)
    ]
    low, high = sensitivity(records).axes[0].get_ylim()
    assert 0 < low < 2 < high


def test_theory_is_the_law_at_every_n_and_not_two_joined_points(make_record):
    """1/sqrt(n) is the limit: at these n the law of a fully connected layer falls faster, on any
    axes."""
    records = [
        make_record(
            map="rf",
            n=n,
            d=32,
            value=rf_sensitivity(n, 32),
            predicted=rf_sensitivity(n, 32),
            words=n,
        )
        for n in (10, 40, 160)
    ]
    (panel,) = sensitivity(records).axes
    (theory,) = (line for line in panel.lines if line.is_dashed() and len(line.get_xdata()) > 3)
    sizes, values = theory.get_data()
    assert len(sizes) > 15
    assert values.tolist() == pytest.approx([rf_sensitivity(int(n), 32) for n in sizes])
    slope = math.log(values[-1] / values[0]) / math.log(sizes[-1] / sizes[0])
    (told, *_) = (text.get_text() for text in panel.get_legend().get_texts())
    assert told.endswith(f"theory {slope:.2f}".replace("-", "\N{MINUS SIGN}"))
    assert slope < -0.5


def test_all_maps_on_one_axis_come_first(make_record):
    maps = ("own_map:Means", "rf", "drf2", "raf", "minilm layer 3")
    records = [
        make_record(map=name, n=n, value=1.0 + n, source=f"{n}") for name in maps for n in (4, 8)
    ]
    figures = of_experiment(records)
    assert list(figures) == ["sensitivity", "rf", "drf", "raf", "own-map-Means", "minilm-layer-3"]
    assert len(figures["sensitivity"].axes[0].containers) == 5


def test_the_svg_of_a_page_is_the_figure_with_the_pages_colours(records):
    """Colours as variables, titles on marks, no style attribute; put back, what `savefig`
    writes."""
    figure = sensitivity(records)
    file = io.StringIO()
    figure.savefig(
        file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
    )
    page = svg(figure, prefix="p")
    assert " style=" not in page
    assert page.count("<title>") == 28
    assert "<title>RAF (softmax): 4 at 10 (3 draws)</title>" in page
    assert "var(--c2)" in page and "#009e73" not in page
    numbers = re.compile(r'(?:\bd|points|\bx|\by|transform)="([^"]*)"|>([^<>]+)</(?:text|tspan)')
    page = re.sub("<title>.*?</title>", "", page)
    drawn, written = (
        [" ".join(filter(None, found.groups())).split() for found in numbers.finditer(text)]
        for text in (page, file.getvalue())
    )
    assert drawn == written


def test_words_that_look_like_colours_or_attributes_stay_as_they_are():
    columns = {"name": ["#777777", 'style="x"', "<b>&", 'id="a"'], "S": [1.0, 2.0, 3.0, 4.0]}
    page = svg(bars(columns, x="name", y="S"))
    labels = [html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", page)]
    assert {"#777777", 'style="x"', "<b>&", 'id="a"'} <= set(labels)
