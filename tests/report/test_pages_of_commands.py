"""The pages of four commands in a browser: one template, read by everyone, nothing asked for."""

import pytest

import wordsens as ws
from tests.evaluation.stand_ins import bag_of_words, deaf_to_negations, few_pairs
from tests.report.test_page_in_browser import AXE
from wordsens.display.content import (
    Display,
    Finding,
    Findings,
    Marked,
    Section,
    Shade,
    Table,
    Words,
    minus,
    plain,
    table_of,
)
from wordsens.display.page import html_fragment, html_page, markdown
from wordsens.plotting.page import with_picture

TEXTS = ("please enable the sync", "please <b>disable</b> the sync")


@pytest.fixture(scope="module")
def displays():
    check = ws.check(bag_of_words, few_pairs(), requirements=["negation.false_hits <= .1"])
    calibration = ws.calibrate(bag_of_words, few_pairs(), 0.3, guard=True)
    texts = [review.text for review in ws.shipped_reviews()[:20]]
    return {
        "check": with_picture(check.display(pairs="all"), check.plot()),
        "calibrate": with_picture(calibration.display(distance="l2"), calibration.plot()),
        "compare": ws.compare(bag_of_words, deaf_to_negations, texts, few_pairs()).display(),
        "explain": ws.explain(bag_of_words, *TEXTS).display(),
    }


@pytest.mark.parametrize("ranked", [None, "constant", "varied"])
def test_a_column_of_a_table_is_shown_once(ranked):
    """As a column, or in the note where all rows have one value; the ranked one as a column."""
    columns = {"word": ["a", "b", "c"], "constant": [2.0] * 3, "varied": [1.0, 3.0, 2.0]}
    table = table_of("", columns, ranked=ranked)
    for name in columns:
        assert (name in table.headings) + (f"{name}: " in table.note) == 1, name
    assert ranked is None or ranked in table.headings
    assert sorted(row[0] for row in table.rows) == columns["word"]


@pytest.mark.timeout(180)
@pytest.mark.parametrize("name", ["check", "calibrate", "compare", "explain"])
def test_axe_finds_nothing_serious_at_any_width_and_scheme(browser, displays, tmp_path, name):
    page = html_page(displays[name], title=name, heading=name, version="1")
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    for width, scheme in ((1366, "light"), (1366, "dark"), (390, "light"), (390, "dark")):
        browser.open(tmp_path / "page.html", width=width, scheme=scheme)
        assert browser.run("return document.documentElement.scrollWidth") <= width
        browser.run(AXE.read_text(encoding="utf-8"))
        found = browser.driver.execute_async_script(
            "axe.run().then((result) => arguments[0](result.violations))"
        )
        serious = [
            (one["id"], one["nodes"][0]["html"])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert serious == []
        assert (browser.requests(), browser.messages()) == ([], [])
    for scheme in (
        "light",
        "dark",
    ):  # in a reader's own colours every mark is written in the ink of its sentence
        browser.resize(scheme=scheme, forced=True)
        for mark in browser.find("mark"):
            ink = mark.find_element("xpath", "..").value_of_css_property("color")
            assert mark.value_of_css_property("color") == ink
    browser.resize()
    assert "<b>disable" not in page


def test_every_pair_folds_away_and_five_of_those_that_fail_are_shown(browser, displays, tmp_path):
    page = html_page(displays["check"], title="check", heading="check", version="1")
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    browser.open(tmp_path / "page.html")
    failing, *_ = browser.find(".table")
    assert (
        len(
            [row for row in failing.find_elements("css selector", "tbody tr") if row.is_displayed()]
        )
        == 5
    )
    (every,) = (one for one in browser.find("details.table") if one.text.startswith("Every pair"))
    assert not any(row.is_displayed() for row in every.find_elements("css selector", "tbody tr"))


def test_the_same_sentences_and_tables_reach_every_output():
    table = Table("Kinds", ("kind", "AUC"), (("a|b", "0.42"), ("c", None)), note="Brackets: 95 %.")
    finding = Finding("3×", "One word moves it 3 times.", "Attained.")
    display = Display(
        ("The <answer>.",),
        (Findings((finding,)), Section("Part", (Section("Below", ("It.",)), table))),
        failures=("a.auc is 1",),
        notes=("Two notes.",),
    )
    page, cell = html_page(display, title="t", heading="h", version="1"), html_fragment(display)
    text = markdown(display, heading="h")
    for said in (
        "One word moves it 3 times.",
        "Kinds",
        "0.42",
        "Brackets: 95 %.",
        "a.auc is 1",
        "Two notes.",
    ):
        assert said in page and said in cell and said.replace("_", r"\_") in text
    assert "&lt;answer&gt;" in page and r"\<answer\>" in text
    assert r"| a\|b | 0.42 |" in text
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings == ["# h", "## Part", "### Below", "### Kinds"]
    assert " style=" not in page


def test_words_keep_their_colours_where_style_sheets_are_dropped():
    shown = Words("", (Shade("up", 8), " ", Shade("down", 4, falls=True), " ", Shade("level", 0)))
    cell = html_fragment(Display(("a",), (shown,)))
    assert '<span style="background:#08306b;color:#fff"><bdi>up</bdi></span>' in cell
    assert '<span style="background:#f6b27a;color:#111"><bdi>down</bdi></span>' in cell
    assert '<span style="background:#fff"><bdi>level</bdi></span>' in cell


def test_cells_as_text():
    assert [plain(cell) for cell in (1234.5, 0.00012, -2, float("nan"), False)] == [
        "1,234",
        "0.00012",
        "−2",
        "",
        "no",
    ]
    assert (
        minus("non-zero from -0.5 to -.1, 3-5 days, x-2")
        == "non-zero from −0.5 to −.1, 3-5 days, x-2"
    )
    assert Marked("is not it, is it", ("not", "is")).pieces == [
        ("is ", False),
        ("not", True),
        (" it, ", False),
        ("is", True),
        (" it", False),
    ]
    assert Table("", ("a", "b"), (("1", "x"), ("2", "3"))).is_number(0)
    assert not Table("", ("a", "b"), (("1", "x"), ("2", "3"))).is_number(1)
