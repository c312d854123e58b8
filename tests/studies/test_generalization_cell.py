"""Generalization cells: what they are, that they do not depend on each other, and that they are
stored and resumed."""

import json

import pytest
import torch

from tests.made_records import attempted
from wordsens.display.numbers import number
from wordsens.errors import InputError
from wordsens.studies.generalization import cell as generalization
from wordsens.studies.generalization.cell import GeneralizationCell
from wordsens.studies.generalization.summary import generalization_series, summarize
from wordsens.sweeps.sweep import Sweep, paper_sweep
from wordsens.sweeps.texts import DatasetText, ReviewsText, available, labelled_texts

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
    generalization._new_text.cache_clear()
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
        assert record.done and alone.done, (record.error, alone.error)
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
    texts = labelled_texts(ReviewsText(), "sentiment", (10, 16), training=20, **usual)
    assert [text.label for text in texts.texts] == texts.labels.tolist()
    assert set(texts.labels.tolist()) == {-1.0, 1.0}
    assert available(ReviewsText(), 10) > available(ReviewsText(), 120) > 0
    with pytest.raises(InputError, match="but 100000 are wanted"):
        labelled_texts(ReviewsText(), "sentiment", (10, 16), training=99_990, **usual)


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


SWEEP = Sweep.parse(
    {
        "name": "small",
        "experiment": "generalization",
        "common": USUAL,
        "grids": [
            {
                "map": ["rf", "raf"],
                "training": ["fine-tuned", "retrained"],
                "objective": ["error", "frontier"],
            },
        ],
    }
)


def test_findings_speak_of_the_median_at_one_half():
    records = [attempted(one) for one in SWEEP.cells()]
    series = generalization_series(records)
    assert [(one.map, one.training) for one in series] == [
        (name, training) for name in ("rf", "raf") for training in ("fine-tuned", "retrained")
    ]
    assert all(one.below_bound == 0 and one.samples == 1 for one in series)
    at_half = next(record for record in records if record.objective == "frontier").least_errors[2]
    assert series[0].median() == at_half
    assert all(one.texts == SWEEP.cells()[0].texts for one in series)
    larger = [record.replace(texts=2 * record.texts) for record in records]
    both = generalization_series([*larger, *records])
    assert [(one.map, one.training, one.texts) for one in both] == [
        (one.map, one.training, times * one.texts) for one in series for times in (1, 2)
    ]
    *maps, theory = summarize(records).findings
    assert len(maps) == 2
    assert any(
        "median least errors" in one.known and f"{number(at_half)} fine-tuned" in one.known
        for one in maps
    )
    assert "at least 2.25, (2 − 0.5)²" in theory.sentence
    assert summarize([]).findings == ()
