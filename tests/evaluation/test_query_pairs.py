"""NevIR-style query pairs against a count by hand."""

import pytest
from scipy.stats import binomtest
from tests.evaluation.stand_ins import bag_of_words

import wordsens as ws
from wordsens.evaluation.query_pairs import paired_accuracy

GROUPS = [
    {"q1": "open road", "q2": "closed road", "doc1": "the road is open", "doc2": "the road is closed"},
    {"q1": "who likes tea", "q2": "who shuns tea", "doc1": "Ada likes tea", "doc2": "Ben shuns tea"},
    # A bag of words cannot rank these: either query shares as many words with both.
    {"q1": "cat bites dog", "q2": "dog bites cat", "doc1": "a cat bites a dog", "doc2": "a dog bites a cat"},
    # The second query has more words in common with the first document.
    {"q1": "north gate", "q2": "gate of the north", "doc1": "north gate", "doc2": "south gate"},
]


def test_both_queries_must_be_right_and_a_tie_is_wrong():
    result = paired_accuracy(bag_of_words, GROUPS)
    assert result.paired_accuracy == 2 / 4
    assert result.query_accuracy == 5 / 8
    assert {group.q1 for group in result.wrong} == {"cat bites dog", "north gate"}
    interval = binomtest(2, 4).proportion_ci(method="wilson")
    assert (result.paired_accuracy_low, result.paired_accuracy_high) == (interval.low, interval.high)


@pytest.mark.parametrize("name", ["q1", "doc2"])
def test_an_empty_text_is_named_with_its_row(name):
    with pytest.raises(ws.InputError, match=rf"group 1: `{name}` \(=' '\) must be a text"):
        paired_accuracy(bag_of_words, [GROUPS[0], {**GROUPS[1], name: " "}])
