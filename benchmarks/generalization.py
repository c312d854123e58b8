"""Generalization after one changed word: what the errors are, and what they cost.

    python -m benchmarks.generalization [--section NAME ...] [--data FILE] [--quick]

Sections: samples (review embeddings: RF against RAF, sample by sample), full (the paper's sizes: time and memory),
straightforward (against dense weights, a pseudo-inverse and a p x p projector, in one run).

FILE is any source of labelled texts that `ws.read_documents` reads; texts are cut to n = 40 words and never padded.
Without it the samples are of the shipped reviews, which are few.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import Tensor

import wordsens as ws
from benchmarks.plain import PlainRegression
from benchmarks.reporting import apart, gigabytes, header, peak_bytes, seconds, table
from wordsens.generalization import OBJECTIVE_NAMES, TRAININGS
from wordsens.text import texts_of_length

GAMMA = 0.5


def build_map(name: str, n: int, d: int) -> ws.FeatureMap:
    """A map in float32; everything that is solved with its features is float64."""
    if name == "rf":
        return ws.RandomFeatures(n, d, gaussian="lazy", dtype=torch.float32)
    return ws.RandomAttentionFeatures(d, dtype=torch.float32)


def samples(quick: bool, data: str | None) -> None:
    """The least error with gamma <= 1/2 at word 0, and whether an error is below its bound."""
    documents = ws.shipped_reviews() if data is None else ws.read_documents(data)
    count, tried = (30, 2) if data is None or quick else (1000, 20)
    n = 40
    texts = ws.embed(texts_of_length(documents, n, count=count + tried), max_words=n, dtype=torch.float32)
    labels = [text.label for text in texts]
    rows = []
    for name in ("rf", "raf"):
        phi = build_map(name, n, texts[0].rows.shape[1])
        fit = ws.fit_min_norm(phi, texts[:count], labels[:count])
        for training in TRAININGS:
            errors, alignments, below = [], [], 0
            for index in range(count, count + tried):
                new = ws.NewText(fit, texts[index], labels[index] or 1)
                best = new.generalization(training=training)
                errors.append(new.frontier(training=training, gammas=(GAMMA,)).at(GAMMA))
                alignments.append(best.alignment)
                below += best.error < best.bound - 1e-6
            cells = [f"{value:.2f}" for value in (min(errors), median(errors), max(errors))]
            rows.append([f"{name}, {training}", str(tried), *cells, f"{min(alignments):.3f}", str(below)])
    columns = ["map, training", "samples", "least error", "median", "largest", "least F", "errors below the bound"]
    print(table(f"Least error with gamma <= {GAMMA}, word 0, N = {count}, n = {n}", columns, rows))


def full(quick: bool, data: str | None) -> None:
    """Each map in a process of its own: the fit, then a few texts, both trainings and every objective."""
    count, tried, d = (60, 2, 96) if quick else (1300, 20, 768)
    rows = []
    for name, n in (("rf", 40), ("raf", 120)):
        cost = apart("generalization", "full", json.dumps([name, n, d, count, tried]))
        cells = [seconds(cost["fit"]), seconds(cost["samples"]), gigabytes(cost["peak"])]
        rows.append([name, str(n), str(d), f"{cost['features']:,}", f"{count:,}", *cells])
    columns = ["map", "n", "d", "p", "N", "fit", f"{tried} texts", "peak memory"]
    print(table("The paper's sizes: both trainings, every objective; CPU seconds", columns, rows))


def one_full(name: str, n: int, d: int, count: int, tried: int) -> dict[str, Any]:
    """A row of `full`: Gaussian texts, random labels."""
    texts, labels = problem(n, d, count + tried, dtype=torch.float32)
    phi, start = build_map(name, n, d), time.process_time()
    fit = ws.fit_min_norm(phi, texts[:count], labels[:count])
    fitted = time.process_time()
    for index in range(count, count + tried):
        new = ws.NewText(fit, texts[index], float(labels[index]))
        for training in TRAININGS:
            for objective in OBJECTIVE_NAMES:
                if objective != "alignment":  # the training's own of the two named alignments
                    new.generalization(training=training, objective=objective)
    spent = {"fit": fitted - start, "samples": time.process_time() - fitted}
    return {**spent, "features": fit.features.size, "peak": peak_bytes()}


def straightforward(quick: bool, data: str | None) -> None:
    """The same problem twice, each in a process of its own; the library first, whose V the other is then given."""
    n, d, count = (8, 24, 40) if quick else (40, 192, 300)
    with tempfile.TemporaryDirectory() as folder:
        given = [str(Path(folder) / "V.pt"), n, d, count]
        ours, theirs = (apart("generalization", way, json.dumps(given)) for way in ("ours", "plain"))
    rows = []
    for one, other in zip(ours["rows"], theirs["rows"], strict=True):
        numbers = [f"{part[key]:.4f}" for key in ("loss", "error", "gamma") for part in (one, other)]
        rows.append([one["what"], *numbers])
    columns = [f"{key}{whose}" for key in ("loss", "error", "gamma") for whose in ("", ", plainly")]
    print(table(f"RF, n = {n}, d = {d}, k = n d, N = {count}", ["training, objective", *columns], rows))
    rows = [
        [name, seconds(cost["seconds"]), gigabytes(cost["peak"] - cost["before"])]
        for name, cost in (("wordsens", ours), ("straightforward", theirs))
    ]
    print(table("CPU seconds, and memory over the libraries'", ["", "time", "memory"], rows))


def one_straightforward(way: str, file: str, n: int, d: int, count: int) -> dict[str, Any]:
    """One text after both trainings, by the alignment and by the error."""
    texts, labels = problem(n, d, count + 1)
    phi = ws.RandomFeatures(n, d, gaussian="lazy", dtype=torch.float32)
    before, start, rows = peak_bytes(), time.process_time(), []
    if way == "ours":
        new = ws.NewText(ws.fit_min_norm(phi, texts[:-1], labels[:-1]), texts[-1], float(labels[-1]))
    else:
        plain = PlainRegression(torch.load(file, weights_only=True), texts[:-1], labels[:-1])
    for training in TRAININGS:
        for objective in ("alignment", "error"):
            if way == "ours":
                best = new.generalization(training=training, objective=objective)
            else:
                best = plain.descend(texts[-1], float(labels[-1]), 0, training, objective)
            numbers = {"loss": best.loss, "error": best.error, "gamma": best.gamma}
            rows.append({"what": f"{training}, {objective}", **numbers})
    cost = {"seconds": time.process_time() - start, "before": before, "peak": peak_bytes()}
    if way == "ours":  # V in float64; not measured
        blocks = [phi.layers[0].multiply_block(torch.eye(d), word * d).T for word in range(n)]
        torch.save(torch.cat(blocks, dim=1).double(), file)
    return {"rows": rows, **cost}


def problem(n: int, d: int, count: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Gaussian texts (count, n, d) with rows of length sqrt(d), and random labels."""
    stream = torch.Generator().manual_seed(0)
    texts = torch.nn.functional.normalize(torch.randn(count, n, d, generator=stream, dtype=dtype), dim=2) * d**0.5
    return texts, torch.randn(count, generator=stream, dtype=torch.float64).sign()


SECTIONS = {"samples": samples, "full": full, "straightforward": straightforward}


def main() -> None:
    """Run the sections that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--section", action="append", choices=list(SECTIONS), help="only this one; may be repeated")
    parser.add_argument("--data", help="labelled texts, for the samples")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        way, given = options.one[0], json.loads(options.one[1])
        print(json.dumps(one_full(*given) if way == "full" else one_straightforward(way, *given)))
        return
    print(header("Generalization after one changed word"))
    for name in options.section or SECTIONS:
        SECTIONS[name](options.quick, options.data)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
