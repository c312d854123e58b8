"""The depth study: cells by definition, the grids, and what its records say."""

import pandas as pd
import pytest
import torch

from wordsens.errors import InputError
from wordsens.maps.transformer.features import loaded_model
from wordsens.studies import depth
from wordsens.studies.depth import DepthCell
from wordsens.studies.depth import measure as measure_depth
from wordsens.sweeps.sweep import paper_sweep
from wordsens.sweeps.texts import ShippedText, documents

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
    layers.append(measure_depth(DepthCell.parse({**SMALL, "map": "raf"})))
    assert len({columns["moved"] for columns in layers}) == 1
    assert len({columns["arrays"]["rows"].sum().item() for columns in layers}) == 1
    assert [columns["at_layer"] for columns in layers] == [1, 2, 4, 1]


def test_the_last_row_of_a_causal_map_is_measured_alone():
    cell = DepthCell.parse({**SMALL, "causal": True, "last_row": True, "depth": 2})
    columns, phi = measure_depth(cell), cell.build()
    assert columns["value"] == pytest.approx(attained(lambda rows: phi(rows)[-1], columns))


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
    rows = trained["arrays"]["rows"]
    first, same, other = (phi.with_random_weights(seed)(rows) for seed in (1, 1, 2))
    assert torch.equal(first, same) and not torch.equal(first, other)


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
        for text in (ShippedText(kind="questions"), ShippedText(kind="passages"))
    }
    assert max(words["questions"]) <= 45 < 60 <= min(words["passages"])
    assert all(len(lengths) >= 50 for lengths in words.values())


def test_the_full_study_has_every_layer_of_every_architecture():
    sweep, notices = paper_sweep("depth", "full")
    cells = [cell for cell in sweep.cells() if cell.map == "transformer" and not cell.last_row]
    assert {cell.depth for cell in cells} == set(range(1, 13))
    assert {cell.n for cell in cells} == {10, 40, 160}
    assert (
        len({(cell.residual, cell.norm, cell.mlp, cell.values, cell.score) for cell in cells}) == 7
    )
    assert notices == []


def frame(*records):
    """Records made up: of seven words, unless they say otherwise."""
    plain = {"series": "pre-norm", "text": "gaussian", "n": 7, "d": 8, "model": None}
    plain |= {"front": 0, "behind": 0, "last_row": False, "random_weights": False, "spec": "{}"}
    measured = {"average": 0.1, "predicted": 0.11, "small_radius": 0.2, "removal": None}
    rows = [{**plain, **measured, "cell": f"{at}", **record} for at, record in enumerate(records)]
    return pd.DataFrame(rows)


def curve(draw_values, layers=(1, 2, 4), **keys):
    """S behind these layers, by layer and draw."""
    return [
        {"at_layer": layer, "draw": draw, "value": value(layer), **keys}
        for layer in layers
        for draw, value in enumerate(draw_values)
    ]


SLOPES = (0.9, -1.1, 0.2, 1.3, -1.2)
GROWING = curve([lambda layer, draw=draw: (1 + draw / 10) * layer**0.5 for draw in range(5)])
FLAT = curve([lambda layer, b=b: layer**b for b in SLOPES], series="residual", text="reviews")


def sentences(records):
    return [claim.sentence for claim in depth.findings(records, depth.tables(records))]


def test_exponents_are_the_mean_slope_over_draws_and_decide_what_is_counted():
    records = frame(*GROWING, *FLAT)
    growth, every = (table for table in depth.tables(records).values() if len(table))
    assert [one.value for one in growth["exponent"]] == pytest.approx([0.5, sum(SLOPES) / 5])
    assert every["draws"].sum() == len(records)
    (sentence,) = sentences(records)
    counted = "S of one word grows in 1 of 2 settings; in 1 no difference is claimed"
    assert counted in sentence and "Gaussian texts and movie reviews" in sentence
    drawn = depth.figures(records)["depth"].axes[0].containers[0].lines[0].get_ydata()
    means = records[records["series"] == "pre-norm"].groupby("at_layer")["value"].mean()
    assert drawn == pytest.approx(means.to_numpy())
    few = records[records["draw"] < 2]
    assert "S of one word no difference is claimed in 2 settings" in sentences(few)[0]
    assert not sentences(records[records["at_layer"] == 1])


def test_a_model_is_compared_with_its_twin_behind_the_last_layer_and_words_with_none():
    values = [lambda layer, draw=draw: layer * (1 + draw) for draw in range(3)]
    of_model = {"model": "minilm", "series": "minilm", "text": "reviews"}
    twin = {**of_model, "random_weights": True, "series": "minilm with random weights"}
    halves = [lambda layer, value=value: value(layer) / 2 for value in values]
    around = {"series": "RAF (softmax)", "layers": (1,)}
    records = frame(
        *curve(values, **of_model),
        *curve(halves, layers=(4,), **twin),
        *curve(values, **around),
        *curve(halves, **around, front=20),
        *curve(values, **around, front=8),
        *curve(values, **around, behind=9),
    )
    trained, context = sentences(records)
    assert "minilm 2.00 [2.00, 2.00] on movie reviews of 7 rows" in trained
    assert "20 words in front (Gaussian texts): ×0.500 [0.500, 0.500]" in context
    assert "9 words behind (Gaussian texts): ×1.00 [1.00, 1.00]" in context
    assert list(depth.figures(records)) == ["depth-model", "depth-context"]
    tables = depth.tables(records)
    assert sum(table["draws"].sum() for table in tables.values() if "draws" in table) == len(
        records
    )


def test_a_side_without_words_is_not_compared_and_rows_are_those_that_are():
    around = {"series": "RAF (softmax)", "layers": (1,)}
    values = [lambda layer, draw=draw: 1.0 + draw for draw in range(3)]
    records = frame(*(row for front in (0, 8, 20) for row in curve(values, **around, front=front)))
    (finding,) = depth.findings(records, depth.tables(records))
    assert "20 words in front" in finding.sentence and "behind" not in finding.sentence
    assert set(finding.rows) == set(records["cell"][records["front"] != 8])
    records["spec"] = [f'{{"temperature": {1 + at % 2}}}' for at in range(len(records))]
    with pytest.raises(InputError, match="several values of temperature"):
        depth.tables(records)


def test_each_model_is_compared_behind_its_own_last_layer():
    values = [lambda layer, draw=draw: layer * (1.0 + draw) for draw in range(3)]
    records = frame(
        *(
            row
            for model, layers in (("small", (1, 2)), ("large", (2, 4)))
            for twin in (False, True)
            for row in curve(values, layers, model=model, series=model, random_weights=twin)
        )
    )
    (finding,) = depth.findings(records, depth.tables(records))
    last = {"small": 2, "large": 4}
    assert set(finding.rows) == set(
        records["cell"][records["at_layer"] == records["model"].map(last)]
    )


def test_words_around_a_word_are_compared_in_one_setting_each():
    around = {"series": "RAF (softmax)", "layers": (1,)}
    rows = []
    for d, scale in ((8, 1.0), (16, 10.0)):
        values = [lambda layer, draw=draw, scale=scale: scale * (1.0 + draw) for draw in range(3)]
        doubled = [lambda layer, value=value: 2 * value(layer) for value in values]
        rows += [*curve(values, **around, d=d), *curve(doubled, **around, d=d, front=9)]
    (finding,) = depth.findings(records := frame(*rows), depth.tables(records))
    assert finding.sentence.count("×2.00 [2.00, 2.00]") == 2
