"""Random features whose matrices are never built, against dense matrices and autograd.

    python -m benchmarks.random_features

Every search runs in a process of its own. Seconds are of CPU, map included; memory is what the
process held at most beyond the libraries.
"""

import json
import sys
import time
from statistics import fmean, median

import torch

import wordsens as ws
from benchmarks.plain import dense_ascent
from benchmarks.reporting import apart, gigabytes, header, peak_bytes, seconds, table

SIZES = ((20, 192, 1), (40, 192, 1), (20, 192, 4), (150, 768, 1), (80, 768, 4))
REPEATS, MOST_DENSE = 3, 1 << 30


def row(n: int, d: int, depth: int) -> list[str]:
    """The cells of one size: medians over maps and texts; dashes where dense matrices would not
    fit."""
    size = (n * d) ** 2 * depth * 8
    ours = [apart("random_features", "ours", n, d, depth, seed) for seed in range(REPEATS)]
    time_, memory = (median(run[key] for run in ours) for key in ("seconds", "memory"))
    name = "RF" if depth == 1 else f"DRF, L = {depth}"
    cells = [name, str(n), str(d), gigabytes(size), seconds(time_), gigabytes(memory)]
    if size > MOST_DENSE:
        return [*cells, "-", "-", f"{fmean(run['value'] for run in ours):.3f}", "-", "-"]
    plain = [apart("random_features", "plain", n, d, depth, seed) for seed in range(REPEATS)]
    ratios = [run["ours on the same matrices"] / run["value"] for run in plain]
    return [
        *cells,
        *(
            seconds(median(run["seconds"] for run in plain)),
            gigabytes(median(run["memory"] for run in plain)),
        ),
        *(f"{fmean(run['value'] for run in runs):.3f}" for runs in (ours, plain)),
        f"{min(ratios):.3f} to {max(ratios):.3f}",
    ]


def one(way: str, n: int, d: int, depth: int, seed: int) -> dict[str, float]:
    """Word 0 of a Gaussian text: what its search costs and finds."""
    ws.word_sensitivity(
        ws.DeepRandomFeatures(4, 8, depth), ws.gaussian_text(4, 8), [0]
    )  # loads what is loaded late
    before, start = peak_bytes(), time.process_time()
    X = ws.gaussian_text(n, d, seed=seed)
    phi = ws.DeepRandomFeatures(
        n, d, depth, gaussian="lazy" if way == "ours" else "dense", seed=seed
    )
    if way == "ours":
        value = ws.word_sensitivity(phi, X, [0], certificate=False).value
    else:
        value = dense_ascent(list(phi.weights), X.rows, 0).value
    run = {"seconds": time.process_time() - start, "memory": peak_bytes() - before, "value": value}
    if way == "plain":
        run["ours on the same matrices"] = ws.word_sensitivity(phi, X, [0], certificate=False).value
    return run


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    if "--one" in sys.argv:
        way, *numbers = sys.argv[2:]
        n, d, depth, seed = map(int, numbers)
        print(json.dumps(one(way, n, d, depth, seed)))
        return
    print(header("Random features"), flush=True)
    rows = [row(*size) for size in SIZES]
    columns = [
        *("map", "n", "d", "dense matrices", "on demand", "memory", "dense, autograd", "memory"),
        *("S on demand", "S dense", "same matrices: ours / plain"),
    ]
    print(
        table(
            f"One word; medians of time and memory, means of S over {REPEATS} maps and texts",
            columns,
            rows,
        )
    )


if __name__ == "__main__":
    main()
