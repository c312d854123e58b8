"""Why, in a browser: a comparison that is there at once, then one's own text."""

import contextlib
import io
import json
import shlex
import time

import pytest

from tests.app.conftest import ENTER, until
from wordsens.app.parts import shipped
from wordsens.app.request import EXAMPLES
from wordsens.cli import main

pytestmark = pytest.mark.timeout(500)

EXAMPLE = next(iter(EXAMPLES.values()))
KEYS = "/why?map=raf&text=Two+keys+open+one+door."
HOSTILE = "<script>bad()</script> <img/src=x/onerror=bad()> {{7*7}} ${bad} `x` 😀 לא"
RIGHT, HOME, CONTROL = "\ue014", "\ue011", "\ue009"
BOTTOM = (
    "return Math.max(...[...document.querySelectorAll('.reader .w')].map((w) => "
    "w.getBoundingClientRect().bottom))"
)
OPACITY = """
const lines = document.querySelectorAll('.panels figure:last-child line.turned')
return Math.max(...[...lines].map((line) => Number(line.getAttribute('stroke-opacity'))))
"""
RANKS = "return arguments[0].map((word) => Number(word.style.getPropertyValue('--rank')))"
WATCH = """
window.fewest = 99
setInterval(() => { window.fewest = Math.min(window.fewest, document.querySelectorAll('.reader .w').length) }, 10)
"""  # noqa: E501


def test_why_says_what_it_is_about_before_anything_is_measured(page):
    for width, height in ((390, 844), (1366, 768)):
        page.open("/why")
        page.window(width, height)
        until(lambda: page.browser.find("svg line"))
        assert page.browser.run(BOTTOM) < height
        card = page.browser.find(".card")[0].rect
        assert card["y"] < height  # it stands beside the words
    comparison = shipped()["comparison"]
    assert page.headline() == comparison["headline"]
    assert page.card().startswith("“key”")
    assert page.said() == ""
    # One scale: the fully connected layer is pale.
    assert min(page.levels(0)) >= 5
    assert max(page.levels(1)) <= 1
    # Eight equal blues: the longest line stands under the word that leads.
    for reader, name in enumerate(("raf", "rf")):
        lengths = page.browser.run(RANKS, page.words(reader))
        pieces = comparison["maps"][name]["pieces"]
        shown = [piece["value"] for piece in pieces if not isinstance(piece, str)]
        assert sorted(lengths) == [
            lengths[at] for at in sorted(range(len(shown)), key=shown.__getitem__)
        ]
    # The slider turns attention to the word, and says how far.
    turned = "return [...document.querySelectorAll('.panels figure:last-child line.turned')].length"
    assert page.browser.run(turned) == len(EXAMPLE.split()) + 1
    slider = page.browser.find(".push")[0]
    assert slider.get_attribute("aria-valuetext") == "100 %"
    page.browser.run(
        "arguments[0].value = 0; arguments[0].dispatchEvent(new Event('input'))", slider
    )
    until(lambda: page.browser.run(OPACITY) < 0.5)
    assert slider.get_attribute("aria-valuetext") == "0 %"
    # Of every other word all is shipped: beside each push stand a real word and the deletion.
    page.words()[7].click()
    until(lambda: page.card().startswith("“door”"))
    assert page.said() == ""
    for line in ("pushed", "replaced by “", "deleted", "replaced by zeros"):
        assert line in page.card()
    until(lambda: page.browser.find(".panels text.turned")[0].text == "door")
    page.nothing_strange()


def test_ones_own_text_is_measured_on_enter_and_the_old_result_stays_until_then(page):
    page.open("/why")
    page.write("Two small keys open one autobiographical door.")
    assert "settings have changed" in until(page.stale)
    page.write(EXAMPLE)
    until(lambda: not page.stale())
    page.write("Two small keys open one autobiographical door.")
    page.browser.run(WATCH)
    began = time.monotonic()
    page.browser.find("#text")[0].send_keys(CONTROL + ENTER)
    until(lambda: page.words() and page.words()[1].text == "small")
    # No number of the old text is shown beside the new one's.
    assert "“key”" not in page.card()
    page.done()
    assert page.browser.run("return window.fewest") > 0
    # The time that it states lies within the one that passed.
    assert 0 < float(page.said().split()[2]) < time.monotonic() - began + 0.1
    assert page.stale() == ""
    assert [len(page.words(reader)) for reader in (0, 1)] == [8, 8]
    until(lambda: "replaced by zeros" in page.card())
    page.browser.find(".w.here")[0].click()
    page.browser.press(HOME, *[RIGHT] * 5)
    until(lambda: page.browser.find(".w.here")[0].text == "autobiographical")
    until(lambda: page.card().startswith("“autobiographical”"))
    page.browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.nothing_strange()
    page.can_be_read_by_all()


