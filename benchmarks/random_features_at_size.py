"""One search on random features in a process of its own: its seconds, its peak memory and the value found, as JSON.

--way wordsens is the library, which never builds the matrices; --way straightforward is dense matrices and autograd.
Run by benchmarks.random_features for every row, since the peak memory of a process can only grow.
"""

import argparse
import json
import time
from pathlib import Path

import torch

import wordsens as ws
from benchmarks.reporting import peak_bytes
from benchmarks.straightforward_dense import gaussian_weights, plain_ascent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--way", choices=["wordsens", "straightforward"], default="wordsens")
    parser.add_argument("--words", type=int, required=True)
    parser.add_argument("--dimension", type=int, required=True)
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--search", type=int, default=1, help="how many words to search, spread over the text; 0: all")
    parser.add_argument("--steps", type=int, help="so many steps without regard to convergence")
    parser.add_argument("--longer", action="store_true", help="then search on, on the same matrices, for a reference")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--float32", action="store_true")
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    way = wordsens if options.way == "wordsens" else straightforward
    way(argparse.Namespace(**{**vars(options), "words": 4, "dimension": 8, "longer": False}))  # loads the libraries
    before = resident_bytes()
    found = way(options)
    print(json.dumps({"memory_before": before, "memory_peak": peak_bytes(), **found}))


def wordsens(options: argparse.Namespace) -> dict[str, float]:
    """The map built and the words searched, the certificate and the recomputation of the witnesses included."""
    n, d = options.words, options.dimension
    dtype = torch.float32 if options.float32 else torch.float64
    X = ws.gaussian_text(n, d, options.seed)
    words = None if options.search == 0 else [at * n // options.search for at in range(options.search)]
    start = time.perf_counter()
    phi = ws.DeepRandomFeatures(n, d, options.depth, gaussian="lazy", seed=options.seed, dtype=dtype)
    fixed = {} if options.steps is None else {"steps": options.steps, "tolerance": 0.0}
    result = ws.word_sensitivity(phi, X, words, seed=options.seed, **fixed)
    seconds = time.perf_counter() - start
    longer = {}
    if options.longer:
        more = [
            ws.word_sensitivity(
                phi, X, words, seed=options.seed + at, search=ws.SearchPlan(starts=starts, steps=60, tolerance=0.0)
            ).value
            for at, starts in enumerate((8, 16))
        ]
        longer = {"longer": max(result.value, *more)}
    return {"seconds": seconds, "value": result.value, "evaluations": result.evaluations, **longer}


def straightforward(options: argparse.Namespace) -> dict[str, float]:
    """Dense weights drawn, and one word searched from one start by autograd through the whole map."""
    n, d = options.words, options.dimension
    X = ws.gaussian_text(n, d, options.seed).rows
    start = time.perf_counter()
    weights = gaussian_weights(n, d, options.depth, seed=options.seed)
    drawn = time.perf_counter() - start
    found = plain_ascent(weights, X, 0, steps=options.steps or 300, tolerance=0.0 if options.steps else 1e-5)
    return {
        "seconds": time.perf_counter() - start,
        "drawing": drawn,
        "value": found.value,
        "evaluations": len(found.values),
    }


def resident_bytes() -> int:
    """What this process holds now; the peak so far where the system does not say."""
    status = Path("/proc/self/status")
    if not status.exists():
        return peak_bytes()
    (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
