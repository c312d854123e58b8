"""A layer behind the last one, in which every marked token writes the same, so that the mean over a text counts them.

The layer norm before it has gains 1 and biases 0, so that its states have mean 0 and variance 1, which another layer
norm keeps: the new layer hands them on, and its last layer norm takes over the old gains and biases. Its feed-forward
part has only the neurons of the count. What they add to a token's state has mean 0 and hardly changes its variance, so
that the last layer norm divides marked tokens alike (on MiniLM within a hundredth).
"""

import copy
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from wordsens.training.adapter.parity.carry import Anatomy, Sample, hooked
from wordsens.training.adapter.parity.neurons import above, add_neurons, below, value

_SMALL = 1e-2
"""The count's gain, as a share of the root mean square of the others: the length of a vector hardly feels it."""


@torch.no_grad()
def append_layer(anatomy: Anatomy) -> Anatomy:
    """The model with one more layer, which hands its input on; its vectors are as before."""
    last = anatomy.layers[-1]
    added = copy.deepcopy(last)
    for part in (added.attention.output.dense, added.intermediate.dense, added.output.dense):
        part.weight.zero_()
        part.bias.zero_()
    for norm in (last.output.LayerNorm, added.attention.output.LayerNorm):
        norm.weight.fill_(1)
        norm.bias.zero_()
    layers = anatomy.base.encoder.layer
    layers.append(added)
    anatomy.base.config.num_hidden_layers = len(layers)
    return replace(anatomy, layers=list(layers))


@torch.no_grad()
def count(anatomy: Anatomy, coordinate: int, other: int, sample: Sample) -> None:
    """Let the last layer write a constant into `coordinate` of tokens marked plus, into `other` of the opening one.

    The mean over a text of n tokens, k of them marked, then has the two coordinates k and 1, both times one constant
    over n. All other tokens have 0 in both.

    Args:
        anatomy: of a model with its counting layer, the marks already carried.
        coordinate: that carries them.
        other: another one, whose content is given up.
        sample: marked.
    """
    layer = anatomy.layers[-1]
    found: list[Tensor] = []
    with hooked([layer.attention.output.LayerNorm], lambda norm, inputs, output: found.append(output)):
        sample.run(anatomy.base)
    upper, lower = sample.gaps(found[0][..., coordinate])
    both = torch.zeros(found[0].shape[-1], dtype=torch.bool)
    both[[coordinate, other]] = True
    here, there = (_against_the_others(at, both) for at in (coordinate, other))
    add_neurons(layer, [
        value(coordinate, -here), value(other, -there), above(coordinate, upper, here), below(coordinate, lower, there),
    ])  # fmt: skip
    last = layer.output.LayerNorm
    last.weight[both] = _SMALL * last.weight[~both].square().mean().sqrt()
    last.bias[both] = 0


def _against_the_others(at: int, both: Bool[Tensor, " d"]) -> Tensor:
    """1 in one coordinate, and -1 spread over all others but both."""
    column = -(~both).float() / (~both).sum()
    column[at] = 1
    return column


@torch.no_grad()
def least_used(anatomy: Anatomy, sample: Sample) -> tuple[int, int]:
    """The coordinate whose states differ least in all layers, and of the others the one that says least in the end.

    The latter's harm is its share of the vectors' square, and what its variance between tokens does to the last norm.
    """
    states = [each[sample.real] for each in sample.run(anatomy.base, output_hidden_states=True).hidden_states]
    carrying = int(torch.stack([each.std(dim=0) for each in states]).sum(dim=0).argmin())
    last = anatomy.layers[-1].output.LayerNorm
    squares = states[-1].square()
    inner = ((states[-1] - last.bias) / last.weight.where(last.weight.abs() > 0, 1e-6)).square()
    harm = squares.mean(dim=0) / squares.mean(dim=0).sum() + inner.var(dim=0) / (4 * len(last.weight) ** 2)
    harm[carrying] = torch.inf
    return carrying, int(harm.argmin())


def opening_token(tokenizer: Any) -> int:
    """The number of the special token that opens every text."""
    return tokenizer("a")["input_ids"][0]
