"""All words by each effort against the straightforward way for one: time, S, and every word against "thorough".

    python -m benchmarks.race [--size 100x768 ...] [--seed 11 ...] [--text gaussian] [--score softmax] [--threads 1]
    python -m benchmarks.race --reviews 10

Seconds are of CPU: of all threads together. The straightforward way (benchmarks.straightforward_attention) is timed
over a few of its 50 n steps. `--reviews`: every word of so many shipped reviews by "thorough" against plain gradient
ascent, n = 100, d = 384. Gaussian seeds 1, 2 and 3 were used for tuning.
"""

import argparse
import sys
import time

import torch

import wordsens as ws
from benchmarks.every_word import plain_ascent_of_all
from benchmarks.reporting import header, seconds, table
from benchmarks.straightforward_attention import plain_ascent
from benchmarks.texts import MINILM_WIDTH, kinds, review

EFFORTS = ("thorough", "normal", "quick")


def race(text: str, n: int, d: int, seed: int, score: str, steps: int) -> list[list[str]]:
    """A row an effort."""
    X = kinds()[text](n, d, seed).rows
    phi = ws.RandomAttentionFeatures(d, score=score, seed=seed)
    began = time.process_time()
    plain_ascent(phi.weight, X, n // 2, steps=steps)
    plain = (time.process_time() - began) * 50 * n / (steps + 1)
    rows, best = [], None
    for effort in EFFORTS:
        began = time.process_time()
        found = ws.word_sensitivity(phi, X, search=effort, certificate=False)
        took = time.process_time() - began
        best = best or found
        ratios = found.per_word / best.per_word
        cells = [f"{found.evaluations / n:.0f}", seconds(took), f"1/{plain / took:.1f}", f"{found.value:.5f}"]
        cells += [f"{found.value / best.value:.5f}", f"{ratios.mean():.4f}", f"{ratios.min():.4f}"]
        rows.append([f"{text} {seed}", str(n), str(d), effort, *cells])
    return rows


def reviews(count: int) -> list[list[str]]:
    """A row a review: its words by "thorough" over plain ascent."""
    rows = []
    for number in range(count):
        X = review(100, MINILM_WIDTH, number).rows
        phi = ws.RandomAttentionFeatures(MINILM_WIDTH)
        plain = plain_ascent_of_all(phi, X)
        for effort in ("thorough", "normal"):
            found = ws.word_sensitivity(phi, X, search=effort, certificate=False).per_word / plain
            below = int((found < 1 - 1e-6).sum())
            rows.append([str(number), effort, f"{found.min():.5f}", f"{found.mean():.5f}", str(below)])
            print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", action="append", help="n x d, such as 100x768; may be repeated")
    parser.add_argument("--seed", type=int, action="append", help="of text and weights; may be repeated")
    parser.add_argument("--text", default="gaussian", choices=("gaussian", "review"))
    parser.add_argument("--score", default="softmax")
    parser.add_argument("--steps", type=int, default=60, help="of the straightforward way that are timed")
    parser.add_argument("--reviews", type=int, default=0, help="every word of so many reviews instead")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--quick", action="store_true", help="one small text")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(header("The race of a text's words"))
    if options.reviews:
        columns = ["review", "effort", "least / plain", "mean / plain", "words below"]
        print(table("Every word over plain ascent", columns, reviews(options.reviews)))
        return
    sizes = options.size or (["60x192"] if options.quick else ["100x768", "250x768"])
    rows = []
    for size in sizes:
        n, d = (int(part) for part in size.split("x"))
        for seed in options.seed or ([11] if options.quick else [11, 12, 13]):
            rows += race(options.text, n, d, seed, options.score, options.steps)
            print(".", end="", flush=True, file=sys.stderr)
    columns = ["text", "n", "d", "search", "evaluations a word", "CPU", "of one word plainly", "S", "S/thorough"]
    print(table(f"{options.score} attention, all words", [*columns, "a word: mean", "least"], rows))


if __name__ == "__main__":
    main()
