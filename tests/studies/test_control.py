"""Training under control: cells that are what their keys say, and sentences no surer than their
intervals."""

import pandas as pd
import pytest
import torch

import wordsens as ws
from tests.made_records import measured
from wordsens.errors import InputError
from wordsens.plotting.style import styles_of
from wordsens.studies.control import study
from wordsens.studies.control.cell import ALONG, STRENGTHS, ControlCell
from wordsens.studies.control.cell import measure as measure_control

SMALL = {
    "task": "one-word",
    "n": 6,
    "d": 8,
    "steps": 4,
    "training": 32,
    "texts": 2,
    "words": 2,
    "hidden": 8,
}


@pytest.mark.slow_cases("majority-*")
@pytest.mark.parametrize("control", STRENGTHS)
@pytest.mark.parametrize("task", ["one-word", "majority"])
def test_every_control_of_every_task_gives_a_record(control, task):
    target = {"target": 0.5} if control == "hold" else {}
    cell = ControlCell.parse({**SMALL, "task": task, "control": control, **target})
    record = measured(cell)
    assert record.status == "done"
    assert 0 <= record.value <= 1
    assert 0 < record.sensitivity >= record.median_word
    assert (record.short is None) == (control not in ("hold", "lower", "raise"))
    assert record.value == measured(cell).value


def test_the_kept_weights_are_the_network_that_was_measured():
    cell = ControlCell.parse({**SMALL, "layer": "dense", "texts": 1, "words": 6})
    columns = measure_control(cell)
    network = ws.studies.control.build_network(cell.architecture, 6, 8)
    network.load_state_dict(columns["arrays"])
    network.requires_grad_(False)
    task = ws.studies.control.one_word_task(6, 8, cell.seed_of("task"), parts=(32, 256, 512))
    X = task.test.rows()[0]
    found = ws.word_sensitivity(
        network.feature_map(), X, seed=cell.seed_of("search"), search="quick"
    )
    assert columns["sensitivity"] == pytest.approx(found.value, rel=1e-3)


@pytest.mark.parametrize("control", [{"control": "hold", "target": 4.0}, {"control": "none"}])
def test_a_network_whose_units_have_died_has_an_accuracy_and_no_sensitivity(control, monkeypatch):
    """Under a penalty, which says so in the training, and without control, where the search says
    it."""

    def dead(*given, **options):
        network = ws.studies.control.build_network(*given, **options)
        torch.nn.init.constant_(network.blocks[0].bias, -1e4)
        return network

    monkeypatch.setattr("wordsens.studies.control.cell.build_network", dead)
    record = measured(ControlCell.parse({**SMALL, "layer": "dense", **control}))
    assert record.status == "done", record.error
    assert 0 <= record.value <= 1
    assert record.sensitivity is None and record.robust is None


def test_layers_are_measured_one_by_one():
    record = measured(
        ControlCell.parse({**SMALL, "layers": 3, "residual": True, "by_layer": True, "steps": 0})
    )
    assert len(record.by_layer) == 3
    assert all(value > 0 for value in record.by_layer)
    assert record.first_upper is None


@pytest.mark.parametrize("score", ["softmax", "relu"])
def test_the_first_layer_has_a_bracket_where_it_is_attention_alone(score):
    record = measured(ControlCell.parse({**SMALL, "layers": 2, "layer": score, "by_layer": True}))
    assert record.by_layer[0] < record.first_upper * (1 + 1e-5)
    assert record.first_upper < 3 * record.by_layer[0]


def test_a_training_is_measured_along_its_way():
    keys = {**SMALL, "n": 8, "d": 16, "steps": 32, "training": 256, "along": True}
    record = measured(ControlCell.parse(keys))
    assert record.along_steps == (0, 1, 2, 4, 8, 16, 32)
    for name in ("accuracy", "sensitivity", "kept", "told", "probe"):
        values = getattr(record, f"along_{name}")
        assert len(values) == 7
        assert all(0 <= value <= 1 for value in values) or name == "sensitivity"
    assert record.along_accuracy[-1] == record.value
    # Looking changes nothing: the network ends as one that nobody looked at.
    assert record.value == measured(ControlCell.parse({**keys, "along": False})).value
    majority = measured(ControlCell.parse({**keys, "task": "majority", "steps": 2}))
    assert majority.along_told is None
    assert len(majority.along_kept) == 3  # some shares of two steps are one step


