"""Generalization cells: what they are, that they do not depend on each other, and that they are
stored and resumed."""

import json

import pandas as pd
import pytest
import torch

from tests.made_records import attempted
from wordsens.errors import InputError
from wordsens.intervals import share_estimate
from wordsens.studies import generalization
from wordsens.studies.generalization import STUDY, GeneralizationCell
from wordsens.sweeps.sweep import paper_sweep
from wordsens.sweeps.texts import DatasetText, ShippedText, available, labelled_texts

USUAL = {
    "map": "raf",
    "n": 4,
    "d": 6,
    "texts": 8,
    "text": "gaussian",
    "labels": "linear",
    "held_out": 6,
    "starts": 2,
    "steps": 5,
}


def cell(**changes):
    return GeneralizationCell.parse({**USUAL, **changes})


def forget():
    generalization._fitted.cache_clear()
    generalization.new_text.cache_clear()
    generalization._outcomes.cache_clear()


@pytest.mark.parametrize("name", ["rf", "raf"])
def test_a_cell_gives_the_same_values_whatever_ran_before(name):
    wanted = [
        cell(map=name, objective=kind, sample=sample)
        for sample in (2, 3)
        for kind in ("error", "frontier")
    ]
    forget()
    together = [attempted(one) for one in wanted]
    for one, record in zip(reversed(wanted), reversed(together), strict=True):
        forget()
        alone = attempted(one)
        assert (record.error, alone.error) == (None, None)
        assert alone.value == pytest.approx(record.value, abs=1e-6)
        assert alone.output_before == pytest.approx(record.output_before, abs=1e-9)
        assert alone.cell == record.cell == one.key()


@pytest.mark.slow_cases("raf")
@pytest.mark.parametrize("name", ["rf", "raf"])
def test_cells_searched_together_give_what_each_gives_alone(name):
    wanted = [
        cell(map=name, together=True, objective=kind, training=training, sample=sample)
        for sample in (2, 3)
        for training in ("fine-tuned", "retrained")
        for kind in ("alignment", "retrained-alignment", "error", "penalized-error", "frontier")
    ]
    forget()
    together = [attempted(one) for one in wanted]
    assert {record.status for record in together} == {"done"}
    assert len({record.evaluations for record in together[:10]}) == 1
    for one, record in zip(reversed(wanted), reversed(together), strict=True):
        forget()
        alone = attempted(one)
        assert (alone.value, alone.gamma, alone.least_errors) == (
            record.value,
            record.gamma,
            record.least_errors,
        )
    least = {
        (record.sample, record.training, record.objective): record.value for record in together
    }
    for sample in (2, 3):
        for training in ("fine-tuned", "retrained"):
            assert (
                least[sample, training, "error"]
                <= least[sample, training, "penalized-error"] + 1e-6
            )
    hashes = {cell(**keys).key() for keys in ({}, {"together": False}, {"together": True})}
    assert len(hashes) == 2
    assert cell(together=True).key() != cell(together=True, penalty=2.0).key()


def test_a_failing_cell_is_a_record():
    record = attempted(cell(texts=40))
    assert record.status == "failed"
    assert "40 texts have only 24 features" in record.error


def test_the_hash_covers_what_matters_and_nothing_else():
    base = cell().key()
    assert base == cell(penalty=3.0).key() == cell(gammas=(0.5,)).key()
    changed = [
        cell(objective="penalized-error", penalty=3.0),
        cell(objective="penalized-error"),
        cell(objective="frontier", gammas=(0.5,)),
        cell(objective="frontier"),
        *(
            cell(**{name: value})
            for name, value in {"sample": 1, "texts": 7, "training": "retrained"}.items()
        ),
        *(
            cell(**{name: value})
            for name, value in {"labels": "random", "word": "all", "ridge": 0.5}.items()
        ),
    ]
    assert len({one.key() for one in changed} | {base}) == len(changed) + 1


def test_shipped_reviews_bring_their_sentiment():
    usual = {"held_out": 10, "draw": 0, "seed": 0, "dtype": torch.float32}
    texts = labelled_texts(ShippedText(), "sentiment", (10, 16), training=20, **usual)
    assert [text.label for text in texts.texts] == texts.labels.tolist()
    assert set(texts.labels.tolist()) == {-1.0, 1.0}
    assert available(ShippedText(), 10) > available(ShippedText(), 120) > 0
    with pytest.raises(InputError, match="but 100000 are wanted"):
        labelled_texts(ShippedText(), "sentiment", (10, 16), training=99_990, **usual)


def test_a_training_set_leaves_the_texts_that_are_held_out(tmp_path):
    def sizes(count):
        path = tmp_path / f"{count}.jsonl"
        lines = (
            json.dumps({"text": f"good film {at} " * 14, "label": at % 2}) for at in range(count)
        )
        path.write_text("\n".join(lines))
        sweep, _ = paper_sweep("generalization", "quick", DatasetText(path=str(path)))
        return {one.texts for one in sweep.cells()}

    assert sizes(150) == sizes(349) == {100}
    assert sizes(350) == {100, 300}
    with pytest.raises(InputError, match="a training set of 100 and 50 held out"):
        sizes(149)


