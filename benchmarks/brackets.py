"""Brackets: upper bounds over attained values.

    python -m benchmarks.brackets [--quick] [--section NAME ...] [--data FILE]

Sections: attention (all words of Gaussian texts and reviews, d = 768 and 384), thorough (the same with
effort="thorough", beside "normal"; seed 1; minutes, and only if it is named), dense (RF at several widths, DRF), known
(maps whose sup is known), radii (how the bracket of attention goes with the radius), time (all certificates of a
text). FILE is any source that `wordsens.text.read_documents` reads: reviews of your own in place of the shipped ones.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from time import process_time

import torch

import wordsens as ws
from benchmarks.reporting import header, least_times, seconds, table, timed
from benchmarks.texts import gaussian, kinds
from wordsens.certificates import EFFORTS
from wordsens.text.matrix import TextMatrix

COLUMNS = ("n", "d", "words", "attained", "upper", "median upper/attained", "largest", "rigor")


def bracket(
    phi: ws.FeatureMap, text: TextMatrix, words: Sequence[int] | None, search: str | ws.SearchPlan = "normal"
) -> tuple[list[str], float]:
    """What a row of a table says of one map and text, and the median ratio."""
    found = ws.word_sensitivity(phi, text, words=words, search=search)
    assert found.upper_per_word is not None
    ratio = found.upper_per_word / found.per_word
    if not bool((ratio >= 1).all()):
        raise AssertionError(f"{phi.name}: an attained value is above its certificate")
    median = float(ratio.median())
    cells = [
        str(len(found.words)),
        f"{float(found.per_word.median()):.4f}",
        f"{float(found.upper_per_word.median()):.4f}",
    ]
    return [*cells, f"{median:.3f}", f"{float(ratio.max()):.3f}", str(found.rigor)], median


def attention(quick: bool, make: dict[str, Callable[[int, int, int], TextMatrix]]) -> None:
    """Softmax attention, weights of seed 0, radius sqrt(d), every word."""
    sizes = [(20, 96), (50, 96)] if quick else [(n, d) for d in (768, 384) for n in (20, 100, 250)]
    rows = []
    for kind, text in make.items():
        for n, d in sizes:
            cells, _ = bracket(ws.RandomAttentionFeatures(d), text(n, d, 0), None)
            rows.append([kind, str(n), str(d), *cells])
    scores = ("relu",) if quick else ("relu", "relu-unnormalized", "sigmoid", "linear")
    for score in scores:
        n, d = (20, 96) if quick else (100, 384)
        cells, _ = bracket(ws.RandomAttentionFeatures(d, score), gaussian(n, d), None)
        rows.append([f"gaussian, {score}", str(n), str(d), *cells])
    print(table("Attention, softmax unless named; medians over the words", ["text", *COLUMNS], rows))
    print("\nWanted: a median ratio of at most 1.35 for softmax at d = 768.")


def thorough(quick: bool, make: dict[str, Callable[[int, int, int], TextMatrix]]) -> None:
    """Attention's bounds by either effort over a thorough search: all words; 25 of long texts and linear scores."""
    cases = [("gaussian", "softmax", n, 768) for n in (20, 50, 100, 250)]
    cases += [("review", "softmax", 100, 768), ("review", "softmax", 250, 384), ("gaussian", "relu", 100, 768)]
    cases += [("gaussian", score, 100, 768) for score in ("sigmoid", "relu-unnormalized", "linear")]
    rows = []
    for kind, score, n, d in [("gaussian", "softmax", 20, 96)] if quick else cases:
        words = None if n <= 100 and (score, kind) != ("linear", "gaussian") else list(range(0, n, n // 25))
        phi, X = ws.RandomAttentionFeatures(d, score, seed=1), make[kind](n, d, 1)
        found = ws.word_sensitivity(phi, X, words, search="thorough", certificate=False).per_word
        cells = []
        for effort in EFFORTS:
            began = process_time()
            ratio = ws.certify(phi, X, words, effort=effort) / found
            if not bool((ratio >= 1).all()):
                raise AssertionError(f"{phi.name}: an attained value is above its certificate")
            took = (process_time() - began) / len(found)
            cells += [f"{float(ratio.median()):.3f}", f"{float(ratio.max()):.3f}", f"{took:.2f}"]
        rows.append([f"{kind}, {score}", str(n), str(d), str(len(found)), *cells])
        print(rows[-1], flush=True)
    columns = [f"{effort}: {what}" for effort in EFFORTS for what in ("median", "largest", "s a word")]
    title = "Upper/attained, bounds of normal and thorough effort over a thorough search; CPU seconds a word"
    print(table(title, ["text", "n", "d", "words", *columns], rows))


def dense(quick: bool, make: dict[str, Callable[[int, int, int], TextMatrix]]) -> None:
    """RF and DRF; matrices that fit are read, the others are sampled on demand and bounded by their law."""
    rows = []
    cases = (
        [(20, 16, 1.0, 1), (20, 16, 1.0, 2)]
        if quick
        else [(50, 48, 1.0, 1), (50, 96, 1.0, 1), (100, 48, 1.0, 1)]
        + [(50, 96, ratio, 1) for ratio in (0.25, 2.0)]
        + [(n, 768, 1.0, 1) for n in (50, 100)]
        + [(50, 192, 1.0, depth) for depth in (2, 4, 8)]
    )
    for n, d, share, depth in cases:
        phi = ws.DeepRandomFeatures(n, d, depth, round(share * n * d))
        words = range(0, n, max(1, n // 4))[: 4 if depth == 1 else 2]
        cells, _ = bracket(phi, gaussian(n, d), list(words), search=ws.SearchPlan(starts=3, steps=60))
        rows.append([f"{'RF' if depth == 1 else f'DRF, L = {depth}'}, k/D = {share:g}", str(n), str(d), *cells])
    print(table("Random features, ReLU, Gaussian texts", ["map", *COLUMNS], rows))
    print("\nWanted: a median ratio of at most 1.2 for RF at k = D, n of 50 and more.")


def known(quick: bool, make: dict[str, Callable[[int, int, int], TextMatrix]]) -> None:
    """A linear layer, whose sup is a matrix norm; attention of two words in the plane, solved by a grid."""
    rows = []
    for width in (9, 40):
        phi, X = ws.RandomFeatures(4, 5, width, "identity", seed=2), gaussian(4, 5, 2)
        blocks = phi.weight.reshape(width, 4, 5).transpose(0, 1)
        sup = math.sqrt(5) * torch.linalg.matrix_norm(blocks, 2) / torch.linalg.vector_norm(phi(X.rows))
        rows.append([f"linear layer, k = {width}", *_against(phi, X, sup)])
    for score in ("softmax", "relu"):
        for seed in (1, 2):
            phi, X = ws.RandomAttentionFeatures(2, score, seed=seed), gaussian(2, 2, seed)
            rows.append([f"{score} attention, n = d = 2, seed {seed}", *_against(phi, X, _grid(phi, X))])
    columns = ["map", "attained/sup: least", "largest", "upper/sup: least", "largest"]
    print(table("Maps whose sup is known, all words", columns, rows))
    print("\nWanted: attained/sup at most 1 and upper/sup at least 1, up to the grid's 1e-4.")


def _against(phi: ws.FeatureMap, X: TextMatrix, sup: torch.Tensor) -> list[str]:
    found = ws.word_sensitivity(phi, X)
    assert found.upper_per_word is not None
    low, high = found.per_word / sup, found.upper_per_word / sup
    return [f"{float(value):.6f}" for value in (low.min(), low.max(), high.min(), high.max())]


def _grid(phi: ws.RandomAttentionFeatures, X: TextMatrix) -> torch.Tensor:
    """The largest change of each word over a polar grid of 1440 x 200 points of its disc."""
    angle = torch.linspace(0, 2 * math.pi, 1441, dtype=torch.float64)[:-1]
    length = torch.linspace(0, math.sqrt(2), 201, dtype=torch.float64)[1:]
    points = torch.stack([torch.outer(length, angle.cos()), torch.outer(length, angle.sin())], dim=-1).view(-1, 2)
    base, largest = phi(X.rows), []
    for word in range(len(X)):
        texts = X.rows.repeat(len(points), 1, 1)
        texts[:, word] += points
        moved = torch.linalg.vector_norm((phi(texts) - base).flatten(start_dim=1), dim=1)
        largest.append(float(moved.max() / torch.linalg.vector_norm(base)))
    return torch.tensor(largest, dtype=torch.float64)


def radii(quick: bool, make: dict[str, Callable[[int, int, int], TextMatrix]]) -> None:
    """Softmax attention at other radii, with the limit that the Jacobian gives."""
    n, d = (20, 96) if quick else (50, 384)
    phi, X = ws.RandomAttentionFeatures(d), gaussian(n, d)
    slope = ws.jacobian_sensitivity(phi, X)
    rows = []
    for share in (1e-4, 1e-2, 0.1, 0.3, 1.0, 3.0):
        radius = share * math.sqrt(d)
        found = ws.word_sensitivity(phi, X, radius=radius, search=ws.SearchPlan(generations=1))
        assert found.upper_per_word is not None
        ratio, linear = found.upper_per_word / found.per_word, found.per_word / (slope * radius)
        rows.append([f"{share:g}", f"{float(ratio.median()):.3f}", f"{float(linear.median()):.4f}"])
    columns = ["radius / sqrt(d)", "median upper/attained", "median attained / (Jacobian's norm times radius)"]
    print(table(f"Other radii: softmax, Gaussian text, n = {n}, d = {d}", columns, rows))


def time(quick: bool, make: dict[str, Callable[[int, int, int], TextMatrix]]) -> None:
    """All n certificates of a text."""
    rows = []
    for kind, text in make.items():
        for n, d in [(20, 96)] if quick else [(100, 768), (250, 768)]:
            phi, X = ws.RandomAttentionFeatures(d), text(n, d, 0)
            certify = lambda phi=phi, X=X: ws.certify(phi, X)  # noqa: E731
            least = least_times([certify], rounds=2)[0]
            slope = timed(lambda phi=phi, X=X: ws.jacobian_sensitivity(phi, X))
            rows.append([kind, str(n), str(d), seconds(least), seconds(slope)])
    columns = ["text", "n", "d", "all certificates", "all small-radius limits"]
    print(table("Time for all words of a text, softmax attention, float64", columns, rows))
    print("\nWanted: under 5 s for all certificates at n = 250, d = 768 on two cores.")


SECTIONS = {"attention": attention, "thorough": thorough, "dense": dense, "known": known, "radii": radii, "time": time}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", action="append", choices=list(SECTIONS), help="only this one; may be repeated")
    parser.add_argument("--quick", action="store_true", help="small sizes, a minute")
    parser.add_argument("--data", help="reviews of your own, in place of the shipped ones")
    parser.add_argument("--threads", type=int, help="torch threads; torch's own choice unless given")
    options = parser.parse_args()
    if options.threads is not None:
        torch.set_num_threads(options.threads)
    print(header("Brackets"))
    make = kinds(options.data)
    for name in options.section or [name for name in SECTIONS if name != "thorough" or options.quick]:
        SECTIONS[name](options.quick, make)


if __name__ == "__main__":
    main()
