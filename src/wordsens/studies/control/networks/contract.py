"""The contract of a small text network: features, and a linear head that reads a label from them."""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.maps.attention.given_weights import AttentionFeatures
from wordsens.maps.function import FunctionFeatures


class TextNetwork(nn.Module, ABC):
    """A torch module from texts (*batch, n, d) to logits (*batch): head(features(X)), positive for the label +1.

    Attributes:
        head: the linear layer on the features.
    """

    head: nn.Linear

    @abstractmethod
    def states(self, texts: Float[Tensor, "*batch n d"]) -> list[Tensor]:
        """The states behind each layer, lowest first; the axes behind *batch are the layer's features."""

    @abstractmethod
    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch h"]:
        """The vector that the head reads: the phi whose sensitivity is controlled and measured."""

    @abstractmethod
    def certified_layer(self) -> AttentionFeatures | None:
        """The first layer as a map that has certificates; None where it is none."""

    def forward(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch"]:
        return self.head(self.features(texts)).squeeze(-1)

    def feature_map(self, layer: int | None = None) -> FunctionFeatures:
        """A feature map for `ws.word_sensitivity`: the features, or the states behind one layer (1, 2, ...)."""
        if layer is None:
            return FunctionFeatures(self.features, batched=True, name=type(self).__name__)

        def behind(texts: Tensor) -> Tensor:
            return self.states(texts)[layer - 1].flatten(texts.ndim - 2)

        weight = self.head.weight
        name = f"{type(self).__name__}, layer {layer}"
        return FunctionFeatures(behind, batched=True, name=name, dtype=weight.dtype, device=weight.device)


def draw_parameters(network: nn.Module, stream: torch.Generator) -> None:
    """Fill a network with the weights that a stream of random numbers gives, whatever torch's global state.

    A weight of a linear layer is N(0, 1 / its inputs), its bias 0; a LayerNorm starts as the identity.
    """
    for module in network.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=module.in_features**-0.5, generator=stream)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.LayerNorm):
            module.reset_parameters()
