"""One server for all tests of the page, and what they do with a browser."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.report.conftest import browser as browser

AXE = Path(__file__).parents[1] / "report" / "axe" / "axe.min.js"

SECONDS = 240
"""The machine may be busy with other tests: what takes longer hangs."""

ENTER = "\ue007"

UNCOVERED = """
const [button] = arguments
button.scrollIntoView({block: 'center', behavior: 'instant'})
const {left, top, width, height} = button.getBoundingClientRect()
return button.contains(document.elementFromPoint(left + width / 2, top + height / 2))
"""

STALE = """
const notes = [...document.querySelectorAll('.stale-note')]
return [document.querySelector('.stage.stale, section.stale') !== null, notes.at(-1).textContent]
"""


NAMELESS = """
const pictures = [...document.querySelectorAll('#main svg')].filter((svg) => !svg.closest('[aria-hidden=true]'))
const named = (svg) => svg.closest('[role=img]')?.ariaLabel
return pictures.filter((svg) => svg.checkVisibility() && !named(svg)).map((svg) => svg.outerHTML.slice(0, 200))
"""  # noqa: E501

ROWS = """
const rows = [...[...document.querySelectorAll('#main table')].at(-1).querySelectorAll('tbody tr')]
return rows.map((row) => [...row.cells].map((cell) => cell.textContent))
"""


class Served:
    """`wordsens app` in a process of its own."""

    def __init__(self, *options, quiet=True):
        environment = {**os.environ, "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "wordsens",
                "app",
                "--json",
                "--port",
                "0",
                *["--quiet"] * quiet,
                *options,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        line = self.process.stdout.readline()
        self.address = json.loads(line)["address"] if line else self.process.stderr.read()

    @property
    def workers(self):
        """The process numbers of the workers, found by their parent."""
        return [pid for pid, command in children(self.process.pid) if "spawn_main" in command]

    def stop(self, number=signal.SIGINT):
        """End it, and give its exit code and what it wrote to stderr."""
        with self.process:  # its pipes are closed
            self.process.send_signal(number)
            code = self.process.wait(timeout=SECONDS)
            return code, self.process.stderr.read()


def children(parent):
    """(process number, command) of every process whose parent that is."""
    listed = subprocess.run(
        ["ps", "-wweo", "pid,ppid,args"], capture_output=True, text=True, check=True
    ).stdout
    rows = (line.split(None, 2) for line in listed.splitlines()[1:])
    return [(int(pid), command) for pid, own, command in rows if int(own) == parent]


def alive(pid):
    """Whether there is such a process; one that only waits to be buried is none."""
    told = Path(f"/proc/{pid}/stat")
    return told.exists() and told.read_text(errors="replace").rpartition(")")[2].split()[0] != "Z"


def until(condition, what=""):
    """The first true value of the condition."""
    began = time.monotonic()
    while time.monotonic() - began < SECONDS:
        try:
            if found := condition():
                return found
        except Exception as error:  # an element that was replaced meanwhile
            if "stale" not in str(error) and "list index" not in str(error):
                raise
        time.sleep(0.05)
    raise AssertionError(f"not within {SECONDS} s: {what}")


@pytest.fixture(scope="session")
def server():
    """The page, with two workers."""
    pytest.importorskip("nicegui")
    served = Served()
    yield served
    if served.process.poll() is None:
        code, _ = served.stop()
        assert code == 0


class Page:
    """What a visitor does on a screen."""

    def __init__(self, browser, server):
        self.browser, self.server = browser, server

    def open(self, path="/", **how):
        """Open a screen, in a tab that remembers nothing, and wait until its parts are there."""
        if self.browser.driver.current_url.startswith("http"):
            self.browser.run("sessionStorage.clear()")
        self.browser.open(f"{self.server.address}{path}", **how)
        until(lambda: self.browser.find("#main h1"), "the screen")

    def window(self, width, height, scheme="light"):
        """Show the page in a window of that size."""
        self.browser.resize(width=width, scheme=scheme)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.browser.command("Emulation.setDeviceMetricsOverride", size)

    def headline(self):
        """The screen's first sentence."""
        return self.browser.find("h1")[0].text

    def said(self, at=0):
        """The sentence of the screen's work line of that number, without that of a chosen word."""
        return self.browser.find(".work:not(.beside .work) .message")[at].text

    def all_said(self, selector):
        """The texts of the elements of a selector that can be seen."""
        return [one.text for one in self.browser.find(selector) if one.is_displayed()]

    def done(self, at=0):
        """Wait until its work is done."""
        return until(lambda: self.said(at).startswith("Done"), f"done; it says {self.said(at)}")

    def write(self, text, name="text"):
        """Put a text into a control, at once."""
        script = (
            "const [c, t] = arguments; c.value = t; c.dispatchEvent(new Event('input', "
            "{bubbles: true}))"
        )
        self.browser.run(script, self.browser.find(f"#{name}")[0], text)

    def choose(self, name, value):
        """Choose from a list."""
        script = (
            "const [c, v] = arguments; c.value = v; c.dispatchEvent(new Event('change', "
            "{bubbles: true}))"
        )
        self.browser.run(script, self.browser.find(f"#{name}")[0], value)

    def press(self, name):
        """Press the button with that id, or of that selector, which nothing may cover.

        By the keyboard: what is still filled in above a button moves it between a pointer's aim and
        its click.
        """
        found = name if name[0] in "#.[" else f"#{name}"
        until(
            lambda: self.browser.run(UNCOVERED, self.browser.find(found)[0]), f"{name} is covered"
        )
        self.browser.find(found)[0].send_keys(ENTER)

    def words(self, reader=0):
        """The coloured words of a map: of the first, attention."""
        readers = self.browser.find(".result .reader")
        return readers[reader].find_elements("css selector", ".w") if reader < len(readers) else []

    def levels(self, reader=0):
        """The shades of its words, 0 to 8."""
        return [
            int(re.search(r"\bs(\d)", word.get_attribute("class"))[1])
            for word in self.words(reader)
        ]

    def rows(self):
        """The cells of the last table."""
        return self.browser.run(ROWS)

    def card(self):
        """What is told of the chosen word."""
        return self.browser.find(".card")[0].text

    def stale(self):
        """The note on a result that is greyed; "" for a fresh one."""
        greyed, note = self.browser.run(STALE)
        assert greyed == bool(note)
        return note

    def can_be_read_by_all(self):
        """No serious finding of axe-core and nothing wider than the screen, at both widths in both
        schemes; every picture has a name; and in a reader's own colours a mark is seen on its
        ground."""
        axe = AXE.read_text(encoding="utf-8")  # each time: a slow server may reload the page
        for width in (1366, 390):
            for scheme in ("light", "dark"):
                self.browser.resize(width=width, scheme=scheme)
                found = self.browser.driver.execute_async_script(
                    f"{axe}; axe.run().then((one) => arguments[0](one.violations))"
                )
                told = [(one["impact"], one["id"], one["nodes"][0]["html"]) for one in found]
                assert [one for one in told if one[0] in ("serious", "critical")] == []
                assert self.browser.run("return document.documentElement.scrollWidth") <= width
        assert self.browser.run(NAMELESS) == []
        for scheme, ink in (("light", "rgba(0, 0, 0, 1)"), ("dark", "rgba(255, 255, 255, 1)")):
            self.browser.resize(scheme=scheme, forced=True)
            for mark in self.browser.find("mark"):
                assert mark.value_of_css_property("color") == ink
        self.browser.resize()

    def nothing_strange(self):
        """No message in the console, and no request that leaves the machine."""
        assert self.browser.messages() == []
        own = (self.server.address, self.server.address.replace("http", "ws"))
        assert [address for address in self.browser.requests() if not address.startswith(own)] == []


@pytest.fixture
def page(browser, server):
    """A visitor."""
    return Page(browser, server)