def test_as_published_adds_the_alignment_on_padded_texts_at_the_smallest_size():
    def grids(**choices):
        sweep, _ = paper_sweep("generalization", "quick", **choices)
        return set(sweep.cells())

    added = grids(as_published=True) - grids()
    assert grids() <= grids(as_published=True) and added
    assert {(one.text.keep_special_tokens, one.text.padded_below) for one in added} == {(True, 240)}
    assert {(one.objective, one.n, one.texts) for one in added} == {("alignment", 120, 25)}


def _records(errors, **columns):
    """Made-up frontiers and searches of RF and RAF: the least error by sample."""
    rows = [
        {"map": name, "training": training, "objective": objective, "sample": sample, "draw": 0}
        | {"value": error + (name == "rf"), "gamma": 0.1, "alignment": error / 4}
        | {"limits": (0.25, 0.5, 1.0), "least_errors": (9.0, error + (name == "rf"), 0.0)}
        | {"least_alignments": (1.0, error / 4, 0.0), "cell": f"{name} {training} {sample}"}
        for name in ("rf", "raf")
        for training in ("fine-tuned", "retrained")
        for objective in ("frontier", f"{training}-alignment")
        for sample, error in enumerate(errors)
    ]
    usual = {"text": "gaussian", "n": 40, "texts": 100, "labels": "linear", "bound": 0.0}
    return pd.DataFrame(rows).assign(**usual | {"accuracy": 0.6, "spec": "{}"} | columns)


def test_the_table_and_findings_speak_of_every_sample_below_one_half():
    errors = [0.1, 0.2, 0.4, 0.8, 0.9, 1.8]
    records = pd.concat([_records(errors, texts=size) for size in (300, 100)])
    summary = STUDY.summary(records)
    frame = summary.table()
    assert frame["N"].tolist() == [100, 300] * 4
    rf, raf = (frame[frame["map"] == name].iloc[0] for name in ("RF", "RAF (softmax)"))
    assert (raf["Err"], raf["Err low"], raf["Err high"]) == (pytest.approx(0.6), 0.1, 1.8)
    assert (raf["Err < 1"], rf["Err < 1"]) == (pytest.approx(5 / 6), 0)
    assert raf["Err < 1 low"] == share_estimate(5, 6).low
    assert rf["Err < 2.25"] == pytest.approx(5 / 6) and frame["samples"].tolist() == [6] * 8
    assert summary.table(1)["draws"].sum() == (records["objective"] != "frontier").sum()
    noticed, correlation, theorem = (finding.sentence for finding in summary.findings)
    assert "RF on Gaussian texts in 0 of 4, RAF (softmax) on Gaussian texts in 4 of 4" in noticed
    assert "RAF (softmax) 1.00 [1.00, 1.00] (1.00 [1.00, 1.00] where γ is below" in correlation
    assert "2.25, (2 − 0.5)²" in theorem and "For RF no difference is claimed in 4" in theorem
    assert "For RAF (softmax) most samples lie below in 4 of 4" in theorem
    frontiers = records[records["objective"] == "frontier"]
    for finding, rows in zip(summary.findings, (frontiers, records, frontiers), strict=True):
        assert sorted(finding.rows) == sorted(rows["cell"])
    assert STUDY.summary(_records(errors, bound=1.0)).table()["below bound"].tolist() == [
        0,
        0,
        10,
        10,
    ]


def test_texts_as_published_are_one_column_and_no_row():
    plain = _records([0.1, 0.2, 0.4])
    published = plain[plain["objective"] != "frontier"].assign(
        objective="alignment", spec='{"text": {"padded_below": 240}}', value=plain["value"] + 0.5
    )
    alone, both = (STUDY.summary(part).table() for part in (plain, pd.concat([plain, published])))
    assert both["Err as published"].tolist() == pytest.approx([0.5] * 4)
    assert (
        both[list(alone)]
        .drop(columns="Err as published")
        .equals(alone.drop(columns="Err as published"))
    )


def test_every_sample_is_drawn_and_the_frontier_is_their_median():
    figures = STUDY.figures(_records([1.0, 2.0, 7.0]))
    assert set(figures) == {f"generalization-{name}-gaussian" for name in ("error", "frontier")}
    scattered, frontier = figures.values()
    assert len(scattered.axes) == len(frontier.axes) == 4
    for panel in scattered.axes:
        (marks,) = panel.containers
        (curve,) = [line for line in panel.lines if line.get_linestyle() == ":"]
        assert len(marks.lines[0].get_xdata()) == 3 and max(marks.lines[0].get_ydata()) == 6
        assert curve.get_ydata() == pytest.approx([(2 - x) ** 2 for x in curve.get_xdata()])
    assert scattered.caption.endswith(": 4.")
    medians = {panel.get_title()[:3]: panel.containers[0].lines[0] for panel in frontier.axes}
    assert medians["RAF"].get_ydata().tolist() == [9.0, 2.0, 0.0]
    assert medians["RF,"].get_xdata().tolist() == [0.25, 0.5, 1.0]


def test_no_text_is_both_learned_and_held_out():
    usual = {"draw": 0, "seed": 0, "dtype": torch.float64}
    data = labelled_texts(cell().text, "linear", (4, 6), training=5, held_out=3, **usual)
    (learned, labels), (judged, _) = data.training, data.test
    assert (len(learned), len(labels), len(judged)) == (5, 5, 3)
    assert len({text.rows.sum().item() for text in (*learned, *judged)}) == 8
