"""Random features whose matrices are never built, against dense ones; growth; convergence; search methods.

    python -m benchmarks.random_features [--section NAME ...] [--quick] [--threads T]

Sections: size (RF at n = 150 and DRF at n = 80, L = 8, d = 768), straightforward (against dense matrices and autograd),
scaling (time and memory against D, up to a million rows), convergence (S sqrt(n) against 1 + sqrt(2/n)), methods (how
many products power iteration, momentum, conjugate gradients and the Krylov search need on one matrix).
"""

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, median, stdev

import torch

import wordsens as ws
from benchmarks.reporting import header, seconds, table
from benchmarks.search_methods import METHODS, Trace, traces


@dataclass(frozen=True)
class Scale:
    """How much to run.

    Attributes:
        maps: (n, d, depth) of the section `size`.
        against: (n, d) of the section `straightforward`, and how often each way runs.
        repeats: how often.
        lengths: numbers of words whose time is fitted, at `dimension` coordinates.
        convergence: (n, d) of the section `convergence`.
        draws: matrices and texts a row there.
        methods: (n, d) of the section `methods`.
    """

    maps: tuple[tuple[int, int, int], ...]
    against: tuple[tuple[int, int], ...]
    repeats: int
    lengths: tuple[int, ...]
    dimension: int
    convergence: tuple[tuple[int, int], ...]
    draws: int
    methods: tuple[tuple[int, int], ...]


SCALES = {
    "quick": Scale(
        maps=((150, 192, 1), (80, 96, 8)),
        against=((20, 96),),
        repeats=3,
        lengths=(20, 40, 80, 160),
        dimension=100,
        convergence=((50, 192), (90, 192)),
        draws=2,
        methods=((50, 96),),
    ),
    "normal": Scale(
        maps=((150, 768, 1), (80, 768, 8)),
        against=((40, 192), (90, 192)),
        repeats=5,
        lengths=(40, 80, 160, 320, 640, 1250),
        dimension=800,
        convergence=((50, 768), (90, 768), (150, 768)),
        draws=5,
        methods=((50, 192), (150, 768)),
    ),
}
WANTED = {1: "3 s, 1 GB", 8: "20 s, 2 GB"}


def size(scale: Scale) -> None:
    """One word at the paper's largest sizes, and how far the value is from that of searches that go on much longer."""
    rows = []
    for n, d, depth in scale.maps:
        runs = [at_size(n, d, "--depth", str(depth), "--seed", str(seed)) for seed in range(scale.repeats)]
        reference = at_size(n, d, "--depth", str(depth), "--longer")
        weights = (n * d) ** 2 * depth * 8
        rows.append(
            [
                "RF" if depth == 1 else f"DRF, L = {depth}",
                *(str(n), str(d), f"{weights / 1e9:,.0f} GB", seconds(median(run["seconds"] for run in runs))),
                *(gigabytes(max(run["memory_peak"] for run in runs)), WANTED.get(depth, "")),
                *(f"{fmean(run['value'] for run in runs):.4f}", f"{1 - reference['value'] / reference['longer']:.1e}"),
            ]
        )
    columns = ["map", "n", "d", "weights", "one word", "peak of the process", "wanted", "S", "longer search gains"]
    print(table(f"One word, medians of {scale.repeats}, float64", columns, rows))


def straightforward(scale: Scale) -> None:
    """The same word by dense matrices and autograd, until a step gains less than 1e-5: time, memory, value."""
    rows = []
    for n, d in scale.against:
        ours, plain = [], []
        for seed in range(scale.repeats):
            plain.append(at_size(n, d, "--way", "straightforward", "--seed", str(seed)))
            ours.append(at_size(n, d, "--seed", str(seed)))
        times = [median(run["seconds"] for run in runs) for runs in (plain, ours)]
        memory = [median(run["memory_peak"] - run["memory_before"] for run in runs) for runs in (plain, ours)]
        rows.append(
            [
                *(str(n), str(d), f"{median(run['evaluations'] for run in plain):.0f}", seconds(times[0])),
                *(seconds(times[1]), f"{times[0] / times[1]:,.0f}", gigabytes(memory[0]), gigabytes(memory[1])),
                *(f"{memory[0] / memory[1]:,.0f}", f"{fmean(run['value'] for run in plain):.4f}"),
                f"{fmean(run['value'] for run in ours):.4f}",
            ]
        )
    columns = ["n", "d", "plain steps", "plain", "ours", "times faster (wanted: 300)", "plain memory", "our memory"]
    columns += ["times less (wanted: 30)", "plain S", "our S"]
    title = f"RF, one word, against dense matrices and autograd: medians of {scale.repeats}; memory over the libraries'"
    print(table(title, columns, rows))


