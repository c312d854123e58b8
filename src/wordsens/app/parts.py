"""The parts of every screen: the frame, plain HTML elements, controls, tables and charts in the
look of reports."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import urlencode

from wordsens.app.pool import Pool
from wordsens.app.settings import AppSettings
from wordsens.display.html import html_part
from wordsens.display.view import Table, View
from wordsens.errors import MissingExtraError
from wordsens.files import packaged_files, packaged_text

try:
    from nicegui import ui
    from nicegui.elements.mixins.text_element import TextElement
except ImportError as error:
    raise MissingExtraError("nicegui", "app", "the page") from error

_STATIC = packaged_files("app/static")

SCREENS = {"/": "Two texts", "/why": "Why", "/paper": "The paper"}

SCHEMES = {"": "system", "dark": "dark", "light": "light"}
"""Colours of the page, as the button names them."""

_SCHEME = "document.documentElement.dataset.theme = localStorage.wordsensTheme ?? ''"
_NEXT_SCHEME = f"""() => {{
  const schemes = ["", "dark", "light"];
  localStorage.wordsensTheme = schemes[(schemes.indexOf(localStorage.wordsensTheme ?? "") + 1) % 3];
  {_SCHEME};
}}"""


@dataclass(frozen=True)
class Site:
    """The settings and the workers of all visitors."""

    settings: AppSettings
    pool: Pool


@cache
def shipped() -> dict[str, Any]:
    """Results that were computed beforehand (`wordsens.app.tasks.shipped`)."""
    return json.loads(packaged_text("app/static/examples.json"))


@cache
def _head() -> str:
    """The style and colour scheme of every screen; nothing is fetched from elsewhere."""
    style = packaged_text("display/style.css") + packaged_text("app/static/app.css")
    return f"<style>{style}</style><script>{_SCHEME}</script>"


@contextmanager
def screen(path: str) -> Iterator[None]:
    """The frame of the screen at that path: what is created inside stands in its main part."""
    ui.page_title(f"{SCREENS.get(path, 'No such screen')}: wordsens")
    ui.add_head_html(_head())
    ui.query("body").classes("wordsens")
    Text("a", "Skip to the content", "skip", href="#main")
    with Box("header", "topbar"):
        Text("span", "wordsens", "brand")
        with Box("nav", aria_label="Screens"):
            for address, name in SCREENS.items():
                current = {"aria_current": "page"} if address == path else {}
                Text("a", name, href=address, **current)
        with Box("button", "plain", type="button", id="theme").on("click", js_handler=_NEXT_SCHEME):
            Text("span", "Colours: ", "sr")
            for scheme, name in SCHEMES.items():  # the style sheet shows the one that is set
                Text("span", f"◐ {name}", f"scheme-{scheme or 'system'}")
    with Box("div", "screen", id="main"):
        yield


def set_address(path: str, query: dict[str, str]) -> None:
    """Put the settings into the address of the browser, so that a reload or a link restores
    them."""
    address = f"{path}?{urlencode(query)}" if query else path
    ui.run_javascript(f"history.replaceState(history.state, '', {address!r})")


class _Dressed(ui.element):
    """An element with classes and HTML attributes."""

    def dress(self, classes: str, attributes: dict[str, str]) -> None:
        self.classes(classes)
        self.props.update({name.replace("_", "-"): value for name, value in attributes.items()})


class Text(TextElement, _Dressed):
    """An HTML element that holds text; the text is never read as HTML."""

    def __init__(self, tag: str, text: str = "", classes: str = "", **attributes: str):
        super().__init__(tag=tag, text=text)
        self.dress(classes, attributes)


class Box(_Dressed):
    """An HTML element that holds others."""

    def __init__(self, tag: str = "div", classes: str = "", **attributes: str):
        super().__init__(tag)
        self.dress(classes, attributes)


class Markup(ui.html, _Dressed):
    """HTML of our own, whose texts were escaped."""

    def __init__(self, content: str = "", classes: str = "", **attributes: str):
        super().__init__(content, sanitize=False)
        self.dress(classes, attributes)


class Button(Text):
    """A button; `main` for the one that a screen is about."""

    def __init__(
        self, text: str, pressed: Callable[..., Any], *, main: bool = False, **attributes: str
    ):
        super().__init__("button", text, "go" if main else "plain", type="button", **attributes)
        self.on("click", pressed, args=[])


class Field(ui.element, component=_STATIC["control.js"]):
    """A labelled control; `value` is its value now.

    Args:
        kind: textarea, text, number, select, range, or file, whose value is its text.
        name: its id on the page.
        label: above it.
        value: at first.
        changed: called after every change.
        entered: called at Enter.
        more: further arguments of `static/control.js`, such as the options of a list, (key, text).
    """

    def __init__(
        self,
        kind: str,
        name: str,
        label: str,
        value: Any,
        changed: Callable[[], Any] | None = None,
        entered: Callable[[], Any] | None = None,
        **more: Any,
    ):
        super().__init__()
        self.value = value
        self._changed = changed
        self.props.update({"kind": kind, "name": name, "label": label, "value": value, **more})
        self.on("value", self._take)
        self._entered = entered
        if entered is not None:
            self.on("enter", entered, args=[])
        if more.get("saved"):
            self.on("restored", self._restore)

    def _restore(self, event: Any) -> Any:
        """Take up what was typed before the page was opened again."""
        self.show(event.args)
        return None if self._entered is None else self._entered()

    def _take(self, event: Any) -> Any:
        self.value = event.args
        return None if self._changed is None else self._changed()

    def show(self, value: Any) -> None:
        """Change its value."""
        self.value = value
        self.props["value"] = value
        self.update()

    def change(self, **more: Any) -> None:
        """Change arguments of `static/control.js`."""
        self.props.update(more)
        self.update()


class ColouredWords(ui.element, component=_STATIC["words.js"]):
    """The words of a text, coloured; `picked` is called with the row of a word that was chosen."""

    def __init__(self, label: str, picked: Callable[[int], Any]):
        super().__init__()
        self.props.update({"label": label, "pieces": [], "direction": "ltr"})
        self.on("pick", lambda event: picked(int(event.args)))

    def show(self, answer: dict[str, Any]) -> None:
        """Show a text as `tasks.measure` gives it."""
        self.props.update({"pieces": answer["pieces"], "direction": answer["direction"]})
        self.update()

    def point_at(self, row: int) -> None:
        """Mark the word of that row."""
        self.props["here"] = row
        self.update()


class Lines(ui.element, component=_STATIC["lines.js"]):
    """Attention as lines between words."""

    def __init__(self):
        super().__init__()
        self.set_visibility(False)
        self.props.update(
            {
                "before": {"title": "", "words": [], "weights": []},
                "words": [],
                "frames": [[]],
                "at": [],
            }
        )

    def show_push(self, lines: dict[str, Any] | None, slider: str, title: str = "Pushed") -> None:
        """Show the attention along a perturbation, as `tasks.measure.attention_lines` gives it;
        None hides it."""
        self.set_visibility(lines is not None)
        if lines is None:
            return
        words = lines["words"]
        before = {"title": "Before", "words": words, "weights": lines["frames"][0]}
        more = {name: lines[name] for name in ("words", "frames", "at")}
        self.props.update({"before": before, "title": title, "slider": slider, **more})
        self.update()

    def show_pair(
        self, titles: Sequence[str], words: Sequence[Any], weights: Sequence[Any], at: Sequence[int]
    ) -> None:
        """Show the attention of two texts."""
        self.set_visibility(True)
        before = {"title": titles[0], "words": words[0], "weights": weights[0]}
        self.props.update(
            {
                "before": before,
                "title": titles[1],
                "words": words[1],
                "frames": [weights[1]],
                "at": list(at),
            }
        )
        self.update()


def table(title: str, headings: Sequence[str], rows: Sequence[Sequence[str | float]]) -> str:
    """A table as HTML, in the look of reports."""
    return html_part(View("", (Table.of_rows(title, headings, rows, most=len(rows)),)))


def grid(title: str, words: Sequence[str], weights: Sequence[Sequence[float]]) -> str:
    """Attention weights as a table of numbers."""
    return table(
        title, ["", *words], [[word, *row] for word, row in zip(words, weights, strict=True)]
    )


COLOURS = {
    "raf": ("var(--c2)", "circle"),
    "rf": ("var(--c0)", "rect"),
    "opposite": ("var(--c1)", "circle"),
    "same": ("var(--c0)", "rect"),
}
"""The colour and the mark of each map, and of pairs of opposite and of the same meaning."""


def curve(
    name: str, colour: str, points: Sequence[Sequence[float]], *, dashed: bool = False, **more: Any
) -> dict[str, Any]:
    """A series of a chart, in the colour and with the mark of COLOURS; dashed and without marks for
    a prediction."""
    ink, mark = COLOURS[colour]
    line = {"color": ink, "width": 1.5 if dashed else 2, "type": "dashed" if dashed else "solid"}
    return {
        "type": "line",
        "name": name,
        "data": [list(point) for point in points],
        "lineStyle": line,
        "itemStyle": {"color": ink},
        "symbol": "none" if dashed else mark,
        "symbolSize": 7,
        "emphasis": {"disabled": True},
        **more,
    }


class LineChart(ui.echart):
    """A chart of curves, hidden until it has some; colours are the page's, light and dark."""

    def __init__(
        self,
        label: str,
        x: str,
        y: str,
        *,
        log: bool = False,
        x_min: float | None = None,
        y_min: int | None = None,
    ):
        super().__init__({"series": []}, renderer="svg")
        self.classes("chart")
        self.props.update({"role": "img", "aria-label": label})
        self.set_visibility(False)
        soft, rule = (
            {"color": "var(--soft)", "fontSize": 12},
            {"lineStyle": {"color": "var(--line)"}},
        )
        axis = {"type": "log", "logBase": 2} if log else {"type": "value"}
        axis |= {"axisLabel": soft, "nameTextStyle": soft, "axisLine": rule, "splitLine": rule}
        axis |= {"nameLocation": "middle"}
        self.options.update(
            {
                "animation": False,
                "grid": {"left": 56, "right": 18, "top": 48, "bottom": 48},
                "legend": {"top": 0, "left": 0, "textStyle": soft, "inactiveColor": "var(--line)"},
                "tooltip": {
                    "trigger": "axis",
                    "backgroundColor": "var(--ink)",
                    "borderWidth": 0,
                    "textStyle": {"color": "var(--paper)", "fontSize": 12},
                    "confine": True,
                },
                "xAxis": {**axis, "name": x, "nameGap": 28, "min": x_min},
                "yAxis": {**axis, "name": y, "nameGap": 40, "min": y_min},
            }
        )

    def draw(self, series: Sequence[dict[str, Any]], label: str = "") -> None:
        """Show these curves; `label` is what a screen reader says of them."""
        self.options["series"] = list(series)
        self.props.update({"aria-label": label} if label else {})
        self.set_visibility(True)
        self.update()
