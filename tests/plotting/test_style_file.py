"""The style of every figure: widths that a paper prints, text that stays text, and a user's own
file in its place."""

import html
import io
import re

import matplotlib
import pytest

import wordsens as ws
from wordsens.app.parts import COLOURS
from wordsens.maps.registry import MAPS
from wordsens.plotting import svg
from wordsens.plotting.axes import round_values
from wordsens.plotting.style import MOST_SERIES, STYLES, styles_of
from wordsens.sweeps.store import as_frame

COLUMNS = {"n": [4, 8, 4, 8], "S": [1.0, 2.0, 1.0, 1.0], "text": ["a", "a", "b", "b"]}


def drawn(**options):
    return ws.plotting.lines(COLUMNS, x="n", y="S", **options)


def written(figure, kind):
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind)
    return buffer.getvalue()


def test_one_panel_is_a_column_wide_and_two_are_a_page():
    assert drawn(colour="text").get_size_inches()[0] == ws.plotting.COLUMN_INCHES
    assert drawn(panel="text").get_size_inches()[0] == ws.plotting.PAGE_INCHES


def test_letters_stay_letters_in_files():
    figure = drawn(colour="text", title="a title")
    assert b">a title</text>" in written(figure, "svg")
    pdf = written(figure, "pdf")
    assert b"/CIDFontType2" in pdf
    assert b"/Type3" not in pdf


def test_pyplot_holds_no_figure():
    drawn(colour="text")
    assert matplotlib._pylab_helpers.Gcf.get_all_fig_managers() == []


def test_the_svg_of_a_page_is_the_figure_with_the_pages_colours():
    """Colours as variables, titles on marks, no style attribute; put back, what `savefig`
    writes."""
    columns = {**COLUMNS, "map": ["raf", "raf", "rf", "rf"]}
    figure = ws.plotting.lines(columns, x="n", y="S", colour="map")
    file = io.StringIO()
    figure.savefig(
        file, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
    )
    page = svg(figure, prefix="p")
    assert " style=" not in page
    assert page.count("<title>") == 4
    assert "<title>RAF (softmax): 2.00 at 8</title>" in page
    assert "var(--c2)" in page and "#009e73" not in page
    numbers = re.compile(r'(?:\bd|points|\bx|\by|transform)="([^"]*)"|>([^<>]+)</(?:text|tspan)')
    page = re.sub("<title>.*?</title>", "", page)
    shown, saved = (
        [" ".join(filter(None, found.groups())).split() for found in numbers.finditer(text)]
        for text in (page, file.getvalue())
    )
    assert shown == saved


def test_words_that_look_like_colours_or_attributes_stay_as_they_are():
    columns = {"name": ["#777777", 'style="x"', "<b>&", 'id="a"'], "S": [1.0, 2.0, 3.0, 4.0]}
    page = svg(ws.plotting.bars(columns, x="name", y="S"))
    labels = [html.unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", page)]
    assert {"#777777", 'style="x"', "<b>&", 'id="a"'} <= set(labels)


def test_a_style_of_ones_own_holds_in_a_study_and_in_its_file_and_for_no_other_figure(
    make_record, tmp_path
):
    (tmp_path / "own.mplstyle").write_text("axes.facecolor: ff0000\nsvg.fonttype: path\n")
    records = as_frame([make_record(n=n, draw=draw) for n in (4, 8) for draw in (0, 1)])
    for style, red in ((str(tmp_path / "own.mplstyle"), True), (None, False)):
        (figure,) = set(ws.plotting.of_experiment(records, style=style).values())
        assert (figure.axes[0].get_facecolor() == (1, 0, 0, 1)) == red
        assert (b"</text>" in written(figure, "svg")) != red
    with pytest.raises(ws.InputError, match=r"`style` \(='none'\) is neither a file nor a style"):
        drawn(style="none")


@pytest.mark.parametrize("name", ["rf", "raf"])
def test_a_map_has_one_colour_in_every_figure_and_on_the_page(name):
    place = list(MAPS).index(name)
    styles = styles_of({"another": None, "this": name, "third": None})
    assert styles["this"] == (*STYLES[place], False) and len(set(styles.values())) == 3
    assert COLOURS[name][0] == f"var(--c{place})"


def test_every_series_of_a_map_has_its_colour_and_a_deep_one_its_mark_in_every_figure():
    both = styles_of({"two": "drf2", "four": "drf4", "raf": "raf", "heads": "raf(heads=2)"})
    alone = styles_of({"layer": "minilm layer 3", "four": "drf4"})
    assert alone["four"] == both["four"] != both["two"]
    assert both["four"][0] == both["two"][0] and both["heads"][0] == both["raf"][0]
    assert alone["layer"][0] not in {colour for colour, _ in STYLES[:4]}  # of the paper's maps
    many = styles_of({place: "raf" if place % 2 else None for place in range(MOST_SERIES)})
    assert len(set(many.values())) == MOST_SERIES


@pytest.mark.parametrize(
    ("low", "high"), [(9, 280), (0.7, 407), (39, 137), (0.03, 0.38), (1.9, 4.6), (18, 90000)]
)
def test_ticks_are_few_and_round(low, high):
    ticks = round_values(low, high)
    assert 3 <= len(ticks) <= 5
    assert all(
        low <= tick <= high and len(f"{tick:g}".strip("0.").replace(".", "")) <= 2 for tick in ticks
    )
