"""k*(n), the least number of changed words that a model notices: a cell, and what tables, sentences
and figures make of known records."""

import math

import numpy as np
import pandas as pd
import pytest

from tests.made_records import measured
from wordsens.errors import InputError
from wordsens.studies import generalization
from wordsens.studies.generalization_words import STUDY, ChangedWordsCell, enough, preset
from wordsens.sweeps.sweep import paper_sweep
from wordsens.sweeps.texts import ShippedText

SMALL = {"n": 4, "d": 6, "texts": 8, "text": "gaussian", "labels": "linear", "held_out": 3}
SMALL |= {"objective": "frontier", "gammas": (0.5,), "starts": 2, "steps": 5}


def cell(**changes):
    return ChangedWordsCell.parse({**SMALL, **changes})


@pytest.mark.parametrize("training", ["fine-tuned", "retrained"])
@pytest.mark.parametrize("name", ["rf", "raf"])
def test_a_cell_moves_its_first_words_and_keeps_the_limit_and_the_bound(name, training):
    columns = STUDY.measure(cell(map=name, training=training, count=3))
    words, deltas = columns["arrays"]["word"][-1], columns["arrays"]["perturbation"][-1]
    assert words.tolist() == [0, 1, 2] and deltas.shape == (3, 6)
    assert bool((deltas.norm(dim=1) <= math.sqrt(6)).all())
    assert columns["gamma"] <= 0.5
    assert len(columns["token"].split()) == 3
    if name == "raf":
        assert columns["at_least"] is None
    else:
        assert columns["value"] >= columns["at_least"] - 1e-9


def test_one_changed_word_has_the_numbers_of_a_generalization_cell():
    one = measured(cell(map="raf", count=1))
    usual = measured(generalization.GeneralizationCell.parse({**SMALL, "map": "raf"}))
    for name in ("value", "gamma", "alignment", "word", "output_before", "evaluations"):
        assert getattr(one, name) == getattr(usual, name)


def test_cells_of_one_fit_share_it_whatever_changes():
    fits = {cell(map="rf", count=k, training=t).of_fit() for k in (1, 2) for t in ("retrained",)}
    assert len(fits) == 1


@pytest.mark.parametrize(
    "changes", [{"count": 5}, {"count": 4, "word": 1}, {"count": 2, "word": "all"}]
)
def test_a_group_that_is_not_in_the_text_is_refused(changes):
    with pytest.raises(InputError, match="`count`"):
        cell(map="raf", **changes)


def test_the_preset_doubles_k_up_to_the_limit_and_the_text():
    grids, notices = preset("quick", ShippedText(), 0, None, words_changed=20)
    assert notices == []
    assert [grid["count"] for grid in grids] == [[1, 2, 4, 8], [1, 2, 4, 8, 16], [1, 2, 4, 8, 16]]
    assert {grid["d"] / grid["n"] for grid in grids} == {2}
    sweep, _ = paper_sweep("generalization-words", "quick", words_changed=1)
    assert {of_sweep.count for of_sweep in sweep.cells()} == {1}


def records(curves, floor=None):
    """Made up: by map, a function of n, k and the curve, two per draw, that gives the error."""
    rows = [
        {
            "cell": f"{name} {n} {k} {draw}",
            "map": name,
            "training": "fine-tuned",
            "n": n,
            "d": 2 * n,
        }
        | {"text": "gaussian", "seed": 0, "draw": draw // 2, "sample": draw % 2}
        | {"count": k, "spec": "{}"}
        | {"value": error(n, k, draw), "gamma": 0.5, "alignment": 0.1, "at_least": floor}
        for name, error in curves.items()
        for n in (8, 16, 32, 64)
        for k in (1, 2, 4, 8, 16, 32, 64)
        if k <= n
        for draw in range(7)
    ]
    return pd.DataFrame(rows).sample(frac=1, random_state=0)


def test_tables_recover_k_and_its_exponent_whatever_the_order_of_the_records():
    # Err = 1 at k = n / 4, and at k = 2: linear in log k, so interpolation is exact.
    frame = records(
        {
            "rf": lambda n, k, draw: max(0.0, 1 - 0.3 * math.log(4 * k / n)),
            "raf": lambda n, k, draw: max(0.0, 1 - 0.3 * math.log(k / 2)),
        }
    )
    summary = STUDY.summary(frame)
    growth = summary.table().set_index("map")
    numbers, errors = summary.table(1), summary.table(2)
    assert growth.loc["RF", ["exponent", "k* there", "k* at the end"]].tolist() == pytest.approx(
        [1, 2, 16]
    )
    assert growth.loc["RAF (softmax)", "exponent"] == pytest.approx(0, abs=1e-9)
    least = numbers.groupby("map")["k*"].agg(list)
    assert least["RF"] == pytest.approx([2.0, 4.0, 8.0, 16.0])
    assert least["RAF (softmax)"] == pytest.approx([2.0] * 4)
    assert errors["draws"].sum() == len(frame) and set(numbers["draws"]) == {7}


def test_k_is_a_median_that_counts_the_draws_that_never_notice():
    def curve(never):
        return records({"rf": lambda n, k, draw: 2.0 if draw < never else (0.5 if k > 1 else 1.5)})

    few = STUDY.summary(curve(3)).table(1)
    assert few["k*"].tolist() == pytest.approx([math.sqrt(2)] * 4)
    assert few["noticed"].tolist() == pytest.approx([4 / 7] * 4)
    most = STUDY.summary(curve(4))
    assert most.table(1)["k*"].isna().all() and most.table()["exponent"].isna().all()
    assert "none at n = 8 to none at n = 64" in most.headline


def test_more_words_reach_what_fewer_do():
    rising = records({"rf": lambda n, k, draw: 0.2 if k == 1 else 1.8})
    summary = STUDY.summary(rising)
    assert summary.table(1)["k*"].tolist() == [1.0] * 4
    assert summary.table(2)["error"].tolist() == pytest.approx([0.2] * len(summary.table(2)))


def test_not_enough_is_where_the_bound_of_every_draw_excludes_it():
    frame = records({"rf": lambda n, k, draw: 2.0}, floor=0.0)
    frame["at_least"] = np.where(frame["count"] <= np.where(frame["draw"] == 3, 2, 8), 1.2, 0.4)
    assert STUDY.summary(frame).table(1)["not enough"].tolist() == [2] * 4


@pytest.mark.parametrize(
    ("errors", "k"), [([2.0, 1.0, 0.0], 2.0), ([0.9, 0.1, 0.0], 1.0), ([3.0, 2.0, 1.0], math.inf)]
)
def test_enough_is_the_first_crossing(errors, k):
    assert enough([1, 2, 4], errors) == pytest.approx(k)


def test_the_figure_has_a_line_per_length_and_the_proved_bound_dashed():
    frame = records({"rf": lambda n, k, draw: 2.0 / k, "raf": lambda n, k, draw: 1.0 / k})
    frame["at_least"] = np.where(frame["map"] == "rf", 0.25, np.nan)
    panels = STUDY.figures(frame)["generalization-words"].axes
    lines = {axes.get_title().split(",")[0]: axes.lines for axes in panels}
    flat = {name: sum(set(line.get_ydata()) == {0.25} for line in of) for name, of in lines.items()}
    assert flat == {"RF": 4, "RAF (softmax)": 0}
