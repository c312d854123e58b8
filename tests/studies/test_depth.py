"""The depth study: cells by definition, the grids, and what its records say."""

import math
import re

import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError
from wordsens.maps.transformer.features import loaded_model
from wordsens.studies.depth.cell import DepthCell, measure_depth
from wordsens.studies.depth.figures import depth_figures
from wordsens.studies.depth.study import preset
from wordsens.studies.depth.summary import exponent, summarize
from wordsens.sweeps.run import failed
from wordsens.sweeps.sweep import paper_sweep
from wordsens.sweeps.texts import DatasetText, PassagesText, QuestionsText, ReviewsText, documents

SMALL = {"map": "transformer", "n": 6, "d": 8, "text": "gaussian", "search": "quick"}
MODEL = {
    "map": "model",
    "n": 9,
    "d": 384,
    "text": "questions",
    "search": "quick",
    "steps": 3,
    "dtype": "float32",
}


def attained(phi, columns):
    saved = columns["arrays"]
    moved = saved["rows"].clone().to(saved["perturbations"])
    moved[saved["words"]] += saved["perturbations"]
    before = phi(saved["rows"].to(moved))
    return float((phi(moved) - before).norm() / before.norm())


@pytest.mark.parametrize(
    "keys",
    [
        {"depth": 1, "residual": False, "norm": None},
        {"depth": 3, "mlp": 16},
        {"map": "raf"},
        {"front": 4, "behind": 3},
    ],
    ids=str,
)
def test_the_value_is_attained_by_a_word_of_the_window(keys):
    cell = DepthCell.parse({**SMALL, **keys})
    columns = measure_depth(cell)
    assert cell.front <= columns["moved"] < cell.front + cell.n
    assert columns["arrays"]["rows"].shape == (cell.front + cell.n + cell.behind, 8)
    assert columns["value"] == pytest.approx(attained(cell.build(), columns), rel=1e-9)
    assert columns["average"] <= columns["value"]


def test_every_layer_moves_the_same_word_of_the_same_text():
    layers = [measure_depth(DepthCell.parse({**SMALL, "depth": depth})) for depth in (1, 2, 4)]
    assert len({columns["moved"] for columns in layers}) == 1
    assert all(
        torch.equal(columns["arrays"]["rows"], layers[0]["arrays"]["rows"]) for columns in layers
    )
    assert [columns["at_layer"] for columns in layers] == [1, 2, 4]
    assert measure_depth(DepthCell.parse({**SMALL, "map": "raf"}))["at_layer"] == 1


def test_the_last_row_of_a_causal_map_does_not_feel_a_word_it_cannot_see():
    seen = measure_depth(DepthCell.parse({**SMALL, "causal": True, "last_row": True, "depth": 2}))
    assert seen["value"] > 0
    phi = ws.RandomTransformer(8, 2, causal=True)
    text = ws.gaussian_text(5, 8, seed=1).rows
    moved = text.clone()
    moved[4] += 1
    assert torch.equal(phi(text)[:4], phi(moved)[:4])


def test_a_model_beside_its_architecture_with_random_weights():
    trained, random = (
        measure_depth(DepthCell.parse({**MODEL, "model_layer": 2, **more}))
        for more in ({}, {"random_weights": True})
    )
    assert torch.equal(trained["arrays"]["rows"], random["arrays"]["rows"])
    assert (
        trained["radius"]
        == random["radius"]
        == pytest.approx(trained["arrays"]["rows"][trained["moved"]].norm())
    )
    assert trained["value"] != random["value"]
    phi = loaded_model("minilm", 2)
    assert trained["value"] == pytest.approx(attained(phi, trained), rel=1e-3)  # less its rounding
    twins = [phi.with_random_weights(seed) for seed in (1, 1, 2)]
    answers = [twin(trained["arrays"]["rows"]) for twin in twins]
    assert torch.equal(answers[0], answers[1])
    assert not torch.equal(answers[0], answers[2])


def test_wrong_keys_are_refused():
    for keys, said in [
        ({"random_weights": True}, "random_weights"),
        ({"map": "raf", "last_row": True}, "last_row"),
        ({"map": "rf", "residual": False}, "residual"),
    ]:
        with pytest.raises(InputError, match=said):
            DepthCell.parse({**SMALL, **keys})


