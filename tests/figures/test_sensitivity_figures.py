"""Figures: what they show, and that it can be read."""

import math
from itertools import pairwise

import matplotlib
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PolyCollection

from wordsens.errors import InputError
from wordsens.experiments.experiment import SCALES
from wordsens.experiments.spec import experiment_named
from wordsens.figures import sensitivity
from wordsens.figures.of_experiments import save_figures
from wordsens.figures.style_file import StyledFigure
from wordsens.figures.styles import MOST_SERIES


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
    assert [panel.get_title() for panel in (left, right)] == ["Movie reviews, d = 384", "Gaussian texts, d = 384"]
    assert (left.get_xscale(), left.get_yscale()) == ("log", "log")
    assert left.get_ylim() == right.get_ylim()
    told = [text.get_text() for text in left.get_legend().get_texts()]
    assert told[0].startswith("RAF (softmax): exponent 0.000 ± ") or told[0].startswith(
        "RAF (softmax): exponent −0.000"
    )
    assert told[1].startswith("ReLU-RAF: exponent −0.400 ± ")
    assert "sqrt" in told[2]


def test_markers_are_means_and_bars_one_standard_deviation(records):
    panel = sensitivity(records).axes[0]
    bars = panel.containers[0]
    assert list(bars.lines[0].get_xdata()) == [10, 20, 50, 100, 150, 200, 250]
    assert bars.lines[0].get_ydata() == pytest.approx([4.0] * 7)
    low, high = bars.lines[2][0].get_segments()[0][:, 1]
    assert (high - low) / 2 == pytest.approx(4 * 0.05)


def test_everything_drawn_lies_inside_the_axes(records):
    panel = sensitivity(records).axes[0]
    low, high = panel.get_ylim()
    for line in panel.lines:
        assert all(low <= value <= high for value in line.get_ydata())


def test_tick_labels_are_sizes_of_the_experiment_and_do_not_touch(records):
    figure = drawn(sensitivity(records))
    renderer = figure.canvas.get_renderer()
    for panel in figure.axes:
        labels = [label for label in panel.get_xticklabels() if label.get_text()]
        assert {label.get_text() for label in labels} <= {"10", "20", "50", "100", "150", "200", "250"}
        assert labels[0].get_text() == "10"
        assert labels[-1].get_text() == "250"
        boxes = [label.get_window_extent(renderer) for label in labels]
        assert all(one.x1 < other.x0 for one, other in pairwise(boxes))
    assert len([label for label in figure.axes[0].get_yticklabels() if label.get_text()]) >= 3


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


def test_long_names_of_series_are_not_cut_off_and_do_not_meet(make_record):
    records = [
        make_record(map=name, text=text, n=n, d=d, draw=draw, value=(t + draw / 9) / n**0.5, asked={"temperature": t})
        for name in ("raf", "relu-unnormalized-raf")
        for text in ("reviews", "gaussian")
        for n in (10, 50)
        for d in (192, 768)
        for t in (0.25, 4.0)
        for draw in (0, 1)
    ]
    figure = drawn(sensitivity(records))
    renderer = figure.canvas.get_renderer()
    width, height = figure.canvas.get_width_height()
    one, other = (panel.get_legend().get_window_extent(renderer) for panel in figure.axes)
    assert one.x0 >= 0
    assert other.x1 <= width
    assert one.y0 >= -1
    assert one.x1 <= other.x0
    assert figure.axes[0].get_window_extent(renderer).y1 <= height


def test_several_widths_are_told_apart(make_record):
    records = [
        make_record(map="rf", n=n, d=d, draw=draw, value=(1 + 0.1 * draw + d / 1000) / math.sqrt(n))
        for d in (192, 384)
        for n in (90, 110, 150)
        for draw in (0, 1)
    ]
    panel = sensitivity(records).axes[0]
    told = [text.get_text() for text in panel.get_legend().get_texts()]
    assert told[0].startswith("RF, d = 192: exponent −0.500")
    assert told[1].startswith("RF, d = 384: exponent −0.500")
    colours = {container.lines[0].get_color() for container in panel.containers}
    markers = {container.lines[0].get_marker() for container in panel.containers}
    assert len(colours) == len(markers) == 2


def test_a_bar_longer_than_its_mean_stays_on_the_axis(make_record):
    records = [make_record(n=n, value=value) for n in (10, 100) for value in (0.001, 3.0)]
    low, high = sensitivity(records).axes[0].get_ylim()
    assert 0 < low < high


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
    (band,) = (piece for piece in panel.collections if isinstance(piece, PolyCollection))
    corners = {(round(x, 9), round(y, 9)) for x, y in band.get_paths()[0].vertices}
    assert corners == {(n, y) for n in (10, 20, 50) for y in (1.5, 3.0)}
    (predicted,) = (line for line in panel.lines if line.is_dashed() and len(line.get_xdata()) == 3)
    assert list(predicted.get_ydata()) == [1.4] * 3
    told = [text.get_text() for text in panel.get_legend().get_texts()]
    assert told[-2:] == ["band: up to the certified upper bound", "predicted, for a typical word"]
    assert panel.get_ylim()[1] > 3.0


