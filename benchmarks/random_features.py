"""Random features whose matrices are never built, against dense ones.

    python -m benchmarks.random_features [--section NAME ...] [--quick] [--threads T]

Sections: size (RF at n = 150 and DRF at n = 80, L = 8, d = 768), straightforward (against dense matrices and autograd).
Every search runs in a process of its own.
"""

import argparse
import json
import sys
import time
from statistics import fmean, median

import torch

import wordsens as ws
from benchmarks.plain import dense_ascent, gaussian_weights
from benchmarks.reporting import apart, gigabytes, header, peak_bytes, seconds, table


def size(quick: bool) -> None:
    """One word at the paper's largest sizes, and how far the value is from that of a longer search."""
    rows, repeats = [], 1 if quick else 5
    for n, d, depth in ((60, 96, 1), (20, 48, 8)) if quick else ((150, 768, 1), (80, 768, 8)):
        runs = [searched(n, d, depth=depth, seed=seed) for seed in range(repeats)]
        longer = searched(n, d, depth=depth, starts=8, steps=60)["value"]
        rows.append(
            [
                "RF" if depth == 1 else f"DRF, L = {depth}",
                *(str(n), str(d), gigabytes((n * d) ** 2 * depth * 8)),
                *(seconds(median(run["seconds"] for run in runs)), gigabytes(max(run["peak"] for run in runs))),
                *(f"{fmean(run['value'] for run in runs):.4f}", f"{longer / runs[0]['value'] - 1:+.1e}"),
            ]
        )
    columns = ["map", "n", "d", "weights", "one word", "peak of the process", "S", "longer search gains"]
    print(table(f"One word, medians of {repeats}, float64", columns, rows))


def straightforward(quick: bool) -> None:
    """The same word by dense matrices and autograd, until a step gains less than 1e-5: time, memory, value."""
    rows, repeats = [], 2 if quick else 5
    for n, d in ((20, 96),) if quick else ((40, 192), (90, 192)):
        plain = [searched(n, d, way="plain", seed=seed) for seed in range(repeats)]
        ours = [searched(n, d, seed=seed) for seed in range(repeats)]
        times = [median(run["seconds"] for run in runs) for runs in (plain, ours)]
        memory = [median(run["peak"] - run["before"] for run in runs) for runs in (plain, ours)]
        values = [fmean(run["value"] for run in runs) for runs in (plain, ours)]
        rows.append(
            [
                *(str(n), str(d), seconds(times[0]), seconds(times[1]), f"{times[0] / times[1]:,.0f}"),
                *(gigabytes(memory[0]), gigabytes(memory[1]), f"{memory[0] / max(memory[1], 1):,.0f}"),
                *(f"{values[0]:.4f}", f"{values[1]:.4f}"),
            ]
        )
    columns = ["n", "d", "plain", "ours", "times faster", "plain memory", "our memory", "times less"]
    title = f"RF, one word, against dense matrices and autograd: medians of {repeats}; memory over the libraries'"
    print(table(title, [*columns, "plain S", "our S"], rows))


def searched(
    n: int, d: int, *, depth: int = 1, seed: int = 0, way: str = "ours", starts: int | None = None, steps: int = 0
) -> dict[str, float]:
    """Word 0 of a Gaussian text searched in a process of its own."""
    given = {"n": n, "d": d, "depth": depth, "seed": seed, "way": way, "starts": starts, "steps": steps}
    print(".", end="", flush=True, file=sys.stderr)
    return apart("random_features", json.dumps(given), "--threads", torch.get_num_threads())


def one(n: int, d: int, depth: int, seed: int, way: str, starts: int | None, steps: int) -> dict[str, float]:
    """Seconds and peak memory of one search, map and certificate included; the libraries are loaded before."""
    search = ours if way == "ours" else plain
    search(4, 8, depth, seed, starts, steps)
    before, start = peak_bytes(), time.perf_counter()
    value = search(n, d, depth, seed, starts, steps)
    return {"seconds": time.perf_counter() - start, "before": before, "peak": peak_bytes(), "value": value}


def ours(n: int, d: int, depth: int, seed: int, starts: int | None, steps: int) -> float:
    """S of word 0 by the library."""
    phi = ws.DeepRandomFeatures(n, d, depth, gaussian="lazy", seed=seed)
    plan = ws.SearchPlan(starts=starts, steps=steps) if steps else "normal"
    return ws.word_sensitivity(phi, ws.gaussian_text(n, d, seed=seed), [0], seed=seed, search=plan).value


def plain(n: int, d: int, depth: int, seed: int, starts: int | None, steps: int) -> float:
    """The same by dense weights and autograd, from one start."""
    X = ws.gaussian_text(n, d, seed=seed).rows
    return dense_ascent(gaussian_weights(n, d, depth, seed=seed), X, 0, steps=steps or 300).value


SECTIONS = {"size": size, "straightforward": straightforward}


def main() -> None:
    """Run the sections that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", action="append", choices=list(SECTIONS), help="only this one; may be repeated")
    parser.add_argument("--quick", action="store_true", help="small sizes, a minute; otherwise about half an hour")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.one is not None:
        print(json.dumps(one(**json.loads(options.one))))
        return
    print(header("Random features"))
    for name in options.section or SECTIONS:
        SECTIONS[name](options.quick)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
