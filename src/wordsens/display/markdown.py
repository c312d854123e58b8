"""A view as Markdown, without figures and coloured words."""

import re
from collections.abc import Iterator
from typing import Any

from wordsens.display.view import Code, Finding, Table, View


def markdown(view: View, *, heading: str = "") -> str:
    """The sentences and tables; whatever stands in them is escaped."""
    lines = [f"# {escaped(heading)}", ""] if heading else []
    lines += [f"- {escaped(failure)}" for failure in view.failures] + [""] * bool(view.failures)
    lines += [escaped(view.headline), *_parts(view, 2)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"


def _parts(view: View, depth: int) -> Iterator[str]:
    if view.passed:
        yield f"\n{escaped(view.passed)}"
    for part in view.parts:
        yield from _part(part, depth)
    yield from (f"\nNote: {escaped(note)}" for note in view.notes)


def _part(part: Any, depth: int) -> Iterator[str]:
    if isinstance(part, str):
        yield f"\n{escaped(part)}"
    elif isinstance(part, Finding):
        yield f"\n- **{escaped(part.sentence)}** {escaped(part.known)}".rstrip()
    elif isinstance(part, View):
        if inside := list(_parts(part, depth + 1)):
            yield from (f"\n{'#' * depth} {escaped(part.headline)}", *inside)
    elif isinstance(part, Code):
        indented = "\n".join(f"    {line}" for line in part.text.splitlines())
        yield f"\n{escaped(part.title)}:\n\n{indented}"
    elif isinstance(part, Table) and len(part):
        yield f"\n{'#' * depth} {escaped(part.title)}\n" if part.title else ""
        columns = part.texts()
        yield _row(map(part.heading, columns))
        yield _row(("---:" if name in part.numeric else "---") for name in columns)
        yield from (_row(row) for row in zip(*columns.values(), strict=True))
        if part.note:
            yield f"\n{escaped(part.note)}"


def _row(cells: Any) -> str:
    return f"| {' | '.join(map(escaped, cells))} |"


def escaped(text: str) -> str:
    """The text on one line, with no character that Markdown or HTML would read as its own.

    >>> escaped("a_b <c> | d")
    'a\\\\_b \\\\<c\\\\> \\\\| d'
    """
    return re.sub(r"([\\|<>*_`\[\]#&])", r"\\\1", " ".join(text.split()))
