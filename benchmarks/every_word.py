"""Does any word fall short of plain gradient ascent? Every word of several reviews, softmax attention at d = 384.

    python -m benchmarks.every_word [--texts 10] [--words 100] [--seed 0] [--starts S] [--generations G]

Plain ascent is benchmarks.straightforward_attention's (step 10, 50 n steps, one random start), all words of a text at
once: its gradients come from the closed form, and the first steps of one word of each text are taken through the whole
map as well and compared.
"""

import argparse
import sys
import time

import torch
from torch import Tensor

import wordsens as ws
from benchmarks.reporting import header, table
from benchmarks.straightforward_attention import plain_ascent
from benchmarks.texts import MINILM_WIDTH, review


def plain_ascent_of_all(
    phi: ws.RandomAttentionFeatures, X: Tensor, *, steps: int | None = None, seed: int = 0, step: float = 10.0
) -> Tensor:
    """The relative change that plain ascent attains for each word, (n,), in 50 n steps from the seed's start."""
    n, d = X.shape
    change = phi.word_change(X)
    words = torch.arange(n)
    radius = d**0.5
    root = (n * d) ** 0.5
    start = torch.randn(d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    delta = _into_ball(start.expand(n, d).clone(), radius)
    best = torch.zeros(n, dtype=torch.float64)
    for _ in range(1 + (50 * n if steps is None else steps)):
        squared, gradient = change.value_and_gradient(delta, words)
        best = torch.maximum(best, squared)
        # The gradient of the root-mean-square change, sqrt(squared / (n d)).
        delta = _into_ball(delta + gradient * (step / (2 * root) / squared.sqrt()).unsqueeze(1), radius)
    return best.sqrt() / change.base_norm


def _into_ball(delta: Tensor, radius: float) -> Tensor:
    norms = delta.norm(dim=1, keepdim=True)
    return torch.where(norms > radius, delta * (radius * (1 - 1e-15) / norms), delta)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=int, default=10, help="how many of the shipped reviews")
    parser.add_argument("--words", type=int, default=100, help="the length each is cut to")
    parser.add_argument("--seed", type=int, action="append", help="of our search; may be repeated")
    parser.add_argument("--starts", type=int, help="of our search; its own choice unless given")
    parser.add_argument("--generations", type=int, help="of our search; its own choice unless given")
    parser.add_argument("--direct", type=int, default=50, help="steps through the whole map that are compared")
    parser.add_argument("--quick", action="store_true", help="one review of 20 words")
    options = parser.parse_args()
    if options.quick:
        options.texts, options.words = 1, 20
    print(header("Every word against plain gradient ascent"))
    rows = []
    for number in range(options.texts):
        X = review(options.words, MINILM_WIDTH, number).rows
        phi = ws.RandomAttentionFeatures(MINILM_WIDTH)
        began = time.perf_counter()
        plain = plain_ascent_of_all(phi, X)
        followed = time.perf_counter() - began
        word = len(X) // 2
        through, _ = plain_ascent(phi.weight, X, word, steps=options.direct)
        closed = float(plain_ascent_of_all(phi, X, steps=options.direct)[word])
        if abs(through / closed - 1) > 1e-10:
            raise SystemExit(f"the closed form left plain ascent within {options.direct} steps: {closed} for {through}")
        for seed in options.seed or [0]:
            began = time.perf_counter()
            ours = ws.word_sensitivity(
                phi,
                X,
                seed=seed,
                search=ws.SearchPlan(starts=options.starts, generations=options.generations),
                certificate=False,
            )
            ratios = ours.per_word / plain
            rows.append(
                [
                    *(str(number), str(seed), f"{int((ratios >= 1 - 1e-9).sum())} of {len(X)}", f"{ratios.min():.6f}"),
                    *(f"{ratios.median():.4f}", f"{ratios.max():.4f}", f"{time.perf_counter() - began:.1f} s"),
                    f"{followed:.0f} s",
                ]
            )
            print(".", end="", flush=True, file=sys.stderr)
    print(
        table(
            f"Every word of {options.texts} reviews, n = {options.words}, d = {MINILM_WIDTH}, softmax attention",
            ["review", "seed", "at least plain", "least ratio", "median", "largest", "ours, all words", "plain, all"],
            rows,
        )
    )


if __name__ == "__main__":
    main()
