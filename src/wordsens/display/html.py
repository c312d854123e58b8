"""A view as HTML: one template and one style sheet for reports, pages of commands, the web page and
notebooks."""

import base64
import hashlib
import re
from functools import cache
from typing import Any

from wordsens.display.numbers import minus
from wordsens.display.view import LEVELS, STRONGEST, View, level
from wordsens.files import packaged_text


def html_page(view: View, *, title: str, heading: str, version: str) -> str:
    """A whole page that asks nothing of anyone: text is escaped wherever it stands, the one style
    is named by its hash in the page's policy, and nothing runs."""
    style = packaged_text("display/style.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    return _render(
        view, style, inline=False, title=title, heading=heading, policy=policy, version=version
    )


def html_part(view: View) -> str:
    """One element for a page that has the style sheet in its head."""
    return _render(view, "", inline=False)


def html_fragment(view: View) -> str:
    """One element for a notebook, whose words keep their colours where style sheets are dropped.

    It has the first part of the style sheet: fifty results are fifty copies.
    """
    style = packaged_text("display/style.css").partition("/* A notebook")[0]
    return _render(view, style, inline=True)


def _render(view: View, style: str, *, inline: bool, title: str = "", **names: Any) -> str:
    page = _environment().get_template("page.html.jinja")
    text = page.render(view=view, style=style, inline=inline, title=title, **names)
    return re.sub(r"\n\s*\n+", "\n", text).strip() + "\n"


@cache
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(lambda name: packaged_text(f"display/{name}")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["minus"] = minus
    environment.globals |= {"shade": _shade, "levels": range(LEVELS)}
    return environment


def _shade(
    value: float | None, *, inline: bool, most: float = STRONGEST, falls: bool = False
) -> Any:
    """The attribute that colours an element by a number: a class of the style sheet, or its light
    colour where a viewer drops style sheets."""
    from markupsafe import Markup

    depth = level(value or 0.0, most)
    name = f"{'f' if falls or (value or 0.0) < 0 else 's'}{depth}"
    if not inline:
        return Markup(f'class="w {name}"')
    colour = _light_shades().get(name, "#fff")
    return Markup(f'style="background:{colour};color:{"#fff" if depth > 5 else "#111"}"')


@cache
def _light_shades() -> dict[str, str]:
    """The style sheet's light colours by class."""
    css = packaged_text("display/style.css")
    return dict(re.findall(r"\.([sf]\d) \{ background: light-dark\((#\w+),", css))
