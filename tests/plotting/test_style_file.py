"""The style of every figure: widths that a paper prints, text that stays text, and a user's own
file in its place."""

import io

import pytest

import wordsens as ws
from wordsens.app.parts import COLOURS
from wordsens.maps.registry import MAPS
from wordsens.plotting.axes import round_values
from wordsens.plotting.style import STYLES, styles_of
from wordsens.studies.sensitivity.figures import sensitivity_figure
from wordsens.studies.sensitivity.series import sensitivity_series


@pytest.fixture
def records(make_record):
    return [
        make_record(
            map="raf", n=n, draw=draw, value=float(n), per_word=tuple(map(float, range(1, n + 1)))
        )
        for n in (4, 8)
        for draw in (0, 1)
    ]


def written(figure, kind):
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind)
    return buffer.getvalue()


def test_one_panel_is_a_column_wide_and_two_are_a_page(records, make_record):
    others = [make_record(map="raf", n=n, text="reviews", value=1.0) for n in (4, 8)]
    assert sensitivity_figure(records).get_size_inches()[0] == ws.plotting.COLUMN_INCHES
    assert sensitivity_figure([*records, *others]).get_size_inches()[0] == ws.plotting.PAGE_INCHES


def test_letters_stay_letters_in_files(records):
    figure = sensitivity_figure(records, title="a title")
    assert b">a title</text>" in written(figure, "svg")
    pdf = written(figure, "pdf")
    assert b"/CIDFontType2" in pdf
    assert b"/Type3" not in pdf


def test_the_band_of_every_word(records):
    (series,) = sensitivity_series(records)
    assert [point.words for point in series.points] == [
        (1.0, 1.75, 3.25, 4.0),
        (1.0, 2.75, 6.25, 8.0),
    ]
    panel = sensitivity_figure(records).axes[0]
    bands = [
        {(x, y) for x, y in band.get_paths()[0].vertices}
        for band in panel.collections
        if band.get_alpha()
    ]
    assert {(4, 1), (4, 4), (8, 1), (8, 8)} in bands
    assert {(4, 1.75), (4, 3.25), (8, 2.75), (8, 6.25)} in bands
    assert panel.get_ylim()[0] < 1
    told = [text.get_text() for text in panel.get_legend().get_texts()]
    assert {"light: every word", "darker: the middle half of the words"} <= set(told)


def test_no_two_swatches_are_alike(make_record):
    bounded = [
        make_record(
            map="raf",
            n=n,
            value=float(n),
            upper=n + 1.0,
            rigor="certified",
            per_word=(1.0,) * (n - 1) + (2.0,),
        )
        for n in (4, 8)
    ]
    patches = sensitivity_figure(bounded).axes[0].get_legend().get_patches()
    assert len({(patch.get_alpha(), patch.get_hatch()) for patch in patches}) == len(patches) == 3


@pytest.mark.parametrize("name", ["rf", "raf"])
def test_a_map_has_one_colour_in_every_figure_and_on_the_page(name):
    place = list(MAPS).index(name)
    assert styles_of({"another": None, "this": name})["this"] == (*STYLES[place], False)
    assert COLOURS[name][0] == f"var(--c{place})"


@pytest.mark.parametrize(
    ("low", "high"), [(9, 280), (0.7, 407), (39, 137), (0.03, 0.38), (1.9, 4.6), (18, 90000)]
)
def test_ticks_are_few_and_round(low, high):
    ticks = round_values(low, high)
    assert 3 <= len(ticks) <= 5
    assert all(
        low <= tick <= high and len(f"{tick:g}".strip("0.").replace(".", "")) <= 2 for tick in ticks
    )
