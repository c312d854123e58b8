"""The first screen, its attention, and the story, in a browser; and everyone can read and reach
every screen."""

import pytest

from tests.app.conftest import until
from wordsens.app.parts import shipped

pytestmark = pytest.mark.timeout(500)


TEXTS = 1
"""The work line of the two texts: that of their attention stands before it, that of the pairs is
the last."""

PAIRS = """kind,first,second,same
door,Open the <b>red</b> door.,Shut the <b>red</b> door.,no
door,Lock the gate.,Unlock the gate.,no
near,Where is the gate?,Where's the gate?,yes
near,Is it open?,Is it open ?,yes
"""


DOORS = """
const doors = [...document.querySelectorAll('.door')]
return doors.map((door) => door.getBoundingClientRect().bottom)
"""

# The x of the first and the last point of a curve, and of the chart's frame.
ENDS = """
const curve = document.querySelector(`.chart path[stroke='${arguments[0]}'][fill='none']`).getBBox()
const frame = document.querySelector(".chart path[stroke='var(--line)']").getBBox()
return [curve.x - frame.x, curve.x + curve.width - frame.x - frame.width]
"""


def test_the_first_screen_has_two_doors_that_need_no_scrolling(page):
    for width, height in ((390, 844), (1366, 768)):
        page.open()
        page.window(width, height)
        assert len(page.browser.run(DOORS)) == 2
        assert max(page.browser.run(DOORS)) < height
        page.browser.find(".door")[0].click()
        until(lambda: page.browser.run("return document.activeElement.id") == "first")
        page.browser.run("scrollTo(0, 0)")
    page.browser.find(".door")[1].click()
    until(lambda: page.headline() == shipped()["comparison"]["headline"])


@pytest.mark.parametrize("threshold", ["2", "-1.5", "nan"])
def test_a_link_with_a_threshold_that_no_cosine_has_is_refused(page, threshold):
    page.open(f"/?threshold={threshold}")
    until(lambda: "from −1 to 1" in page.said(TEXTS))
    assert page.headline().endswith("at your threshold 0.82.")


def test_two_texts_have_an_answer_before_anything_is_typed(page):
    page.open()
    until(lambda: page.browser.find(".chart svg path"))
    two_texts, check = shipped()["two_texts"], shipped()["check"]
    assert page.headline() == f"Cosine {two_texts['value']:.3f}: a hit at your threshold 0.82."
    assert (
        "The guard says different (antonym: turn on / turn off). The texts differ only in "
        "'on' and 'off'." in page.all_said(".answer")[0]
    )
    assert page.all_said(".takeaway")[0].startswith("What to do: a cache should miss")
    assert page.said(TEXTS) == ""
    # The threshold: every sentence, the picture and the pairs follow it, whether it is dragged or
    # typed.
    opposites = [row["value"] for row in check["rows"] if not row["same"]]

    def says(threshold):
        hits = sum(value >= threshold for value in opposites)
        return any(
            f"accepts {hits} of {len(opposites)} opposites" in one for one in page.all_said("h2")
        )

    assert says(0.82)
    page.write("0.9", "drag")
    until(lambda: page.headline().endswith("a miss at your threshold 0.9."))
    assert says(0.9)
    assert page.browser.find("#drag")[0].get_attribute("aria-valuetext") == "0.9"
    page.write("0.95", "threshold")
    until(lambda: says(0.95))
    until(lambda: "threshold 0.95" in page.browser.find(".chart")[0].text)
    # No cosine is 2; each may be -1.
    page.write("2", "threshold")
    until(lambda: "from −1 to 1" in page.said(TEXTS))
    assert says(0.95)
    page.write("-1", "threshold")
    until(lambda: page.said(TEXTS) == "")
    assert says(-1)
    page.write("0.95", "threshold")
    until(lambda: says(0.95))
    assert "302" not in page.browser.find(".chart")[0].get_attribute("aria-label")
    # The failures by kind.
    assert {row[1] for row in page.rows()} == {"false hit"}
    page.choose("kind", "entity")
    until(lambda: {row[2] for row in page.rows()} == {"entity"})
    page.choose("kind", "typo")
    until(lambda: {row[1] for row in page.rows()} == {"false miss"})
    # Two curves differ by more than their hue; the button says which colours are set.
    assert page.browser.find(".chart path[fill='var(--c1)'][fill-opacity]")
    assert not page.browser.find(".chart path[fill='var(--c0)'][fill-opacity]")
    # Each bin is drawn from edge to edge, the first and the last too.
    for colour in ("var(--c0)", "var(--c1)"):
        assert page.browser.run(ENDS, colour) == pytest.approx([0, 0], abs=1)
    for scheme in ("dark", "light", "system"):
        page.press("theme")
        until(
            lambda scheme=scheme: (
                page.browser.find("#theme")[0].accessible_name == f"Colours: ◐ {scheme}"
            )
        )
    page.nothing_strange()
    page.can_be_read_by_all()


