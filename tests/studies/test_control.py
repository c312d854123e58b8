"""Training under control: cells that are what their keys say, and sentences no surer than their
intervals."""

import pytest
import torch

import wordsens as ws
from tests.made_records import measured
from wordsens.errors import InputError
from wordsens.plotting import of_experiment
from wordsens.plotting.style import styles_of
from wordsens.studies.control.cell import ALONG, pairs_of
from wordsens.studies.control.study import CONTROLS, ControlCell, measure_control, summarize
from wordsens.sweeps.run import failed

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
@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("task", ["one-word", "majority"])
def test_every_control_of_every_task_gives_a_record(control, task):
    target = {"target": 0.5} if control == "hold" else {}
    cell = ControlCell.parse({**SMALL, "task": task, "control": control, **target})
    record = measured(cell)
    assert record.done
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
    size = ws.studies.control.TaskSize(6, 8, training=32)
    X = ws.studies.control.one_word_task(size, cell.seed_of("task")).test.rows(torch.tensor([0]))[0]
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
        torch.nn.init.constant_(network.stack[0].bias, -1e4)
        return network

    monkeypatch.setattr("wordsens.studies.control.cell.build_network", dead)
    record = measured(ControlCell.parse({**SMALL, "layer": "dense", **control}))
    assert record.done, record.error
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


def test_pairs_of_real_passages_share_none_between_learning_and_judging():
    keys = {
        **SMALL,
        "task": "texts",
        "text": "reviews",
        "n": 8,
        "d": 16,
        "control": "pairs",
        "training": 40,
    }
    cell = ControlCell.parse(keys)
    learned, judged = pairs_of(cell, None)
    assert len(learned) == len(judged)
    assert int(learned.flipped.sum()) == len(learned) // 2
    rows = {tuple(row.flatten().tolist()) for row in learned.rows()[0]}
    assert not rows & {tuple(row.flatten().tolist()) for row in judged.rows()[0]}
    assert measured(cell).done


def test_real_texts_are_learned_by_their_labels():
    keys = {**SMALL, "task": "texts", "text": "reviews", "n": 8, "d": 16, "training": 40}
    record = measured(ControlCell.parse(keys))
    assert record.done
    assert record.text_content
    assert (record.layer, record.text_layer) == ("softmax", 0)
    assert (record.value * 8).is_integer()  # a fifth of 40 texts is held out


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"control": "hold"}, "goes with control 'hold'"),
        ({"task": "texts"}, "needs real ones"),
        ({"layer": "dense", "norm": True}, "option of attention"),
        ({"along": True, "steps": 0}, "needs a training"),
    ],
)
def test_wrong_keys_are_refused(keys, message):
    with pytest.raises(InputError, match=message):
        ControlCell.parse({**SMALL, **keys})


def _record(value, sensitivity, draw, robust=0.5, **keys):
    cell = ControlCell.parse({**SMALL, "draw": draw, **keys})
    columns = dict.fromkeys(
        ("by_layer", "first_upper", "median_word", "along_steps", *ALONG.values())
    )
    columns |= {"value": value, "sensitivity": sensitivity, "robust": robust}
    return failed(cell, "none").replace(status="done", error=None, **columns)


def _told(records):
    return [claim.sentence for claim in summarize(records).findings]


JITTER = (0.0, 0.01, -0.01, 0.02, -0.02)


def test_sentences_about_the_length():
    falling = [
        _record(v + j, 0.5, at, n=n, layer="dense")
        for n, v in ((8, 0.95), (256, 0.5))
        for at, j in enumerate(JITTER)
    ]
    staying = [_record(1.0, 2.0, at, n=n) for n in (8, 256) for at in range(5)]
    told = _told(falling + staying)
    assert any(
        "fully connected, one word decides: accuracy falls from 0.950" in one for one in told
    )
    assert any(
        "to 0.500 [0.480, 0.520] at 256, which is not told from chance" in one for one in told
    )
    assert any(
        "softmax attention, one word decides: accuracy stays from 8 words (1.00" in one
        for one in told
    )
    rising = [
        _record(v + j, 0.5, at, n=n)
        for n, v in ((8, 0.5), (256, 0.9))
        for at, j in enumerate(JITTER)
    ]
    assert any(
        "rises from 0.500 [0.480, 0.520] at 8 words to 0.900 [0.879, 0.918] at 256" in one
        for one in _told(rising)
    )
    unsure = [_record((at + n) % 2 / 2, 0.5, at, n=n) for n in (8, 9) for at in range(5)]
    unsure += [_record(0.9, 0.5, 0, n=10, layer="relu"), _record(0.4, 0.5, 1, n=20, layer="relu")]
    assert not _told(unsure)
    assert not _told([one for one in falling if one.draw < 2])  # so few draws have no interval


def test_a_control_without_a_sure_effect_is_told_as_such():
    plain = [_record(0.9, 1.0 + j, at) for at, j in enumerate(JITTER)]
    same = [_record(0.9, 1.0 - j, at, control="spectral") for at, j in enumerate(JITTER)]
    assert any(
        "of 1 control the draws do not tell whether S changes: the spectral penalty" in one
        for one in _told(plain + same)
    )


