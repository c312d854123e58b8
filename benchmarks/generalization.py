"""Generalization after one changed word, against dense weights, a pseudo-inverse and a p x p projector.

python -m benchmarks.generalization [--quick]
"""

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import wordsens as ws
from benchmarks.plain import PlainRegression
from benchmarks.reporting import apart, gigabytes, header, peak_bytes, seconds, table
from wordsens.generalization import TRAININGS


def straightforward(quick: bool) -> None:
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


def main() -> None:
    """One table of what is found, and one of what it costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        way, given = options.one
        print(json.dumps(one_straightforward(way, *json.loads(given))))
        return
    print(header("Generalization after one changed word"))
    straightforward(options.quick)


if __name__ == "__main__":
    main()
