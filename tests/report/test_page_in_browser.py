"""The page in a browser: it asks for nothing, says nothing, can be read by everyone, and does what
it promises."""

import base64
import re

import pytest

import wordsens as ws
from tests.report.conftest import write_records

pytestmark = pytest.mark.timeout(180)

HOSTILE = [
    "<script>bad()</script>",
    "</script><script>bad()</script>",
    '"onmouseover="bad()',
    "<img/src=x/onerror=bad()>",
]
ODD = ["😀\U0001f469\u200d\U0001f467", "a&b", "{{7*7}}", "\u2028", "\u202eevil", "לא", "'"]


@pytest.fixture
def report_of(tmp_path, words_record):
    """A function that writes the report of one text with these words."""

    def written(words):
        write_records(tmp_path / "run", [words_record(words)])
        return ws.write_report(tmp_path / "run", tmp_path / "report.html")

    return written


def test_it_asks_for_nothing_says_nothing_and_runs_nothing(browser, page):
    browser.open(page)
    assert browser.requests() == []
    assert browser.messages() == []
    assert browser.run("return document.querySelectorAll('script').length") == 0
    assert page.stat().st_size < 2_000_000


@pytest.mark.slow_cases("1366-light", "390-dark", "1366-dark")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1366, 390])
def test_axe_has_no_serious_finding_and_nothing_is_wider_than_the_screen(
    browser, page, width, scheme
):
    browser.open(page, width=width, scheme=scheme)
    assert browser.serious() == []
    assert browser.run("return document.documentElement.scrollWidth") <= width


def test_hostile_words_are_text_in_their_order_and_nothing_runs(browser, report_of):
    words = [*HOSTILE, *ODD]
    path = report_of(words)
    browser.open(path)
    assert [word.get_property("textContent") for word in browser.find(".heat .w")] == words
    for word in browser.find(".heat .w"):
        browser.point_at(word)
    assert browser.run("return typeof window.bad") == "undefined"
    assert browser.run("return document.querySelectorAll('main img, main script').length") == 0
    assert browser.requests() == []
    assert browser.messages() == []


def test_the_first_screen_has_findings_with_what_they_rest_on(browser, page):
    browser.open(page, width=1366)
    findings = browser.find("main .finding")
    (contrast,) = [one for one in findings if "25.3 times as far as a fully" in one.text]
    assert contrast.rect["y"] + contrast.rect["height"] < 768
    assert "at least 21.3 times, whatever the searches missed" in contrast.text


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_in_a_readers_own_colours_a_line_is_as_thick_as_a_shade_is_deep(browser, report_of, scheme):
    browser.open(report_of(["no", "one", "word", "weighs", "as", "much", "as"]), scheme=scheme)
    browser.resize(scheme=scheme, forced=True)
    words = browser.find(".heat .w")
    levels = [int(word.get_attribute("class").split()[1][1:]) for word in words]
    lines = [
        float(word.value_of_css_property("border-bottom-width").removesuffix("px"))
        for word in words
    ]
    order = sorted(range(len(words)), key=levels.__getitem__)
    assert [lines[at] for at in order] == sorted(lines) and len(set(lines)) >= 3
    patches = [one.value_of_css_property("border-bottom-width") for one in browser.find(".ramp i")]
    assert len(set(patches)) == 5  # the key has every thickness
    browser.resize()


@pytest.mark.parametrize(
    ("scheme", "ink"), [("light", "rgb(27, 34, 41)"), ("dark", "rgb(228, 232, 238)")]
)
def test_figures_are_text_with_the_pages_colours_and_titles_on_marks(browser, page, scheme, ink):
    browser.open(page, scheme=scheme)
    figures = browser.find("figure svg")
    assert len(figures) > 5
    assert browser.find("figcaption")[0].text == "Word sensitivity"
    label = next(
        one for one in figures[0].find_elements("css selector", "text") if one.text == "words n"
    )
    assert label.value_of_css_property("fill") == ink
    titles = browser.run(
        "return [...arguments[0].querySelectorAll('use > title')].map((t) => t.textContent)",
        figures[0],
    )
    assert "RAF (softmax): 2.02 [1.97, 2.07] at 160" in titles
    ids = browser.run("return [...document.querySelectorAll('[id]')].map((one) => one.id)")
    assert len(ids) == len(set(ids))


def test_print_has_every_finding_and_how_sure_it_is(browser, page):
    browser.open(page, width=1366)
    browser.command("Emulation.setEmulatedMedia", {"media": "print"})
    printed = (
        "return [...document.querySelectorAll(arguments[0])].map((part) => "
        "part.getBoundingClientRect().height > 0)"
    )
    try:
        assert all(browser.run(printed, ".finding, figure svg, .text"))
        hidden = browser.run(printed, "details.table")
        assert hidden and not any(hidden)
    finally:
        browser.command("Emulation.setEmulatedMedia", {"media": ""})


def test_a_print_has_few_pages(browser, page):
    browser.open(page)
    printed = browser.command("Page.printToPDF", {})["data"]
    pages = len(re.findall(rb"/Type\s*/Page[^s]", base64.b64decode(printed)))
    assert 1 <= pages <= 8