def test_settings_are_in_the_address_and_come_back(page):
    page.open("/why")
    page.browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.choose("map", "relu-raf")
    page.choose("search", "normal")
    page.write("Two keys open one door.")
    page.browser.find("#text")[0].send_keys(ENTER)
    until(lambda: page.words() and page.words()[0].text == "Two")
    page.done()
    address = page.browser.driver.current_url
    assert {"map=relu-raf", "search=normal"} == set(address.partition("?")[2].split("&"))
    before = page.all_said(".reader")
    # What was typed outlives a reload.
    page.browser.driver.refresh()
    until(lambda: page.words() and page.words()[0].text == "Two")
    page.done()
    until(lambda: page.all_said(".reader") == before, "the same result")
    assert page.stale() == ""
    page.open("/why?map=nonsense")
    until(lambda: "The map, “nonsense”" in page.said())
    assert page.headline() == shipped()["comparison"]["headline"]


def test_an_example_comes_back_after_something_was_typed(page):
    page.open("/why")
    page.write("Something else.")
    page.browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.press(".form .more .row-of button")
    until(lambda: page.browser.run("return document.querySelector('#text').value") == EXAMPLE)


@pytest.mark.slow
def test_titles_say_what_was_searched_and_a_trained_model_is_measured(page):
    page.open(
        "/why?map=drf&text=I+did+not+love+this+film,+but+I+would+watch+it+again+for+her+voice."
    )
    page.done()
    assert page.all_said(".reader h3")[0].endswith("(4 of 17 words searched)")
    page.write("   ")
    page.browser.find("#text")[0].send_keys(ENTER)
    until(lambda: "has 0 words" in page.said())
    assert "of 17 words searched" in page.all_said(".reader h3")[0]
    page.choose("map", "model")
    page.write("Two keys open one door.")
    page.press("measure")
    until(lambda: page.headline().startswith("minilm, last layer. Change one word’s vector"))
    page.done()
    until(lambda: "replaced by “" in page.card())
    page.nothing_strange()


def test_hostile_words_are_text_and_words_out_of_the_vocabulary_are_said(page):
    page.open(KEYS)
    page.write(HOSTILE)
    page.press("measure")
    until(lambda: page.words() and "😀" in page.browser.find(".heat")[0].text)
    page.done()
    assert page.browser.find(".heat")[0].text == HOSTILE
    assert "Not in this model’s vocabulary: “😀”" in page.browser.find(".result")[0].text
    assert [word.text for word in page.browser.find(".w.unknown")] == ["😀"]
    for word in page.words()[:6]:
        page.browser.point_at(word)
    assert page.browser.run("return typeof window.bad") == "undefined"
    assert (
        page.browser.run("return document.querySelectorAll('#main img, #main script').length") == 0
    )
    page.nothing_strange()


@pytest.mark.parametrize(
    ("text", "said"),
    [("  ", "has 0 words"), ("word " * 5000, "5,000 words"), ("a", "word")],
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
def test_the_command_gives_the_same_numbers(page):
    page.open("/why?map=relu-raf&text=Two+keys+open+one+door.")
    page.done()
    until(
        lambda: "Two" in page.browser.run("return document.querySelector('#command').textContent")
    )
    command = page.browser.run("return document.querySelector('#command').textContent")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main([*shlex.split(command)[1:], "--json", "--quiet"]) == 0
    (result,) = json.loads(printed.getvalue())["texts"][0]["results"]
    assert page.all_said(".reader h3")[0].endswith(f": {result['value']:.2f}")
