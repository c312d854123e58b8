"""A cell of deep random features on demand: four words, n = 80, d = 768, L = 8. Its CPU seconds, memory and values.

    python -m benchmarks.deep_cell [--size 80x768] [--depth 8] [--seed 1 ...] [--against FOLDER] [--longer]

`--against`: the src folder of another checkout, whose own search of the same cell is run beside, each run in a process
of its own, in turns. Matrices on demand depend on the calls, so values of two searches are of two matrices of one law.
`--longer` therefore goes on in the same matrices as searches did when a cell took three times as long, with 16 Lanczos
steps on the Jacobian and 40 of polishing: the search's values over those of that search, in one matrix.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import torch

import wordsens as ws
from benchmarks.process import peak_gigabytes
from benchmarks.reporting import header, seconds, table
from wordsens.gaussian import ON_DEMAND_BYTES
from wordsens.maps.dense import word_change

WORDS = [5, 20, 40, 70]
BEFORE = ws.SearchPlan(starts=2, climb_steps=3, steps=40)


def measure(n: int, d: int, depth: int, seed: int, longer: bool) -> dict:
    """One cell, in this process."""
    torch.set_num_threads(1)
    budget = ON_DEMAND_BYTES * (4 if longer else 1)
    phi = ws.DeepRandomFeatures(n, d, depth, gaussian="lazy", seed=seed, gaussian_bytes=budget)
    X = ws.gaussian_text(n, d, seed=seed)
    words = [word * n // 80 for word in WORDS]
    began = time.process_time()
    plan = "normal" if hasattr(word_change, "_FRUGAL_LANCZOS_STEPS") else ws.SearchPlan(starts=2)
    found = ws.word_sensitivity(phi, X, words, search=plan, certificate=False)
    result = {"cpu": time.process_time() - began, "peak": peak_gigabytes(), "values": found.per_word.tolist()}
    if longer:
        word_change._FRUGAL_LANCZOS_STEPS = 16
        word_change.DenseChange._mean_slopes = slopes_at_the_text
        after = ws.word_sensitivity(phi, X, words, search=BEFORE, certificate=False)
        result["ratios"] = (found.per_word / after.per_word).tolist()
    return result


def slopes_at_the_text(change: word_change.DenseChange, *_: torch.Tensor) -> list[torch.Tensor]:
    """act'(z) of every unit."""
    return [change._activation.derivative(step) for step in change._steps]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="80x768")
    parser.add_argument("--depth", type=int, default=8)
    parser.add_argument("--seed", type=int, action="append")
    parser.add_argument("--against", type=Path, help="the src folder of another checkout")
    parser.add_argument("--longer", action="store_true")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    n, d = (int(part) for part in options.size.split("x"))
    seeds = options.seed or [1]
    if options.one:
        print(json.dumps(measure(n, d, options.depth, seeds[0], options.longer)))
        return
    print(header("Deep random features: a cell of four words"))
    rows = []
    for seed in seeds:
        for name, folder in [("here", Path(ws.__file__).parents[1]), ("before", options.against)]:
            if folder is None:
                continue
            asked = ["--size", options.size, "--depth", str(options.depth), "--seed", str(seed), "--one"]
            asked += ["--longer"] if options.longer and name == "here" else []
            run = subprocess.run(
                [sys.executable, "-m", "benchmarks.deep_cell", *asked],
                env={**os.environ, "PYTHONPATH": f"{folder.resolve()}{os.pathsep}{Path.cwd()}"},
                stdout=subprocess.PIPE,
                check=True,
            )
            found = json.loads(run.stdout.splitlines()[-1])
            values = torch.tensor(found["values"])
            ratios = " ".join(f"{ratio:.4f}" for ratio in found.get("ratios", []))
            cells = [seconds(found["cpu"]), f"{found['peak']:.2f} GB", f"{values.max():.5f}", f"{values.mean():.5f}"]
            rows.append([name, str(seed), *cells, ratios])
            print(".", end="", flush=True, file=sys.stderr)
    title = f"DRF, L = {options.depth}, n = {n}, d = {d}, four words"
    print(table(title, ["code", "seed", "CPU", "peak", "S", "mean of the words", "over a longer search"], rows))


if __name__ == "__main__":
    main()
