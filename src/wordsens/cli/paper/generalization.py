"""The work of `wordsens paper generalization`: run what is missing, draw, summarise."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wordsens import __version__
from wordsens.cli.paper.sensitivity import PaperRequest
from wordsens.cli.running import fail_for, open_store, require_devices, run_missing
from wordsens.cli.terminal import notice, stdout, table
from wordsens.experiments.generalization.preset import paper_generalization
from wordsens.experiments.generalization.record import GeneralizationRecord
from wordsens.experiments.generalization.spec import FRONTIER
from wordsens.experiments.generalization.summary import (
    LIMIT,
    GeneralizationSeries,
    generalization_findings,
    summarise_generalization,
)
from wordsens.experiments.grid.sweep_file import on_device
from wordsens.experiments.sensitivity.findings import text_title
from wordsens.experiments.store.store import write_aside
from wordsens.figures.generalization import error_against_gamma_figure, frontier_figure


def run_generalization(request: PaperRequest, *, as_json: bool) -> None:
    """Measure what is missing, write records and figures, print the summary.

    Raises WordsensError when a cell failed, after everything else is written.
    """
    preset = paper_generalization(request.scale, data=request.data, encoder=request.encoder, seed=request.seed)
    folder = Path(request.out)
    store = open_store(folder / "generalization-records", GeneralizationRecord)
    if not request.run.quiet:
        for line in preset.notices:
            notice(line)
    sweep = on_device(preset.sweep, request.device)
    cells = sweep.cells()
    require_devices(cells, request.run)
    sweep.save(folder / "generalization.yaml")
    run_missing(cells, store, "generalization", request.run)
    names = {cell.content_hash(): at for at, cell in enumerate(cells)}
    records = sorted(store.read(names), key=lambda record: names[record.cell])
    write_aside(folder / "generalization.parquet", records)
    figures = write_generalization_figures([record for record in records if record.done], folder / "figures")
    series = summarise_generalization(records)
    if as_json:
        _print_json(records, series, folder, figures, request)
    else:
        _print_table(series, folder)
    fail_for([record for record in records if not record.done], len(cells))


def write_generalization_figures(records: Sequence[GeneralizationRecord], folder: Path) -> list[Path]:
    """For each kind of text: Err against gamma, and the frontier, each as PDF and PNG."""
    written = []
    for text in dict.fromkeys(record.text for record in records):
        own = [record for record in records if record.text == text]
        name = text_title(text)
        drawn = {}
        if any(record.objective != FRONTIER for record in own):
            drawn["error"] = error_against_gamma_figure(own, title=f"Error on the changed text: {name}")
        if any(record.objective == FRONTIER for record in own):
            drawn["frontier"] = frontier_figure(own, title=rf"Least error under a limit on $\gamma$: {name}")
        folder.mkdir(parents=True, exist_ok=True)
        for kind, figure in drawn.items():
            for suffix in ("pdf", "png"):
                path = folder / f"generalization-{kind}-{text}.{suffix}"
                figure.savefig(path, dpi=200)
                written.append(path)
    return written


def _print_table(series: Sequence[GeneralizationSeries], folder: Path) -> None:
    console = stdout()
    made = table(
        ("map", "left"),
        ("text", "left"),
        ("n", "right"),
        ("N", "right"),
        ("training", "left"),
        ("held-out\naccuracy", "right"),
        ("least F", "right"),
        (f"median Err\ngamma<{LIMIT:g}", "right"),
        ("Err < 1", "right"),
    )
    for one in series:
        median, share = one.median(), one.share_below(1.0)
        made.add_row(
            one.map,
            one.text,
            str(one.n),
            str(one.texts),
            one.training,
            f"{one.accuracy:.2f}",
            f"{one.least_alignment:+.2f}",
            "" if median is None else f"{median:.2f}",
            "" if share is None else f"{share:.0%}",
        )
    console.print(
        "One word changed, the label flipped: does the model that just learned the text notice?", style="bold"
    )
    console.print(made)
    console.print()
    for sentence in generalization_findings(series):
        console.print(sentence)
    console.print()
    below = sum(one.below_bound for one in series)
    console.print(
        "Every error is attained by a perturbation that was found: an upper bound of the least one. "
        + (
            f"{below} errors lie below their finite-sample bound."
            if below
            else "None lies below its finite-sample bound."
        )
    )
    console.print()
    console.print(f"records  {folder / 'generalization.parquet'}", soft_wrap=True)
    console.print(f"figures  {folder / 'figures'}", soft_wrap=True)


def _print_json(
    records: Sequence[GeneralizationRecord],
    series: Sequence[GeneralizationSeries],
    folder: Path,
    figures: Sequence[Path],
    request: PaperRequest,
) -> None:
    document: dict[str, Any] = {
        "command": "paper generalization",
        "version": __version__,
        "scale": request.scale,
        "seed": request.seed,
        "cells": len(records),
        "failed": [{"cell": record.cell, "error": record.error} for record in records if not record.done],
        "series": [one.to_dict() for one in series],
        "findings": generalization_findings(series),
        "records": str(folder / "generalization.parquet"),
        "figures": [str(path) for path in figures],
    }
    json.dump(document, sys.stdout, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")
