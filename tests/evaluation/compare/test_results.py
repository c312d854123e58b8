"""A comparison as a result: files, tables, pages, and its gate."""

import json

import pytest
from tests.evaluation.stand_ins import bag_of_words, deaf_to_negations, few_pairs

import wordsens as ws

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