@pytest.mark.parametrize("keys", [{"control": "pairs"}, {"along": True}])
def test_real_texts_have_no_pairs(keys):
    with pytest.raises(InputError, match="'one-word' or 'majority'"):
        ControlCell.parse({**SMALL, "task": "texts", "text": "reviews", **keys})


def test_real_texts_are_learned_by_their_labels():
    keys = {**SMALL, "task": "texts", "text": "reviews", "n": 8, "d": 16, "training": 40}
    record = measured(ControlCell.parse(keys))
    assert record.status == "done"
    assert record.text_content
    assert (record.layer, record.text_layer) == ("softmax", 0)
    assert (record.value * 8).is_integer()  # a fifth of 40 texts is held out


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"control": "hold"}, "goes with control 'hold'"),
        ({"task": "texts"}, "needs real ones"),
        ({"layer": "dense", "norm": True}, "option of attention"),
        ({"strength": 0.5}, "is of a control"),
    ],
)
def test_wrong_keys_are_refused(keys, message):
    with pytest.raises(InputError, match=message):
        ControlCell.parse({**SMALL, **keys})


def frame(*records):
    """Records made up: of a single layer of softmax attention, unless they say otherwise."""
    plain = {"layer": "softmax", "layers": 1, "residual": None, "norm": None, "mlp": None}
    plain |= {"task": "one-word", "text": None, "n": 6, "d": 8, "steps": 4, "draw": 0}
    plain |= {"control": "none", "target": None, "strength": None, "spec": "{}"}
    plain |= dict.fromkeys(("by_layer", "first_upper", "along_steps", *ALONG.values()))
    measured = {"value": 0.9, "sensitivity": 1.0, "median_word": 0.5, "robust": 0.5}
    rows = [{**plain, **measured, "cell": f"{at}", **record} for at, record in enumerate(records)]
    return pd.DataFrame(rows)


JITTER = (0.0, 0.01, -0.01, 0.02, -0.02)


def draws(**columns):
    """Five draws: each column from its function of the draw's jitter, or the same in all."""
    return [
        {name: one(j) if callable(one) else one for name, one in columns.items()} | {"draw": draw}
        for draw, j in enumerate(JITTER)
    ]


def sentences(records):
    return [claim.sentence for claim in study.findings(records, study.tables(records))]


def test_accuracy_is_compared_at_the_shortest_and_the_longest_texts():
    records = frame(
        *draws(layer="dense", n=8, value=lambda j: 0.9 + j),
        *draws(layer="dense", n=64, value=lambda j: 0.5 + j),
        *draws(n=8, value=1.0),
        *draws(n=64, value=1.0),
    )
    (sentence,) = sentences(records)
    assert "falls in 1 of 2 settings; in 1 no difference is claimed" in sentence
    assert "fully connected, one word decides, 8 to 64 words: −0.400 [−0.400, −0.400]" in sentence
    assert "no difference is claimed in 2 settings" in sentences(records[records["draw"] < 2])[0]
    assert not sentences(records[records["n"] == 8])
    assert not sentences(records.assign(steps=0))  # untrained
    figures = study.figures(records)
    assert list(figures) == ["control-accuracy", "control-sensitivity"]
    colours = {
        bars.get_label(): bars.lines[0].get_color()
        for bars in figures["control-sensitivity"].axes[0].containers
    }
    maps = {"fully connected": "rf", "softmax": "raf"}
    assert colours == {name: style[0] for name, style in styles_of(maps).items()}


def test_controls_are_counted_by_what_they_change_and_the_dead_are_in_no_mean():
    hold = {"control": "hold", "strength": 1.0}
    records = frame(
        *draws(sensitivity=lambda j: 2 + j),
        *draws(**hold, target=0.5, sensitivity=lambda j: 1 + j / 2, value=lambda j: 0.8 + j),
        *draws(**hold, target=2.0, sensitivity=lambda j: 2 - j),
        *[{**hold, "target": 0.5, "sensitivity": None, "value": 0.1, "draw": at} for at in (5, 6)],
    )
    main = study.tables(records)["Accuracy and S"].set_index("control")
    assert main["died"].to_dict() == {"none": 0, "hold 0.5": 2, "hold 2": 0}
    assert main["draws"].sum() == len(records)
    assert main["accuracy"]["hold 0.5"].value == pytest.approx(0.8)
    assert main["factor of S"]["hold 0.5"].value == pytest.approx(0.5)
    controls, died = sentences(records)
    assert "(one word decides), control hold: S falls in 1 of 2 settings; in 1 no" in controls
    assert "Accuracy: falls in 1 of 2 settings; in 1 no" in controls
    assert "in 2 of 17 networks" in died
    target = study.figures(records)["control-target"].axes[0].containers[0].lines[0]
    assert target.get_ydata() == pytest.approx([1.0, 2.0])


