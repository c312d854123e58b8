"""Brackets: certified upper bounds over attained values.

    python -m benchmarks.certificates [--quick] [--section NAME ...]

Sections: attention (all words of Gaussian texts and a review), dense (RF at several widths,
DRF).
"""

import argparse
import sys
from collections.abc import Sequence

import torch

import wordsens as ws
from benchmarks.reporting import header, table
from benchmarks.search import review

COLUMNS = ("n", "d", "words", "attained", "upper", "median upper/attained", "largest", "rigor")


def bracket(phi: ws.FeatureMap, X: ws.TextMatrix, words: Sequence[int] | None = None, **options: object) -> list[str]:
    """The cells of `COLUMNS` of one map and text."""
    result = ws.word_sensitivity(phi, X, words, **options)
    assert result.upper_per_word is not None
    ratio = result.upper_per_word / result.per_word
    if not bool((ratio >= 1).all()):
        raise AssertionError(f"{phi.name}: an attained value is above its certificate")
    middle = [f"{float(values.median()):.4f}" for values in (result.per_word, result.upper_per_word)]
    sizes = [str(size) for size in (*X.rows.shape, len(result.words))]
    return [*sizes, *middle, f"{float(ratio.median()):.3f}", f"{float(ratio.max()):.3f}", str(result.rigor)]


def attention(quick: bool) -> None:
    """Weights of seed 0, radius sqrt(d), every word."""
    rows = []
    for n, d in ((20, 96),) if quick else ((20, 768), (100, 768), (20, 384), (100, 384)):
        rows.append(["gaussian, softmax", *bracket(ws.RandomAttentionFeatures(d), ws.gaussian_text(n, d))])
    text = review(12 if quick else 100)
    rows.append(["review, softmax", *bracket(ws.RandomAttentionFeatures(384), text)])
    n, d = (20, 96) if quick else (100, 384)
    for score in ("relu", "relu-unnormalized", "sigmoid", "linear"):
        cells = bracket(ws.RandomAttentionFeatures(d, score=score), ws.gaussian_text(n, d))
        rows.append([f"gaussian, {score}", *cells])
    print(table("Attention; medians over the words", ["text, score", *COLUMNS], rows))


def dense(quick: bool) -> None:
    """RF and DRF; matrices that fit are read, the others are sampled on demand and bounded by their law."""
    rows = []
    cases = [(20, 16, 1.0, 1), (20, 16, 1.0, 2)]
    if not quick:
        cases = [(50, 96, 1.0, 1), (100, 48, 1.0, 1), (50, 96, 0.25, 1), (50, 96, 2.0, 1), (50, 768, 1.0, 1)]
        cases += [(50, 192, 1.0, depth) for depth in (2, 4, 8)]
    for n, d, share, depth in cases:
        phi = ws.DeepRandomFeatures(n, d, depth, round(share * n * d))
        words = list(range(0, n, max(1, n // 4))[: 4 if depth == 1 else 2])
        cells = bracket(phi, ws.gaussian_text(n, d), words, search=ws.SearchPlan(starts=3, steps=60))
        rows.append([f"{'RF' if depth == 1 else f'DRF, L = {depth}'}, k/D = {share:g}", *cells])
    print(table("Random features, ReLU, Gaussian texts", ["map", *COLUMNS], rows))


SECTIONS = {"attention": attention, "dense": dense}


def main() -> None:
    """Run the sections that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", action="append", choices=list(SECTIONS), help="only this one; may be repeated")
    parser.add_argument("--quick", action="store_true", help="small sizes, a minute")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    print(header("Brackets"))
    for name in options.section or SECTIONS:
        SECTIONS[name](options.quick)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
