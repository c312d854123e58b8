"""The findings and tables of a report in Markdown: for a pull request, a wiki, a mail."""

import re
from collections.abc import Iterator

from wordsens.report.page import Content
from wordsens.report.tables import Table


def markdown(content: Content) -> str:
    """The report without figures and texts. Whatever stands in the records is escaped."""
    return "\n".join(_lines(content)) + "\n"


def _lines(content: Content) -> Iterator[str]:
    yield "# How far can one word move a model?"
    yield f"\n{_plain(content.lead)}"
    for name, findings in content.found:
        if len(content.found) > 1:
            yield f"\n## {_plain(name)}"
        yield ""
        for finding in findings:
            yield f"- **{_plain(finding.sentence)}** {_plain(finding.known)}".rstrip()
    for table in content.tables:
        yield f"\n## {_plain(table.title)}\n"
        yield from _table(table)
        if table.note:
            yield f"\n{_plain(table.note)}"
    yield "\n## How these numbers were made"
    for origin in content.origins:
        yield f"\n### {_plain(origin.name)}\n"
        for told, command in origin.commands:
            yield f"{_plain(told)}:\n\n{_indented(command)}\n"
        yield from (f"- {name}: {_plain(value)}" for name, value in origin.facts)
        yield from (f"- passed over: {_plain(line)}" for line in origin.unread)


def _table(table: Table) -> Iterator[str]:
    sides = ["---:" if table.is_number(column) else "---" for column in range(len(table.headings))]
    for row in (map(_plain, table.headings), sides):
        yield f"| {' | '.join(row)} |"
    for row in table.rows:
        yield f"| {' | '.join(_plain(cell.text) for cell in row)} |"


def _plain(text: str) -> str:
    """The text on one line, with no character that Markdown or HTML would read as its own."""
    return re.sub(r"([\\|<>*_`\[\]#&])", r"\\\1", " ".join(text.split()))


def _indented(command: str) -> str:
    return "\n".join(f"    {line}" for line in command.splitlines())
