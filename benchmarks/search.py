"""All words of a text by the library, beside what one word costs by plain gradient ascent
(benchmarks.plain).

    python -m benchmarks.search

Seconds are of CPU, means over texts. Plain ascent of a word takes 50 n steps, which cost alike: its
cost is that of `STEPS` steps, scaled; its value is the one that these steps reach.
"""

import time
from statistics import fmean

import torch

import wordsens as ws
from benchmarks.plain import plain_ascent
from benchmarks.reporting import header, seconds, table

SIZES = ((100, 384), (100, 768), (250, 384))
TEXTS, STEPS = 3, 1000


def row(score: str, n: int, d: int) -> list[str]:
    """The cells of one score and size; of each text one word is climbed plainly."""
    searched, plain, values, ratios = [], [], [], []
    for seed in range(TEXTS):
        X, phi = (
            ws.gaussian_text(n, d, seed=seed).rows,
            ws.RandomAttentionFeatures(d, score=score, seed=seed),
        )
        began = time.process_time()
        result = ws.word_sensitivity(phi, X, certificate=False)
        searched.append(time.process_time() - began)
        values.append(result.value)
        word = n * seed // TEXTS
        began = time.process_time()
        value, _ = plain_ascent(phi.weight, X, word, score=score, steps=STEPS, seed=seed)
        plain.append((time.process_time() - began) * 50 * n / STEPS)
        ratios.append(float(result.per_word[word]) / value)
    return [
        *(score, str(n), str(d), seconds(fmean(searched)), seconds(fmean(plain))),
        *(
            f"{fmean(searched) / fmean(plain):.3f}",
            f"{fmean(values):.3f}",
            f"{min(ratios):.3f} to {max(ratios):.3f}",
        ),
    ]


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    print(header("Search"))
    rows = [row(score, n, d) for score in ("softmax", "relu") for n, d in SIZES]
    columns = [
        "score",
        "n",
        "d",
        "all n words",
        "one word, plain",
        "ratio",
        "S",
        "S: ours / plain",
    ]
    print(table(f"Random attention, Gaussian texts: means over {TEXTS}", columns, rows))


if __name__ == "__main__":
    main()