def test_shipped_questions_are_short_and_passages_long():
    words = {
        text.kind: [len(d.text.split()) for d in documents(text)]
        for text in (QuestionsText(), PassagesText())
    }
    assert max(words["questions"]) <= 45
    assert min(words["passages"]) >= 60
    assert all(len(lengths) >= 50 for lengths in words.values())


def test_kinds_of_a_table_are_texts_of_their_own(tmp_path):
    path = tmp_path / "texts.csv"
    long, short = "word " * 30, "short one here"
    path.write_text(f"body,topic\n{long},cats\n{short},dogs\n{long},dogs\n,dogs\n")
    source = DatasetText.parse({"path": str(path), "text_column": "body"})
    cats, dogs = (
        source.model_copy(update={"where": f"topic={value}"}) for value in ("cats", "dogs")
    )
    assert [len(documents(text)) for text in (cats, dogs)] == [1, 2]
    grids, _ = preset("quick", source, 0, None, by="topic")
    kinds = {grid["text"].get("where") for grid in grids if grid["map"] == "model"}
    assert kinds == {"topic=cats", "topic=dogs"}
    with pytest.raises(InputError, match="no column 'theme'"):
        preset("quick", source, 0, None, by="theme")
    with pytest.raises(InputError, match="by"):
        preset("quick", ReviewsText(), 0, None, by="topic")


def test_the_full_study_has_every_layer_of_every_architecture():
    sweep, notices = paper_sweep("depth", "full")
    cells = [cell for cell in sweep.cells() if cell.map == "transformer" and not cell.last_row]
    assert {cell.depth for cell in cells} == set(range(1, 13))
    assert {cell.n for cell in cells} == {10, 40, 160}
    assert (
        len({(cell.residual, cell.norm, cell.mlp, cell.values, cell.score) for cell in cells}) == 7
    )
    assert notices == []


def record(layer, draw, value, series="pre-norm", **more):
    cell = DepthCell.parse({**SMALL, "depth": layer, "draw": draw})
    columns = {
        "status": "done",
        "error": None,
        "series": series,
        "at_layer": layer,
        "value": value,
        "average": 0.1,
        "predicted": 0.11,
        "small_radius": 0.2,
        "removal": None,
        "model": None,
    }
    return failed(cell, "none").replace(**columns | more)


def test_exponents_are_the_mean_slope_over_draws_and_decide_what_is_said():
    growing = [
        record(layer, draw, (1 + draw / 10) * layer**0.5)
        for draw in range(5)
        for layer in (1, 2, 4)
    ]
    slope = exponent(growing)
    assert slope.value == pytest.approx(0.5)
    assert slope.n == 5
    noise = [0.9, -1.1, 0.2, 1.3, -1.2]
    flat = [
        record(layer, draw, layer ** noise[draw], "residual")
        for draw in range(5)
        for layer in (1, 2, 4)
    ]
    summary = summarize([*growing, *flat])
    first = summary.findings[0].sentence
    assert "grows in 1 of 2 architectures" in first
    assert "pre-norm (×2 to ×2)" in first
    assert re.search(r"in residual \(×[\d.]+ to ×[\d.]+\) it shows no trend", first)
    assert "10%" in summary.findings[-1].sentence  # the law's error, 0.11 against 0.1
    rows = summary.table()
    assert rows["exponent"][0] == pytest.approx(0.5)
    assert rows["exponent low"][0] == pytest.approx(0.5)
    figures = depth_figures([*growing, *flat])
    assert figures["depth"] is not None
    assert figures["depth-model"] is None


def test_few_draws_claim_nothing():
    summary = summarize([record(layer, 0, math.sqrt(layer)) for layer in (1, 2)])
    (finding,) = summary.findings
    assert "10%" in finding.sentence and "layer" in finding.sentence


def test_a_run_has_a_report(tmp_path):
    grids = [{**SMALL, "depth": [1, 2], "draw": [0, 1], "steps": 3}]
    ws.run_sweep({"name": "small", "experiment": "depth", "grids": grids}, tmp_path)
    page = ws.write_report([tmp_path], tmp_path / "report.html").read_text()
    assert "pre-norm" in page
