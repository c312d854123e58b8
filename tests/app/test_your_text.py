"""The first screen, in a browser: a comparison that is there at once, then one's own text."""

import contextlib
import io
import json
import re
import shlex

import pytest
from tests.app.conftest import ENTER, until

from wordsens.app.request import EXAMPLES
from wordsens.app.your_text import shipped
from wordsens.cli import main

pytestmark = pytest.mark.timeout(500)

EXAMPLE = next(iter(EXAMPLES.values()))
KEYS = "/?map=raf&text=Two+keys+open+one+door."
HOSTILE = "<script>bad()</script> <img/src=x/onerror=bad()> {{7*7}} ${bad} `x` 😀 לא"
RIGHT, HOME, CONTROL = "\ue014", "\ue011", "\ue009"
BOTTOM = "return Math.max(...[...document.querySelectorAll('.w')].map((w) => w.getBoundingClientRect().bottom))"
OPACITY = """
const lines = document.querySelectorAll('.panels figure:last-child line.turned')
return Math.max(...[...lines].map((line) => Number(line.getAttribute('stroke-opacity'))))
"""
PAINT = "return performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


def test_the_first_screen_says_what_it_is_about_before_anything_is_measured(page):
    paints = []
    for width, height in ((1366, 768), (390, 844), (1366, 768)):
        page.open()
        page.window(width, height)
        until(lambda: page.browser.find("svg line"))
        assert page.browser.run(BOTTOM) < height
        paints.append(until(lambda: page.browser.run(PAINT)))
    assert min(paints) < 1000
    said = r"One word can move attention’s output by (.*) times its size, a fully connected layer’s by (.*) times\."
    values = [shipped()["comparison"][name]["value"] for name in ("raf", "rf")]
    found = re.fullmatch(said, page.browser.find("h1")[0].text)
    assert found
    assert [float(number) for number in found.groups()] == pytest.approx(values, abs=0.0051)
    assert page.said() == ""
    # One scale: the fully connected layer is pale, and its bar is short from the same zero.
    assert min(page.levels(0)) >= 5
    assert max(page.levels(1)) <= 1
    ends = [bar.rect for bar in page.browser.find(".result .bar-of .attained")]
    assert ends[0]["x"] == pytest.approx(ends[1]["x"], abs=1)
    assert ends[0]["width"] / ends[1]["width"] == pytest.approx(3.25 / 0.395, rel=0.05)
    # The slider turns attention to the word.
    turned = "return [...document.querySelectorAll('.panels figure:last-child line.turned')].length"
    after = page.browser.run(turned)
    slider = page.browser.find(".push")[0]
    page.browser.run("arguments[0].value = 0; arguments[0].dispatchEvent(new Event('input'))", slider)
    until(lambda: page.browser.run(OPACITY) < 0.5)
    assert after == len(EXAMPLE.split()) + 1
    # Of another word nothing is shipped: a click measures it.
    page.words()[7].click()
    page.done()
    until(lambda: page.browser.find(".card h3")[0].text == "door" and "If deleted" in page.card())
    assert page.browser.find(".panels text.turned")[0].text == "door"
    page.nothing_strange()


def test_ones_own_text_is_measured_on_enter(page):
    page.open()
    page.write("Two small keys open one old door.")
    assert "settings have changed" in until(page.stale)
    page.write(EXAMPLE)
    until(lambda: not page.stale())
    page.write("Two small keys open one old door.")
    page.browser.find("#text")[0].send_keys(CONTROL + ENTER)
    until(lambda: page.words() and page.words()[1].text == "small")
    page.done()
    assert page.stale() == ""
    assert [len(page.words(reader)) for reader in (0, 1)] == [8, 8]
    claims = page.all_said(".claim")
    assert all(one.startswith("Most sensitive of all 8 words: “") and "Proved" in one for one in claims)
    for line in ("If deleted", "If replaced by “", "attention"):
        until(lambda line=line: line in page.card(), line)
    page.browser.find(".w.here")[0].click()
    page.browser.press(HOME, RIGHT)
    until(lambda: page.browser.find(".card h3")[0].text == page.browser.find(".w.here")[0].text == "small")
    until(lambda: "If replaced by “" in page.card())
    page.browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.nothing_strange()
    page.can_be_read_by_all()


