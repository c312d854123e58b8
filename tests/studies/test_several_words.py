"""Several words at once: attained by a witness, below the bound of every
set."""

import pandas as pd
import pytest
import torch

import wordsens as ws
from wordsens.certificates.dense.bounds import by_law, by_weights
from wordsens.sensitivity.several_words import word_sets
from wordsens.studies.several_words import STUDY, SeveralWordsCell, bound_of_every_set

SMALL = {"map": "rf", "n": 6, "d": 8, "text": "gaussian", "search": "quick"}


@pytest.mark.parametrize("name", ["rf", "drf", "raf", "relu-raf"])
@pytest.mark.parametrize("count", [1, 3, 6])
def test_the_value_is_attained_by_the_kept_witness(name, count):
    cell = SeveralWordsCell.parse({**SMALL, "map": name, "count": count})
    columns = STUDY.measure(cell)
    kept = columns["arrays"]
    phi, rows = cell.build(), kept["rows"]
    moved = rows.clone()
    moved[kept["words"]] += kept["perturbations"]
    assert len(columns["group"]) == count
    assert columns["value"] == pytest.approx(
        float((phi(moved) - phi(rows)).norm() / phi(rows).norm()), rel=1e-9
    )
    assert (columns["upper"] is None) == (name.endswith("raf"))
    assert columns["upper"] is None or columns["value"] <= columns["upper"]


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_no_set_exceeds_the_bound_of_every_set(depth, count):
    phi = (
        ws.DeepRandomFeatures(5, 4, depth, seed=3) if depth > 1 else ws.RandomFeatures(5, 4, seed=3)
    )
    text = ws.text.gaussian_text(5, 4, seed=4)
    bound = bound_of_every_set(phi, text.rows, count, 2.0)
    sets = word_sets(phi, text, count, sets=6)
    assert ws.group_sensitivity(phi, text, sets, search="quick").value <= bound.value
    assert bound.failure_probability == 1e-9
    every_set = torch.combinations(torch.arange(5), count)
    joint_radius = torch.full((len(every_set),), 2.0 * count**0.5, dtype=torch.float64)
    together = by_law(phi, text.rows, every_set, joint_radius)
    assert bound.value == pytest.approx(together.value, rel=1e-9)
    assert bound_of_every_set(ws.RandomAttentionFeatures(4, seed=0), text.rows, count, 1.0) is None


@pytest.mark.parametrize("method", [by_weights, by_law])
def test_a_group_of_one_has_the_bound_of_its_word_and_joint_moves_stay_below_theirs(method):
    phi, text = ws.RandomFeatures(5, 6, seed=1), ws.text.gaussian_text(5, 6, seed=2)
    radius = torch.full((5,), 2.0, dtype=torch.float64)
    if method is by_weights:
        alone = by_weights(phi, text.rows, torch.arange(5).unsqueeze(1), radius)
        assert torch.equal(alone.upper, ws.certify(phi, text, radius=2.0))
    pairs = torch.tensor([[0, 1], [2, 4]])
    bound = method(phi, text.rows, pairs, radius[:2])
    found = ws.group_sensitivity(phi, text, pairs.tolist(), 2.0, ball="joint")
    assert bool((found.per_word <= bound.upper).all())
    assert bool(
        (bound.upper < (1.5 if method is by_weights else 4) * found.per_word).all()
    )  # and it is no idle bound


def test_a_linear_maps_bound_by_its_weights_is_exact_for_groups():
    phi, text = (
        ws.RandomFeatures(4, 3, seed=0, activation="identity"),
        ws.text.gaussian_text(4, 3, seed=1),
    )
    group, radius = torch.tensor([[0, 2]]), torch.tensor([1.0], dtype=torch.float64)
    bound = by_weights(phi, text.rows, group, radius).value
    block = phi.weights[0][:, [0, 1, 2, 6, 7, 8]]
    assert bound == pytest.approx(
        float(torch.linalg.matrix_norm(block, 2) / phi(text.rows).norm()), rel=1e-6
    )


