"""The tables and sentences of the attention of two texts."""

import pytest

from tests.report.conftest import attention_record as attention_record
from wordsens.studies.attention import STUDY
from wordsens.sweeps.store import as_frame


def test_the_share_that_moves_is_half_the_sum_of_the_differences(attention_record):
    changed = attention_record(probabilities=(0.75, 0.25, 0.5, 0.5), answers=("yes", "no"))
    same = {"first": "I love him", "changed": (), "weights_second": (0.5, 0.3, 0.2) * 3}
    same |= {"tokens_second": '["i", "love", "her"]'}
    summary = STUDY.summary(as_frame([attention_record(**same), changed]))
    # What "i", "love" and "her" take from "her", then from "him".
    table = summary.table(1)
    assert table[["from her", "from him"]].to_numpy().tolist() == [
        [0.2, 0.2],
        [0.2, 0.5],
        [0.2] * 2,
    ]
    # Row 1 moves (0.25 + 0.05 + 0.30) / 2 = 0.3, the others nothing.
    assert table["moved"].tolist() == pytest.approx([0, 0.3, 0])
    assert summary.table(0).sum(numeric_only=True).tolist() == [0]
    most, answers = (finding.sentence for finding in summary.findings)
    assert "10 % of the attention goes elsewhere, the most of 2 pairs; in the row of “love”" in most
    assert "row of “love”, 30 % (I love her  |  I love him: tiny" in most
    assert "“yes” from 0.75 to 0.5 and of “no” from 0.25 to 0.5" in answers
