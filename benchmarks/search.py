"""Word sensitivity of random attention: every effort beside plain gradient ascent.

    python -m benchmarks.search [--section NAME ...] [--quick] [--threads 1]

Sections: efforts (all words of a text by each effort: CPU time, S, and every word against "thorough"), plain (every
word of a review against plain ascent, benchmarks.plain: 50 n steps from one start). Seconds are of CPU.
"""

import argparse
import sys
import time

import torch

import wordsens as ws
from benchmarks.plain import plain_ascent
from benchmarks.reporting import header, seconds, table
from wordsens.text import texts_of_length

EFFORTS = ("thorough", "normal", "quick")


def review(n: int, number: int = 0) -> ws.TextMatrix:
    """The first n tokens of a shipped review, at MiniLM's embedding layer, d = 384."""
    documents = texts_of_length(ws.shipped_reviews(), n, count=number + 1)
    return ws.embed(documents[number : number + 1], max_words=n)[0]


def efforts(quick: bool) -> None:
    """A row an effort; the straightforward way is timed over a few of its 50 n steps."""
    rows = []
    sizes = ((40, 96),) if quick else ((100, 384), (100, 768), (250, 768))
    for score in ("softmax", "relu"):
        for n, d in sizes:
            X, phi = ws.gaussian_text(n, d, seed=11).rows, ws.RandomAttentionFeatures(d, score=score, seed=11)
            began = time.process_time()
            steps = 20
            plain_ascent(phi.weight, X, n // 2, steps=steps)
            plain = (time.process_time() - began) * 50 * n / (steps + 1)
            best = None
            for effort in EFFORTS:
                began = time.process_time()
                result = ws.word_sensitivity(phi, X, search=effort, certificate=False)
                took = time.process_time() - began
                best = best or result
                ratios = result.per_word / best.per_word
                rows.append(
                    [
                        *(score, str(n), str(d), effort, seconds(took), f"{took / plain:.2f}"),
                        *(f"{result.value:.4f}", f"{result.value / best.value:.4f}"),
                        *(f"{ratios.mean():.4f}", f"{ratios.min():.4f}"),
                    ]
                )
    columns = ["score", "n", "d", "search", "CPU", "of one word plainly", "S", "S/thorough", "word: mean", "least"]
    print(table("All words of a Gaussian text", columns, rows))


def plain(quick: bool) -> None:
    """Every word of reviews over plain ascent from one start, through the whole map."""
    rows = []
    for number in range(1 if quick else 5):
        X = review(16 if quick else 60, number).rows
        phi = ws.RandomAttentionFeatures(X.shape[1])
        result = ws.word_sensitivity(phi, X, certificate=False)
        words = range(0, len(X), 4)
        values = torch.tensor([plain_ascent(phi.weight, X, word)[0] for word in words])
        ratios = result.per_word[list(words)] / values
        rows.append(
            [
                *(str(number), str(len(words)), f"{ratios.min():.5f}", f"{ratios.median():.4f}"),
                *(f"{ratios.max():.4f}", str(int((ratios < 1 - 1e-6).sum()))),
            ]
        )
    columns = ["review", "words", "search/plain: least", "median", "largest", "words below plain"]
    print(table("Words of reviews, softmax attention, against plain ascent", columns, rows))


SECTIONS = {"efforts": efforts, "plain": plain}


def main() -> None:
    """Run the sections that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", action="append", choices=list(SECTIONS), help="only this one; may be repeated")
    parser.add_argument("--quick", action="store_true", help="small sizes, under a minute")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(header("Search"))
    for name in options.section or SECTIONS:
        SECTIONS[name](options.quick)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
