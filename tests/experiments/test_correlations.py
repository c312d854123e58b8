"""Correlated texts: rows as they were asked for, cosines as they are, and sentences within their intervals."""

import pytest
from tests.made_records import measured

from wordsens.errors import InputError
from wordsens.experiments.correlations import CorrelationCell
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
