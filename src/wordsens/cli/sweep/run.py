"""The work of `wordsens sweep run` and `resume`."""

from collections.abc import Iterable
from typing import Any

from wordsens import __version__
from wordsens.cli.running import RunRequest, fail_for, open_store, require_devices, run_missing
from wordsens.cli.sweep.source import SPEC_FILE, Source, sweep_source
from wordsens.cli.terminal import duration, print_json, stdout
from wordsens.errors import InputError
from wordsens.experiments.store.record import Record
from wordsens.experiments.store.shard import write_whole


def run_sweep(
    spec: str,
    overrides: Iterable[str],
    out: str | None,
    device: str | None,
    request: RunRequest,
    *,
    as_json: bool,
    resume: bool,
) -> None:
    """Measure what is missing, and print what became of the cells.

    Raises WordsensError when a cell failed, after everything else is written.
    """
    source = sweep_source(spec, overrides, out, device=device)
    kept = source.folder / SPEC_FILE
    if resume:
        if not kept.is_file():
            raise InputError(f"`spec` (={spec!r}) has nothing to go on with in {source.folder}; start with: sweep run")
        source = sweep_source(str(source.folder), device=device)
    cells = source.sweep.cells()
    require_devices(cells, request)
    store = open_store(source.records, source.sweep.cell_kind.record_type)
    content = source.sweep.to_yaml().encode()
    if not kept.is_file() or kept.read_bytes() != content:
        write_whole(kept, lambda file: file.write(content))
    run_missing(cells, store, source.sweep.kind, request)
    records = store.read(cell.content_hash() for cell in cells)
    failed = [record for record in records if not record.done]
    if as_json:
        _print_json(source, records, failed)
    else:
        _print(source, records, failed)
    fail_for(failed, len(cells))


def _print(source: Source, records: list[Record], failed: list[Record]) -> None:
    console = stdout()
    seconds = sum(record.seconds for record in records)
    console.print(f"{source.sweep.name}: {len(records) - len(failed)} cells done, {len(failed)} failed", style="bold")
    for record in failed[:5]:
        console.print(f"failed   {record.cell}  {record.error}", markup=False, soft_wrap=True)
    if len(failed) > 5:
        console.print(f"         and {len(failed) - 5} more")
    console.print(f"computed for {duration(seconds)} (h:mm:ss) of one process's time")
    console.print(f"records  {source.records}", soft_wrap=True)
    console.print(f"table    wordsens sweep export {source.folder} records.csv", soft_wrap=True)


def _print_json(source: Source, records: list[Record], failed: list[Record]) -> None:
    document: dict[str, Any] = {
        "command": "sweep run",
        "version": __version__,
        "name": source.sweep.name,
        "kind": source.sweep.kind,
        "cells": len(records),
        "done": len(records) - len(failed),
        "failed": [{"cell": record.cell, "error": record.error} for record in failed],
        "seconds": sum(record.seconds for record in records),
        "records": str(source.records),
    }
    print_json(document)
