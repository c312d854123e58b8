"""RF by the library, or the straightforward way, in a process of its own; what it found and used, as JSON.

    python -m benchmarks.generalization_straightforward library|plain V_FILE N_WORDS D TEXTS

The library runs first and writes the matrix V that it sampled; the straightforward way reads it, so that both have the
same map. Run by benchmarks.generalization.
"""

import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import wordsens as ws
from benchmarks.process import peak_gigabytes, spent
from benchmarks.straightforward_regression import StraightforwardRegression
from wordsens.regression import TRAININGS

SAMPLES = 2
OBJECTIVES = ("alignment", "error")


def main() -> None:
    part, file, *sizes = sys.argv[1:]
    n, d, count = map(int, sizes)
    texts = torch.stack([ws.gaussian_text(n, d, seed=index).rows for index in range(count + SAMPLES)])
    labels = torch.randn(len(texts), generator=torch.Generator().manual_seed(0), dtype=torch.float64).sign()
    idle = peak_gigabytes()
    taken: dict[str, float] = {}
    if part == "library":
        # Features in float32, their Gram matrix and everything solved with it in float64.
        phi = ws.RandomFeatures(n, d, gaussian="lazy", dtype=torch.float32)
        with spent(taken, "work"):
            rows = by_library(phi, texts, labels, count)
        peak = peak_gigabytes()
        torch.save(whole_matrix(phi, n, d), file)
    else:
        with spent(taken, "work"):
            rows = plainly(Path(file), texts, labels, count)
        peak = peak_gigabytes()
    print(json.dumps({"rows": rows, **taken, "idle": idle, "peak": peak}))


def by_library(phi: ws.RandomFeatures, texts: Tensor, labels: Tensor, count: int) -> list[dict[str, Any]]:
    """The fit, and every training and objective for the further texts."""
    fit = ws.fit_min_norm(phi, texts[:count], labels[:count])
    rows = []
    for sample in range(count, len(texts)):
        new = ws.NewText(fit, texts[sample], float(labels[sample]))
        for training in TRAININGS:
            for objective in OBJECTIVES:
                g = ws.one_word_generalization(phi, None, None, new, None, 0, training, objective)
                rows.append(_row(sample - count, training, objective, g.loss, g.error, g.gamma, g.alignment))
    return rows


def plainly(file: Path, texts: Tensor, labels: Tensor, count: int) -> list[dict[str, Any]]:
    """The same with the dense V, a pseudo-inverse, a projector and autograd."""
    plain = StraightforwardRegression(torch.load(file, weights_only=True), texts[:count], labels[:count])
    rows = []
    for sample in range(count, len(texts)):
        for training in TRAININGS:
            for objective in OBJECTIVES:
                found = plain.descend(texts[sample], float(labels[sample]), 0, training, objective)
                numbers = (found.loss, found.error, found.gamma, found.alignment)
                rows.append(_row(sample - count, training, objective, *numbers))
    return rows


def whole_matrix(phi: ws.RandomFeatures, n: int, d: int) -> Tensor:
    """V (k, n d) in float64: what was sampled, and fresh numbers where nothing was asked. Not measured."""
    identity = torch.eye(d)
    blocks = [phi.layers[0].multiply_block(identity, word * d).T for word in range(n)]
    return torch.cat(blocks, dim=1).double()


def _row(sample: int, training: str, objective: str, loss: float, error: float, gamma: float, F: float) -> dict:
    found = {"loss": loss, "error": error, "gamma": gamma, "F": F}
    return {"sample": sample, "training": training, "objective": objective, **found}


if __name__ == "__main__":
    main()
