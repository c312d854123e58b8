"""A fully connected network on the flattened text."""

import math
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.studies.control.networks.contract import TextNetwork


class DenseNetwork(TextNetwork):
    """h_l = sqrt(2) relu(W_l h_(l-1) + b_l), h_0 = flat(X): one weight for each place of the text.

    Args:
        n, d: the shape of a text.
        hidden: features of every layer.
        layers: how many.
    """

    def __init__(self, n: int, d: int, *, hidden: int, layers: int):
        super().__init__()
        sizes = [n * d] + [hidden] * layers
        self.stack = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.head = nn.Linear(hidden, 1)

    def states(self, texts: Float[Tensor, "*batch n d"]) -> list[Tensor]:
        state, result = texts.flatten(-2), []
        for layer in self.stack:
            state = math.sqrt(2) * torch.relu(layer(state))
            result.append(state)
        return result

    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch h"]:
        return self.states(texts)[-1]

    def certified_layer(self) -> None:
        return None
