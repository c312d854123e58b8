"""S against n: the tables are the records, sentences are the tables, and what a map costs."""

import json

import pandas as pd
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from tests.made_records import measured
from wordsens.certificates.base import CERTIFIED
from wordsens.display.numbers import number
from wordsens.maps.registry import build_map
from wordsens.studies.sensitivity import (
    DEPARTURES,
    POINTS,
    PRESETS,
    PUBLISHED,
    SERIES,
    STUDY,
    multiplications,
    preset,
)
from wordsens.sweeps.measurement import SensitivityCell
from wordsens.sweeps.store import as_frame
from wordsens.sweeps.texts import ShippedText

TEXTS = ("reviews", "gaussian")


@pytest.fixture
def made(make_record):
    """A function that gives the frame of S = scale n^rate (1 + draw / 100) of each map."""

    def frame(maps, sizes=(10, 40, 160), draws=3, texts=TEXTS, **columns):
        return as_frame(
            make_record(
                map=name,
                text=text,
                n=n,
                draw=draw,
                source=f"{text} {n} {draw}",
                value=scale * n**rate * (1 + draw / 100),
                **{key: one(n) if callable(one) else one for key, one in columns.items()},
            )
            for name, (scale, rate) in maps.items()
            for text in texts
            for n in sizes
            for draw in range(draws)
        )

    return frame


MAPS = {"raf": (2.0, 0.0), "rf": (1.0, -0.5)}
BOUNDED = {"upper": lambda n: 1.2 * n**-0.5, "rigor": CERTIFIED}


def test_every_record_is_in_the_table_once_and_its_numbers_are_pandas_means(made):
    frame = made({**MAPS, "drf8": (1.0, -0.6), "drf2": (1.0, -0.6)}).sample(frac=1, random_state=0)
    tables = STUDY.tables(frame)
    points, series = tables[POINTS], tables[SERIES]
    assert points["draws"].sum() == len(frame) and len(series) == 8
    keys = ["map", "text", "d", "n"]
    means = frame.groupby(keys)["value"].mean()
    assert [mean.value for mean in points["S"]] == pytest.approx(
        [means[tuple(key)] for key in points[keys].itertuples(index=False)]
    )
    assert list(series["n"].unique()) == ["10-160"]
    assert [name for name in series["map"].unique() if "drf" in name] == ["drf2", "drf8"]
    rates = {"raf": 0.0, "rf": -0.5}
    for name, rate in rates.items():
        (one, other) = series["exponent"][series["map"] == name]
        assert one.value == pytest.approx(rate, abs=0.01) and one == other


def test_bounds_and_predictions_are_of_every_draw_and_the_weakest_is_told(made, make_record):
    known = {"predicted": lambda n: n**-0.5, "predicted_of": "a typical word"}
    frame = made({"rf": (1.0, -0.5)}, texts=["gaussian"], **BOUNDED, **known, words=4)
    frame["predicted_in_range"] = frame["n"] < 100
    (row,) = STUDY.tables(frame)[SERIES].to_dict("records")
    assert row["upper/S"] == pytest.approx(1.2 / 1.01)
    assert (row["words searched"], row["bound"]) == (4, CERTIFIED)
    assert (row["theory"], row["lengths not compared"]) == (pytest.approx(-0.5), 1)
    assert "not compared at such sizes at 1 length" in STUDY.summary(frame).headline
    frame.loc[0, ["upper", "rigor"]] = None, "with probability 1 - 1e-9"
    (row,) = STUDY.tables(frame)[SERIES].to_dict("records")
    points = STUDY.tables(frame)[POINTS]
    assert points["at most"].isna().tolist() == [True, False, False]
    assert row["bound"] == "with probability 1 - 1e-9"


def test_a_key_that_varies_among_the_records_of_a_map_tells_series_apart(make_record):
    frame = as_frame(
        make_record(n=n, value=t * n**-t, source=f"{n}", asked={"temperature": t, "steps": 9})
        for t in (2.0, 0.5)
        for n in (10, 20, 40)
    )
    frame["temperature"] = [json.loads(spec)["temperature"] for spec in frame["spec"]]
    series = STUDY.tables(frame)[SERIES]
    assert series["temperature"].tolist() == [0.5, 2.0] and "steps" not in series
    assert [one.value for one in series["exponent"]] == pytest.approx([-0.5, -2.0])


