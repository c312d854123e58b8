"""The work of `wordsens paper`, whatever the experiment: measure the missing cells, draw, summarise."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wordsens import __version__
from wordsens.cli.paper.options import PaperOptions
from wordsens.cli.running import RunRequest, fail_for, open_store, require_devices, run_missing
from wordsens.cli.terminal import notice, print_json, stdout
from wordsens.experiments.grid.preset import Preset
from wordsens.experiments.grid.sweep_file import on_device
from wordsens.experiments.kinds import kind_named
from wordsens.experiments.store.store import write_aside
from wordsens.experiments.texts.source import DatasetText, Embedded, ReviewsText
from wordsens.figures.style_file import in_style


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """An experiment of the paper.

    Attributes:
        name: of the experiment, its kind of cell and its table.
        spec: the file of its sweep.
        preset: function of the options that gives its sweep.
        draw: function of (records, folder, style) that writes the figures and gives their paths.
        summarise: from records to series.
        findings: from series to sentences.
        show: prints the series as a table, with what the numbers mean.
    """

    name: str
    spec: str
    preset: Callable[[PaperOptions], Preset]
    draw: Callable[[Sequence[Any], Path, str | None], list[Path]]
    summarise: Callable[[Sequence[Any]], list[Any]]
    findings: Callable[[Sequence[Any]], list[str]]
    show: Callable[[Sequence[Any]], None]


def run_paper(options: PaperOptions, experiments: Mapping[str, Experiment]) -> None:
    """Every one of the experiments that is asked for, one after another; of all of them, the report too."""
    with in_style(options.style):
        pass  # a style that is not there is refused before anything is measured
    documents = [run_experiment(experiments[name], options) for name in options.names]
    report = _report(options) if options.everything else None
    if report is not None and not options.as_json:
        stdout().print(f"report   {report}", soft_wrap=True, markup=False)
    if options.as_json:
        several = {"command": "paper", "version": __version__, "parts": documents}
        several["report"] = None if report is None else str(report)
        print_json(documents[0] if len(documents) == 1 else several)


def _report(options: PaperOptions) -> Path:
    """One page of everything in the folder."""
    from wordsens.report.write import write_report

    return Path(write_report([options.out], Path(options.out) / "report.html"))


def run_experiment(experiment: Experiment, options: PaperOptions) -> dict[str, Any]:
    """Measure the missing cells, write records and figures, print the summary; of an interrupted run, what it has.

    Returns:
        The JSON document.

    Raises:
        WordsensError: a cell failed; after everything else is written.
    """
    name = experiment.name
    kind, folder = kind_named(name), Path(options.out)
    preset = experiment.preset(options)
    store = open_store(folder / kind.folder, kind.record_type)
    if not options.quiet:
        for line in preset.notices:
            notice(line)
    sweep = on_device(preset.sweep, options.device)
    cells = sweep.cells()
    run = RunRequest(executor=options, witnesses=options.witnesses, quiet=options.quiet)
    require_devices(cells, run)
    sweep.save(folder / experiment.spec)
    names = {cell.content_hash(): at for at, cell in enumerate(cells)}
    table = folder / f"{name}.parquet"

    def written() -> list[Any]:
        records = sorted(store.read(names), key=lambda record: names[record.cell])
        write_aside(table, records, kind.record_type)
        return records

    try:
        run_missing(cells, store, name, run)
    except KeyboardInterrupt:
        done = [record for record in written() if record.done]
        if done and not options.as_json:
            stdout().print(f"{len(done)} of {len(cells)} cells are finished; of these:", style="bold")
            experiment.show(experiment.summarise(done))
        raise
    records = written()
    figures = experiment.draw([record for record in records if record.done], folder / "figures", options.style)
    series = experiment.summarise(records)
    failed = [record for record in records if not record.done]
    if not options.as_json:
        experiment.show(series)
        stdout().print()
        stdout().print(f"records  {table}", soft_wrap=True)
        stdout().print(f"figures  {folder / 'figures'}", soft_wrap=True)
    fail_for(failed, len(cells))
    return {
        "command": f"paper {name}",
        "version": __version__,
        "scale": options.scale,
        "seed": options.seed,
        "cells": len(records),
        "failed": [{"cell": record.cell, "error": record.error} for record in failed],
        "series": [one.to_dict() for one in series],
        "findings": experiment.findings(series),
        "records": str(table),
        "figures": [str(path) for path in figures],
    }


def save_figure(figure: Any, folder: Path, name: str) -> list[Path]:
    """The figure as PDF, SVG and PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.{suffix}" for suffix in ("pdf", "svg", "png")]
    for path in paths:
        figure.savefig(path)
    return paths


def source_of(options: PaperOptions) -> Embedded:
    """The source of the real texts."""
    if options.data is None:
        return ReviewsText(encoder=options.encoder)
    return DatasetText(
        path=options.data,
        encoder=options.encoder,
        text_column=options.text_column,
        label_column=options.label_column,
        split=options.split,
        limit=options.limit,
    )
