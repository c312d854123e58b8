"""Your text, in a browser: the words take their colours, tell of themselves, and can be taken along."""

import contextlib
import io
import json
import shlex

import pytest
from tests.app.conftest import until

from wordsens.app.examples import EXAMPLES
from wordsens.cli import main

pytestmark = pytest.mark.timeout(500)

HOSTILE = "<script>bad()</script> <img/src=x/onerror=bad()> {{7*7}} ${bad} `x` 😀 לא"
RIGHT, HOME = "\ue014", "\ue011"


def test_the_first_screen_works_before_anything_is_chosen(page):
    page.open()
    page.done()
    assert "".join(word.text for word in page.words()) == "".join(EXAMPLES["A short review"].split())
    # One scale for all texts: under attention every word of a short one has a strong colour.
    levels = {int(word.get_attribute("class").split()[1].removeprefix("s")) for word in page.words()}
    assert min(levels) >= 5
    told = until(lambda: "Best real swap" in page.detail() and page.detail())
    for line in ("Attained", "At most", "Taken out", "What its strongest change does", "attention to “"):
        assert line in told
    assert len(page.browser.find(".matrix")) == 2
    page.nothing_strange()
    page.browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.can_be_read_by_all()


def test_hostile_words_are_text_and_nothing_runs(page):
    page.open("/?text=Two+keys+open+one+door.")
    page.write(HOSTILE)
    page.press("measure")
    until(lambda: page.words() and "😀" in page.browser.find(".heat")[0].text)
    page.done()
    assert page.browser.find(".heat")[0].text == HOSTILE
    for word in page.words()[:6]:
        page.browser.point_at(word)
    assert page.browser.run("return typeof window.bad") == "undefined"
    assert page.browser.run("return document.querySelectorAll('#main img, #main script').length") == 0
    page.nothing_strange()


@pytest.mark.parametrize(
    ("text", "said"), [("  ", "There is no text yet"), ("word " * 5000, "5,000 words"), ("a", "word")]
)
def test_what_cannot_be_measured_is_said_kindly(page, text, said):
    page.open("/?text=Two+keys+open+one+door.")
    page.write(text)
    page.press("measure")
    until(lambda: said in page.said(), said)
    assert "`" not in page.said()
    page.nothing_strange()


@pytest.mark.slow
def test_the_command_and_the_python_give_the_same_numbers(page):
    page.open("/?map=relu-raf&share=0.5&seed=3&text=Two+keys+open+one+door.")
    page.done()
    until(lambda: page.browser.find("#command"))
    shown = page.browser.run("return [...document.querySelectorAll('.told-of')].map((p) => p.textContent)")[0]
    command, python = (
        page.browser.run(f"return document.getElementById('{name}').textContent") for name in ("command", "python")
    )
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert main([*shlex.split(command)[1:], "--json", "--quiet"]) == 0
    (result,) = json.loads(printed.getvalue())["texts"][0]["results"]
    assert f"by {result['value']:.3g} times" in shown
    own = {}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(python, own)
    assert own["result"].value == pytest.approx(result["value"], rel=1e-12)


@pytest.mark.slow
def test_files_and_links_are_taken_along(page, tmp_path):
    page.open("/?text=Two+keys+open+one+door.")
    page.done()
    until(lambda: page.browser.find("#get-report"))
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
