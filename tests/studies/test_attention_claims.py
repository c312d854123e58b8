"""Sentences about the attention of two texts."""

from tests.report.conftest import attention_record as attention_record
from wordsens.studies.attention import summarize


def test_the_share_that_moves_is_half_the_sum_of_the_differences(attention_record):
    summary = summarize([attention_record()])
    (found,), (table,) = summary.findings, summary.tables
    # What "i", "love" and "her" take from "her", then from "him".
    assert list(zip(table.columns["from her"], table.columns["from him"], strict=True)) == [
        (0.2, 0.2),
        (0.2, 0.5),
        (0.2, 0.2),
    ]
    # Row 1 moves (0.25 + 0.05 + 0.30) / 2 = 0.3, the others nothing.
    assert "When “her” becomes “him”, 10.0% of the attention goes elsewhere" in found.sentence
    assert "most in the row of “love”, 30.0%" in found.sentence


def test_answers_are_told_with_both_probabilities(attention_record):
    asked = {"prompts": ("a", "b"), "answers": ("yes", "no")}
    _, answers = summarize(
        [attention_record(probabilities=(0.75, 0.25, 0.5, 0.5), **asked)]
    ).findings
    assert "“yes” from 0.75 to 0.5 and of “no” from 0.25 to 0.5" in answers.sentence


def test_equal_texts_are_said_to_be_equal(attention_record):
    same = (0.5, 0.3, 0.2) * 3
    (found,) = summarize(
        [attention_record(changed=(), weights_second=same, tokens_second='["i", "love", "her"]')]
    ).findings
    assert found.sentence.startswith(
        "The two texts are the same to the model, and so is their attention"
    )