def test_each_network_on_real_texts_is_a_mark_and_its_flips_are_in_the_table():
    review = {"task": "texts", "text": "dataset"}
    flips = {f"flipped_by_{kind}": lambda j: 0.2 + j for kind in ("deletion", "antonym")}
    flips |= {"flipped_by_negation": 0.0, "flipped_by_synonym": None}
    hold = {"control": "hold", "strength": 1.0, "target": 0.5, "sensitivity": lambda j: 0.5 + j}
    synthetic = [*draws(), *draws(**hold)]
    records = frame(*synthetic, *draws(**review, **flips), *draws(**review, **flips, **hold))
    flipped = study.tables(records)["Labels that one changed word flips"].set_index("control")
    assert flipped["draws"].to_dict() == {"none": 5, "hold 0.5": 5}
    assert flipped["antonym"]["none"].value == pytest.approx(0.2)
    assert flipped["synonym"].isna().all()
    finding = list(study.findings(records, study.tables(records)))[-1]
    assert "deletion 0.20" in finding.sentence and "negation 0" in finding.sentence
    assert set(finding.rows) == {str(row) for row in range(10, 15)}
    marks = study.figures(records)["control-sentiment"].axes[0].containers
    assert {bars.get_label(): len(bars.lines[0].get_xdata()) for bars in marks} == {
        "softmax, no control": 5,
        "softmax, S held at 0.5": 5,
    }


def test_layers_and_looks_have_rows_of_their_own():
    stacked = draws(layers=3, steps=0, by_layer=lambda j: (1.0, 1.5, 4.0 + j), residual=True)
    looked = draws(
        along_steps=(0, 4),
        along_accuracy=(0.5, 1.0),
        along_sensitivity=lambda j: (2.0, 4.0 + j),
        along_kept=(0.9, 0.9),
        along_probe=(0.5, 0.6),
    )
    records = frame(*stacked, *looked)
    layers, looks = (table for table in study.tables(records).values() if len(table))
    assert layers["network"].tolist() == ["softmax, 3 layers, residual"]
    assert layers["factor"][0].value == pytest.approx(2, rel=1e-2)
    assert layers["draws"].sum() + looks["draws"].sum() == 5 + 2 * 5
    assert [one.value for one in looks["S"]] == pytest.approx([2, 4])
    assert looks["flips detected"].isna().all()
    (sentence,) = sentences(records)
    assert "From layer to layer (one word decides) S grows in 1 of 1 setting" in sentence
    assert "During the training (one word decides) S rises in 1 of 1 setting" in sentence
    figures = study.figures(records)
    stack = figures["control-layers"].axes[0].containers[0].lines[0]
    assert stack.get_color() == styles_of({"raf": "raf"})["raf"][0]
    assert list(figures) == ["control-layers", "control-along"]
    names = [bars.get_label() for bars in figures["control-along"].axes[0].containers]
    assert names == ["accuracy", "synonyms kept", "new words"]


def test_sizes_are_compared_each_with_itself_and_other_keys_are_not_averaged():
    changes = {16: -0.1, 32: -0.3}
    records = frame(
        *(
            row
            for d, change in changes.items()
            for n, value in ((8, 0.9), (64, 0.9 + change))
            for row in draws(n=n, d=d, value=value)
        )
    )
    (finding,) = study.findings(records, study.tables(records))
    assert all(f"64 words: −0.{tenths}00" in finding.sentence for tenths in (1, 3))
    assert set(finding.rows) == set(records["cell"])
    records["spec"] = [f'{{"pooling": "{name}"}}' for name in ("mean", "max") * 10]
    with pytest.raises(InputError, match="several values of pooling"):
        study.tables(records)
