"""What products with a Gaussian matrix cost that is never built, beside a dense one: time and
memory.

    python -m benchmarks.on_demand

Half of the products are V q, half V^T u, each of a new vector that has a part of the last answer,
as in a search. Every run is a process of its own. Seconds are of CPU; memory is what the process
held at most beyond the libraries.
"""

import json
import sys
import time
from statistics import median

import torch

from benchmarks.reporting import apart, gigabytes, header, peak_bytes, seconds, table
from wordsens.gaussian import DenseGaussian, OnDemandGaussian

CASES = ((7680, 16), (7680, 256), (15360, 64), (115_200, 64))
REPEATS, MOST_DENSE = 3, 3 << 30


def one(way: str, size: int, products: int, seed: int) -> dict[str, float]:
    """Draw a square matrix and multiply."""
    before, start = peak_bytes(), time.process_time()
    kind = DenseGaussian if way == "dense" else OnDemandGaussian
    V = kind(size, size, standard_deviation=size**-0.5, seed=seed)
    stream, answer = torch.Generator().manual_seed(seed), torch.zeros(size, dtype=torch.float64)
    for product in range(products):
        vector = answer + torch.randn(size, generator=stream, dtype=torch.float64)
        vector = vector / vector.norm()
        answer = V.multiply_transposed(vector) if product % 2 else V.multiply(vector)
    return {"seconds": time.process_time() - start, "memory": peak_bytes() - before}


def row(size: int, products: int) -> list[str]:
    """The cells of one size: medians; dashes where the dense matrix would not fit."""
    cells = [f"{size:,}", gigabytes(8 * size**2), str(products)]
    for way in ("on demand", "dense"):
        if way == "dense" and 8 * size**2 > MOST_DENSE:
            cells += ["-", "-"]
            continue
        runs = [apart("on_demand", way, size, products, seed) for seed in range(REPEATS)]
        cells += [
            seconds(median(run["seconds"] for run in runs)),
            gigabytes(median(run["memory"] for run in runs)),
        ]
    return cells


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    if "--one" in sys.argv:
        way, *numbers = sys.argv[2:]
        size, products, seed = map(int, numbers)
        print(json.dumps(one(way, size, products, seed)))
        return
    print(header("On demand"), flush=True)
    columns = [
        "rows = columns",
        "dense matrix",
        "products",
        "on demand",
        "memory",
        "dense",
        "memory",
    ]
    print(
        table(
            f"Drawing and multiplying; medians of {REPEATS}",
            columns,
            [row(*case) for case in CASES],
        )
    )


if __name__ == "__main__":
    main()
