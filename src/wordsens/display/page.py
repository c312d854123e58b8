"""A Display as HTML and as Markdown: one template and one style sheet for reports, pages of
commands and notebooks."""

import base64
import hashlib
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from wordsens.display.content import SURETIES, Code, Display, Findings, Section, Table, minus, plain
from wordsens.files import packaged_text


def html_page(display: Display, *, title: str, heading: str, version: str) -> str:
    """A whole page that asks nothing of anyone: text is escaped wherever it stands, the one style
    is named by its hash in the page's policy, and nothing runs."""
    style = packaged_text("display/style.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    names = {"title": title, "heading": heading, "policy": policy, "version": version}
    return _render(display, style, inline=False, **names)


def html_part(display: Display) -> str:
    """One element for a page that has the style sheet in its head."""
    return _render(display, "", inline=False)


def html_fragment(display: Display) -> str:
    """One element for a notebook, whose words keep their colours where style sheets are dropped."""
    return _render(display, _notebook_style(), inline=True)


def _render(display: Display, style: str, *, inline: bool, title: str = "", **names: Any) -> str:
    page = _environment().get_template("page.html.jinja")
    text = page.render(
        display=display,
        style=style,
        inline=inline,
        fold=not inline,
        title=title,
        sureties=SURETIES,
        **names,
    )
    return re.sub(r"\n\s*\n+", "\n", text).strip() + "\n"


@cache
def _notebook_style() -> str:
    """What a notebook needs of the style sheet, short: fifty results are fifty copies."""
    css = packaged_text("display/style.css").partition("/* page */")[0]
    return re.sub(
        r"\s+",
        " ",
        re.sub(
            r"/\*.*?\*/|--c\d: [^;]*;|\n  \.([fs]\d|w|decides|interval|bar|rise)\b[^\n]*",
            "",
            css,
            flags=re.DOTALL,
        ),
    )


@cache
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    made = Environment(
        loader=FunctionLoader(lambda name: packaged_text(f"display/{name}")),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "plain": plain,
        "raised": raised,
        "minus": minus,
        "base64": lambda text: base64.b64encode(text.encode()).decode(),
        "inline_style": _inline_style,
    }
    return made


def raised(text: str) -> Any:
    """The text, escaped, with its exponents raised.

    >>> print(raised("n^−0.5 < 1"))
    n<sup>−0.5</sup> &lt; 1
    """
    from markupsafe import Markup, escape

    return Markup(re.sub(r"\^([\d.\N{MINUS SIGN}]*\d)", r"<sup>\1</sup>", str(escape(minus(text)))))


@cache
def _light_shades() -> dict[str, str]:
    """The style sheet's light colours by class, written into each word where a notebook's viewer
    drops style sheets."""
    css = packaged_text("display/style.css")
    return dict(re.findall(r"\.([sf]\d) \{ background: light-dark\((#\w+),", css))


def _inline_style(shade: tuple[int, bool]) -> str:
    at, falls = shade
    if at == 0:
        return "background:#fff"
    colour = _light_shades()[f"{'f' if falls else 's'}{at}"]
    return f"background:{colour};color:{'#fff' if at > 5 else '#111'}"


def markdown(display: Display, *, heading: str = "") -> str:
    """The sentences and tables, without figures and words. Whatever stands in them is escaped."""
    lines = [f"# {escaped(heading)}", ""] if heading else []
    lines += [f"- {escaped(one)}" for one in display.failures] + [""] * bool(display.failures)
    lines += [escaped(sentence) for sentence in display.answer]
    for part in display.parts:
        lines += _markdown(part, 2)
    lines += ["", *(f"Note: {escaped(note)}" for note in display.notes)] if display.notes else []
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _markdown(part: Any, depth: int) -> Iterator[str]:
    if isinstance(part, str):
        yield f"\n{escaped(part)}"
    elif isinstance(part, Section):
        inside = [line for one in part.parts for line in _markdown(one, depth + 1)]
        if inside:
            yield f"\n{'#' * depth} {escaped(part.title)}"
            yield from inside
    elif isinstance(part, Findings):
        yield ""
        yield from (
            f"- **{escaped(one.sentence)}** {escaped(one.known)}".rstrip() for one in part.findings
        )
    elif isinstance(part, Code):
        indented = "\n".join(f"    {line}" for line in part.text.splitlines())
        yield f"\n{escaped(part.title)}:\n\n{indented}"
    elif isinstance(part, Table) and part.rows:
        yield f"\n{'#' * depth} {escaped(part.title)}\n" if part.title else ""
        if not part.headings:
            yield from (f"- {': '.join(escaped(plain(one)) for one in row)}" for row in part.rows)
            return
        yield f"| {' | '.join(map(escaped, part.headings))} |"
        places = range(len(part.headings))
        yield f"| {' | '.join('---:' if part.is_number(at) else '---' for at in places)} |"
        yield from (f"| {' | '.join(escaped(plain(one)) for one in row)} |" for row in part.rows)
        if part.note:
            yield f"\n{escaped(part.note)}"


def escaped(text: str) -> str:
    """The text on one line, with no character that Markdown or HTML would read as its own."""
    return re.sub(r"([\\|<>*_`\[\]#&])", r"\\\1", " ".join(text.split()))
