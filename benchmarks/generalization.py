"""Generalization after one changed word: three tables.

    python -m benchmarks.generalization samples --data FILE     review embeddings, N = 1,000: RF against RAF
    python -m benchmarks.generalization full                    the paper's sizes: time and memory
    python -m benchmarks.generalization straightforward         against dense weights and a pseudo-inverse, in one run

FILE is any source that `wordsens.text.read_documents` reads, with at least N + samples texts of n tokens; the
environment variable WORDSENS_IMDB stands in for it. Texts are cut to n tokens and never padded.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

import wordsens as ws
from wordsens.regression import TRAININGS, MinNormFit

OBJECTIVES = ("fine-tuned-alignment", "retrained-alignment", "error", "penalized-error")
LIMITS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75)
STRAIGHTFORWARD = {"n": 40, "d": 192, "texts": 300, "samples": 2, "seed": 0}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("samples", "full", "straightforward", "library-part", "plain-part"))
    parser.add_argument("--data", default=os.environ.get("WORDSENS_IMDB"))
    parser.add_argument("--texts", type=int, default=None, help="N")
    parser.add_argument("--samples", type=int, default=20)
    parser.add_argument("--words", type=int, default=40, help="n, of the samples table")
    parser.add_argument("--maps", default="rf,raf")
    parser.add_argument("--every-word", type=int, default=None, help="samples whose best word of all is searched too")
    parser.add_argument("--folder", type=Path, default=None, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.table == "samples":
        samples_table(arguments)
    elif arguments.table == "full":
        full_table(arguments)
    elif arguments.table == "straightforward":
        straightforward_table()
    elif arguments.table == "library-part":
        library_part(arguments.folder)
    else:
        plain_part(arguments.folder)


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def built(name: str, n: int, d: int, gaussian: str = "lazy") -> ws.FeatureMap:
    if name == "rf":
        return ws.RandomFeatures(n, d, gaussian=gaussian, dtype=torch.float32)
    return ws.RandomAttentionFeatures(d, {"raf": "softmax", "relu-raf": "relu"}[name], dtype=torch.float32)


def samples_table(arguments: argparse.Namespace) -> None:
    """Each sample's frontier at word 0 and at the best of all words, and RF's error against the finite-sample bound."""
    if arguments.data is None:
        sys.exit("--data (or WORDSENS_IMDB) names no reviews; this table needs about a thousand long ones")
    count, samples, n = arguments.texts or 1000, arguments.samples, arguments.words
    documents = ws.texts_of_length(ws.read_documents(arguments.data), n, count=count + samples)
    texts = ws.embed(documents, max_words=n, dtype=torch.float32)
    labels = [text.label for text in texts]
    d = texts[0].rows.shape[1]
    print(f"MiniLM embeddings, n = {n}, d = {d}, N = {count}; Err at the least found; g is the limit on gamma")
    for name in arguments.maps.split(","):
        # Every word is searched, so that all of V is needed: kept dense where it fits.
        phi = built(name, n, d, "dense" if 4 * (n * d) ** 2 < 2 << 30 else "lazy")
        begin = time.perf_counter()
        fit = ws.fit_min_norm(phi, texts[:count], labels[:count])
        accuracy = fit.accuracy(texts[count:], labels[count:])
        print(
            f"\n{name}: fit {time.perf_counter() - begin:.1f} s, condition {fit.conditioning.condition:.0f}, ", end=""
        )
        print(f"held-out accuracy {accuracy:.2f} on {samples} samples")
        print(
            "sample   y f(X) | training     F(err)  Err   bound"
            " | word 0: g=.1   .25   .5   1.0 | all:  .1   .25   .5   1.0"
        )
        at_half: dict[tuple[str, str], list[float]] = {}
        least_alignment, below = 1.0, 0
        for index in range(samples):
            new = ws.NewText(fit, texts[count + index], labels[count + index] or 1)
            for training in TRAININGS:
                g = ws.one_word_generalization(phi, None, None, new, None, 0, training, "error")
                low = ws.one_word_generalization(phi, None, None, new, None, 0, training, "alignment")
                least_alignment = min(least_alignment, low.alignment)
                below += sum(one.error < one.bound - 1e-6 for one in (g, low))
                line = f"{index:>6}   {new.output_before * new.label:+.2f}   | {training:<10}  {g.alignment:+.2f}   "
                line += f"{g.error:.3f} {g.bound:.3f} |"
                for word in (
                    (0, None) if index < (samples if arguments.every_word is None else arguments.every_word) else (0,)
                ):
                    frontier = ws.one_word_frontier(phi, None, None, new, None, word, training, LIMITS)
                    at_half.setdefault((training, "word 0" if word == 0 else "best word"), []).append(frontier.at(0.5))
                    line += "   " + " ".join(f"{frontier.at(limit):5.2f}" for limit in (0.1, 0.25, 0.5, 1.0)) + " |"
                print(line, flush=True)
        print(f"least F of all: {least_alignment:.3f}; errors below their finite-sample bound: {below}")
        for (training, word), errors in at_half.items():
            ranked = sorted(errors)
            print(
                f"least Err at g = .5, {training}, {word}: min {ranked[0]:.2f}, median {ranked[len(ranked) // 2]:.2f}, "
                f"max {ranked[-1]:.2f}; under .5 in {sum(error < 0.5 for error in errors)} of {len(errors)}"
            )


def full_table(arguments: argparse.Namespace) -> None:
    """The paper's sizes on Gaussian texts: each map in a process of its own would need no more than its row says."""
    count, samples, d = arguments.texts or 1300, arguments.samples, 768
    print("map    n     p       N     fit    20 samples, 2 trainings, all objectives   peak so far")
    for name in arguments.maps.split(","):
        n = 120 if name == "raf" else 40
        stream = torch.Generator().manual_seed(0)
        texts = torch.randn(count + samples, n, d, generator=stream)
        texts *= d**0.5 / torch.linalg.vector_norm(texts, dim=2, keepdim=True)
        labels = torch.where(torch.randn(count + samples, generator=stream) > 0, 1.0, -1.0).tolist()
        phi = built(name, n, d)
        begin = time.perf_counter()
        fit = ws.fit_min_norm(phi, texts[:count], labels[:count])
        fitted = time.perf_counter() - begin
        begin = time.perf_counter()
        for index in range(samples):
            every_objective(fit, texts[count + index], labels[count + index])
        taken = time.perf_counter() - begin
        print(
            f"{name:<5} {n:>4} {fit.features.size:>7} {count:>6} {fitted:>6.1f} s  {taken:>8.1f} s for {samples}"
            f" samples{'':>12} {peak_gigabytes():.2f} GB",
            flush=True,
        )


