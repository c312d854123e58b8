"""Four scripted visitors for a long time: does the page's memory grow, does a request fail, is anything left behind?

    python -m benchmarks.app_soak [MINUTES]

Each visitor is a tab of one headless Chromium, and measures, chooses words, cancels, changes screens; the choices are
drawn with a fixed seed. Every half minute the resident memory of the server and its workers is noted. Past the first
five minutes a line is fitted to it: its slope, in MiB an hour, is printed. Needs Chromium and selenium.
"""

import os
import random
import sys
import time
from pathlib import Path

import numpy as np
from tests.app.conftest import Page, Served, alive, children
from tests.report.browser import Browser

from wordsens.app.examples import EXAMPLES

VISITORS = 4
EVERY = 30.0
"""Seconds between two notes."""

WARM = 300.0
"""Seconds at the beginning that do not count for the slope."""


def resident(number):
    """The resident memory of a process, in MiB."""
    told = Path(f"/proc/{number}/statm")
    return int(told.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20 if told.exists() else 0.0


def act(page, draw):
    """One thing that a visitor does; what fails is returned in words."""
    kind = draw.choice(["raf", "relu-raf", "rf", "model", "word", "cancel", "attention", "story"])
    if kind == "word":
        script = (
            "const all = document.querySelectorAll('.heat .w'); all[Math.floor(arguments[0] * all.length)]?.click()"
        )
        page.browser.run(script, draw.random())
    elif kind == "cancel":
        page.browser.run("document.querySelector('[data-cancel]')?.click()")
    elif kind in ("attention", "story"):
        page.open("/attention" if kind == "attention" else "/paper")
    else:
        if not page.browser.find("#measure"):
            page.open()
        page.choose("map", kind)
        if kind == "model":
            page.write(str(draw.choice([1, 2, 3])), "layer")
        page.write(draw.choice(list(EXAMPLES.values())))
        page.browser.run("document.getElementById('measure').click()")
    said = [one.text for one in page.browser.find(".told.problem")]
    return [one for one in said if "went wrong" in one or "came to an end" in one]


def main(minutes):
    """Run the visitors and print what was seen."""
    served, browser = Served("--workers", "2"), Browser("/usr/bin/chromium", "/usr/bin/chromedriver")
    page, draw, driver = Page(browser, served), random.Random(0), browser.driver
    notes, failed, acts = [], [], 0
    began = noted = time.monotonic()
    tabs = [driver.current_window_handle]
    page.open()
    for _ in range(VISITORS - 1):
        driver.switch_to.new_window("tab")
        tabs.append(driver.current_window_handle)
        page.open()
    processes = []
    while (now := time.monotonic()) - began < 60 * minutes:
        driver.switch_to.window(draw.choice(tabs))
        failed += act(page, draw)
        failed += [one for one in browser.messages() if "reload" not in one]
        browser.log("performance")
        acts += 1
        time.sleep(draw.uniform(0.2, 1.5))
        if now - noted >= EVERY:
            noted = now
            processes = [served.process.pid, *(number for number, _ in children(served.process.pid))]
            notes.append((now - began, sum(map(resident, processes))))
            print(f"{notes[-1][0]:7.0f} s   {notes[-1][1]:7.0f} MiB   {acts} acts, {len(failed)} failed", flush=True)
    browser.close()
    processes = [served.process.pid, *(number for number, _ in children(served.process.pid))]
    seconds, code, said = served.stop()
    left = [number for number in processes if alive(number)]
    late = [(at, memory) for at, memory in notes if at >= WARM]
    if len(late) > 2:
        slope, level = np.polyfit(*np.array(late).T, 1)
        print(f"past {WARM:.0f} s: {level + slope * late[0][0]:.0f} MiB, slope {slope * 3600:+.0f} MiB an hour")
    print(f"{acts} acts of {VISITORS} visitors in {minutes} minutes, {len(failed)} failed {failed[:3]}")
    print(f"closed in {seconds:.1f} s with code {code}, {len(left)} processes left, stderr: {said[-300:]!r}")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 30)
