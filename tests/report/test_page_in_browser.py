"""The page in a browser: it asks for nothing, says nothing, can be read by everyone, and does what it promises."""

from pathlib import Path

import pytest
from tests.report.conftest import write_records

import wordsens as ws

pytestmark = pytest.mark.timeout(180)

AXE = Path(__file__).parent / "axe" / "axe.min.js"
HOSTILE = [
    "<script>bad()</script>",
    "</script><script>bad()</script>",
    '"onmouseover="bad()',
    "<img/src=x/onerror=bad()>",
]
ODD = ["😀\U0001f469\u200d\U0001f467", "a&b", "{{7*7}}", "\u2028", "\u202eevil", "לא", "'"]


@pytest.fixture
def report_of(tmp_path, audit_record):
    """A function that writes the report of one text with these words."""

    def written(words):
        write_records(tmp_path / "run", [audit_record([(word, 1.0 + at % 7) for at, word in enumerate(words)])])
        return ws.write_report(tmp_path / "run", tmp_path / "report.html")

    return written


def test_it_asks_for_nothing_and_says_nothing_and_is_soon_ready(browser, page):
    times = []
    for _ in range(3):  # the machine may be busy with other tests
        browser.open(page)
        times.append(browser.ready_after())
        assert browser.requests() == []
        assert browser.messages() == []
    assert min(times) < 2000
    assert page.stat().st_size < 6_000_000


@pytest.mark.slow_cases("1280-light", "390-dark", "1280-dark")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_axe_has_no_serious_finding_and_nothing_is_wider_than_the_screen(browser, page, width, scheme):
    browser.open(page, width=width, scheme=scheme)
    browser.run(AXE.read_text(encoding="utf-8"))
    found = browser.driver.execute_async_script("axe.run().then((result) => arguments[0](result.violations))")
    serious = [(one["id"], one["nodes"][0]["html"]) for one in found if one["impact"] in ("serious", "critical")]
    assert serious == []
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


def test_a_table_is_sorted_by_number_and_copied(browser, page):
    browser.open(page)
    origin = {"origin": "file://", "permissions": ["clipboardReadWrite", "clipboardSanitizedWrite"]}
    browser.command("Browser.grantPermissions", {"permissions": origin["permissions"]})
    table = browser.find(".table")[0]
    heading = next(one for one in table.find_elements("css selector", "th") if one.text == "S at the last")
    at = browser.run("return arguments[0].cellIndex", heading)
    column = (
        "return [...arguments[0].querySelectorAll('tbody tr')].map((row) => Number(row.cells[arguments[1]].dataset.n))"
    )
    for order, sign in (("ascending", 1), ("descending", -1)):
        heading.find_element("css selector", "button").click()
        values = browser.run(column, table, at)
        assert values == sorted(values, key=lambda value, sign=sign: sign * value)
        assert heading.get_attribute("aria-sort") == order
    table.find_element("css selector", ".copy").click()
    copied = browser.driver.execute_async_script("navigator.clipboard.readText().then(arguments[0], arguments[0])")
    lines = str(copied).splitlines()
    assert lines[0].split("\t")[:3] == ["map", "texts", "d"]
    assert len(lines) == 1 + len(values)
    assert float(lines[1].split("\t")[at]) == pytest.approx(values[0], rel=0.01)


def test_a_figure_tells_values_hides_curves_and_switches_its_axes(browser, page):
    browser.open(page)
    (first, *_) = browser.find(".figure")
    plot = first.find_element("css selector", ".plot")
    browser.run("arguments[0].focus()", plot)
    browser.press("\ue014")
    told = first.find_element("css selector", ".tip").text
    assert "words in the text: 10" in told
    assert "certified" in told
    marks = ".plot:first-child .marks"
    before = len(first.find_elements("css selector", marks))
    first.find_element("css selector", "[data-curve]").click()
    assert len(first.find_elements("css selector", marks)) == before - 1
    first.find_element("css selector", "[data-curve]").click()
    line = "return arguments[0].querySelector('.marks').getAttribute('d')"
    logarithmic = browser.run(line, first)
    first.find_element("css selector", "[data-axis=y]").click()
    assert browser.run(line, first) != logarithmic
    assert browser.messages() == []


def test_without_scripts_the_figures_are_pictures(browser, page):
    browser.open(page, scripts=False)
    pictures = browser.find(".figure img")
    assert len(pictures) == len(browser.find(".figure")) > 3
    assert all(picture.size["width"] > 200 for picture in pictures)
    assert "One word moves attention" in browser.find("#found")[0].text
    assert browser.requests() == []
    browser.open(page)
