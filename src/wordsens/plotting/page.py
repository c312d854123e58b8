"""Figures as SVG that a page can colour."""

import io
import re
from dataclasses import replace
from xml.etree import ElementTree

from matplotlib.figure import Figure

from wordsens.display.view import Picture, View
from wordsens.plotting.style import COLUMN_INCHES, STYLES

_SVG, _XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"

# Colours of figures, and the variables of a page that stand for them: a dark page has its own.
_PAGE_COLOURS = {
    **{colour.lower(): f"var(--c{number})" for number, (colour, _) in enumerate(STYLES)},
    "#222222": "var(--ink)",
    "#444444": "var(--soft)",
    "#333333": "var(--soft)",
    "#777777": "var(--soft)",
    "#999999": "var(--soft)",
    "#e3e3e3": "var(--line)",
    "#ffffff": "var(--paper)",
}

_FONT = re.compile(r"(?:(bold|[1-9]00) )?([\d.]+)px ")


def svg(figure: Figure, *, prefix: str = "figure") -> str:
    """The figure as `savefig` writes it as SVG, for embedding in a page: text as text, colours by
    the page's CSS variables, a title on every mark, ids that begin with `prefix`, and no style
    attributes, which a strict policy forbids."""
    file = io.StringIO()
    figure.savefig(
        file, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
    )
    drawing = re.sub(r"<style.*?</style>", "", file.getvalue(), flags=re.DOTALL)
    root = ElementTree.fromstring(drawing)
    for gid, titles in getattr(figure, "titles", {}).items():
        marks = root.findall(f".//*[@id='{gid}']//{{{_SVG}}}use")
        for mark, title in zip(marks, titles, strict=False):
            ElementTree.SubElement(mark, f"{{{_SVG}}}title").text = title
    for element in root.iter():
        element.attrib |= _presentation(element.attrib.pop("style", ""))
        for name, value in element.attrib.items():
            value = _PAGE_COLOURS.get(value.lower(), value)
            value = f"{prefix}-{value}" if name == "id" else value
            element.set(name, re.sub(r"^(url\(#|#(?=\D))", rf"\g<1>{prefix}-", value))
    kind = "column" if figure.get_figwidth() <= COLUMN_INCHES * 1.3 else "page"
    root.attrib = {"class": f"plot {kind}", "viewBox": root.attrib["viewBox"]}
    ElementTree.register_namespace("", _SVG)
    ElementTree.register_namespace("xlink", _XLINK)
    return ElementTree.tostring(root, encoding="unicode")


def _presentation(css: str) -> dict[str, str]:
    """Declarations as attributes; the page has the font's family."""
    declared = dict(part.split(": ", 1) for part in css.split("; ") if part)
    font = _FONT.match(declared.pop("font", ""))
    if font is not None:
        declared |= {"font-size": font[2]} | ({"font-weight": font[1]} if font[1] else {})
    for name in ("font-family", "font-variant", "-webkit-transform"):
        declared.pop(name, None)
    return declared


def picture(figure: Figure, *, prefix: str = "figure") -> Picture:
    """The figure for a page, which shows its title and caption."""
    title = figure.get_suptitle().replace(r"\$", "$")
    figure.suptitle("")
    return Picture(title, svg(figure, prefix=prefix), getattr(figure, "caption", ""))


def with_picture(view: View, figure: Figure) -> View:
    """The view with a figure before its tables."""
    return replace(view, parts=(picture(figure), *view.parts))