def test_ones_own_texts_and_pairs(page, tmp_path):
    page.open()
    page.write("The lift is <b>not</b>\tworking.\nToday.", "first")
    assert "have changed" in until(page.stale)
    assert page.headline().startswith("Cosine 0.870")
    page.press("run")
    page.done(TEXTS)
    until(lambda: page.browser.find(".heat")[0].text.startswith("The lift is <b>not</b>"))
    assert page.stale() == ""
    # One word each: a cosine and a verdict, and no words to leave out.
    for name, text in (("first", "Hello"), ("second", "Hi")):
        page.write(text, name)
    page.press("run")
    until(lambda: not page.browser.find(".heat"))
    assert "The guard says" in page.all_said(".answer")[0]
    page.write("a" * 53 + " lift", "first")
    page.press("run")
    until(lambda: page.browser.find(".heat"))
    page.done(TEXTS)
    page.write(" ", "second")
    page.press("run")
    until(lambda: "has 0 words" in page.said(TEXTS))
    page.browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.write("first,second\nLock it.,Unlock it.", "own")
    page.press("check")
    until(lambda: "has no column 'same'" in page.said(-1))
    file = tmp_path / "pairs.csv"
    file.write_text(PAIRS, encoding="utf-8")
    page.browser.find("#own-file")[0].send_keys(str(file))
    until(lambda: page.browser.run("return document.querySelector('#own').value") == PAIRS)
    page.press("check")
    page.done(-1)
    until(lambda: "of 2 opposites" in page.browser.find("h2")[0].text)
    assert page.browser.find("h2")[0].text.startswith("At threshold 0.82, minilm")
    until(lambda: "Shut the <b>red</b> door." in str(page.rows()))
    page.nothing_strange()
    page.can_be_read_by_all()


@pytest.mark.slow
def test_the_shipped_check_is_what_is_measured(page):
    page.open()
    page.browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    before = page.all_said("h2"), page.rows()
    page.press("check")
    page.done(-1)
    assert (page.all_said("h2"), page.rows()) == before


@pytest.mark.slow
def test_attention_of_both_texts_by_layer_and_head(page):
    page.open("/?first=I+love+her+much&second=I+love+her+smile")
    page.done(TEXTS)
    page.browser.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    page.press("attend")
    until(lambda: page.all_said("figcaption") == ["I love her much", "I love her smile"])
    assert any("goes elsewhere" in one for one in page.all_said(".answer"))
    grids = "return document.querySelector('.more .more table').textContent"
    before = page.browser.run(grids)
    page.choose("head", "3")
    until(lambda: page.browser.run(grids) != before)
    page.write("I love", "second")
    page.press("run")
    until(lambda: page.all_said("figcaption") == [])
    page.press("attend")
    until(lambda: "cannot be compared" in page.said(0))
    page.nothing_strange()
    page.can_be_read_by_all()


def test_where_there_is_no_screen_a_way_home_is(page):
    page.open("/explain")
    assert page.headline() == "There is no such screen."
    page.browser.find("#main a")[0].click()
    until(lambda: page.headline().startswith("Cosine"))


@pytest.mark.slow
def test_the_story_runs_its_experiments_as_they_come_into_view(page):
    page.open("/paper")
    assert page.all_said("#step-3 .takeaway") == []
    for step in (1, 2, 3):
        page.browser.run("arguments[0].scrollIntoView()", page.browser.find(f"#run-{step}")[0])
        page.done(step - 1)
        until(
            lambda step=step: page.all_said(f"#step-{step} .takeaway"),
            "what is to be remembered comes after",
        )
    assert "sensitivity falls from" in page.browser.find("#step-1 .answer")[0].text
    assert "“not”" in page.browser.find("#step-2 .lines .answer")[0].text
    assert page.browser.find("#step-2 line.turned")
    assert "(2 − γ)² is 2.25" in page.browser.find("#step-3 .answer")[0].text
    page.write(" ", "sentence")
    page.press("run-2")
    until(lambda: page.said(1) and "Done" not in page.said(1))
    page.press("run-1")
    page.press("#step-1 [data-cancel]")
    until(lambda: page.said().startswith(("Cancelled", "Done")))
    page.nothing_strange()
    page.can_be_read_by_all()
