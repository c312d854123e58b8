"""Every layer of MiniLM, and its mean and CLS embeddings: S against the number of rows n, with exponents.

python -m benchmarks.minilm_layers [--data D] [--texts 3] [--words 5] [--figure FILE] [--quick]

Each point is the largest relative change over a random sample of a text's words (special tokens left out), radius the
word's own row norm: attained, so a lower bound of S. The exponent is the least-squares slope of log S on log n over all
texts, with its standard error.
"""

import argparse
import math
from pathlib import Path

import torch

import wordsens as ws
from benchmarks.reporting import header, table
from wordsens.seeds import generator
from wordsens.statistics.power_law import fit_power_law

SIZES = (16, 32, 64, 128, 256)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", default="shipped")
    parser.add_argument("--texts", type=int, default=3)
    parser.add_argument("--words", type=int, default=5)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    sizes = SIZES[:3] if arguments.quick else SIZES
    count = 1 if arguments.quick else arguments.texts
    print(header("Layers of MiniLM: S against n"))
    phi = ws.TransformerFeatures.from_pretrained("minilm")
    maps = {f"layer {layer}": phi.at(layer=layer) for layer in range(1, 7)}
    maps |= {"mean": phi.at(pool="mean"), "cls": phi.at(pool="cls")}
    found: dict[str, dict[int, list[float]]] = {name: {n: [] for n in sizes} for name in maps}
    for n in sizes:
        for at, text in enumerate(_texts(arguments.data, n, count)):
            (X,) = phi.embed(text, max_words=n - 2)
            drawn = torch.randperm(n - 2, generator=generator(0, "words", n, at))[: arguments.words] + 1
            for name, one in maps.items():
                found[name][n].append(ws.word_sensitivity(one, X, words=drawn).value)
            print(
                f"n = {n}, text {at}: " + ", ".join(f"{name} {own[n][-1]:.3f}" for name, own in found.items()),
                flush=True,
            )
    rows = []
    for name, own in found.items():
        fit = fit_power_law(
            [n for n, values in own.items() for _ in values], [value for values in own.values() for value in values]
        )
        slope = f"{fit.exponent:+.2f} ± {fit.standard_error:.2f}"
        rows.append([name, *(f"{sum(values) / len(values):.2f}" for values in own.values()), slope])
    print(table("S, mean over texts", ["map", *(f"n = {n}" for n in sizes), "exponent"], rows))
    if arguments.figure is not None:
        _figure(found, arguments.figure)


def _texts(data: str, n: int, count: int) -> list[str]:
    documents = ws.read_documents(data, labels=False, skip_empty=True)
    return [document.text for document in ws.texts_of_length(documents, n - 2, count=count)]


def _figure(found: dict[str, dict[int, list[float]]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.2, 3.4), layout="constrained")
    axes = figure.subplots()
    for at, (name, own) in enumerate(found.items()):
        means = [math.exp(sum(map(math.log, values)) / len(values)) for values in own.values()]
        style = {"color": str(0.75 - 0.125 * at)} if name.startswith("layer") else {"linestyle": "--", "linewidth": 2}
        axes.plot(list(own), means, marker="o", markersize=3, label=name, **style)
    sizes = list(next(iter(found.values())))
    axes.plot(
        sizes, [math.sqrt(sizes[0] / n) * 0.5 for n in sizes], ":", color="#777777", label=r"falls as $1/\sqrt{n}$"
    )
    axes.set(
        xscale="log", yscale="log", xlabel="rows n", ylabel="word sensitivity S (attained)", title="all-MiniLM-L6-v2"
    )
    axes.set_xticks(sizes, [str(n) for n in sizes])
    axes.minorticks_off()
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_yticks([0.3, 0.5, 1, 2, 3])
    axes.legend(fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    figure.savefig(path, dpi=200)


if __name__ == "__main__":
    main()
