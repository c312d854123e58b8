"""The frame of every screen: the bar with the screens' names, and the main part."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from nicegui import ui

from wordsens.app.settings import AppSettings
from wordsens.app.view.parts import Box, Text, Theme
from wordsens.app.work.pool import Pool
from wordsens.files import packaged_text
from wordsens.report.assets import static

SCREENS = {"/": "Your text", "/paper": "The paper", "/attention": "Attention", "/check": "Check", "/explain": "Explain"}

_SCRIPTS = ("colours.js", "words.js", "scales.js", "plots.js")
"""Of the report: what the components draw with."""


@dataclass(frozen=True)
class Site:
    """The settings and the workers of all visitors, as every screen is given them."""

    settings: AppSettings
    pool: Pool


@cache
def head() -> str:
    """The styles and scripts of every screen; nothing is fetched from elsewhere."""
    own = packaged_text("app/static/app.css")
    return f"<style>{static(('report.css',))}\n{own}</style><script>{static(_SCRIPTS)}</script>"


@contextmanager
def screen(path: str) -> Iterator[None]:
    """The frame of the screen at that path; what is made inside stands in its main part."""
    ui.page_title(f"{SCREENS[path]}: wordsens")
    ui.add_head_html(head())
    ui.run_javascript('document.documentElement.classList.add("js")')
    Text("a", "Skip to the content", "skip", href="#main")
    with Box("header", "bar"):
        Text("span", "wordsens", "brand")
        with Box("nav", aria_label="Screens"):
            for address, name in SCREENS.items():
                current = {"aria_current": "page"} if address == path else {}
                Text("a", name, href=address, **current)
        Theme()
    with Box("div", "screen", id="main"):
        yield


async def someone_looks() -> bool:
    """Wait for the visitor's browser; False where none comes, of a program that only fetched the page."""
    try:
        await ui.context.client.connected()
    except TimeoutError:
        return False
    return True
