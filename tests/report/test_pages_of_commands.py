"""The pages of commands in a browser: one template, read by everyone, nothing asked for."""

import pytest

import wordsens as ws
from tests.evaluation.stand_ins import bag_of_words, deaf_to_negations, few_pairs
from wordsens.display.html import html_page
from wordsens.plotting.page import with_picture

TEXTS = ("please enable the sync", "please <b>disable</b> the sync")


@pytest.fixture(scope="module")
def views():
    check = ws.check(bag_of_words, few_pairs(), requirements=["negation.false_hits <= .1"])
    calibration = ws.calibrate(bag_of_words, few_pairs(), 0.3, guard=True)
    texts = [review.text for review in ws.shipped_reviews()[:20]]
    collisions = ws.collisions(bag_of_words, [pair.first for pair in few_pairs()], 0.3)
    return {
        "check": with_picture(check.view(pairs="all"), check.plot()),
        "calibrate": with_picture(calibration.view(distance="l2"), calibration.plot()),
        "collisions": with_picture(collisions.view(distance="cosine"), collisions.plot()),
        "carried": ws.carry_threshold(bag_of_words, deaf_to_negations, 0.8, few_pairs()).view(),
        "compare": ws.compare(bag_of_words, deaf_to_negations, texts, few_pairs()).view(),
        "explain": ws.explain(bag_of_words, *TEXTS).view(),
    }


@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    "name", ["check", "calibrate", "collisions", "carried", "compare", "explain"]
)
def test_axe_finds_nothing_serious_at_any_width_and_scheme(browser, views, tmp_path, name):
    page = html_page(views[name], title=name, heading=name, version="1")
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    for width, scheme in ((1366, "light"), (1366, "dark"), (390, "light"), (390, "dark")):
        browser.open(tmp_path / "page.html", width=width, scheme=scheme)
        assert browser.run("return document.documentElement.scrollWidth") <= width
        assert browser.serious() == []
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


def test_every_pair_folds_away_and_five_of_those_that_fail_are_shown(browser, views, tmp_path):
    page = html_page(views["check"], title="check", heading="check", version="1")
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