def every_objective(fit: MinNormFit, x: torch.Tensor, label: float) -> list[ws.OneWordGeneralization]:
    new = ws.NewText(fit, x, label)
    return [
        ws.one_word_generalization(fit.phi, None, None, new, None, 0, training, objective)
        for training in TRAININGS
        for objective in OBJECTIVES
    ]


def straightforward_table() -> None:
    """Both on the same problem, each in a process of its own; the library first, whose V the other is then given."""
    with tempfile.TemporaryDirectory() as folder:
        for part in ("library-part", "plain-part"):
            subprocess.run([sys.executable, "-m", "benchmarks.generalization", part, "--folder", folder], check=True)
        library, plain = (json.loads((Path(folder) / f"{name}.json").read_text()) for name in ("library", "plain"))
    n, d = STRAIGHTFORWARD["n"], STRAIGHTFORWARD["d"]
    print(f"RF, d = {d}, n = {n}, k = D = {n * d}, N = {STRAIGHTFORWARD['texts']}; library: float32 features")
    print("sample training    objective   library: loss  Err    gamma  F      straightforward: loss  Err    gamma  F")
    for ours, theirs in zip(library["rows"], plain["rows"], strict=True):
        print(f"{ours[0]:>6} {ours[1]:<11} {ours[2]:<10} ", end="")
        print("         " + "  ".join(f"{value:.3f}" for value in ours[3:]), end="")
        print("          " + "  ".join(f"{value:.3f}" for value in theirs[3:]))
    ratio = plain["seconds"] / library["seconds"]
    print(f"time   {library['seconds']:.2f} s against {plain['seconds']:.1f} s: {ratio:.0f} x")
    print(
        f"memory {library['gigabytes']:.2f} GB against {plain['gigabytes']:.2f} GB: "
        f"{plain['gigabytes'] / library['gigabytes']:.1f} x; "
        f"beyond the {library['idle']:.2f} GB of Python and torch: "
        f"{(plain['gigabytes'] - plain['idle']) / (library['gigabytes'] - library['idle']):.1f} x"
    )