def test_predictions_that_were_not_compared_at_such_sizes_have_crosses_and_say_so(make_record):
    records = [
        make_record(
            n=n, value=1.0, predicted=1.4, predicted_of="the largest of 9 words", predicted_in_range=n > 10, map="rf"
        )
        for n in (10, 20, 50)
    ]
    panel = sensitivity(records).axes[0]
    (crosses,) = (line for line in panel.lines if line.get_marker() == "x")
    assert list(crosses.get_xdata()) == [10]
    told = [text.get_text() for text in panel.get_legend().get_texts()]
    assert told[-2:] == ["predicted, for the largest searched word", "predicted, not compared at such sizes"]


def test_every_value_of_a_varying_key_has_a_series_that_the_legend_names(make_record):
    records = [
        make_record(n=n, draw=draw, value=t / n, asked={"temperature": t}, temperature=t)
        for t in (0.5, 1.0, 2.0)
        for n in (10, 40)
        for draw in (0, 1)
    ]
    panel = drawn(sensitivity(records)).axes[0]
    told = [text.get_text() for text in panel.get_legend().get_texts()]
    assert [line.partition(":")[0] for line in told[:3]] == [
        f"RAF (softmax), temperature = {t}" for t in ("0.5", "1", "2")
    ]
    assert [list(bars.lines[0].get_ydata()) for bars in panel.containers] == [[t / 10, t / 40] for t in (0.5, 1, 2)]


def test_a_map_looks_the_same_in_panels_of_different_d_whose_titles_name_it(make_record):
    records = [
        make_record(map=name, text=text, n=n, d=d, value=value / n)
        for name, value in (("rf", 1.0), ("raf", 2.0))
        for text, d in (("reviews", 384), ("gaussian", 768))
        for n in (10, 40)
    ]
    left, right = drawn(sensitivity(records)).axes
    assert [panel.get_title() for panel in (left, right)] == ["Movie reviews, d = 384", "Gaussian texts, d = 768"]
    looks = [
        [(line.get_color(), line.get_marker(), line.get_fillstyle()) for line in (b.lines[0] for b in panel.containers)]
        for panel in (left, right)
    ]
    assert looks[0] == looks[1] and len(set(looks[0])) == 2


@pytest.mark.parametrize("scale", SCALES)
def test_figures_of_every_scale_are_drawn(make_record, monkeypatch, tmp_path, scale):
    """As `wordsens paper sensitivity` draws them, from records with made-up values of all cells of the scale."""
    experiment = experiment_named("sensitivity")
    cells = [cell for cell in experiment.sweep(scale)[0].cells() if cell.draw < 2]
    records = [
        make_record(
            map=f"{cell.map}{cell.depth}" if cell.map == "drf" else cell.map,
            text=cell.text.kind,
            n=cell.n,
            d=cell.d,
            draw=cell.draw,
            value=(1 + 0.1 * cell.draw) * cell.d / cell.n,
        )
        for cell in cells
    ]
    figures = {}
    monkeypatch.setattr(StyledFigure, "savefig", lambda figure, path: figures.setdefault(path.stem, figure))
    assert len(save_figures(experiment, records, tmp_path, None)) == 12
    assert set(figures) == {"rf", "drf", "raf", "sensitivity"}
    drawn(figures["sensitivity"])
    shown = {(cell.map, cell.depth if cell.map == "drf" else None) for cell in cells}
    if scale == "full":
        assert [len(panel.containers) for panel in figures["sensitivity"].axes] == [len(shown)] * 2
        assert [panel.get_title() for panel in figures["sensitivity"].axes][1] == "Gaussian texts, d = 768"


def test_more_series_than_a_figure_tells_apart_are_refused(make_record):
    records = [
        make_record(n=n, value=t / n, asked={"temperature": t}, temperature=t)
        for t in map(float, range(1, MOST_SERIES + 2))
        for n in (10, 40)
    ]
    with pytest.raises(InputError, match=r"makes 15 series \(by map, d, temperature\), .* at most 14 apart; filter"):
        sensitivity(records)
    panel = sensitivity(records[:-2]).axes[0]
    looks = {
        (line.get_color(), line.get_marker(), line.get_fillstyle())
        for line in (bars.lines[0] for bars in panel.containers)
    }
    assert len(looks) == MOST_SERIES


def test_a_bound_far_beyond_the_values_gets_no_band_and_the_legend_says_so(make_record):
    records = [
        make_record(map="drf8", n=n, draw=draw, value=1.0, upper=50.0, rigor="with probability 1 - 1e-09")
        for n in (10, 20, 50)
        for draw in (0, 1)
    ]
    figure = drawn(sensitivity(records))
    panel = figure.axes[0]
    assert panel.get_ylim()[1] < 3
    told = [text.get_text() for text in panel.get_legend().get_texts()]
    assert told[-1] == "upper bound off the panel: DRF, L = 8"
    assert not any(isinstance(piece, PolyCollection) for piece in panel.collections)


def test_one_point_can_be_drawn(make_record):
    figure = drawn(sensitivity([make_record()]))
    told = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert told[0].endswith("too few points")


def test_failed_records_are_left_out_and_none_is_an_error(make_record, records):
    failed = make_record(map="rf", status="failed", value=None)
    assert len(sensitivity([*records, failed]).axes[0].containers) == 2
    with pytest.raises(InputError, match="`records` has no finished record; run the experiment first"):
        sensitivity([failed])


def test_pyplot_holds_no_figure(records):
    sensitivity(records)
    assert matplotlib._pylab_helpers.Gcf.get_all_fig_managers() == []
