"""The story, attention, check and explain, in a browser; and everyone can read and reach every screen."""

import pytest
from tests.app.conftest import until

pytestmark = pytest.mark.timeout(500)


@pytest.mark.slow
def test_the_story_runs_its_five_experiments(page):
    page.open("/paper")
    page.done()
    assert "fully connected layer’s by" in page.browser.find("#step-1 .answer")[0].text
    page.write("0.5", "strength-share")
    until(lambda: "goes 50% of the way" in page.browser.find("#step-1 .answer")[0].text)
    page.press("lengths")
    until(lambda: page.browser.find("#step-2 .plot .marks"))
    page.press("theorem")
    page.press("learning")
    for at in (1, 2, 3):
        page.done(at)
    assert "“not”" in page.browser.find("#step-3 .answer")[0].text
    assert "(2 − γ)² is 2.25" in page.browser.find("#step-4 .answer")[0].text
    page.write("1", "gamma")
    until(lambda: "(2 − γ)² is 1.00" in page.browser.find("#step-4 .answer")[0].text)
    page.write("60", "length-most")
    until(lambda: "1/√n" in page.browser.find("#step-2 .caption")[0].text)
    page.press("real")
    until(lambda: len(page.browser.find("#step-5 .plot .marks")) > 0)
    page.press("#step-5 [data-cancel]")
    until(lambda: page.said(4).startswith(("Cancelled", "Done")))
    page.nothing_strange()
    page.can_be_read_by_all()


@pytest.mark.slow
def test_attention_is_compared_by_layer_and_head(page):
    page.open("/attention")
    page.done()
    captions = [caption.text for caption in page.browser.find(".matrix caption")]
    assert captions == ["I love her much", "I love her smile", "Difference: second − first"]
    before = page.browser.find(".matrix")[2].text
    page.choose("head", "3")
    until(lambda: page.browser.find(".matrix")[2].text != before)
    page.write("I love", "second")
    page.press("compare")
    until(lambda: "cannot be compared" in page.said())
    page.nothing_strange()
    page.can_be_read_by_all()


@pytest.mark.slow
def test_a_check_puts_the_worst_kind_on_top(page):
    page.open("/check")
    page.press("check")
    page.done()
    rows = [[cell.text for cell in row.find_elements("css selector", "td")] for row in page.browser.find("tbody tr")]
    aucs = [float(row[2]) for row in rows if row[0] in ("negation", "role", "antonym", "quantity")]
    assert len(aucs) == 4
    assert aucs == sorted(aucs)
    cosines = [float(row[0]) for row in rows if len(row) == 4]
    assert cosines == sorted(cosines, reverse=True)
    page.can_be_read_by_all()


def test_a_score_is_explained(page):
    page.open("/explain")
    page.write("The lift is <b>not</b> working.", "first")
    page.press("explain")
    page.done()
    assert page.browser.find(".carry")[0].text == "The lift is <b>not</b> working."
    assert "cosine" in page.browser.find(".answer")[0].text
    page.nothing_strange()
    page.can_be_read_by_all()
