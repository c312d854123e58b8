"""The parts that screens are made of: plain HTML in the report's classes, and the components of `static`."""

from collections.abc import Callable, Sequence
from typing import Any

from wordsens.errors import MissingExtraError
from wordsens.files import packaged_files

try:
    from nicegui import ui
    from nicegui.elements.mixins.text_element import TextElement
except ImportError as error:
    raise MissingExtraError("nicegui", "app", "the page") from error

_STATIC = packaged_files("app/static")


class Text(TextElement):
    """An HTML element that holds text; the text is never read as HTML."""

    def __init__(self, tag: str, text: str = "", classes: str = "", **attributes: str):
        super().__init__(tag=tag, text=text)
        self.classes(classes)
        self.props.update({name.replace("_", "-"): value for name, value in attributes.items()})


class Box(ui.element):
    """An HTML element that holds others."""

    def __init__(self, tag: str = "div", classes: str = "", **attributes: str):
        super().__init__(tag)
        self.classes(classes)
        self.props.update({name.replace("_", "-"): value for name, value in attributes.items()})


class Button(Text):
    """A button; `main` for the one that a screen is about."""

    def __init__(self, text: str, pressed: Callable[..., Any], *, main: bool = False, **attributes: str):
        super().__init__("button", text, "go" if main else "plain", type="button", **attributes)
        self.on("click", pressed, args=[])


class Control(ui.element, component=_STATIC["control.js"]):
    """A labelled control; `value` is what it says now.

    Args:
        kind: textarea, text, select or range.
        name: its id on the page.
        label: above it.
        value: at first.
        changed: called with the new value.
        options: of a list, (key, text); the other arguments are those of `static/control.js`.
    """

    def __init__(
        self, kind: str, name: str, label: str, value: Any, changed: Callable[[Any], Any] | None = None, **more: Any
    ):
        super().__init__()
        self.value = value
        self._changed = changed
        self.props.update({"kind": kind, "name": name, "label": label, "value": value, **more})
        self.on("value", self._told)

    def _told(self, event: Any) -> Any:
        self.value = event.args
        return None if self._changed is None else self._changed(self.value)

    def show(self, value: Any) -> None:
        """Change what it says."""
        self.value = value
        self.props["value"] = value
        self.update()

    def offer(self, options: Sequence[tuple[str, str]]) -> None:
        """Change the options of a list."""
        self.props["options"] = [list(one) for one in options]
        self.update()


class _Shown(ui.element):
    """A component with one value that is shown."""

    shown = ""

    def show(self, value: Any) -> None:
        """Show another value."""
        self.props[self.shown] = value
        self.update()


class Words(_Shown, component=_STATIC["text_words.js"]):
    """The words of a text, coloured; `picked` is called with the row of a word that was chosen."""

    shown = "text"

    def __init__(self, text: dict[str, Any], picked: Callable[[int], Any], label: str):
        super().__init__()
        self.props.update({"text": text, "label": label})
        self.on("pick", lambda event: picked(int(event.args)))

    def point_at(self, row: int) -> None:
        """Choose the word of that row."""
        self.props["here"] = row
        self.update()


class Figure(_Shown, component=_STATIC["figure.js"]):
    """A figure as `tasks.drawing` gives it."""

    shown = "figure"

    def __init__(self, figure: dict[str, Any]):
        super().__init__()
        self.props["figure"] = figure


class Matrices(_Shown, component=_STATIC["matrices.js"]):
    """Matrices as `report.attention` has them."""

    shown = "matrices"

    def __init__(self, matrices: Sequence[dict[str, Any]] = ()):
        super().__init__()
        self.props["matrices"] = list(matrices)


class Table(_Shown, component=_STATIC["table.js"]):
    """A table."""

    shown = "rows"

    def __init__(self, label: str, headings: Sequence[str], rows: Sequence[Sequence[Any]]):
        super().__init__()
        self.props.update({"label": label, "headings": list(headings), "rows": [list(row) for row in rows]})


class Theme(ui.element, component=_STATIC["theme.js"]):
    """The button that changes the colours."""
