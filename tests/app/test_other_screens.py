"""The story, attention, check and explain, in a browser; and everyone can read and reach every screen."""

import pytest
from tests.app.conftest import ENTER, until

pytestmark = pytest.mark.timeout(500)


@pytest.mark.slow
def test_the_story_runs_its_experiments_as_they_come_into_view(page):
    page.open("/paper")
    for step in (1, 2, 3):
        page.browser.run("arguments[0].scrollIntoView()", page.browser.find(f"#run-{step}")[0])
        page.done(step - 1)
        until(lambda step=step: page.all_said(f"#step-{step} .takeaway"), "what is to be remembered comes after")
    assert page.all_said("#step-4 .takeaway") == []
    assert "goes 100% of the way" in page.browser.find("#step-1 .answer")[0].text
    slider = page.browser.find("#step-1 .push")[0]
    page.browser.run("arguments[0].value = 5; arguments[0].dispatchEvent(new Event('input'))", slider)
    until(lambda: "goes 50% of the way" in page.browser.find("#step-1 .answer")[0].text)
    assert "“not”" in page.browser.find("#step-3 .answer")[0].text
    assert page.browser.find("#step-3 line.turned")
    assert page.all_said("#step-4 .row-of .hint")[0].startswith("Press to run")
    page.press("run-4")
    page.press("run-5")
    page.done(3)
    assert "(2 − γ)² is 2.25" in page.browser.find("#step-4 .answer")[0].text
    page.write("1", "gamma")
    until(lambda: "(2 − γ)² is 1.00" in page.browser.find("#step-4 .answer")[0].text)
    until(lambda: page.browser.find("#step-5 .chart svg path"))
    page.press("#step-5 [data-cancel]")
    until(lambda: page.said(4).startswith(("Cancelled", "Done")))
    page.nothing_strange()
    page.can_be_read_by_all()


@pytest.mark.slow
def test_attention_is_compared_by_layer_and_head(page):
    page.open("/attention")
    page.done()
    assert page.all_said("figcaption") == ["I love her much", "I love her smile"]
    assert "goes elsewhere" in page.browser.find(".answer")[0].text
    grids = "return document.querySelector('.more table').textContent"
    before = page.browser.run(grids)
    page.choose("head", "3")
    until(lambda: page.browser.run(grids) != before)
    page.done()
    assert "head=3" in page.browser.driver.current_url
    page.write("I love her much", "second")
    assert "settings have changed" in until(page.stale)
    page.browser.find("#second")[0].send_keys(ENTER)
    until(lambda: page.browser.find(".answer")[0].text == "Attention is the same in both sentences.")
    page.write("I love", "second")
    page.press("run")
    until(lambda: "cannot be compared" in page.said())
    assert page.stale()
    page.nothing_strange()
    page.can_be_read_by_all()


@pytest.mark.slow
def test_a_check_shows_a_picture_and_the_worst_kind_on_top(page):
    page.open("/check")
    until(lambda: page.browser.find(".chart svg path"))
    assert page.said().startswith("Computed beforehand, with minilm.")
    shipped = page.browser.find("tbody")[0].text
    page.press("run")
    page.done()
    until(lambda: page.browser.find("tbody")[0].text == shipped, "the shipped result is what is measured")
    kinds, pairs = (
        [
            [cell.text for cell in row.find_elements("css selector", "td")]
            for row in body.find_elements("css selector", "tr")
        ]
        for body in page.browser.find("tbody")
    )
    aucs = [float(row[2]) for row in kinds]
    assert aucs == sorted(aucs)
    assert [row[2] for row in pairs] == [row[0] for row in kinds]
    assert len(page.browser.find("tbody mark")) >= len(pairs)
    assert "threshold 0.82" in page.browser.find(".chart")[0].text
    page.nothing_strange()
    page.can_be_read_by_all()


def test_a_score_is_explained(page):
    page.open("/explain")
    assert page.said().startswith("Computed beforehand, with minilm.")
    assert page.browser.find(".heat")[0].text == "The lift is not working today."
    page.write("The lift is <b>not</b> working.", "first")
    until(page.stale)
    page.press("run")
    page.done()
    until(lambda: page.browser.find(".heat")[0].text == "The lift is <b>not</b> working.")
    assert page.stale() == ""
    assert "cosine" in page.browser.find(".answer")[0].text
    page.nothing_strange()
    page.can_be_read_by_all()