def test_dead_networks_are_in_no_mean_and_are_told():
    alive = [
        _record(0.9, t + j, at, control="hold", target=t)
        for at, j in enumerate(JITTER)
        for t in (0.5, 1.0)
    ]
    gone = [_record(0.5, None, draw, robust=None, control="hold", target=1.0) for draw in (5, 6)]
    summary = summarize([*alive, *gone])
    (section,) = [one for one in summary.tables if one.title == "S held at a target"]
    assert section.columns["draws"] == [5, 5]
    told = [claim.sentence for claim in summary.findings if "died" in claim.sentence]
    assert len(told) == 1 and told[0].startswith("In 2 of 12 trainings") and "hold (2)." in told[0]
    assert drawn([*alive, *gone]) == drawn(alive) != {}


def test_figures_hold_what_was_measured():
    records = [
        _record(0.5 + n / 100, 1.0, at, n=n, task=task).replace(by_layer=None)
        for task in ("one-word", "majority")
        for n in (6, 12)
        for at in range(2)
    ]
    figures = drawn(records)
    titles = [title.replace("\n", " ") for title, _ in figures["control-accuracy"]]
    assert titles == ["One word decides", "Majority", "Majority: right while a word moves"]
    (points, *_) = figures["control-accuracy"][0][1].values()
    assert points == [(6, pytest.approx(0.56)), (12, pytest.approx(0.62))]
    assert not {"control-target", "control-layers"} & set(figures)


def test_a_networks_colour_is_that_of_its_layers_map():
    records = [
        _record(0.5 + n / 100, 1.0, 0, n=n, layer=layer)
        for n in (6, 12)
        for layer in ("relu", "softmax", "dense")
    ]
    (panel,) = of_experiment(records)["control-sensitivity"].axes
    colours = {bars.get_label(): bars.lines[0].get_color() for bars in panel.containers}
    own = styles_of(
        {"fully connected": "rf", "softmax attention": "raf", "ReLU attention": "relu-raf"}
    )
    assert colours == {name: style[0] for name, style in own.items()}


def drawn(records):
    """By the name of the figure, the panels' titles and the points of each series."""
    return {
        name: [
            (
                panel.get_title(),
                {
                    bars.get_label(): list(
                        zip(*(axis.tolist() for axis in bars.lines[0].get_data()), strict=True)
                    )
                    for bars in panel.containers
                },
            )
            for panel in figure.axes
            if panel.containers
        ]
        for name, figure in of_experiment(records).items()
    }


def test_sentences_about_targets_and_costs():
    plain = [_record(0.9 + j, 2.0, at) for at, j in enumerate(JITTER)]
    held = [
        _record(
            0.9 + j - (0.2 if target < 1 else 0.0),
            2 * target * (1 + j),
            at,
            control="hold",
            target=target,
        )
        for target in (0.25, 1.0, 4.0)
        for at, j in enumerate(JITTER)
    ]
    told = _told(plain + held)
    assert any("S follows its target over a factor of 16" in one for one in told)
    assert any(
        "S held at 0.25 costs 0.200 [0.200, 0.200] of accuracy (0.9 without)" in one for one in told
    )
    assert not any("S held at 1 " in one for one in told)
    shuffled = [one.replace(sensitivity=1.0 + (7 * at) % 15) for at, one in enumerate(held)]
    assert not any("its target" in one for one in _told(plain + shuffled))


def test_sentences_about_layers():
    stacks = [
        _record(0.5, 1.0, at, layers=3, by_layer=True, steps=0, norm=norm).replace(
            by_layer=(1.0, 1.5, last + j)
        )
        for norm, last in ((False, 4.0), (True, 1.0))
        for at, j in enumerate(JITTER)
    ]
    told = _told(stacks)
    assert any(
        "softmax attention, 3 layers, random, 6 words: S grows from layer to layer by the factor "
        "2.00" in one
        for one in told
    )
    assert not any("LayerNorm" in one for one in told)


def test_sentences_about_the_way_of_a_training():
    def along(at, control, end):
        one = _record(1.0, 1.0, at, along=True, control=control)
        own = {
            "along_steps": (0, 4),
            "along_accuracy": (0.5, 1.0),
            "along_sensitivity": (2.0, end + JITTER[at]),
        }
        return one.replace(
            **own, along_kept=(0.9, 0.9), along_told=None, along_probe=(0.5, 0.5 + 30 * JITTER[at])
        )

    plain, paired = (
        [along(at, control, end) for at in range(5)]
        for control, end in (("none", 4.0), ("pairs", 1.0))
    )
    told = _told([*plain, *paired])
    rises = "along the training S rises from 2.00 [2.00, 2.00] to 4.000 [3.980, 4.020]"
    lowers = "supervision by pairs lowers S at the end of the training: 1.000 [0.980, 1.020]"
    assert [any(sentence in one for one in told) for sentence in (rises, lowers)] == [True, True]
    assert len(told) == 2  # what stays, or changes by less than its error, is not told
    table = next(
        one for one in summarize([*plain, *paired]).tables if one.title == "Along the training"
    )
    assert len(table) == 4
    first = [cells[0] for cells in table.columns.values()][:5]
    assert first == ["softmax attention", "one word decides", 6, "no control", 0]
    figures = drawn([*plain, *paired])
    ((_, curves),) = figures["control-along-sensitivity"]
    assert list(curves) == ["softmax attention", "softmax attention, supervision by pairs"]
    assert curves["softmax attention"] == [(1, 2.0), (5, 4.0)]
    ((_, shares),) = figures["control-along"]
    assert list(shares) == ["accuracy", "synonyms kept", "new words"]
