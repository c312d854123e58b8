"""How S of softmax attention grows with n where d follows n: python -m benchmarks.limit [--measure] [--figure FILE].

Prints a Markdown table of the predicted S of a typical word of independent rows, and draws it. With --measure, small
sizes are measured besides, few words of a few texts by the default search. docs/theory/predictions.md records it.
"""

import argparse
import math
import time
from collections.abc import Callable

import torch

import wordsens as ws
from benchmarks.reporting import header, table
from wordsens.figures.panels import Curve, FigureData, Mark, Panel
from wordsens.figures.still import still_figure
from wordsens.figures.styles import series_styles

LENGTHS = (20, 80, 320, 1280, 5120, 20480, 81920)
LAWS: dict[str, Callable[[int], float]] = {
    "d = 4 n": lambda n: 4 * n,
    "d = n": lambda n: n,
    "d = n / 4": lambda n: n / 4,
    "d = 2 sqrt(n) log n": lambda n: 2 * math.sqrt(n) * math.log(n),
    "d = sqrt(n) log(n) / 2": lambda n: math.sqrt(n) * math.log(n) / 2,
    "d = log(n)^3": lambda n: math.log(n) ** 3,
}
MEASURED = {"d = n": (20, 80), "d = n / 4": (80, 320, 1280), "d = sqrt(n) log(n) / 2": (20, 80, 320, 1280)}
TEXTS, WORDS = 4, 4


def predicted() -> dict[str, list[float]]:
    """A law's predictions, a length each."""
    return {name: [ws.theory.raf_sensitivity(n, round(law(n)), words=1) for n in LENGTHS] for name, law in LAWS.items()}


def measured(n: int, d: int) -> torch.Tensor:
    """The mean S of a few words, a text each."""
    found = []
    for seed in range(TEXTS):
        phi, rows = ws.RandomAttentionFeatures(d, seed=seed), ws.gaussian_text(n, d, seed=seed).rows
        found.append(ws.word_sensitivity(phi, rows, words=range(min(n, WORDS)), certificate=False).per_word.mean())
    return torch.stack(found)


def drawn(found: dict[str, list[float]]) -> FigureData:
    """A curve a law."""
    styles = series_styles([(name, None) for name in found])
    curves = tuple(
        Curve(name, style, tuple(Mark(n, value) for n, value in zip(LENGTHS, values, strict=True)), joined=True)
        for (name, values), style in zip(found.items(), styles, strict=True)
    )
    return FigureData(
        title="Predicted S of softmax attention where d follows n",
        caption="Marks are predictions for a typical word of independent rows.",
        x_label="words n",
        y_label="predicted S",
        panels=(Panel("", curves),),
    )


def main() -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure small sizes besides")
    parser.add_argument("--figure", metavar="FILE", help="draw it to a file")
    options = parser.parse_args()
    begin = time.process_time()
    print(header("Softmax attention where d follows n"))
    found = predicted()
    print(
        table(
            "Predicted S of a typical word",
            ["law", *map(str, LENGTHS)],
            [[name, *(f"{one:.2f}" for one in all_)] for name, all_ in found.items()],
        )
    )
    if options.figure:
        still_figure(drawn(found)).savefig(options.figure, dpi=160)
    if options.measure:
        rows = []
        for name, lengths in MEASURED.items():
            for n in lengths:
                d = round(LAWS[name](n))
                values = measured(n, d)
                error = float(values.std()) / math.sqrt(TEXTS)
                expected = ws.theory.raf_sensitivity(n, d, words=1)
                rows.append([name, f"{n}", f"{d}", f"{values.mean():.3f}", f"{error:.3f}", f"{expected:.3f}"])
        print(table("Measured", ["law", "n", "d", "measured", "±", "predicted"], rows))
    print(f"{time.process_time() - begin:.0f} s of processor time")


if __name__ == "__main__":
    main()
