"""Predictions of word sensitivity against measurements.

    python -m benchmarks.theory [--table rf] [--table drf] [--table acts] [--table raf] [--table
    relu]

Prints Markdown tables of S sqrt(n) for RF and DRF and of S for attention, for a typical word: the
mean of what was measured over independent maps and texts with its standard error, the prediction,
and the prediction's relative error. docs/theory/predictions.md records what it printed.
"""

import argparse
import math
import time
from collections.abc import Iterable

import torch

import wordsens as ws
from benchmarks.reporting import header

WORDS = 3
TABLES = ("rf", "drf", "acts", "raf", "relu")


def dense_rows(
    cases: Iterable[tuple[int, int, float, int, str]],
    *,
    features: int,
    least: int,
    most: int,
    steps: int,
) -> None:
    """A line a case (n, d, k / D, depth, activation); the fewer features, the more maps are
    averaged."""
    print("| n | d | k/D | L | act | maps | measured | ± | predicted | error |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for n, d, ratio, depth, activation in cases:
        width = round(ratio * n * d)
        maps = min(most, max(least, math.ceil(features / width)))
        found = []
        for seed in range(maps):
            phi = ws.DeepRandomFeatures(n, d, depth, width, activation, seed=seed)
            rows = ws.gaussian_text(n, d, seed=seed).rows
            result = ws.word_sensitivity(
                phi,
                rows,
                words=range(WORDS),
                search=ws.SearchPlan(starts=3, steps=steps),
                certificate=False,
            )
            found.append(float(result.per_word.mean()) * math.sqrt(n))
        predicted = ws.theory.rf_sensitivity(
            n, d, width, depth, activation=activation, words=1
        ) * math.sqrt(n)
        line(f"{n} | {d} | {ratio:g} | {depth} | {activation} | {maps}", found, predicted)


def attention_rows(
    cases: Iterable[tuple[int, int, float]], *, maps: int, score: str = "softmax"
) -> None:
    """Two lines a case (n, d, mean cosine), all words: a typical one and the largest."""
    print("| n | d | mean cosine | maps | of | measured | ± | predicted | error |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for n, d, cosine in cases:
        found = []
        for seed in range(maps):
            rows = (
                ws.correlated_text(n, d, cosine, seed=seed).rows
                if cosine
                else ws.gaussian_text(n, d, seed=seed).rows
            )
            phi = ws.RandomAttentionFeatures(d, score=score, seed=seed)
            found.append(ws.word_sensitivity(phi, rows, certificate=False).per_word)
        spread = 0.0 if cosine and n < d else 1.0
        typical, largest = (
            ws.theory.raf_sensitivity(
                n, d, score=score, mean_cosine=cosine, spread=spread, words=words
            )
            for words in (1, None)
        )
        line(
            f"{n} | {d} | {cosine:g} | {maps} | typical",
            [float(each.median()) for each in found],
            typical,
        )
        line(
            f"{n} | {d} | {cosine:g} | {maps} | largest",
            [float(each.max()) for each in found],
            largest,
        )


def line(what: str, found: list[float], predicted: float) -> None:
    values = torch.tensor(found, dtype=torch.float64)
    mean, error = float(values.mean()), float(values.std()) / math.sqrt(len(values))
    print(
        f"| {what} | {mean:.4f} | {error:.4f} | {predicted:.4f} | "
        f"{100 * (predicted / mean - 1):+.1f} % |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--table", choices=TABLES, action="append", help="only this table; may be repeated"
    )
    options = parser.parse_args()
    chosen = options.table or TABLES
    print(header("Predictions against measurements"))
    begin = time.perf_counter()
    if "rf" in chosen:
        print("\n### RF, S sqrt(n)\n")
        cases = [(n, 96, ratio, 1, "relu") for n in (20, 50, 100, 200) for ratio in (0.25, 1, 4)]
        dense_rows(cases, features=60_000, least=4, most=64, steps=100)
    if "drf" in chosen:
        print("\n### DRF, S sqrt(n)\n")
        sizes = [(20, 96), (40, 96), (80, 48)]
        cases = [(n, d, 1, depth, "relu") for n, d in sizes for depth in (2, 4, 8)]
        dense_rows(cases, features=40_000, least=8, most=20, steps=60)
    if "acts" in chosen:
        print("\n### Other activations, S sqrt(n)\n")
        names = ("tanh", "gelu", "erf", "leaky_relu", "identity")
        cases = [(20, 96, 1, depth, name) for name in names for depth in (1, 3)]
        dense_rows(cases, features=40_000, least=8, most=20, steps=60)
    if "raf" in chosen:
        print("\n### RAF (softmax), S\n")
        sizes = [(n, d, q) for d in (192, 384, 768) for n in (20, 50, 100, 250) for q in (0, 0.3)]
        attention_rows(sizes, maps=2)
    if "relu" in chosen:
        print("\n### RAF (ReLU, divided), S\n")
        sizes = [(n, d, 0) for d in (192, 384, 768) for n in (20, 50, 100, 250)]
        attention_rows([*sizes, (150, 256, 0), (200, 256, 0)], maps=2, score="relu")
    print(f"\n{time.perf_counter() - begin:.0f} s")


if __name__ == "__main__":
    main()
