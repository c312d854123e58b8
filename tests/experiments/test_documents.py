"""From a text source to the text of a draw."""

import pytest
import torch

from wordsens.errors import InputError
from wordsens.experiments.texts import (
    CorrelatedText,
    DatasetText,
    GaussianText,
    OrthogonalText,
    ReviewsText,
    load_text,
    texts_at_least,
)


@pytest.fixture
def three_texts(tmp_path):
    for name, words in (("a", 3), ("b", 6), ("c", 8)):
        (tmp_path / f"{name}.txt").write_text("good film " * words)
    return DatasetText(path=str(tmp_path))


@pytest.mark.parametrize("source", [GaussianText(), OrthogonalText(), CorrelatedText(mean_cosine=0.5), ReviewsText()])
def test_a_text_has_the_size_asked_for_and_rows_of_length_sqrt_d(source):
    text = load_text(source, 6, 16, draw=0, seed=0)
    assert text.rows.shape == (6, 16)
    torch.testing.assert_close(text.rows.norm(dim=1), torch.full((6,), 4.0, dtype=torch.float64))


@pytest.mark.parametrize("source", [GaussianText(), ReviewsText()])
def test_draws_and_seeds_differ_and_repeat(source):
    first = load_text(source, 6, 16, draw=0, seed=0)
    assert torch.equal(first.rows, load_text(source, 6, 16, draw=0, seed=0).rows)
    assert first.source != load_text(source, 6, 16, draw=1, seed=0).source
    assert first.source != load_text(source, 6, 16, draw=0, seed=1).source


def test_draws_of_real_texts_are_distinct_until_there_are_no_more(three_texts):
    held = {load_text(three_texts, 12, 8, draw=draw, seed=0).source for draw in range(4)}
    assert held == {"b.txt", "c.txt"}
    assert len({load_text(three_texts, 12, 8, draw=draw, seed=0).source for draw in range(2)}) == 2


def test_texts_that_are_too_short_are_passed_over(three_texts):
    assert [one.source for one in texts_at_least(three_texts, 13, seed=0, most=9)] == ["c.txt"]
    assert texts_at_least(three_texts, 17, seed=0, most=9) == ()
    with pytest.raises(InputError, match=r"none of the 3 texts has `n` \(=17\) words"):
        load_text(three_texts, 17, 8, draw=0, seed=0)
