"""The generalization figures: what is drawn, and what is refused."""

import pytest

from tests.made_records import made_record
from wordsens.errors import InputError
from wordsens.studies.generalization.figures import error_figure, frontier_figure

COLUMNS = [("rf", 40), ("raf", 40), ("raf", 120)]


def record(*, asked=None, **changes):
    values = {
        "value": 3.0,
        "map": "rf",
        "n": 40,
        "d": 8,
        "texts": 100,
        "held_out": 10,
        "labels": "linear",
        "seed": 0,
        "draw": 0,
        "sample": 0,
        "training": "fine-tuned",
        "objective": "error",
        "text": "gaussian",
        "gamma": 0.5,
        "alignment": 0.9,
        "bound": 2.0,
        "accuracy": 0.6,
        "dtype": "float64",
        "limits": (),
        "least_errors": (),
        **changes,
    }
    spec = {"objective": changes.get("objective"), "sample": changes.get("sample"), **(asked or {})}
    return made_record("generalization", spec, **values)


def some():
    return [
        record(
            map=name,
            n=n,
            training=training,
            objective=objective,
            sample=sample,
            texts=texts,
            gamma=0.4 * sample,
        )
        for name, n in COLUMNS
        for training in ("fine-tuned", "retrained")
        for objective in ("error", "fine-tuned-alignment")
        for sample in range(3)
        for texts in (100, 300)
    ]


def test_every_point_is_drawn_with_the_curve_of_the_theorems():
    figure = error_figure(some(), title="title")
    assert len(figure.axes) == 6
    for panel in figure.axes:
        (curve,) = panel.lines
        gammas, errors = curve.get_xdata(), curve.get_ydata()
        assert (
            max(abs(error - (2 - gamma) ** 2) for gamma, error in zip(gammas, errors, strict=True))
            < 1e-12
        )
        assert sum(len(part.get_offsets()) for part in panel.collections) == 2 * 3 * 2
    assert [panel.get_title() for panel in figure.axes[:3]] == [
        "RF, n = 40",
        "RAF (softmax), n = 40",
        "RAF (softmax), n = 120",
    ]


def test_the_frontier_is_the_median_of_the_samples_of_each_size():
    limits = (0.5, 1.0)
    records = [
        record(
            objective="frontier",
            sample=sample,
            texts=texts,
            limits=limits,
            least_errors=(4.0 - sample, less),
            value=1.0,
        )
        for texts, less in ((100, 1.5), (1000, 1.0))
        for sample in range(3)
    ]
    figure = frontier_figure(records)
    medians = [line for line in figure.axes[0].lines if line.get_marker() in ("o", "s")]
    assert [list(line.get_ydata()) for line in medians] == [[3.0, 1.5], [3.0, 1.0]]
    assert all(list(line.get_xdata()) == list(limits) for line in medians)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:2] == ["N = 100: median", "N = 1,000: median"]
    assert len({line.get_color() for line in medians}) == 2


def test_nothing_to_draw_is_refused():
    with pytest.raises(InputError, match="no finished record"):
        error_figure([record(status="failed", value=None)])
    with pytest.raises(InputError, match="no finished frontier"):
        frontier_figure([record()])
