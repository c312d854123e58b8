"""Transformers, trained and random, against a long search of its own: many starts, normalized
ascent by autograd.

    python -m benchmarks.transformers

The long search knows nothing of the map but its values and gradients. Seconds are of CPU.
"""

import time
from statistics import fmean

import torch
from torch import Tensor

import wordsens as ws
from benchmarks.reporting import header, seconds, table

SENTENCES = (
    "The hotel was clean, but the staff did not answer the phone after ten.",
    "Please cancel the second order before it leaves the warehouse on Friday.",
)
WORDS, STARTS = (10,), 16


def long_search(phi: ws.FeatureMap, X: Tensor, word: int, radius: float, steps: int) -> float:
    """The largest relative change that `STARTS` random starts reach in so many steps of falling
    length."""
    base = phi(X)
    delta = torch.randn(STARTS, X.shape[1], generator=torch.Generator().manual_seed(word)).to(X)
    delta = delta * radius / delta.norm(dim=1, keepdim=True)
    best = 0.0
    for size in torch.logspace(0, -2.5, steps).tolist():
        delta = delta.detach().requires_grad_(True)
        texts = torch.cat([X[:word].expand(STARTS, -1, -1), (X[word] + delta).unsqueeze(1)], dim=1)
        texts = torch.cat([texts, X[word + 1 :].expand(STARTS, -1, -1)], dim=1)
        change = (phi(texts) - base).flatten(start_dim=1).norm(dim=1) / base.norm()
        best = max(best, float(change.detach().max()))
        (slope,) = torch.autograd.grad(change.sum(), delta)
        delta = delta.detach() + size * radius * slope / slope.norm(dim=1, keepdim=True)
        delta = delta * (radius / delta.norm(dim=1, keepdim=True)).clamp(max=1.0)
    return best


def problems(name: str) -> list[tuple[ws.FeatureMap, ws.TextMatrix]]:
    """The map, and each of two texts."""
    if name.startswith("minilm"):
        phi = ws.TransformerFeatures.from_pretrained("minilm", **MODELS[name])
        return [(phi, X) for X in phi.embed(SENTENCES)]
    return [
        (
            ws.RandomTransformer(192, 4, heads=4, seed=seed, **MODELS[name]),
            ws.gaussian_text(20, 192, seed=seed),
        )
        for seed in range(len(SENTENCES))
    ]


MODELS = {
    "minilm, its embedding": {"pool": "own"},
    "minilm, layer 3": {"layer": 3},
    "random, pre-norm": {},
    "random, post-norm, MLP": {"norm": "post", "mlp": 256},
}


def row(name: str) -> list[str]:
    """The cells of one model: words of both texts."""
    steps = (
        60 if name.startswith("minilm") else 160
    )  # four times and twice the evaluations of the normal search
    ratios, evaluations, ours, theirs, lengths = [], [], [], [], []
    for phi, X in problems(name):
        began = time.process_time()
        result = ws.word_sensitivity(phi, X, WORDS, certificate=False)
        ours.append((time.process_time() - began) / len(WORDS))
        evaluations.append(result.evaluations / len(WORDS))
        lengths.append(str(len(X.rows)))
        for place, word in enumerate(WORDS):
            began = time.process_time()
            value = long_search(phi, X.rows, word, float(result.radius[place]), steps)
            theirs.append(time.process_time() - began)
            ratios.append(float(result.per_word[place]) / value)
    return [
        *(
            name,
            ", ".join(dict.fromkeys(lengths)),
            str(len(ratios)),
            f"{fmean(evaluations):.0f}",
            seconds(fmean(ours)),
        ),
        *(str(STARTS * steps), seconds(fmean(theirs))),
        f"{min(ratios):.3f} to {max(ratios):.3f}",
    ]


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    print(header("Transformers"), flush=True)
    columns = [
        *("map", "n", "words", "evaluations", "CPU", "long search", "CPU"),
        "S: ours / long",
    ]
    print(
        table(
            "The normal search against a long one, per word",
            columns,
            [row(name) for name in MODELS],
        )
    )


if __name__ == "__main__":
    main()
