"""Sweeps that are killed and resumed, and what a cell costs beside its computation.

    python -m benchmarks.sweeps [--section kills] [--section cost] [--quick]

kills: a sweep is killed with SIGKILL at random moments and started again, until it ends; its records are compared,
digit by digit, with those of an undisturbed run. cost: seconds of many small cells, in one process and by two workers.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.reporting import header, seconds, table

SPEC = """\
name: small
kind: sensitivity
common: {{map: raf, text: gaussian, n: {n}, d: {d}}}
grids:
  - draw: {{range: [0, {last}]}}
"""
RESULTS = ("value", "word", "per_word", "evaluations", "map_seed")


def command(*words: object) -> list[str]:
    """A `wordsens sweep` command line."""
    return [sys.executable, "-m", "wordsens", "sweep", *map(str, words), "--quiet"]


def finish(spec: Path, out: Path, *options: object) -> None:
    """Run a sweep to its end."""
    subprocess.run(command("run", spec, *options, "--out", out), check=True, stdout=subprocess.DEVNULL)


def records(out: Path) -> dict[str, tuple[Any, ...]]:
    """What was computed in each cell, numbers as they are printed to the last digit. Twice a cell is an error."""
    file = out.with_suffix(".jsonl")
    subprocess.run(command("export", out, file), check=True, stdout=subprocess.DEVNULL)
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    results = {row["draw"]: tuple(repr(row[name]) for name in RESULTS) for row in rows}
    if len(results) != len(rows):
        raise SystemExit(f"{len(rows) - len(results)} cells stand twice in {out}")
    return results


def kills(folder: Path, quick: bool) -> bool:
    """Kill the process, or the whole group with its workers, again and again; True where nothing is lost."""
    cells, moments, times = (6, random.Random(0), 2) if quick else (40, random.Random(0), 10)
    spec = folder / "small.yaml"
    spec.write_text(SPEC.format(n=20, d=48, last=cells - 1))
    finish(spec, folder / "whole")
    expected, rows, good = records(folder / "whole"), [], True
    for name, options in (("one process", ()), ("two workers", ("--workers", 2))):
        out, start = folder / name.replace(" ", "-"), time.perf_counter()
        killed = 0
        for _ in range(times):
            arguments = command("run", spec, *options, "--out", out)
            process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, start_new_session=True)
            try:
                process.wait(timeout=4 + moments.uniform(0, 1 if quick else 6))
                break
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                killed += 1
        finish(spec, out, *options)
        same = records(out) == expected
        good = good and same
        rows.append([name, str(killed), "yes" if same else "NO", seconds(time.perf_counter() - start)])
    columns = ["set-up", "killed", "records as undisturbed", "wall clock"]
    print(table(f"{cells} cells killed with SIGKILL at random moments (seed 0)", columns, rows))
    return good


def cost(folder: Path, quick: bool) -> bool:
    """Seconds of a command with many small cells: start, computation, records."""
    rows = []
    spec = folder / "many.yaml"
    for cells in (2, 12) if quick else (4, 400):
        spec.write_text(SPEC.format(n=3, d=4, last=cells - 1))
        for name, options in (("one process", ()), ("two workers", ("--workers", 2))):
            start = time.perf_counter()
            finish(spec, folder / f"{cells}-{name[:3]}", *options)
            rows.append([str(cells), name, seconds(time.perf_counter() - start)])
    print(table("Cells of three words in four coordinates, start included", ["cells", "set-up", "wall clock"], rows))
    return True


SECTIONS = {"kills": kills, "cost": cost}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the sections that were asked for; 1 when a record was lost or changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", action="append", choices=list(SECTIONS), help="only this one; may be repeated")
    parser.add_argument("--quick", action="store_true", help="few cells")
    options = parser.parse_args(arguments)
    print(header("Sweeps"))
    with tempfile.TemporaryDirectory(prefix="wordsens-sweeps-") as folder:
        good = [SECTIONS[name](Path(folder), options.quick) for name in options.section or SECTIONS]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