def _summary(values, **columns):
    """Of made-up records: S by (map, number of words, draw)."""
    rows = [
        {
            "cell": str(place),
            "map": name,
            "text": "gaussian",
            "n": 64,
            "d": 8,
            "count": count,
            "seed": 0,
        }
        | {"draw": draw, "value": value, "upper": None, "spec": "{}"}
        for place, ((name, count, draw), value) in enumerate(values.items())
    ]
    return STUDY.summary(pd.DataFrame(rows).assign(**columns))


def test_more_words_attain_what_fewer_do():
    table = _summary({("raf", 4, 0): 3.0, ("raf", 1, 0): 2.0, ("raf", 16, 0): 1.0}).table(1)
    assert table[["count", "S"]].to_numpy().tolist() == [[1, 2.0], [4, 3.0], [16, 3.0]]


def test_findings_and_rows_say_how_many_words_each_map_notices():
    # S = k^(1/2) / 8 is half at 16 words; 1.2 times that stays below half at 4 words, not at 16.
    dense = {
        ("rf", k, draw): scale * k**0.5 / 8
        for k in (1, 4, 16, 64)
        for draw, scale in enumerate((0.99, 1.0, 1.01, 0.98, 1.02))
    }
    upper = [0.15 * k**0.5 for _, k, _ in dense] + [None] * len(dense)
    attention = {("raf", k, draw): 32 * value for (_, k, draw), value in dense.items()}
    summary = _summary(dense | attention, upper=upper)
    first, second = summary.table().to_dict("records")
    assert first["words"] == pytest.approx(16, rel=0.01)
    assert (first["exponent"], first["not enough"]) == (pytest.approx(0.5, abs=0.01), 4)
    assert (first["S of the fewest"], second["words"]) == (pytest.approx(0.125), 1)
    assert pd.isna(second["not enough"]) and summary.table(1)["draws"].sum() == 40
    enough, never, growth = summary.findings
    assert "RF 16; RAF (softmax) 1 (Gaussian texts)" in enough.sentence
    assert "RF 4 (" in never.sentence and "1e-9" in never.sentence and "RF 0.5 " in growth.sentence
    assert len(enough.rows) == len(never.rows) == len(growth.rows) == 40
    few = _summary({key: value for key, value in dense.items() if key[1] < 16})
    assert (
        "RF more than the largest number tried" in few.headline
        and few.table()["words"].isna().all()
    )
    once = _summary({("rf", 1, 0): 2.0, ("rf", 1, 1): 0.1, ("rf", 1, 2): 0.1})
    assert once.table()["words"].isna().all()  # one draw notices, two do not


def test_the_exponent_reads_half_of_the_words_and_no_more():
    values = {("rf", k, draw): min(k, 32) ** 0.5 / 100 for k in (1, 32, 64) for draw in range(5)}
    assert _summary(values).table()["exponent"].tolist() == pytest.approx([0.5])


def test_not_enough_is_what_stays_below_in_every_draw():
    values = {("rf", k, draw): 0.1 for k in (1, 4) for draw in range(3)}
    summary = _summary(values, upper=[0.3, 0.3, 0.3, 0.4, 0.4, 0.6])
    assert summary.table()["not enough"].tolist() == [1]


def test_each_seed_has_curves_of_its_own():
    rows = [
        {"cell": f"{seed} {k} {draw}", "map": "rf", "text": "gaussian", "n": 64, "d": 8}
        | {"count": k, "draw": draw, "seed": seed, "value": scale * k**0.5 / 8, "upper": None}
        for seed, scale in ((0, 1.0), (1, 2.0))
        for k in (1, 4, 16, 64)
        for draw in range(3)
    ]
    words = STUDY.summary(pd.DataFrame(rows).assign(spec="{}")).table()["words"]
    assert words.tolist() == pytest.approx([10.0])  # the mean of 16 and 4