def test_settings_are_in_the_address_and_come_back(page):
    page.open()
    page.browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.choose("map", "relu-raf")
    page.write("0.5", "share")
    page.write("Two keys open one door.")
    page.browser.find("#text")[0].send_keys(ENTER)
    until(lambda: page.words() and page.words()[0].text == "Two")
    page.done()
    address = page.browser.driver.current_url
    assert {"map=relu-raf", "share=0.5"} == set(address.partition("?")[2].split("&"))
    before = page.all_said(".reader")
    page.browser.driver.refresh()
    until(lambda: page.words() and page.words()[0].text == "Two")
    page.done()
    until(lambda: page.all_said(".reader") == before, "the same result")
    assert page.stale() == ""


@pytest.mark.slow
def test_a_pinned_result_stays_and_claims_name_what_was_searched(page):
    page.open("/?map=drf&text=I+did+not+love+this+film,+but+I+would+watch+it+again+for+her+voice.")
    page.done()
    assert page.all_said(".claim")[0].startswith("Most sensitive of the 4 searched of 17 words: “")
    page.press("pin-result")
    until(lambda: "Pinned" in page.stale())
    page.write("   ")
    page.browser.find("#text")[0].send_keys(ENTER)
    until(lambda: "There is no text yet" in page.said())
    assert "searched of 17 words" in page.all_said(".claim")[0]
    page.choose("map", "raf")
    page.write("Two keys open one door.")
    page.press("measure")
    page.done()
    until(lambda: len(page.all_said(".claim")) == 2)
    page.press("unpin-result")
    until(lambda: len(page.all_said(".claim")) == 1)
    page.nothing_strange()


def test_hostile_words_are_text_and_words_out_of_the_vocabulary_are_said(page):
    page.open(KEYS)
    page.write(HOSTILE)
    page.press("measure")
    until(lambda: page.words() and "😀" in page.browser.find(".heat")[0].text)
    page.done()
    assert page.browser.find(".heat")[0].text == HOSTILE
    assert "Not in this model’s vocabulary: “😀”" in page.all_said(".result > .hint")[0]
    assert [word.text for word in page.browser.find(".w.unknown")] == ["😀"]
    for word in page.words()[:6]:
        page.browser.point_at(word)
    assert page.browser.run("return typeof window.bad") == "undefined"
    assert page.browser.run("return document.querySelectorAll('#main img, #main script').length") == 0
    page.nothing_strange()


@pytest.mark.parametrize(
    ("text", "said"), [("  ", "There is no text yet"), ("word " * 5000, "5,000 words"), ("a", "word")]
)
def test_what_cannot_be_measured_is_said_kindly_and_the_old_result_is_grey(page, text, said):
    page.open(KEYS)
    until(page.words)
    page.write(text)
    page.press("measure")
    until(lambda: said in page.said(), said)
    assert "`" not in page.said()
    assert page.stale()
    page.nothing_strange()


@pytest.mark.slow
def test_the_command_and_the_python_give_the_same_numbers(page):
    page.open("/?map=relu-raf&share=0.5&seed=3&text=Two+keys+open+one+door.")
    page.done()
    until(lambda: page.browser.find("#command"))
    command, python = (
        page.browser.run(f"return document.querySelector('{name}').textContent") for name in ("#command", ".python")
    )
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main([*shlex.split(command)[1:], "--json", "--quiet"]) == 0
    (result,) = json.loads(printed.getvalue())["texts"][0]["results"]
    assert page.browser.find(".reader-head b")[0].text == f"{result['value']:.2f}"
    own = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(python, own)
    assert own["result"].value == pytest.approx(result["value"], rel=1e-12)


@pytest.mark.slow
def test_files_and_links_are_taken_along(page, tmp_path):
    page.open(KEYS)
    page.done()
    until(lambda: page.browser.find("#get-report"))
    page.browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.browser.command("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    begins = {"report": b"<!doctype html>", "records": b"PAR1", "figure": b"\x89PNG"}
    for name, beginning in begins.items():
        page.press(f"get-{name}")
        (file,) = until(lambda name=name: list(tmp_path.glob(f"wordsens-{name}.[hp]*[!d]")), f"the {name} is written")
        until(lambda file=file: file.stat().st_size)
        assert file.read_bytes().startswith(beginning)
    assert "Two keys" in (tmp_path / "wordsens-report.html").read_text(encoding="utf-8")
    links = [page.browser.find(f"#{name}")[0].get_attribute("href") for name in ("link", "link-text")]
    assert "Two" not in links[0]
    assert "text=Two+keys" in links[1]
