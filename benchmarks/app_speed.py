"""The page's promises, measured in a browser: first paint, first colours of a 40-word text, a word's detail.

    python -m benchmarks.app_speed [ROUNDS]

Promised on two cores with MiniLM loaded: 1.5 s, 2 s, 1 s; and the first colours of two visitors within twice the time
that one alone has, the other's search thorough and on MiniLM. Needs Chromium, chromedriver and selenium. The machine's
load stands beside the numbers: they mean little where others work on the same cores.
"""

import os
import sys
import time
from urllib.parse import urlencode

from tests.app.conftest import Page, Served, until
from tests.report.browser import Browser

from wordsens.app.examples import EXAMPLES

CHOICES = {
    "raf": {"map": "raf"},
    "rf": {"map": "rf"},
    "minilm, layer 2": {"map": "model", "layer": 2},
    "minilm, last layer": {"map": "model", "layer": -1},
}


def main(rounds):
    """Print a line a choice: the median of some rounds, in seconds."""
    served, browser = Served("--workers", "2"), Browser("/usr/bin/chromium", "/usr/bin/chromedriver")
    try:
        page = Page(browser, served)
        page.open()
        page.done()  # the workers are warm
        print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, median of {rounds}")
        for name, chosen in CHOICES.items():
            measured = [once(page, chosen) for _ in range(rounds)]
            paint, colours, done, detail = (sorted(column)[rounds // 2] for column in zip(*measured, strict=True))
            print(
                f"{name:20} paint {paint:5.2f}   first colours {colours:5.2f}   done {done:6.2f}   detail {detail:5.2f}"
            )
        alone, together = beside_another(page, rounds)
        print(f"first colours alone {alone:.2f}, beside another visitor {together:.2f}: {together / alone:.2f} times")
    finally:
        print(f"closed by Ctrl-C, its page open, in {served.stop()[0]:.2f} s")
        browser.close()


def once(page, chosen):
    """Seconds to the first paint, from the press to the first colours, to the end, and from a click to the detail."""
    page.open(f"/?{urlencode({'text': EXAMPLES['Forty words'], **chosen})}")
    page.done()
    paint = page.browser.run("return performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1000
    # The page itself notes the moments: this script's own calls would be a part of them.
    page.browser.run(
        "window.pressed = performance.now(); document.getElementById('measure').click();"
        "let gone = false; const look = () => {"
        " const words = document.querySelectorAll('.heat .w').length; gone ||= !words;"
        " if (gone && words) window.coloured = performance.now(); else requestAnimationFrame(look); }; look();"
    )
    colours = until(lambda: page.browser.run("return window.coloured && (window.coloured - window.pressed) / 1000"))
    began = time.monotonic() - colours
    page.done()
    done = time.monotonic() - began
    until(lambda: "What its strongest change does" in page.detail() or chosen["map"] == "rf")
    page.browser.run(
        "const words = document.querySelectorAll('.heat .w'), panel = document.querySelector('.detail');"
        "const one = [...words].find((word) => !word.classList.contains('here'));"
        "window.clicked = performance.now(); one.click();"
        "const look = () => { if (panel.textContent.includes(arguments[0]) && one.classList.contains('here'))"
        " window.told = performance.now(); else requestAnimationFrame(look); }; look();",
        "At most" if chosen["map"] == "rf" else "strongest change",
    )
    detail = until(lambda: page.browser.run("return window.told && (window.told - window.clicked) / 1000"))
    return paint, colours, done, detail


def beside_another(page, rounds):
    """Seconds to the first colours under softmax attention, alone and while another visitor's search runs: medians."""
    alone = sorted(once(page, CHOICES["raf"])[1] for _ in range(rounds))[rounds // 2]
    driver, times = page.browser.driver, []
    mine = driver.current_window_handle
    driver.switch_to.new_window("tab")
    other = driver.current_window_handle
    for _ in range(rounds):
        driver.switch_to.window(other)
        page.open(f"/?{urlencode({'text': EXAMPLES['Forty words'], 'map': 'model', 'search': 'thorough'})}")
        until(page.words)
        driver.switch_to.window(mine)
        times.append(once(page, CHOICES["raf"])[1])
        driver.switch_to.window(other)
        page.browser.run("document.querySelector('[data-cancel]')?.click()")
    driver.close()
    driver.switch_to.window(mine)
    return alone, sorted(times)[rounds // 2]


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
