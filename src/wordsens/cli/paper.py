"""`wordsens paper`: the paper's experiments, as records, figures and a table of exponents."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wordsens import __version__
from wordsens.cli.options import AsJson, Device, EncoderName, Quiet, Seed
from wordsens.cli.terminal import notice, reporting
from wordsens.errors import WordsensError, require_choice

if TYPE_CHECKING:
    from wordsens.experiments.record import SensitivityRecord
    from wordsens.experiments.spec import SensitivityCell
    from wordsens.experiments.store import RecordStore

SCALE_NAMES = ("quick", "laptop", "full")

paper = typer.Typer(help="The paper's experiments: records, figures, exponents.", no_args_is_help=False)


@paper.callback()
def _paper() -> None:
    """The paper's experiments: records, figures, exponents."""


@paper.command()
def sensitivity(
    scale: Annotated[
        str,
        typer.Option(help="quick: about 3 minutes on two cores; laptop: hours at most; full: the paper's sizes."),
    ] = "quick",
    data: Annotated[
        str | None,
        typer.Option(
            help="Real texts: a file, table, folder, or 'imdb' of the hub; default: the shipped reviews.",
            show_default=False,
        ),
    ] = None,
    out: Annotated[str, typer.Option(help="The folder for records and figures.")] = "paper-sensitivity",
    encoder: EncoderName = "minilm",
    seed: Seed = 0,
    device: Device = "cpu",
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """S against the number of words n, for random, deep random and attention features, on real and Gaussian texts.

    Each finished cell is one Parquet file in OUT/records. The same command resumes an interrupted run.
    """
    require_choice("scale", scale, SCALE_NAMES)

    from wordsens.experiments.presets import paper_sensitivity
    from wordsens.experiments.store import RecordStore, write_aside
    from wordsens.text.encoders import require_device

    require_device(device)
    folder = Path(out)
    store = RecordStore(folder / "records", on_set_aside=lambda found: notice(f"set aside: {found}"))
    preset = paper_sensitivity(scale, data=data, encoder=encoder, seed=seed)
    if not quiet:
        for line in preset.notices:
            notice(line)
    cells = preset.sweep.cells()
    preset.sweep.save(folder / "sweep.yaml")
    _run(cells, store, device=device, quiet=quiet, folder=folder)
    records = store.read([cell.content_hash() for cell in cells])
    failed = [record for record in records if not record.done]
    write_aside(folder / "sensitivity.parquet", records)
    figures = _write_figures([record for record in records if record.done], folder / "figures")
    _show(records, folder, figures, as_json=as_json, scale=scale, seed=seed)
    if failed:
        raise WordsensError(
            f"{len(failed)} of {len(cells)} cells failed, the first with {failed[0].error}; "
            "the same command tries them again"
        )


def _run(cells: "Sequence[SensitivityCell]", store: "RecordStore", *, device: str, quiet: bool, folder: Path) -> None:
    """Measure what is not in the store yet; an interrupt says what is kept and how to go on."""
    from wordsens.experiments.runner import RemainingTime, run_cells, unfinished

    left = unfinished(cells, store)
    kept = len(cells) - len(left)
    if kept and not quiet:
        notice(f"{kept} of {len(cells)} cells are in {store.folder} already")
    clock = RemainingTime()
    done = 0
    try:
        with reporting(len(left), "cells", quiet=quiet or not left) as report:
            for record in run_cells(left, store, device=device):
                clock.observe(left[done], record.seconds)
                done += 1
                report.update(done, now=f"{record.map} n={record.n} {record.text}", remaining=clock.of(left[done:]))
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"interrupted: {kept + done} of {len(cells)} cells are finished in {store.folder}; "
            "the same command goes on from there"
        ) from None


def _write_figures(records: "Sequence[SensitivityRecord]", folder: Path) -> list[Path]:
    """RF, DRF and attention, each as PDF and PNG."""
    if not records:
        return []
    from wordsens.figures import sensitivity_figure

    folder.mkdir(parents=True, exist_ok=True)
    families = {
        "rf": ("Random features", lambda name: name == "rf"),
        "drf": ("Deep random features", lambda name: name.startswith("drf")),
        "raf": ("Random attention features", lambda name: name.endswith("raf")),
    }
    written = []
    for name, (title, belongs) in families.items():
        own = [record for record in records if belongs(record.map)]
        if own:
            figure = sensitivity_figure(own, title=title)
            for suffix in ("pdf", "png"):
                path = folder / f"{name}.{suffix}"
                figure.savefig(path, dpi=200)
                written.append(path)
    return written


def _show(
    records: "Sequence[SensitivityRecord]",
    folder: Path,
    figures: Sequence[Path],
    *,
    as_json: bool,
    scale: str,
    seed: int,
) -> None:
    from wordsens.experiments.summary import summarise
    from wordsens.experiments.wording import findings

    series = summarise(records)
    if as_json:
        document: dict[str, Any] = {
            "command": "paper sensitivity",
            "version": __version__,
            "scale": scale,
            "seed": seed,
            "cells": len(records),
            "failed": [{"cell": record.cell, "error": record.error} for record in records if not record.done],
            "series": [one.to_dict() for one in series],
            "findings": findings(series),
            "records": str(folder / "sensitivity.parquet"),
            "figures": [str(path) for path in figures],
        }
        json.dump(document, sys.stdout, ensure_ascii=False, allow_nan=False)
        sys.stdout.write("\n")
        return
    from wordsens.cli.paper_table import print_summary

    print_summary(series, folder)
