"""The straightforward way to the sensitivity of a model's embedding to one word: plain transformers and torch.

One word at a time, one random start, projected gradient ascent through the whole model, a fixed number of steps.
Imports nothing of wordsens.
"""

import torch
from torch import Tensor


class PlainEmbedding:
    """The normalised mean embedding of a Hugging Face encoder as a function of the rows that enter its first block."""

    def __init__(self, model: torch.nn.Module, blocks: torch.nn.ModuleList):
        self.model, self.first = model.eval().requires_grad_(False), blocks[0]

    def __call__(self, rows: Tensor) -> Tensor:
        handle = self.first.register_forward_pre_hook(lambda _, given: (rows.unsqueeze(0), *given[1:]))
        states = self.model(input_ids=torch.ones(1, len(rows), dtype=torch.long)).last_hidden_state
        handle.remove()
        return torch.nn.functional.normalize(states.mean(dim=1)[0], dim=0)


def plain_sensitivity(phi: PlainEmbedding, rows: Tensor, word: int, *, steps: int, seed: int) -> float:
    """The largest relative change that the ascent meets, within the word's own row norm."""
    radius = rows[word].norm()
    stream = torch.Generator().manual_seed(seed)
    delta = torch.nn.functional.normalize(torch.randn(rows.shape[1], generator=stream), dim=0) * radius
    with torch.no_grad():
        base = phi(rows)
    best = 0.0
    for _ in range(steps):
        delta.requires_grad_()
        text = rows.clone()
        text[word] = text[word] + delta
        change = (phi(text) - base).square().sum()
        (slope,) = torch.autograd.grad(change, delta)
        best = max(best, float(change.detach()) ** 0.5 / float(base.norm()))
        with torch.no_grad():
            delta = delta + 0.2 * radius * torch.nn.functional.normalize(slope, dim=0)
            delta = delta * (radius / delta.norm()).clamp(max=1)
    return best
