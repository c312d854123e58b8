"""Correlated texts: rows as they were asked for, cosines as they are, and sentences within their intervals."""

import pytest
from tests.made_records import measured

from wordsens.errors import InputError
from wordsens.experiments.correlations import CorrelationCell, summarize
from wordsens.experiments.run import failed
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
    [{"kind": "correlated", "mean_cosine": 0.9}, {"kind": "repeated", "distinct": 2}, {"kind": "reviews", "layer": 6}],
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
    return failed(cell, "none").replace(status="done", error=None, value=value, cosine=cosine)


def test_sentences_are_told_only_where_their_interval_supports_them():
    def told(end, scatter, review=2.5) -> list[str]:
        records = [_record(0.0, draw, 4.0 + scatter * (draw % 3)) for draw in range(6)]
        records += [_record(0.9, draw, end + scatter * ((draw + 1) % 3)) for draw in range(6)]
        records += [_record(0.45, draw, review + scatter * (draw % 3), kind="reviews") for draw in range(6)]
        return [claim.sentence for claim in summarize(records).claims]

    assert [one for one in told(1.0, 0.01) if "falls by the factor 0.25" in one] == told(1.0, 0.01)
    assert "hardly changes" in told(4.0, 0.01)[0]
    assert told(3.8, 3.0) == []  # the factor's interval holds 1, and reaches too far from it
    assert told(1.0, 0.01, review=1.0)[1].count("less than equally correlated texts") == 1
    assert "movie reviews" in told(1.0, 0.01, review=3.5)[1]
    assert "more than" in told(1.0, 0.01, review=3.5)[1]
