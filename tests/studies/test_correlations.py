"""S against the mean cosine: cells with their cosine, rows with the mean of their draws, and no
sentence that an interval contradicts."""

import pytest

from tests.made_records import measured
from wordsens.errors import InputError
from wordsens.studies.correlations import BEYOND, STUDY, TABLE, CorrelationCell
from wordsens.sweeps.run import failed
from wordsens.sweeps.store import as_frame
from wordsens.text import repeated_text

SMALL = {"map": "raf", "n": 8, "d": 12, "search": "quick"}


@pytest.mark.parametrize("distinct", [1, 3, 8])
def test_repeated_rows_stand_as_often_as_each_other(distinct):
    rows = repeated_text(8, 5, distinct, seed=2).rows
    different, counts = rows.unique(dim=0, return_counts=True)
    assert len(different) == distinct
    assert counts.max() - counts.min() <= 1
    assert rows.square().sum(dim=1).tolist() == pytest.approx([5.0] * 8)
    with pytest.raises(InputError, match="`distinct`"):
        repeated_text(8, 5, 9)


@pytest.mark.parametrize(
    "text",
    [
        {"kind": "correlated", "mean_cosine": 0.9},
        {"kind": "repeated", "distinct": 2},
        {"kind": "reviews", "layer": 6},
    ],
)
def test_a_cell_is_a_sensitivity_with_its_cosine(text):
    record = measured(CorrelationCell.parse({**SMALL, "text": text}))
    assert record.value > 0
    assert record.upper is None
    if text["kind"] == "correlated":
        assert record.cosine == pytest.approx(0.9)
    assert record.distinct == text.get("distinct")


def _record(cosine, draw, value, kind="correlated"):
    text = {"kind": kind, "mean_cosine": cosine} if kind == "correlated" else {"kind": kind}
    cell = CorrelationCell.parse({**SMALL, "text": text, "draw": draw})
    record, _ = failed(cell, "none")
    return record | {"status": "done", "error": None, "value": value, "cosine": cosine}


def made(end, scatter, review=2.5):
    """Four at mean cosine 0, `end` at 0.9, and reviews half way."""
    rows = [(0.0, 4.0, "correlated"), (0.45, review, "reviews"), (0.9, end, "correlated")]
    return as_frame(
        _record(cosine, draw, value + scatter * ((draw + (cosine > 0.5)) % 3), kind)
        for cosine, value, kind in rows
        for draw in range(6)
    )


def test_every_record_is_in_one_row_and_numbers_are_means():
    frame = made(1.0, 0.01, review=3.5)
    table = STUDY.tables(frame)[TABLE]
    assert table["draws"].sum() == len(frame)
    assert [mean.value for mean in table["S"]] == pytest.approx([4.01, 1.01, 3.51])
    (beyond,) = table[BEYOND].dropna()
    assert beyond.value == pytest.approx(3.51 - (4.01 + 1.01) / 2)
    (panel,) = STUDY.figures(frame)["correlations"].axes
    assert len(panel.containers) == 2


@pytest.mark.parametrize(
    ("end", "scatter", "review", "said"),
    [
        (1.0, 0.01, 2.5, ("RAF (softmax) falls", "no difference is claimed in 1 setting")),
        (9.0, 0.01, 2.5, ("RAF (softmax) grows", "smaller in 1 of 1 setting")),
        (4.0, 0.01, 4.5, ("RAF (softmax) hardly changes", "larger in 1 of 1 setting")),
        (3.8, 3.0, 2.5, ("RAF (softmax): no difference is claimed", "is claimed in 1 setting")),
    ],
)
def test_sentences_go_as_far_as_their_intervals(end, scatter, review, said):
    findings = STUDY.summary(made(end, scatter, review)).findings
    assert len(findings) == 2
    for finding, phrase in zip(findings, said, strict=True):
        assert phrase in finding.sentence
    assert "movie reviews" in findings[1].sentence or "no difference" in findings[1].sentence


def test_two_draws_and_a_single_cosine_say_nothing():
    frame = made(1.0, 0.01)
    few = STUDY.summary(frame[frame["draw"] < 2])
    assert "no difference is claimed" in few.headline and len(few.findings) == 1
    assert STUDY.summary(frame[frame["cosine"] < 0.9]).findings == ()


def test_a_change_over_the_cosine_is_of_the_records_of_both_ends():
    frame = made(1.0, 0.01)
    change, _ = STUDY.summary(frame).findings
    assert set(change.rows) == set(frame["cell"][frame["text"] == "correlated"])


def test_records_that_differ_in_another_key_are_not_averaged():
    rows = [_record(0.0, draw, 4.0) for draw in range(3)]
    hot = [
        row | {"spec": row["spec"].replace('"temperature": 1.0', '"temperature": 2.0')}
        for row in rows
    ]
    assert len(STUDY.summary(as_frame(hot)).table()) == 1
    with pytest.raises(InputError, match="several values of temperature"):
        STUDY.summary(as_frame([*rows, *hot]))
