"""`wordsens report`: it reads the folders, writes the file and prints where it is."""

import webbrowser
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from wordsens.cli.command import Answer, CommandRun, Show, command, option
from wordsens.display.view import Finding, View
from wordsens.errors import InputError, require_choice, require_extra
from wordsens.report import FORMATS


@command("report")
def report(
    folders: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...",
            help="Folder that was given as --out to measure, paper or sweep; several folders make "
            "one report.",
        ),
    ],
    *,
    form: Annotated[
        str | None,
        option(
            "html: one page that needs no network; md: findings and tables. Default: by the "
            "ending of --out, else html.",
            "--format",
            rule=partial(require_choice, choices=FORMATS),
        ),
    ] = None,
    out: Annotated[
        str | None,
        option(
            "The file to write; default: report.html in DIR, or in the current folder for several "
            "DIRs."
        ),
    ] = None,
    show: Show = False,
    run: CommandRun,
) -> Answer:
    """Write one page with findings, figures, texts and tables, and how the numbers were measured.

    It reads the records of earlier runs and measures nothing. The page needs neither a network nor
    a server.

    Example: wordsens report results --open
    """
    if form is not None and out is not None and not out.endswith(f".{form}"):
        raise InputError(f"--out (={out!r}) must end with .{form}, which --format asks for")
    require_extra(
        "report", "a report", "jinja2", "matplotlib", "pydantic", "pyarrow", "pandas", "yaml"
    )
    from wordsens.report.load import load_runs, readable
    from wordsens.report.write import heading, report_view, require_form, write_view

    runs = load_runs(folders)
    folder = Path(folders[0]) if len(folders) == 1 else Path()
    path = folder / f"report.{form or FORMATS[0]}" if out is None else Path(out)
    pictures = require_form(path) == "html"
    for each in runs:
        for file in each.unread:
            run.notice(f"passed over: {each.name}: {file}")
    view = report_view(runs, pictures=pictures)
    write_view(view, path, heading(runs))
    findings = [
        (part.headline, finding)
        for part in view.parts
        if isinstance(part, View)
        for finding in part.parts
        if isinstance(finding, Finding)
    ]
    document = {
        "file": readable(path),
        "bytes": path.stat().st_size,
        "runs": [
            {
                "name": each.name,
                "folder": readable(each.folder),
                "records": len(each.records),
                "failed": len(each.failed),
                "passed_over": list(each.unread),
            }
            for each in runs
        ],
        "findings": [{"of": name, **asdict(finding)} for name, finding in findings],
    }
    if show:
        webbrowser.open(path.absolute().as_uri())
    sentences = View("", tuple(finding.sentence for _, finding in findings))
    return Answer(document=document, view=sentences, lines=[f"report  {readable(path)}"])