def straightforward_data() -> tuple[torch.Tensor, torch.Tensor]:
    setting = STRAIGHTFORWARD
    count = setting["texts"] + setting["samples"]
    texts = torch.stack([ws.gaussian_text(setting["n"], setting["d"], seed=index).rows for index in range(count)])
    labels = torch.randn(count, generator=torch.Generator().manual_seed(setting["seed"]), dtype=torch.float64).sign()
    return texts, labels


def library_part(folder: Path) -> None:
    n, d, count = STRAIGHTFORWARD["n"], STRAIGHTFORWARD["d"], STRAIGHTFORWARD["texts"]
    texts, labels = straightforward_data()
    idle = peak_gigabytes()
    begin = time.perf_counter()
    # Features in float32, their Gram matrix and everything solved with it in float64.
    phi = ws.RandomFeatures(n, d, gaussian="lazy", seed=STRAIGHTFORWARD["seed"], dtype=torch.float32)
    fit = ws.fit_min_norm(phi, texts[:count], labels[:count])
    rows = []
    for index in range(STRAIGHTFORWARD["samples"]):
        new = ws.NewText(fit, texts[count + index], float(labels[count + index]))
        for training in TRAININGS:
            for objective in ("alignment", "error"):
                g = ws.one_word_generalization(phi, None, None, new, None, 0, training, objective)
                rows.append([index, training, objective, g.loss, g.error, g.gamma, g.alignment])
    seconds, gigabytes = time.perf_counter() - begin, peak_gigabytes()
    (folder / "library.json").write_text(
        json.dumps({"rows": rows, "seconds": seconds, "gigabytes": gigabytes, "idle": idle})
    )
    # Not measured: the matrix that was sampled, filled in where nothing was asked of it, for the other implementation.
    identity = torch.eye(d)
    V = torch.cat([phi.layers[0].multiply_block(identity, word * d).T for word in range(n)], dim=1)
    torch.save(V.double(), folder / "V.pt")


def plain_part(folder: Path) -> None:
    from benchmarks.straightforward_regression import StraightforwardRegression

    texts, labels = straightforward_data()
    count = STRAIGHTFORWARD["texts"]
    idle = peak_gigabytes()
    begin = time.perf_counter()
    V = torch.load(folder / "V.pt", weights_only=True)
    plain = StraightforwardRegression(V, texts[:count], labels[:count])
    rows = []
    for index in range(STRAIGHTFORWARD["samples"]):
        for training in TRAININGS:
            for objective in ("alignment", "error"):
                found = plain.descend(texts[count + index], float(labels[count + index]), 0, training, objective)
                rows.append([index, training, objective, found.loss, found.error, found.gamma, found.alignment])
    seconds = time.perf_counter() - begin
    (folder / "plain.json").write_text(
        json.dumps({"rows": rows, "seconds": seconds, "gigabytes": peak_gigabytes(), "idle": idle})
    )


if __name__ == "__main__":
    main()
