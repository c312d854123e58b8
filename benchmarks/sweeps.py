"""What a sweep adds to its cells: in the process of the command, on workers, and resumed.

    python -m benchmarks.sweeps

Each row is `wordsens sweep run` of many tiny cells and of few, run as commands; CPU seconds of the
command and its workers. Their difference gives the price of a further cell; the last row is what
its measurement takes without a sweep.
"""

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import fmean

import torch

import wordsens as ws
from benchmarks.reporting import header, seconds, table

FEW, MANY, REPEATS = 20, 220, 2
N, D = 8, 16


def spec(cells: int) -> str:
    """A sweep of so many cells, which is YAML too."""
    grid = {
        "map": "rf",
        "text": "gaussian",
        "n": N,
        "d": D,
        "draw": list(range(cells)),
        "starts": 1,
        "steps": 2,
    }
    return json.dumps({"name": "tiny", "grids": [grid]})


def command(folder: Path, cells: int, *options: str) -> float:
    """CPU seconds of the sweep's command and of all processes that it started."""
    file = folder / f"{cells}.yaml"
    file.write_text(spec(cells))
    words = ["sweep", "run", str(file), "--out", str(folder / str(cells)), "--quiet", *options]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        [sys.executable, "-m", "wordsens", *words], check=True, stdout=subprocess.DEVNULL
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def alone() -> float:
    """CPU seconds of one cell's measurement."""
    began = time.process_time()
    for seed in range(MANY):
        phi, X = ws.RandomFeatures(N, D, seed=seed), ws.gaussian_text(N, D, seed=seed)
        ws.word_sensitivity(phi, X, search=ws.SearchPlan(starts=1, steps=2), seed=seed)
    return (time.process_time() - began) / MANY


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    print(header("Sweeps"), flush=True)
    cases = {
        "in the process": (),
        "--workers 1": ("--workers", "1"),
        "--workers 2": ("--workers", "2"),
    }
    rows, again = [], {FEW: list[float](), MANY: list[float]()}
    for name, options in cases.items():
        runs = {FEW: list[float](), MANY: list[float]()}
        for _ in range(REPEATS):
            with tempfile.TemporaryDirectory() as folder:
                for cells, took in runs.items():
                    took.append(command(Path(folder), cells, *options))
                    if not options:
                        again[cells].append(command(Path(folder), cells))
        rows.append([name, *cells_of(runs)])
    rows.insert(1, ["the same again, all done", *cells_of(again)])
    cell = fmean(alone() for _ in range(REPEATS))
    rows.append(["measured without a sweep", "-", "-", milliseconds(cell)])
    columns = ["sweep", f"{FEW} cells", f"{MANY} cells", "per further cell"]
    print(table(f"RF, n = {N}, d = {D}, all words: CPU, means of {REPEATS}", columns, rows))


def cells_of(runs: dict[int, list[float]]) -> list[str]:
    """Both means, and the price of a further cell."""
    few, many = fmean(runs[FEW]), fmean(runs[MANY])
    return [seconds(few), seconds(many), milliseconds((many - few) / (MANY - FEW))]


def milliseconds(value: float) -> str:
    return f"{1e3 * value:.1f} ms"


if __name__ == "__main__":
    main()
