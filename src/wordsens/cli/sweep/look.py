"""The work of `wordsens sweep status` and `show`: nothing is run, nothing is changed."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from wordsens import __version__
from wordsens.cli.running import open_store
from wordsens.cli.sweep.source import Source, sweep_source
from wordsens.cli.terminal import duration, print_json, stdout, table
from wordsens.experiments.grid.catalogue import examples, preset_names
from wordsens.experiments.run.state import RunState, current_run
from wordsens.experiments.texts.source import TEXT_TYPES
from wordsens.maps.registry import MAPS

_LISTED = 6


def print_status(spec: str, overrides: Iterable[str], out: str | None, *, as_json: bool) -> None:
    """Print the progress of the sweep."""
    source = sweep_source(spec, overrides, out)
    names = [cell.content_hash() for cell in source.sweep.cells()]
    store = open_store(source.records, source.sweep.cell_kind.record_type, read_only=True)
    found = store.table(names).select(["status", "error", "cell", "seconds"]).to_pydict()
    failed = [
        {"cell": cell, "error": error}
        for status, cell, error in zip(found["status"], found["cell"], found["error"], strict=True)
        if status == "failed"
    ]
    done = len(found["status"]) - len(failed)
    run = current_run(source.records)
    if as_json:
        print_json(
            {
                "command": "sweep status",
                "version": __version__,
                "name": source.sweep.name,
                "kind": source.sweep.kind,
                "cells": len(names),
                "done": done,
                "failed": failed,
                "running": run.running if run else 0,
                "to_come": len(names) - done - len(failed),
                "where": run.where if run else None,
                "seconds": float(sum(found["seconds"])),
                "records": str(source.records),
            }
        )
        return
    _print_status(source, len(names), done, failed, run, float(sum(found["seconds"])))


def _print_status(
    source: Source, cells: int, done: int, failed: Sequence[dict[str, Any]], run: RunState | None, seconds: float
) -> None:
    console = stdout()
    running = run.running if run else 0
    share = done / cells if cells else 1.0
    console.print(f"{source.sweep.name}: {done} of {cells} cells done ({int(100 * share)}%)", style="bold")
    made = table(("", "left"), ("cells", "right"))
    for name, count in (
        ("done", done),
        ("running", running),
        ("failed", len(failed)),
        ("to come", max(0, cells - done - len(failed) - running)),
    ):
        made.add_row(name, str(count))
    console.print(made)
    for one in failed[:_LISTED]:
        console.print(f"failed   {one['cell']}  {one['error']}", markup=False, soft_wrap=True)
    if len(failed) > _LISTED:
        console.print(f"         and {len(failed) - _LISTED} more")
    console.print(f"computed for {duration(seconds)} (h:mm:ss) so far")
    if run is None:
        console.print(
            "no run is at work" + ("" if done == cells else f"; go on with: wordsens sweep resume {source.folder}")
        )
    else:
        console.print(f"a run is at work {run.where} (process {run.pid} on {run.host})", soft_wrap=True)
    console.print(f"records  {source.records}", soft_wrap=True)


def print_sweep(spec: str, overrides: Iterable[str], *, as_json: bool) -> None:
    """The cells and axes of a sweep."""
    sweep = sweep_source(spec, overrides).sweep
    cells = sweep.cells()
    plain = [cell.model_dump(mode="json", exclude_unset=True) for cell in cells]
    axes: dict[str, dict[str, Any]] = {}
    for one in plain:
        for key, value in one.items():
            axes.setdefault(key, {}).setdefault(json.dumps(value), value)
    if as_json:
        print_json(
            {
                "command": "sweep show",
                "version": __version__,
                "name": sweep.name,
                "kind": sweep.kind,
                "axes": {key: list(values.values()) for key, values in axes.items()},
                "cells": [{"cell": cell.content_hash(), "spec": keys} for cell, keys in zip(cells, plain, strict=True)],
            }
        )
        return
    console = stdout()
    console.print(f"{sweep.name}: {len(cells)} cells of kind {sweep.kind}", style="bold")
    made = table(("key", "left"), ("values", "right"), ("which", "left"))
    for key, values in axes.items():
        listed = list(values.values())
        shown = [json.dumps(value, ensure_ascii=False) for value in listed]
        listed = shown if len(shown) <= _LISTED else [*shown[: _LISTED - 2], "...", shown[-1]]
        made.add_row(key, str(len(listed)), ", ".join(listed))
    console.print(made)


def print_sweeps(*, as_json: bool) -> None:
    """The sweeps that can be run by name; the maps and the kinds of text that a spec can ask for, with their keys."""
    named = {name: path.read_text(encoding="utf-8").splitlines()[0].lstrip("# ") for name, path in examples().items()}
    texts = {kind: [key for key in model.model_fields if key != "kind"] for kind, model in TEXT_TYPES.items()}
    maps = {name: list(entry.options) for name, entry in MAPS.items()}
    if as_json:
        lists = {"presets": preset_names(), "examples": named, "maps": maps, "texts": texts}
        print_json({"command": "sweep show", "version": __version__, **lists})
        return
    _print_list("Presets of the paper", dict.fromkeys(preset_names(), ""))
    _print_list("Examples", named)
    own = {"module:Name": "a map of your own (docs/guides/own_map.md)"}
    _print_list("map: its keys", {name: ", ".join(options) for name, options in maps.items()} | own)
    _print_list("text, or {kind: text, KEY: ...}: its keys", {kind: ", ".join(keys) for kind, keys in texts.items()})


def _print_list(title: str, rows: dict[str, str]) -> None:
    console = stdout()
    console.print(title, style="bold")
    made = table(("", "left"), ("", "left"))
    for name, line in rows.items():
        made.add_row(f"  {name}", line)
    console.print(made)
