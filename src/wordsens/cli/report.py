"""`wordsens report`: its options and its work. It reads the folders, writes the file and prints where it is."""

import webbrowser
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from wordsens.cli.options import AsJson, Quiet
from wordsens.cli.terminal import notice, print_json, stdout
from wordsens.errors import InputError, require_choice
from wordsens.report import FORMATS
from wordsens.version import __version__


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """The options of `wordsens report`."""

    folders: Annotated[
        list[str],
        typer.Argument(metavar="DIR...", help="The --out of measure, paper, audit or sweep; several side by side."),
    ]
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="html: one page that needs no network; md: findings and tables. Default: as --out ends, else html.",
            show_default=False,
        ),
    ] = None
    out: Annotated[
        str | None,
        typer.Option(
            help="The file to write; default: report.html in DIR, or here for several DIRs.", show_default=False
        ),
    ] = None
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False
    as_json: AsJson = False
    quiet: Quiet = False

    def __post_init__(self) -> None:
        if self.form is not None:
            require_choice("format", self.form, FORMATS)
            if self.out is not None and not self.out.endswith(f".{self.form}"):
                raise InputError(f"`out` (={self.out!r}) must end with .{self.form}, which --format asks for")

    @property
    def path(self) -> Path:
        """The file to write."""
        if self.out is not None:
            return Path(self.out)
        folder = Path(self.folders[0]) if len(self.folders) == 1 else Path()
        return folder / f"report.{self.form or FORMATS[0]}"


def run_report(options: ReportOptions) -> None:
    """Write the report, and print its findings and its path."""
    from wordsens.report.findings import run_findings
    from wordsens.report.load import load_runs, readable
    from wordsens.report.write import heading, report_display, require_form, write_display

    runs = load_runs(options.folders)
    path = options.path
    form = require_form(path)
    if not options.quiet:
        for line in (f"{run.name}: {file}" for run in runs for file in run.unread):
            notice(f"passed over: {line}")
    write_display(report_display(runs, pictures=form == "html"), path, heading(runs))
    findings = {run.name: run_findings(run) for run in runs}
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
            "findings": [{"of": name, **asdict(one)} for name, listed in findings.items() for one in listed],
        }
        print_json(document)
    else:
        for listed in findings.values():
            for finding in listed:
                stdout().print(finding.sentence, markup=False)
        stdout().print(f"report  {readable(path)}", markup=False, soft_wrap=True)
    if options.show:
        webbrowser.open(path.absolute().as_uri())
