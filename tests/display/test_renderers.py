"""One view reaches the terminal, HTML and Markdown with the same words and numbers."""

import io
import re
from random import Random

import pytest

from wordsens.display.html import html_fragment, html_page
from wordsens.display.markdown import markdown
from wordsens.display.numbers import Estimate, column, fixed, minus
from wordsens.display.terminal import Screen, plain_text, print_view
from wordsens.display.view import Code, ColouredWord, Finding, Marked, Table, View, Words

TABLE = Table(
    "Kinds",
    {"kind": ["a|b", "c"], "AUC": [Estimate(0.42, 0.35, 0.5), None], "hits": [0.5, 0.123]},
    units={"hits": "%"},
    note="Brackets: 95 %.",
)
VIEW = View(
    "The <answer>.",
    (
        Finding("One word moves it 3 times.", "Of 12 texts."),
        View("Part", ("It.", View("Below", (TABLE,)))),
        Code("Run", "wordsens check <model>"),
    ),
    failures=("a.auc is 1",),
    passed="All is well.",
    notes=("Two notes.",),
)
COLOUR = re.compile(r"\x1b\[[0-9;]*48;")


@pytest.fixture
def coloured(monkeypatch):
    monkeypatch.setenv("COLORTERM", "truecolor")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)


def printed(view, **options):
    file = io.StringIO()
    print_view(view, Screen(file=file, width=80, **options))
    return file.getvalue()


def test_the_same_words_and_numbers_reach_every_output():
    page, cell = html_page(VIEW, title="t", heading="h", version="1"), html_fragment(VIEW)
    text, terminal = markdown(VIEW, heading="h"), plain_text(VIEW)
    for said in (
        "One word moves it 3 times.",
        "Part",
        "Kinds",
        "0.42 [0.35, 0.50]",
        "50 %",
        "12.3 %",
        "Brackets: 95 %.",
        "a.auc is 1",
        "All is well.",
        "Two notes.",
    ):
        assert said in page and said in cell and said in terminal
        assert said in text.replace("\\", "")
    assert "&lt;answer&gt;" in page and r"\<answer\>" in text and "<answer>" in terminal
    assert r"| a\|b | 0.42 \[0.35, 0.50\] | 50 % |" in text
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == ["# h", "## Part", "### Below", "#### Kinds"]
    assert " style=" not in page


def test_columns_that_do_not_fit_are_named_and_those_that_do_are_whole():
    names = [f"quantity {place}" for place in range(9)]
    columns = {"word": ["internationalization"] * 3} | {
        name: [1.5 + place] * 3 for place, name in enumerate(names)
    }
    text = printed(View("", (Table("", columns),)))
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    (hidden,) = re.findall(r"Not shown, for want of room: ([^.]*)\.", " ".join(lines))
    head = text[: text.index("Not shown")]
    shown = [f"{1.5 + place:.2f}" in head for place in range(9)]
    assert shown == sorted(shown, reverse=True) and shown[0] and not shown[-1]
    assert hidden.split(", ") == [
        name for name, known in zip(names, shown, strict=True) if not known
    ]
    assert head.count("internationalization") == 3


def test_rows_that_are_left_out_are_counted():
    view = View("", (Table("", {"word": list("abcdef")}, most=2),))
    assert "2 of 6 rows are shown." in printed(view)
    assert view.parts[0].texts()["word"] == list("abcdef")


def test_words_are_coloured_where_a_terminal_shows_colours(coloured, monkeypatch):
    words = Words("", ("a ", ColouredWord("b", 3.0)), legend="or more times")
    table = Table("", {"word": ["b"], "S": [3.5]}, coloured=("S",))
    view = View("", (words, table))
    shown = printed(view, force_terminal=True)
    assert len(COLOUR.findall(shown)) == 2 and "Colours: 0 to 4 or more times" in shown
    monkeypatch.setenv("NO_COLOR", "1")
    for plain in (printed(view, force_terminal=True), printed(view)):
        assert not COLOUR.search(plain) and "Colours" not in plain
        assert "a b" in plain and "3.5" in plain


def test_a_terminal_is_blue_above_zero_and_orange_below(coloured):
    for value, warm in ((4.0, False), (-4.0, True)):
        shown = printed(View("", (Words("", (ColouredWord("b", value),)),)), force_terminal=True)
        (colour,) = re.findall(r"48;2;(\d+);(\d+);(\d+)m", shown)
        red, _, blue = map(int, colour)
        assert (red > blue) == warm


def test_words_keep_their_colours_where_style_sheets_are_dropped():
    words = Words(
        "",
        (ColouredWord("up", 4.0), " ", ColouredWord("down", -2.0), " ", ColouredWord("level", 0.0)),
    )
    cell = html_fragment(View("a", (words,)))
    shades = re.findall(r'style="background:(#\w+);color:(#\w+)"><bdi>(\w+)</bdi>', cell)
    assert [name for *_, name in shades] == ["up", "down", "level"]
    assert len({colour for colour, *_ in shades}) == 3
    assert shades[0][1] == "#fff" and shades[2][0] == "#fff"
    above, below = ([int(colour[at : at + 2], 16) for at in (1, 5)] for colour, *_ in shades[:2])
    assert above[0] < above[1] and below[0] > below[1]  # blue above zero, orange below


def test_numbers_as_text():
    assert column([123.4, None, -2.0]) == ["123", "", "−2"]
    assert column([0.00012, float("nan"), False]) == ["0.000120", "", "no"]
    assert column([0.9996, 0.5])[0] != column([1.0, 0.5])[0]
    assert column([0.5, -0.25], "+") == ["+0.500", "−0.250"]
    assert fixed(-0.0001, 2) == "−1e−04"
    assert str(Estimate(0.5, 0.35, 0.65)) == "0.50 [0.35, 0.65]"  # half the width starts with 1
    assert str(Estimate(0.5, 0.2, 0.8)) == "0.5 [0.2, 0.8]"
    assert (
        minus("non-zero from -0.5 to -.1, 3-5 days, x-2")
        == "non-zero from −0.5 to −.1, 3-5 days, x-2"
    )


def test_marked_parts_are_found_in_order():
    assert Marked("is not it, is it", ("not", "is")).pieces == [
        ("is ", False),
        ("not", True),
        (" it, ", False),
        ("is", True),
        (" it", False),
    ]
    assert TABLE.numeric == ["AUC", "hits"]


@pytest.mark.parametrize("seed", [192, 253, 2304, *range(60)])
def test_a_table_loses_no_letter_at_any_width(seed):
    """rich makes some lines one cell wider than the screen (those of the first seeds), and would
    cut them there."""
    random = Random(seed)

    def text():
        lengths = [random.randint(1, 9) for _ in range(random.randint(1, 9))]
        return " ".join(f"{'abcdefghij'[:length]}{at}" for at, length in enumerate(lengths))

    def number():
        return random.randint(0, 10 ** random.randint(1, 7))

    columns = {}
    for at in range(random.randint(2, 6)):
        kind = number if random.random() < 0.5 else text
        columns[f"column-{at}"] = [kind(), kind()]
    shown = plain_text(View("", (Table("", columns),)), width=random.randint(30, 120))
    for name, cells in columns.items():
        words = " ".join(f"{cell:,}" if isinstance(cell, int) else cell for cell in cells).split()
        assert name not in shown.split("Not shown")[0] or set(words) <= set(shown.split()), name