def scaling(scale: Scale) -> None:
    """Time and memory at a fixed number of queries as D = k grows."""
    steps, rows, times, sizes = 10, [], [], []
    for n in scale.lengths:
        runs = [at_size(n, scale.dimension, "--steps", str(steps)) for _ in range(3)]
        best = min(runs, key=lambda run: run["seconds"])
        sizes.append(n * scale.dimension)
        times.append(best["seconds"])
        rows.append(
            [
                *(f"{n * scale.dimension:,}", str(n), seconds(best["seconds"])),
                *(gigabytes(best["memory_peak"] - best["memory_before"]), f"{best['value'] * math.sqrt(n):.4f}"),
                f"{prediction(n):.4f}",
            ]
        )
    title = f"RF, one word, {steps} steps: growth with D = k at d = {scale.dimension}, least of 3"
    print(table(title, ["D = k", "n", "time", "memory over the libraries'", "S sqrt(n)", "1 + sqrt(2/n)"], rows))
    half = len(sizes) // 2
    print(f"\nFitted exponent of time: {exponent(sizes[half:], times[half:]):.2f} over the larger half of the sizes, ")
    print(f"{exponent(sizes, times):.2f} over all of them (wanted: 1).")


def convergence(scale: Scale) -> None:
    """S sqrt(n) against the first-order prediction 1 + sqrt(2/n), for ReLU and k = D."""
    rows = []
    for n, d in scale.convergence:
        values = [at_size(n, d, "--seed", str(seed))["value"] * math.sqrt(n) for seed in range(scale.draws)]
        mean = fmean(values)
        rows.append(
            [
                *(str(n), str(d), f"{mean:.4f}", f"{stdev(values):.4f}", f"{prediction(n):.4f}"),
                f"{100 * (mean / prediction(n) - 1):+.2f} %",
            ]
        )
    columns = ["n", "d", "S sqrt(n)", "deviation", "1 + sqrt(2/n)", "difference (wanted: within 2 %)"]
    print(table(f"RF, one word, {scale.draws} matrices and texts", columns, rows))


def methods(scale: Scale) -> None:
    """Products with V_i and V_i^T, together, until each method is close to the best value any of them finds."""
    for n, d in scale.methods:
        phi = ws.RandomFeatures(n, d, gaussian="lazy", gaussian_bytes=12 << 30)
        change = phi.word_change(ws.gaussian_text(n, d).rows)
        found: dict[str, list[Trace]] = {name: traces(method, change, seeds=2) for name, method in METHODS.items()}
        best = max(trace.values[-1] for runs in found.values() for trace in runs)
        rows = []
        for name, runs in found.items():
            reached = [[trace.products_to(best * (1 - gap)) for trace in runs] for gap in (1e-2, 3e-3, 1e-3)]
            cells = [" / ".join("-" if at is None else str(at) for at in ats) for ats in reached]
            end = " / ".join(f"{1 - trace.values[-1] / best:.1e} at {trace.products[-1]}" for trace in runs)
            rows.append([name, *cells, end])
        columns = ["method", "to 1 %", "to 0.3 %", "to 0.1 %", "short of the best at the end"]
        print(table(f"Products until near the best S, n = {n}, d = {d}, one matrix, two starts", columns, rows))


def prediction(n: int) -> float:
    """S sqrt(n) for ReLU and k = D, to first order."""
    return 1 + math.sqrt(2 / n)


def exponent(sizes: list[int], values: list[float]) -> float:
    """The slope of log value against log size, by least squares."""
    x = torch.tensor(sizes, dtype=torch.float64).log()
    y = torch.tensor(values, dtype=torch.float64).log()
    return float(((x - x.mean()) * (y - y.mean())).sum() / (x - x.mean()).square().sum())


def gigabytes(value: float) -> str:
    return f"{value / 1e9:.2f} GB" if value >= 1e8 else f"{value / 1e6:.0f} MB"


def at_size(n: int, d: int, *options: str) -> dict[str, float]:
    """What benchmarks.random_features_at_size prints for one search."""
    command = [sys.executable, "-m", "benchmarks.random_features_at_size", "--words", str(n), "--dimension", str(d)]
    command += ["--threads", str(torch.get_num_threads()), *options]
    print(".", end="", flush=True, file=sys.stderr)
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


SECTIONS: dict[str, Callable[[Scale], None]] = {
    "size": size,
    "convergence": convergence,
    "scaling": scaling,
    "methods": methods,
    "straightforward": straightforward,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", action="append", choices=list(SECTIONS), help="only this one; may be repeated")
    parser.add_argument("--quick", action="store_true", help="small sizes, a minute; otherwise about half an hour")
    parser.add_argument("--threads", type=int, help="torch threads; torch's own choice unless given")
    options = parser.parse_args()
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    print(header("Random features"))
    if hasattr(os, "getloadavg"):
        print(f"load      {os.getloadavg()[0]:.1f} before the first run")
    for name in options.section or SECTIONS:
        SECTIONS[name](SCALES["quick" if options.quick else "normal"])
        sys.stdout.flush()


if __name__ == "__main__":
    main()
