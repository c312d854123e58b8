"""Pairs of texts: their attention as coloured tables, and what is said of them."""

from tests.report.conftest import write_records

from wordsens.experiments.attention import summarize
from wordsens.report.attention import attention_pairs
from wordsens.report.load import load_runs


def test_both_matrices_and_the_difference_are_the_records_numbers(tmp_path, attention_record):
    (pair,) = attention_pairs(load_runs([write_records(tmp_path, [attention_record()])]))
    first, second, difference = pair.matrices
    assert [shown for shown, _ in first.cells[1]] == [".50", ".30", ".20"]
    assert [shown for shown, _ in second.cells[1]] == [".25", ".25", ".50"]
    assert [shown for shown, _ in difference.cells[1]] == ["−.25", "−.05", "+.30"]
    assert [shown for shown, _ in difference.cells[0]] == [".00"] * 3
    assert first.names == (("i", False), ("love", False), ("her", True))
    assert difference.names[2] == ("her/him", True)
    assert max(level for row in difference.cells for _, level in row) == 8


def test_the_share_that_moves_is_half_the_sum_of_the_differences(attention_record):
    (found,) = summarize([attention_record()]).claims
    # Row 1 moves (0.25 + 0.05 + 0.30) / 2 = 0.3, the others nothing.
    assert found.number == "10.0%"
    assert "When “her” becomes “him”, 10.0% of the attention goes elsewhere" in found.sentence
    assert "most in the row of “love”, 30.0%" in found.sentence


def test_answers_are_told_with_both_probabilities(attention_record):
    asked = {"prompts": ("a", "b"), "answers": ("yes", "no")}
    _, answers = summarize([attention_record(probabilities=(0.75, 0.25, 0.5, 0.5), **asked)]).claims
    assert answers.number == "-0.25"
    assert "“yes” from 0.75 to 0.5 and of “no” from 0.25 to 0.5" in answers.sentence
