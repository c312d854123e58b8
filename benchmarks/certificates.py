"""Brackets: certified upper bounds over attained values.

    python -m benchmarks.certificates [--quick] [--section NAME ...]

Sections: attention (all words of Gaussian texts and a review), dense (RF at several widths, DRF), heads (of MiniLM, on
their own input), radii (how the bracket of attention goes with the radius), time (all certificates of a text).
"""

import argparse
import math
import sys
from collections.abc import Sequence

import torch

import wordsens as ws
from benchmarks.reporting import header, least_time, seconds, table
from benchmarks.search import review
from wordsens.maps.transformer.attention import entering_attention, trained_attention
from wordsens.text import texts_of_length

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


def heads(quick: bool) -> None:
    """Every head of MiniLM's first and last layer on its own input, at each word's own length and a tenth of it."""
    whole = ws.TransformerFeatures.from_pretrained("minilm")
    (document,) = texts_of_length(ws.shipped_reviews(), 64, count=1)
    rows = []
    for layer in (1,) if quick else (1, 6):
        for head in range(2 if quick else whole.stack.heads):
            (text,) = whole.embed([document], max_words=10 if quick else 62)
            phi, X = trained_attention(whole, layer, head), entering_attention(whole, text, layer)
            for share in (1.0, 0.1):
                radius = share * torch.linalg.vector_norm(X.rows, dim=1)
                cells = bracket(phi, X, radius=radius, search="quick")
                rows.append([f"layer {layer}, head {head}, {share:g} of the length", *cells])
    print(table("Heads of MiniLM on a review", ["head, radius", *COLUMNS], rows))


def radii(quick: bool) -> None:
    """Softmax attention at other radii, with the limit that the Jacobian gives."""
    n, d = (20, 96) if quick else (50, 384)
    phi, X = ws.RandomAttentionFeatures(d), ws.gaussian_text(n, d)
    slope = ws.jacobian_sensitivity(phi, X).per_word
    rows = []
    for share in (1e-4, 1e-2, 0.1, 0.3, 1.0, 3.0):
        radius = share * math.sqrt(d)
        result = ws.word_sensitivity(phi, X, radius=radius)
        assert result.upper_per_word is not None
        ratio, linear = result.upper_per_word / result.per_word, result.per_word / (slope * radius)
        rows.append([f"{share:g}", f"{float(ratio.median()):.3f}", f"{float(linear.median()):.4f}"])
    columns = ["radius / sqrt(d)", "median upper/attained", "median attained / (Jacobian's norm times radius)"]
    print(table(f"Other radii: softmax, Gaussian text, n = {n}, d = {d}", columns, rows))


def time(quick: bool) -> None:
    """All n certificates of a text."""
    rows = []
    for n, d in ((20, 96),) if quick else ((100, 768), (250, 768)):
        phi, X = ws.RandomAttentionFeatures(d), ws.gaussian_text(n, d)
        all_bounds = least_time(lambda phi=phi, X=X: ws.certify(phi, X), rounds=2)
        slope = least_time(lambda phi=phi, X=X: ws.jacobian_sensitivity(phi, X), rounds=2)
        rows.append([str(n), str(d), seconds(all_bounds), seconds(slope)])
    columns = ["n", "d", "all certificates", "all small-radius limits"]
    print(table("Time for all words of a Gaussian text, softmax attention, float64", columns, rows))


SECTIONS = {"attention": attention, "dense": dense, "heads": heads, "radii": radii, "time": time}


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