def test_attention_is_compared_on_every_kind_of_text_and_certified_where_all_words_are(made):
    frame = made(MAPS, **BOUNDED)
    findings = STUDY.summary(frame).findings
    assert len(findings) == 3
    contrast, trends, costs = (finding.sentence for finding in findings)
    assert contrast.startswith("One word moves attention 25.3 times as far as")
    assert "movie reviews of 160 words" in contrast and "Gaussian texts of 160" in contrast
    assert contrast.count("at least 21.3 times, whatever the searches missed, certified") == 2
    assert "falls as 1/√n for RF (2 of 2 settings" in trends
    longest = made(MAPS, sizes=[160])["source"]
    assert set(findings[0].rows) == set(frame["cell"][frame["source"].isin(longest)])
    assert "against 1,638,400 per text" in costs
    sampled = STUDY.summary(made(MAPS, **BOUNDED, words=4)).headline
    assert "whatever" not in sampled
    assert "times as far" not in STUDY.summary(made({"raf": (2.0, 0.0)})).headline


def test_given_texts_are_of_one_length_each_and_in_no_table(make_record):
    frame = as_frame([make_record(text="given", map=name) for name in ("rf", "raf")])
    summary = STUDY.summary(frame)
    assert (summary.tables, summary.findings, STUDY.figures(frame)) == ((), (), {})


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("rf", {}),
        ("rf", {"width": 5}),
        ("drf", {"depth": 3, "width": 7}),
        ("raf", {"head_dimension": 2}),
        ("relu-raf", {"heads": 3}),
        ("raf(heads=2)", {}),
    ],
)
def test_multiplications_are_those_that_torch_counts(name, options):
    phi = build_map(name, 6, 8, seed=0, **options)
    with FlopCounterMode(display=False) as counter:
        phi(torch.ones(6, 8, dtype=torch.float64))
    spec = {"map": name, "n": 6, "d": 8, **options}
    assert multiplications(spec) == counter.get_total_flops() / 2
    assert multiplications({**spec, "map": "transformer"}) is None


def departed(frame, name, make_record, factor):
    """Records of a departure beside each of the frame's, with S times the factor."""
    keys, of_text = DEPARTURES[name]
    return [
        make_record(
            **{key: row[key] for key in ("map", "text", "n", "draw", "source")},
            value=row["value"] * factor(row["n"], row["draw"]),
            words=1,
            asked={**keys, "text": of_text},
        )
        for row in frame.to_dict("records")
    ]


def test_s_as_published_is_compared_draw_by_draw(made, make_record):
    defined = made({"raf": (2.0, 0.0)}, texts=["reviews"])
    records = departed(defined, "word 0 only", make_record, lambda n, draw: 0.8 + draw / 10)
    both = pd.concat([defined, as_frame(records)])
    table = STUDY.tables(both)[PUBLISHED]
    assert set(table["departure"]) == {"word 0 only"} and len(table) == 3
    assert table[["words as defined", "words"]].to_numpy().tolist() == [[10, 1], [40, 1], [160, 1]]
    assert [ratio.value for ratio in table["ratio"]] == pytest.approx([0.9] * 3)
    assert STUDY.tables(both)[POINTS]["draws"].sum() == len(defined)
    alone = STUDY.tables(as_frame(records))
    assert alone[PUBLISHED].empty and alone[POINTS]["draws"].sum() == len(records)


def test_departures_are_cells_of_real_texts(monkeypatch):
    part = {"map": ["raf"], "n": [4, 250], "d": [8], "draw": 1, "search": "quick"}
    monkeypatch.setitem(PRESETS, "quick", [part])
    grids, _ = preset("quick", ShippedText(), 0, None, as_published=True)
    assert len(grids) == 2 + len(DEPARTURES)
    cells = {
        name: SensitivityCell.parse({**grid, "map": "raf", "n": n, "d": 8, "draw": 0})
        for name, grid, n in zip(DEPARTURES, grids[1:], (4, 200), strict=False)
    }
    records = {name: measured(cell) for name, cell in cells.items()}
    assert records["word 0 only"].searched == (0,)
    assert "[PAD]" in json.loads(records["padding as words"].tokens)


