"""Certified upper bounds over attained values, by map, radius and length.

    python -m benchmarks.certificates

Each cell is of one text and map: the median and the largest of upper / attained over words, ten of
attention and four of random features.
"""

from collections.abc import Callable

import torch

import wordsens as ws
from benchmarks.reporting import header, table
from wordsens.models import load_encoder

RADII, LENGTHS = (0.1, 0.3, 1.0), (20, 100)


def attention(text: str, score: str = "softmax") -> Callable[[int, float], torch.Tensor]:
    """upper / attained of 10 words of a Gaussian text or a review, d = 384."""

    def ratios(n: int, radius: float) -> torch.Tensor:
        review = text == "review"
        X = ws.embed(_review(n), max_words=n)[0] if review else ws.gaussian_text(n, 384)
        return bracket(
            ws.RandomAttentionFeatures(384, score=score), X, range(0, n, n // 10), radius
        )

    return ratios


def _review(n: int) -> ws.Document:
    """The first review of n words and more."""
    count = load_encoder().count_tokens
    return next(each for each in ws.shipped_reviews() if count(each.text, special=False) >= n)


def dense(depth: int) -> Callable[[int, float], torch.Tensor]:
    """upper / attained of 4 words of a Gaussian text, d = 192, k = n d; the matrices are never
    built."""

    def ratios(n: int, radius: float) -> torch.Tensor:
        phi = ws.DeepRandomFeatures(n, 192, depth, gaussian="lazy")
        return bracket(phi, ws.gaussian_text(n, 192), range(0, n, n // 4), radius)

    return ratios


def bracket(phi: ws.FeatureMap, X: ws.TextMatrix, words: range, radius: float) -> torch.Tensor:
    """upper / attained of each word; the radius is in units of sqrt(d)."""
    result = ws.word_sensitivity(phi, X, words, radius=radius * X.rows.shape[1] ** 0.5)
    assert result.upper_per_word is not None
    if not bool((result.upper_per_word >= result.per_word).all()):
        raise AssertionError(f"{phi.name}: an attained value is above its certificate")
    return result.upper_per_word / result.per_word


CASES = {
    "softmax": attention("gaussian"),
    "softmax, reviews": attention("review"),
    "relu": attention("gaussian", "relu"),
    "relu-unnormalized": attention("gaussian", "relu-unnormalized"),
    "sigmoid": attention("gaussian", "sigmoid"),
    "RF": dense(1),
    "DRF, L = 2": dense(2),
    "DRF, L = 4": dense(4),
}


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    print(header("Bounds"))
    rows = []
    for name, ratios in CASES.items():
        cells = (ratios(n, radius) for n in LENGTHS for radius in RADII)
        rows.append(
            [name, *(f"{float(cell.median()):.2f} ({float(cell.max()):.2f})" for cell in cells)]
        )
    columns = ["map", *(f"n = {n}, r = {radius:g}" for n in LENGTHS for radius in RADII)]
    print(table("Upper / lower bound: median (largest); r in sqrt(d)", columns, rows))


if __name__ == "__main__":
    main()
