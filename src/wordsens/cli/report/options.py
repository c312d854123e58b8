"""The options of `wordsens report`, each declared here and nowhere else."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from wordsens.cli.options import AsJson, Quiet
from wordsens.errors import InputError, require_choice
from wordsens.report import FORMATS


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
