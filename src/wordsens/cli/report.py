"""`wordsens report`: it reads the folders, writes the file and prints where it is."""

import webbrowser
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from wordsens.cli.options import AsJson, Quiet, Show, option, takes
from wordsens.cli.terminal import notice, print_json, stdout
from wordsens.display.view import Finding, View
from wordsens.errors import InputError, require_choice, require_extra
from wordsens.report import FORMATS
from wordsens.version import __version__


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The options of `wordsens report`."""

    folders: Annotated[
        list[str],
        typer.Argument(
            metavar="DIR...",
            help="The --out of measure, paper or sweep; several side by side.",
        ),
    ]
    form: Annotated[
        str | None,
        option(
            "html: one page that needs no network; md: findings and tables. Default: as --out "
            "ends, else html.",
            "--format",
        ),
    ] = None
    out: Annotated[
        str | None,
        option("The file to write; default: report.html in DIR, or here for several DIRs."),
    ] = None
    show: Show = False
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        if self.form is not None:
            require_choice("format", self.form, FORMATS)
            if self.out is not None and not self.out.endswith(f".{self.form}"):
                raise InputError(
                    f"`out` (={self.out!r}) must end with .{self.form}, which --format asks for"
                )


@takes(ReportOptions)
def report(options: ReportOptions) -> None:
    """One page of findings, figures, texts and tables, and how the numbers were made.

    It reads the records of earlier runs and measures nothing. The page needs no network, and no
    server.

    Example: wordsens report results --open
    """
    require_extra(
        "report", "a report", "jinja2", "matplotlib", "pydantic", "pyarrow", "pandas", "yaml"
    )
    from wordsens.report.load import load_runs, readable
    from wordsens.report.write import heading, report_view, require_form, write_view

    runs = load_runs(options.folders)
    folder = Path(options.folders[0]) if len(options.folders) == 1 else Path()
    path = (
        Path(options.out)
        if options.out is not None
        else folder / f"report.{options.form or FORMATS[0]}"
    )
    form = require_form(path)
    if not options.quiet:
        for run in runs:
            for file in run.unread:
                notice(f"passed over: {run.name}: {file}")
    view = report_view(runs, pictures=form == "html")
    write_view(view, path, heading(runs))
    findings = [
        (part.headline, finding)
        for part in view.parts
        if isinstance(part, View)
        for finding in part.parts
        if isinstance(finding, Finding)
    ]
    if options.as_json:
        document = {
            "command": "report",
            "version": __version__,
            "file": readable(path),
            "bytes": path.stat().st_size,
            "runs": [
                {
                    "name": run.name,
                    "folder": readable(run.folder),
                    "records": len(run.records),
                    "failed": len(run.failed),
                    "passed_over": list(run.unread),
                }
                for run in runs
            ],
            "findings": [{"of": name, **asdict(finding)} for name, finding in findings],
        }
        print_json(document)
    else:
        for _, finding in findings:
            stdout().print(finding.sentence)
        stdout().print(f"report  {readable(path)}", soft_wrap=True)
    if options.show:
        webbrowser.open(path.absolute().as_uri())
