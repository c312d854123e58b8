"""What all studies do with their records."""

import numpy as np
import pandas as pd
import pytest

from wordsens.sweeps.study import changes, means


def test_changes_pair_draws_of_one_seed_and_setting():
    rows = pd.DataFrame(
        [
            {"map": name, "seed": seed, "draw": draw, "value": (1 + 9 * seed) * (1 + draw)}
            for name in ("raf", None)
            for seed in (0, 1)
            for draw in range(3)
        ]
    )
    halves = rows.assign(value=rows["value"] / 2)
    halved = changes(halves, rows, ["map"], relative=True)
    assert [change.value for change in halved["change"]] == [0.5, 0.5]
    assert {(change.low, change.high, change.n) for change in halved["change"]} == {(0.5, 0.5, 6)}
    apart = changes(halves[halves["draw"] > 0], rows, ["map"])["change"]
    assert [change.n for change in apart] == [4, 4]


def test_means_keep_every_record_and_missing_keys_and_sort_numbers():
    stream = np.random.default_rng(0)
    rows = pd.DataFrame(
        {"map": ["raf", "rf", None] * 8, "n": [20, 3, 100, 3] * 6, "S": stream.random(24)}
    )
    table = means(rows, ["map", "n"], {"mean": "S"})
    assert table["draws"].sum() == 24 and table["map"].isna().sum() == 3
    assert table["n"].tolist() == [3, 20, 100] * 3
    for row in table.to_dict("records"):
        same_map = rows["map"].isna() if pd.isna(row["map"]) else rows["map"] == row["map"]
        here = same_map & (rows["n"] == row["n"])
        assert row["mean"].value == pytest.approx(rows["S"][here].mean())
