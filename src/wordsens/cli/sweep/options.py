"""The options of the commands of `wordsens sweep`, each declared once."""

from dataclasses import dataclass
from typing import Annotated

import typer

from wordsens.cli.executor_options import PlaceOptions, Witnesses
from wordsens.cli.options import AsJson, CellDevice

Spec = Annotated[
    str,
    typer.Argument(
        metavar="SPEC",
        help="A YAML file, a preset or example by its name (see `show`), or the folder of a run.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Argument(metavar="[KEY=VALUE]...", help="On top of the spec: n=[10,20] text.layer=2.", show_default=False),
]
Axis = Annotated[str, typer.Option(help="The column along which: n, temperature, width, ...", show_default=False)]
Column = Annotated[str, typer.Option(help="The column that is averaged: value, upper, evaluations, ...")]
By = Annotated[
    str | None,
    typer.Option(
        help="Columns that tell series apart, commas between: map,text; default: every key that varies otherwise.",
        show_default=False,
    ),
]
Out = Annotated[str | None, typer.Option(help="The sweep's folder; default: the sweep's name.", show_default=False)]


@dataclass(frozen=True, kw_only=True)
class ResumeOptions(PlaceOptions):
    """The options of `wordsens sweep resume`."""

    spec: Spec
    out: Out = None
    witnesses: Witnesses = False
    device: CellDevice = None

    def run(self, overrides: list[str] | None, *, resume: bool) -> None:
        """Run the sweep."""
        from wordsens.cli.running import RunRequest
        from wordsens.cli.sweep.run import run_sweep

        request = RunRequest(executor=self, witnesses=self.witnesses, quiet=self.quiet)
        run_sweep(self.spec, overrides or (), self.out, self.device, request, as_json=self.as_json, resume=resume)


@dataclass(frozen=True, kw_only=True)
class RunOptions(ResumeOptions):
    """The options of `wordsens sweep run`."""

    overrides: Overrides = None


@dataclass(frozen=True, kw_only=True)
class AxisOptions:
    """The options of commands that follow a sweep along one of its axes."""

    spec: Spec
    x: Axis
    overrides: Overrides = None
    y: Column = "value"
    by: By = None
    out: Out = None


@dataclass(frozen=True, kw_only=True)
class PlotOptions(AxisOptions):
    """The options of `wordsens sweep plot`."""

    file: Annotated[
        str | None,
        typer.Option(help="What to write: .pdf, .png or .svg; default: in the sweep's folder.", show_default=False),
    ] = None
    linear: Annotated[bool, typer.Option("--linear", help="Plain axes in place of logarithmic ones.")] = False


@dataclass(frozen=True, kw_only=True)
class FitOptions(AxisOptions):
    """The options of `wordsens sweep fit`."""

    as_json: AsJson = False
