"""The style of every figure: widths that a paper prints, text that stays text, and a user's own file in its place."""

import io

import pytest

import wordsens as ws
from wordsens.errors import InputError
from wordsens.studies.sensitivity import sensitivity_series


@pytest.fixture
def records(make_record):
    return [
        make_record(map="raf", n=n, draw=draw, value=float(n), per_word=tuple(map(float, range(1, n + 1))))
        for n in (4, 8)
        for draw in (0, 1)
    ]


def written(figure, kind):
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind)
    return buffer.getvalue()


def test_one_panel_is_a_column_wide_and_two_are_a_page(records, make_record):
    others = [make_record(map="raf", n=n, text="reviews", value=1.0) for n in (4, 8)]
    assert ws.plotting.sensitivity(records).get_size_inches()[0] == ws.plotting.COLUMN_INCHES
    assert ws.plotting.sensitivity([*records, *others]).get_size_inches()[0] == ws.plotting.PAGE_INCHES
    assert ws.plotting.words(["a"], [1.0]).get_size_inches()[0] == ws.plotting.COLUMN_INCHES


def test_letters_stay_letters_in_files(records):
    figure = ws.plotting.sensitivity(records, title="a title")
    assert b">a title</text>" in written(figure, "svg")
    pdf = written(figure, "pdf")
    assert b"/CIDFontType2" in pdf
    assert b"/Type3" not in pdf


def test_the_band_of_every_word(records):
    (series,) = sensitivity_series(records)
    assert [point.words for point in series.points] == [(1.0, 1.75, 3.25, 4.0), (1.0, 2.75, 6.25, 8.0)]
    panel = ws.plotting.sensitivity(records).axes[0]
    bands = [{(x, y) for x, y in band.get_paths()[0].vertices} for band in panel.collections if band.get_alpha()]
    assert {(4, 1), (4, 4), (8, 1), (8, 8)} in bands
    assert {(4, 1.75), (4, 3.25), (8, 2.75), (8, 6.25)} in bands
    assert panel.get_ylim()[0] < 1
    told = [text.get_text() for text in panel.get_legend().get_texts()]
    assert "below: every word, and the middle half of them" in told


def test_words_with_their_bounds():
    figure = ws.plotting.words(["a", "$b", "c"], [1.0, 3.0, 2.0], upper=[2.0, 4.0, 3.0], title="x$y")
    panel = figure.axes[0]
    assert [bar.get_height() for bar in panel.patches] == [1.0, 3.0, 2.0]
    assert len({bar.get_facecolor() for bar in panel.patches}) == 2
    assert [label.get_text() for label in panel.get_xticklabels()] == ["a", r"\$b", "c"]
    written(figure, "png")
    with pytest.raises(InputError, match="`values` has 1 entries for 2 names"):
        ws.plotting.words(["a", "b"], [1.0])
