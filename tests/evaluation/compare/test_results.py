"""A comparison as a result: files, tables, pages, and its gate."""

import json

import pytest
from tests.evaluation.stand_ins import bag_of_words, deaf_to_negations, few_pairs

import wordsens as ws
from wordsens.evaluation.compare import ComparePlan

TEXTS = [f"<b>{review.text}" for review in ws.shipped_reviews()[:40]]
ASKED = ("neighbours.recall.second >= .99", "check.all.low >= -1", "removal.negation.differs <= 0", "all.count >= 6")


@pytest.fixture(scope="module")
def found():
    return ws.compare(bag_of_words, deaf_to_negations, TEXTS, few_pairs(), requirements=ASKED)


def test_it_comes_back_from_a_file(found, tmp_path):
    found.save(tmp_path / "comparison")
    back = ws.Comparison.load(tmp_path / "comparison")
    assert back == found
    assert back.answer == found.answer
    assert back["removal.negation"].differs


def test_it_shows_itself(found):
    assert len(found.to_pandas()) == len(found.rows)
    assert found.answer[0] in found.show()
    assert str(found).startswith(found.answer[0])
    assert "rows differ" in repr(found)
    page = found._repr_html_()
    assert "&lt;b&gt;" in page
    assert "<b>José" not in page
    document = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert document["differs"] is True
    assert sum(row["differs"] for row in document["rows"]) == sum(row.differs for row in found.rows)
    with pytest.raises(KeyError, match="not a row of this comparison"):
        found["word.zebra"]


def test_requirements_fail_with_what_was_found(found):
    assert not found.passed
    told = " ".join(found.failures)
    assert "neighbours.recall.second is 0." in told
    assert "removal.negation differs by -0." in told
    assert "check." not in told
    assert "count" not in told


def test_the_threshold_of_the_second_model_keeps_as_many_near_duplicates():
    pairs = few_pairs()

    def shifted(texts):
        """Another scale: every vector is drawn towards one direction."""
        return bag_of_words(texts) + 0.3

    plan = ComparePlan(threshold=0.7)
    found = ws.compare(bag_of_words, shifted, TEXTS, pairs, plan=plan)
    first, second = (ws.check(model, pairs).measured for model in (bag_of_words, shifted))
    near = [each.values[each.near] for each in (first, second)]
    kept = int((near[0] >= 0.7).sum())
    matched = found.matched
    assert matched.recall == kept / len(near[0])
    assert matched.second == sorted(near[1])[len(near[1]) - kept]
    assert (near[1] >= matched.second).sum() >= kept
    assert matched.second_low <= matched.second <= matched.second_high
    for share, each, threshold in (
        (matched.false_hits_first, first, 0.7), (matched.false_hits_second, second, matched.second),
    ):  # fmt: skip
        values = [value for pair, value in zip(each.pairs, each.values, strict=True) if not pair.same]
        assert share == sum(value >= threshold for value in values) / len(values)
    assert any(sentence.startswith("A threshold of 0.7 with the first model is") for sentence in found.answer)
    assert found.to_dict()["matched"]["first"] == 0.7


def test_no_sentence_denies_a_difference_that_a_row_leaves_open():
    found = ws.compare(bag_of_words, deaf_to_negations, TEXTS[:8], few_pairs(opposites=4, near=4, paraphrases=4))
    open_rows = [row for row in found.rows if not row.differs and not row.excluded]
    assert open_rows
    denied = [sentence for sentence in found.answer if sentence.startswith("No difference beyond")]
    assert not denied or not any(row.part in sentence for row in open_rows for sentence in denied)
    if not found.differs:
        assert "is certain in" in found.answer[0]