def test_each_family_has_a_figure_and_a_bound_that_is_far_away_has_no_band(made):
    names = ("own_map:Means", "rf", "drf2", "raf")
    frame = made(dict.fromkeys(names, (2.0, -0.5)), sizes=(4, 8))
    assert list(STUDY.figures(frame)) == [
        "sensitivity",
        *("own-map-Means", "rf", "drf", "raf"),
    ]
    single = STUDY.figures(made({"rf": (2.0, -0.5)}, sizes=[8]))["rf"].legends[0].get_texts()
    assert not any("exponent" in text.get_text() for text in single)  # of one length
    uneven = pd.concat([made({"drf2": (1.0, -0.5)}), made({"drf4": (1.0, -1.0)}, texts=TEXTS[1:])])
    names = [text.get_text() for text in STUDY.figures(uneven)["drf"].legends[0].get_texts()]
    assert ["none" in name for name in names] == [False, True]  # no exponent on movie reviews
    near = made({"raf": (2.0, 0.0)}, upper=2.5, rigor=CERTIFIED)
    far = made({"relu-raf": (1.0, 0.0)}, upper=9.0, predicted=1.0, predicted_in_range=False)
    figure = STUDY.figures(pd.concat([near, far]))["raf"]
    left, right = figure.axes
    assert [panel.get_title() for panel in (left, right)] == [
        "Movie reviews, d = 8",
        "Gaussian texts, d = 8",
    ]
    assert len(left.collections) == 2 + 2  # the bands, and the bars of both maps
    assert left.get_ylim()[1] < 9.0  # the far bound is cut off
    assert "not compared at such sizes: ReLU-RAF" in figure.caption
    assert [line.get_ydata()[0] for line in left.lines if line.is_dashed()] == [1.0]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert any(name.startswith("ReLU-RAF: exponent") for name in names)
    assert left.get_xscale() == left.get_yscale() == "log"
    still = STUDY.figures(made({"rf": (0.0, 0.0)}))["rf"].axes[0]
    assert still.get_yscale() == "linear"


def test_a_departure_keeps_the_lengths_that_were_not_measured_as_defined(made, make_record):
    defined = made({"raf": (2.0, 0.0)}, texts=["reviews"])
    records = departed(defined, "word 0 only", make_record, lambda n, draw: 0.8)
    both = pd.concat([defined[defined["n"] < 100], as_frame(records)])
    table = STUDY.tables(both)[PUBLISHED]
    assert table["n"].tolist() == [10, 40, 160]
    assert table["ratio"].isna().tolist() == [False, False, True]


def test_a_map_has_one_mark_where_each_kind_of_text_has_its_own_d(make_record):
    rows = [
        make_record(map=name, text=text, d=d, n=n, draw=draw, value=1.0 / n, source=f"{n} {draw}")
        for name in ("rf", "raf")
        for text, d in (("reviews", 4), ("gaussian", 8))
        for n in (10, 20)
        for draw in range(3)
    ]
    figure = STUDY.figures(as_frame(rows))["sensitivity"]
    names = [entry.get_text() for entry in figure.legends[0].get_texts()]
    assert [name.partition(":")[0] for name in names] == ["RF", "RAF (softmax)"]
    assert [axes.get_title()[-5:] for axes in figure.axes] == ["d = 4", "d = 8"]


def test_the_cost_of_attention_is_divided_by_that_of_a_fully_connected_layer(made):
    frame = made({"raf": (2.0, 0.0), "rf": (0.5, -0.5)})
    *_, cost = STUDY.summary(frame).findings
    last = frame[frame["n"] == frame["n"].max()].groupby("map")["spec"].first().map(json.loads)
    ratio = multiplications(last["raf"]) / multiplications(last["rf"])
    assert ratio < 1 and f"takes {number(ratio)} times" in cost.sentence
