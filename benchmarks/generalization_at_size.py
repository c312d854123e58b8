"""One map at one size in a process of its own: the fit, then every training and objective for a few texts, as JSON.

    python -m benchmarks.generalization_at_size MAP N_WORDS D TEXTS SAMPLES

Texts are Gaussian and labels random, so that no data is needed. Run by benchmarks.generalization.
"""

import json
import sys

import torch

import wordsens as ws
from benchmarks.process import peak_gigabytes, spent
from wordsens.generalization import OBJECTIVE_NAMES
from wordsens.regression import TRAININGS, MinNormFit


def main() -> None:
    name, *sizes = sys.argv[1:]
    n, d, count, samples = map(int, sizes)
    stream = torch.Generator().manual_seed(0)
    texts = torch.randn(count + samples, n, d, generator=stream)
    texts *= d**0.5 / torch.linalg.vector_norm(texts, dim=2, keepdim=True)
    labels = torch.where(torch.randn(count + samples, generator=stream) > 0, 1.0, -1.0).tolist()
    taken: dict[str, float] = {}
    with spent(taken, "fit"):
        fit = ws.fit_min_norm(build_map(name, n, d), texts[:count], labels[:count])
    with spent(taken, "samples"):
        for index in range(samples):
            every_objective(fit, texts[count + index], labels[count + index])
    print(json.dumps({**taken, "features": fit.features.size, "peak": peak_gigabytes()}))


def build_map(name: str, n: int, d: int, gaussian: str = "lazy") -> ws.FeatureMap:
    """A map in float32; everything that is solved with its features is float64."""
    if name == "rf":
        return ws.RandomFeatures(n, d, gaussian=gaussian, dtype=torch.float32)
    score = {"raf": "softmax", "relu-raf": "relu"}[name]
    return ws.RandomAttentionFeatures(d, score, dtype=torch.float32)


def every_objective(fit: MinNormFit, x: torch.Tensor, label: float) -> list[ws.OneWordGeneralization]:
    """Word 0 for both trainings and every objective. "alignment" is the training's own of the two named ones."""
    new = ws.NewText(fit, x, label)
    return [
        ws.one_word_generalization(fit.phi, None, None, new, None, 0, training, objective)
        for training in TRAININGS
        for objective in OBJECTIVE_NAMES
        if objective != "alignment"
    ]


if __name__ == "__main__":
    main()
