"""Serving: visitors apart, workers replaced, a server that comes and goes, and an end without
orphans."""

import os
import signal
from urllib.error import HTTPError
from urllib.request import HTTPCookieProcessor, build_opener

import pytest

from tests.app.conftest import Page, Served, until
from wordsens.app.request import EXAMPLES

pytestmark = pytest.mark.timeout(500)

LONG = EXAMPLES["Forty words"].replace(" ", "+")


@pytest.mark.slow
def test_two_visitors_at_once_neither_wait_nor_see_each_other(page):
    page.open("/why?map=raf&text=Two+keys+open+one+door.")
    page.done()

    driver = page.browser.driver
    mine = driver.current_window_handle
    driver.switch_to.new_window("tab")
    try:
        page.open(
            "/why?map=model&search=thorough&text=A+secret+word+of+the+other+visitor,+said+twice+in+secret."
        )
        until(lambda: "%" in page.said())
        other = driver.current_window_handle
        driver.switch_to.window(mine)
        page.press("measure")
        until(lambda: not page.said().startswith("Done"))
        page.done()
        assert "secret" not in driver.page_source
        # Mine came while the other's was still under way.
        driver.switch_to.window(other)
        assert "theatre" not in driver.page_source
        assert page.browser.find(".form [data-cancel]")[0].is_displayed()
        page.press(".form [data-cancel]")
        until(lambda: page.said().startswith("Cancelled"))
        driver.close()
    finally:
        driver.switch_to.window(mine)


@pytest.fixture(scope="module")
def alone():
    """A server of this module's own, with one worker, that its last test ends."""
    served = Served("--workers", "1")
    yield served
    if served.process.poll() is None:
        served.stop()


@pytest.mark.slow
def test_a_killed_worker_is_noticed_said_and_replaced(browser, alone):
    page = Page(browser, alone)
    page.open(f"/why?map=model&search=thorough&text={LONG}")
    until(lambda: "%" in page.said())
    (before,) = alone.workers
    os.kill(before, signal.SIGKILL)
    until(lambda: "ended" in page.said(), "the loss")
    page.choose("map", "raf")
    page.write("Two keys, one door.")
    page.press("measure")
    page.done()
    (after,) = alone.workers
    assert after != before
    page.nothing_strange()


def test_others_need_the_token_and_the_server_says_what_it_exposes():
    token = "a long secret word"
    served = Served("--host", "0.0.0.0", "--token", token, "--workers", "1", quiet=False)
    opener = build_opener(HTTPCookieProcessor())
    address = served.address.replace("0.0.0.0", "127.0.0.1")
    for locked in (address, f"{address}/_nicegui_ws/socket.io/?EIO=4&transport=polling"):
        with pytest.raises(HTTPError, match="401") as refused:
            opener.open(locked)
        refused.value.close()
    assert "Two texts" in opener.open(f"{address}/?token={token.replace(' ', '+')}").read().decode()
    assert opener.open(f"{address}/why").status == 200
    code, said = served.stop()
    assert code == 0
    assert "can measure texts here with minilm" in " ".join(said.split())
    assert token not in said
