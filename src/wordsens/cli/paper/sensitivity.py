"""The work of `wordsens paper`: run what is missing, draw, summarise."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordsens import __version__
from wordsens.cli.paper.tables import print_summary
from wordsens.cli.running import RunRequest, fail_for, open_store, require_devices, run_missing
from wordsens.cli.terminal import notice
from wordsens.experiments.grid.sweep_file import on_device
from wordsens.experiments.sensitivity.findings import findings
from wordsens.experiments.sensitivity.preset import paper_sensitivity
from wordsens.experiments.sensitivity.record import SensitivityRecord
from wordsens.experiments.sensitivity.summary import summarise
from wordsens.experiments.store.store import write_aside
from wordsens.figures.sensitivity import sensitivity_figure


@dataclass(frozen=True, kw_only=True)
class PaperRequest:
    """What the command line asked for: its options, by their names."""

    scale: str
    data: str | None
    out: str
    encoder: str
    seed: int
    device: str
    run: RunRequest


def run_sensitivity(request: PaperRequest, *, as_json: bool) -> None:
    """Measure what is missing, write records and figures, print the summary.

    Raises WordsensError when a cell failed, after everything else is written.
    """
    preset = paper_sensitivity(request.scale, data=request.data, encoder=request.encoder, seed=request.seed)
    folder = Path(request.out)
    store = open_store(folder / "records", SensitivityRecord)
    if not request.run.quiet:
        for line in preset.notices:
            notice(line)
    sweep = on_device(preset.sweep, request.device)
    cells = sweep.cells()
    require_devices(cells, request.run)
    sweep.save(folder / "sweep.yaml")
    run_missing(cells, store, "sensitivity", request.run)
    names = {cell.content_hash(): at for at, cell in enumerate(cells)}
    records = sorted(store.read(names), key=lambda record: names[record.cell])
    write_aside(folder / "sensitivity.parquet", records)
    figures = write_figures([record for record in records if record.done], folder / "figures")
    if as_json:
        _print_json(records, folder, figures, request)
    else:
        print_summary(summarise(records), folder)
    fail_for([record for record in records if not record.done], len(cells))


def write_figures(records: Sequence[SensitivityRecord], folder: Path) -> list[Path]:
    """RF, DRF and attention, each as PDF and PNG."""
    if not records:
        return []
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


def _print_json(
    records: Sequence[SensitivityRecord], folder: Path, figures: Sequence[Path], request: PaperRequest
) -> None:
    series = summarise(records)
    document: dict[str, Any] = {
        "command": "paper sensitivity",
        "version": __version__,
        "scale": request.scale,
        "seed": request.seed,
        "cells": len(records),
        "failed": [{"cell": record.cell, "error": record.error} for record in records if not record.done],
        "series": [one.to_dict() for one in series],
        "findings": findings(series),
        "records": str(folder / "sensitivity.parquet"),
        "figures": [str(path) for path in figures],
    }
    json.dump(document, sys.stdout, ensure_ascii=False, allow_nan=False)
    sys.stdout.write("\n")
