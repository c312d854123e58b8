"""The parts of every screen: the frame, plain HTML elements, controls, tables and charts in the
look of reports."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import urlencode

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

from wordsens.files import packaged_files, packaged_text

_STATIC = packaged_files("app/static")

SCREENS = {"/": "Two texts", "/why": "Why", "/paper": "The paper"}

# Colours of the page, as the button names them.
SCHEMES = {"": "system", "dark": "dark", "light": "light"}

_SCHEME = "document.documentElement.dataset.theme = localStorage.wordsensTheme ?? ''"
_NEXT_SCHEME = f"""() => {{
  const schemes = ["", "dark", "light"];
  localStorage.wordsensTheme = schemes[(schemes.indexOf(localStorage.wordsensTheme ?? "") + 1) % 3];
  {_SCHEME};
}}"""


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
    """The frame of the screen at that path: what is created inside is in its main part."""
    ui.page_title(f"{SCREENS.get(path, 'No such screen')}: wordsens")
    ui.add_head_html(_head())
    ui.query("body").classes("wordsens")
    Tag("a", "Skip to the content", "skip", href="#main")
    with Tag("header", classes="topbar"):
        Tag("span", "wordsens", "brand")
        with Tag("nav", aria_label="Screens"):
            for address, name in SCREENS.items():
                current = {"aria_current": "page"} if address == path else {}
                Tag("a", name, href=address, **current)
        theme = Tag("button", classes="plain", type="button", id="theme")
        with theme.on("click", js_handler=_NEXT_SCHEME):
            Tag("span", "Colours: ", "sr")
            for scheme, name in SCHEMES.items():  # the style sheet shows the one that is set
                Tag("span", f"◐ {name}", f"scheme-{scheme or 'system'}")
    with Tag("div", classes="screen", id="main"):
        yield


def set_address(path: str, query: dict[str, str]) -> None:
    """Put the settings into the address of the browser, so that a reload or a link restores
    them."""
    address = f"{path}?{urlencode(query)}" if query else path
    ui.run_javascript(f"history.replaceState(history.state, '', {address!r})")


class Tag(TextElement):
    """An HTML element with its classes and attributes, which holds text or others; the text is
    never read as HTML."""

    def __init__(self, tag: str, text: str = "", classes: str = "", **attributes: str):
        super().__init__(tag=tag, text=text)
        self.classes(classes)
        self.props.update({name.replace("_", "-"): value for name, value in attributes.items()})


def markup(classes: str = "") -> ui.html:
    """A place for parts of a report, whose texts are escaped."""
    return ui.html("", sanitize=False).classes(classes)


class Fold(Tag):
    """Details under a summary."""

    def __init__(self, summary: str):
        super().__init__("details", classes="more")
        with self:
            Tag("summary", summary)


def button(text: str, pressed: Callable[..., Any], *, main: bool = False, **attributes: str) -> Tag:
    """A button; `main` for the one that a screen is about."""
    tag = Tag("button", text, "go" if main else "plain", type="button", **attributes)
    return tag.on("click", pressed, args=[])


class Stale(Tag):
    """A note on a result that does not belong to the settings; it greys the result's box."""

    def __init__(self, box: ui.element):
        super().__init__("p", "", "stale-note", role="status")
        self._box = box

    def say(self, reason: str) -> None:
        """Grey the result for that reason; "" for none."""
        self.text = reason
        self._box.classes(add="stale") if reason else self._box.classes(remove="stale")


class Field(ui.element, component=_STATIC["control.js"]):
    """A labelled control; `value` is its value now.

    Args:
        kind: textarea, text, number, select, range, or file, whose value is its text.
        name: its id on the page.
        label: above it.
        value: at first.
        changed: called after every change.
        entered: called at Enter, and where a control that is `saved` has what was typed before the
            page was opened again.
        more: further arguments, as for `change`.
    """

    def __init__(
        self,
        kind: str,
        name: str,
        label: str,
        value: Any,
        changed: Callable[[], Any] = lambda: None,
        entered: Callable[[], Any] = lambda: None,
        **more: Any,
    ):
        super().__init__()
        self.value, self._changed = value, changed
        self.props.update({"kind": kind, "name": name, "label": label, "value": value, "turn": 0})
        self.on("value", self._take)
        self.on("enter", entered, args=[])
        self.change(**more)

    def _take(self, event: Any) -> Any:
        self.value = event.args
        return self._changed()

    def show(self, value: Any) -> None:
        """Change its value."""
        self.value = value
        self.change(value=value, turn=self.props["turn"] + 1)

    def change(self, *, options: Mapping[str, str] | None = None, **more: Any) -> None:
        """Change arguments of `static/control.js`; of a list its options, values with their names,
        of which the first is chosen where the value is none."""
        if options is not None:
            more["options"] = list(options.items())
            if self.value not in options:
                self.show(next(iter(options)))
        self.props.update(more)
        self.update()


class ColouredWords(ui.element, component=_STATIC["words.js"]):
    """The words of a text, coloured, under a title; `picked` is called with the row of a word that
    was chosen."""

    def __init__(self, picked: Callable[[int], Any]):
        super().__init__()
        self.show(title="", pieces=[])
        self.on("pick", lambda event: picked(int(event.args)))

    def show(self, **arguments: Any) -> None:
        """Change arguments of `static/words.js`."""
        self.props.update(arguments)
        self.update()


class Lines(ui.element, component=_STATIC["lines.js"]):
    """Attention as lines between words under a sentence, hidden until there is some."""

    def __init__(self):
        super().__init__()
        empty = {"title": "", "words": [], "weights": []}
        self.props.update({"before": empty, "words": [], "frames": [[]], "at": []})
        self.show(None)

    def show(self, lines: dict[str, Any] | None) -> None:
        """Show attention as the tasks give it; None hides it."""
        self.set_visibility(lines is not None)
        self.props.update(lines or {})
        self.update()


# The colour and the mark of each map, and of opposites and near-duplicates, as in figures.
COLOURS = {
    "raf": ("var(--c2)", "triangle"),
    "rf": ("var(--c0)", "circle"),
    "opposite": ("var(--c1)", "rect"),
    "same": ("var(--c0)", "circle"),
}


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
        "symbol": mark,
        "symbolSize": 7,
        "showSymbol": not dashed,
        "emphasis": {"disabled": True},
        **more,
    }


class LineChart(ui.echart):
    """A chart of curves, hidden until it has some; colours are the page's, light and dark.

    Args:
        label: what a screen reader says of it.
        x, y: arguments of the axes, such as their names.
    """

    def __init__(self, label: str, x: dict[str, Any], y: dict[str, Any]):
        super().__init__({"series": []}, renderer="svg")
        self.classes("chart")
        self.props.update({"role": "img", "aria-label": label})
        self.set_visibility(False)
        soft = {"color": "var(--soft)", "fontSize": 12}
        rule = {"lineStyle": {"color": "var(--line)"}}
        axis = {
            "axisLabel": soft,
            "nameTextStyle": soft,
            "nameLocation": "middle",
            "axisLine": rule,
            "splitLine": rule,
        }
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
                "xAxis": {**axis, "type": "value", "nameGap": 28, **x},
                "yAxis": {**axis, "type": "value", "nameGap": 40, **y},
            }
        )

    def draw(self, series: Sequence[dict[str, Any]]) -> None:
        """Show these curves."""
        self.options["series"] = list(series)
        self.set_visibility(True)
        self.update()
