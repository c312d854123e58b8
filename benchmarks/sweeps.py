"""Sweeps killed and resumed: every record as of an uninterrupted run; and what a cell costs beside its work.

    python -m benchmarks.sweeps [--kills 20] [--workers 2] [--quick]

A sweep of small cells is killed with SIGKILL at random moments and started again until it ends. Exit code 1 where a
record differs from that of an uninterrupted run, is there twice or is missing, or the database is damaged.
"""

import argparse
import random
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.reporting import header, table

SWEEP = """\
experiment: sensitivity
name: cells
grids: [{map: [rf, raf], n: [4, 6, 8], d: 8, draw: %s, text: {kind: gaussian}, search: quick}]
"""
RECORDS = "select key, status, spec, result from cells order by key"


def sweep(folder: Path, draws: int) -> Path:
    path = folder / "cells.yaml"
    path.write_text(SWEEP % list(range(draws)))
    return path


def command(path: Path, out: Path, workers: int) -> list[str]:
    chosen = ["--workers", str(workers)] if workers else []
    return [sys.executable, "-m", "wordsens", "sweep", "run", str(path), "--out", str(out), "--quiet", *chosen]


def timed(words: list[str]) -> float:
    """Seconds that the command takes."""
    started = time.perf_counter()
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started


def records(out: Path) -> list[tuple[str, ...]]:
    with sqlite3.connect(out / "results.sqlite") as store:
        assert store.execute("pragma integrity_check").fetchone() == ("ok",)
        return store.execute(RECORDS).fetchall()


def killed(path: Path, out: Path, workers: int, kills: int, longest: float) -> int:
    """Run the sweep to its end through at most so many kills; returns how many there were."""
    random.seed(0)
    for done in range(kills):
        with subprocess.Popen(command(path, out, workers), stdout=subprocess.DEVNULL) as process:
            try:
                process.wait(timeout=random.uniform(0, longest))
            except subprocess.TimeoutExpired:
                process.kill()
            else:
                return done
    subprocess.run(command(path, out, workers), check=True, stdout=subprocess.DEVNULL)
    return kills


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="three kills")
    given = parser.parse_args()
    kills, draws = (3, 10) if given.quick else (given.kills, 60)
    print(header("Sweeps"))
    rows, wrong = [], False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = sweep(folder, draws)
        whole, reference = timed(command(path, folder / "whole", 0)), records(folder / "whole")
        again = timed(command(path, folder / "whole", 0))
        for workers in (0, given.workers):
            start = timed([*command(path, folder / f"one-{workers}", workers), "draw=0", "n=4", "map=rf"])
            out = folder / f"killed-{workers}"
            times = killed(path, out, workers, kills, start + 1.5 * (whole - again) / kills)
            equal = records(out) == reference
            wrong |= not equal
            rows.append([str(workers or "in process"), str(len(reference)), str(times), "yes" if equal else "NO"])
    print(table("Killed and resumed", ["workers", "cells", "kills", "records equal"], rows))
    each = 1000 * (whole - again) / len(reference)
    print(f"A finished sweep starts and ends in {again:.1f} s; a cell of {len(reference)} took {each:.1f} ms.")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
