"""Small text networks, fully connected or of attention, made from an architecture and a seed."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.errors import InputError, require_choice, require_count, require_positive
from wordsens.maps.attention.given_weights import AttentionBias, AttentionFeatures
from wordsens.maps.attention.scores import SCORES
from wordsens.maps.function import FunctionFeatures
from wordsens.seeds import Seed, generator

DENSE = "dense"

POOLINGS: dict[str, Callable[[Tensor], Tensor]] = {
    "mean": lambda rows: rows.mean(dim=-2),
    "max": lambda rows: torch.amax(rows, dim=-2),
    "first": lambda rows: rows[..., 0, :],
}

# Beyond what trains on a processor in minutes, and before a mistyped number fills the memory.
MOST_LAYERS = 64


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The architecture of a text network.

    Attributes:
        layer: "dense" for layers on the flattened text, or the score of attention: softmax, relu,
            ...
        layers: how many, one above the other.
        hidden: features of a dense layer; ReLU units of the MLP of a block.
        temperature: what the scores are divided by, besides sqrt(d).
        value, residual, norm, mlp: whether a block of attention has a value matrix, residual
            connections, LayerNorm, an MLP.
        pooling: of the last rows: mean, max or first.

    Raises:
        InputError: an unknown layer or pooling, a number out of range, or options of attention for
            dense layers.

    >>> Architecture(layer="dense", mlp=True)
    Traceback (most recent call last):
    wordsens.errors.InputError: `mlp` (=True) is an option of attention, and `layer` is 'dense'; drop it
    """  # noqa: E501

    layer: str = "softmax"
    layers: int = 1
    hidden: int = 64
    temperature: float = 1.0
    value: bool = True
    residual: bool = False
    norm: bool = False
    mlp: bool = False
    pooling: str = "mean"

    def __post_init__(self) -> None:
        require_choice("layer", self.layer, (DENSE, *SCORES))
        require_choice("pooling", self.pooling, POOLINGS)
        require_count("layers", self.layers, most=MOST_LAYERS)
        require_count("hidden", self.hidden)
        require_positive("temperature", self.temperature)
        for name in OF_ATTENTION if self.layer == DENSE else ():
            if getattr(self, name) != getattr(Architecture, name):
                raise InputError(
                    f"`{name}` (={getattr(self, name)!r}) is an option of attention, and `layer` "
                    "is 'dense'; drop it"
                )


OPTIONS = {option.name: option for option in fields(Architecture)}
OF_ATTENTION = tuple(OPTIONS)[3:]


class TextNetwork(nn.Module):
    """A torch module from texts (*batch, n, d) to logits (*batch): head(features(X)), positive for
    the label +1.

    Attributes:
        blocks: the layers, lowest first.
        head: the linear layer on the features.
    """

    def __init__(
        self, blocks: Iterable[nn.Module], features: int, pool: Callable[[Tensor], Tensor]
    ):
        super().__init__()
        self.blocks, self._pool = nn.ModuleList(blocks), pool
        self.head = nn.Linear(features, 1)

    def states(self, texts: Float[Tensor, "*batch n d"]) -> list[Tensor]:
        """The states behind each layer, lowest first; the axes behind *batch are the layer's
        features."""
        states = [texts]
        for block in self.blocks:
            states.append(block(states[-1]))
        return states[1:]

    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch h"]:
        """The vector that the head reads: the phi whose sensitivity is controlled and measured."""
        return self._pool(self.states(texts)[-1])

    def forward(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch"]:
        return self.head(self.features(texts)).squeeze(-1)

    def feature_map(self, layer: int | None = None) -> FunctionFeatures:
        """A feature map for `ws.word_sensitivity`: the features, or the states behind one layer (1,
        2, ...)."""
        weight = self.head.weight
        return FunctionFeatures(
            self.features
            if layer is None
            else lambda texts: self.states(texts)[layer - 1].flatten(texts.ndim - 2),
            batched=True,
            name="TextNetwork" if layer is None else f"TextNetwork, layer {layer}",
            dtype=weight.dtype,
            device=weight.device,
        )

    def certified_layer(self) -> AttentionFeatures | None:
        """The first layer as a map that has certificates; None where it is none."""
        block = self.blocks[0]
        return block.alone() if isinstance(block, AttentionBlock) else None


class DenseLayer(nn.Linear):
    """sqrt(2) relu(W h + b); the h of the first layer is the flattened text, so that each place of
    it has a weight."""

    def forward(self, input: Tensor) -> Tensor:
        state = input if input.shape[-1] == self.in_features else input.flatten(-2)
        return math.sqrt(2) * torch.relu(super().forward(state))


class AttentionBlock(nn.Module):
    """Y = a(Q K^T / (T sqrt(d))) V with Q = X W_q + b_q, K = X W_k + b_k, V = X W_v; V = X without
    a value matrix.

    a: the score, row by row; scores that are not divided by their sum are divided by n. With
    `residual` X is added, with `norm` each row goes through LayerNorm; with `mlp` each row then
    goes through a layer of `hidden` ReLU units, which has its own residual and LayerNorm (after it,
    as in BERT). There are no positions: the block is equivariant.
    """

    def __init__(self, d: int, architecture: Architecture):
        super().__init__()
        self._of, hidden = architecture, architecture.hidden
        self._scale = 1 / (architecture.temperature * math.sqrt(d))
        self.query, self.key = nn.Linear(d, d), nn.Linear(d, d)
        self.value = nn.Linear(d, d, bias=False) if architecture.value else None
        self.norm = nn.LayerNorm(d) if architecture.norm else None
        parts = (nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, d))
        self.mlp = nn.Sequential(*parts) if architecture.mlp else None
        self.mlp_norm = nn.LayerNorm(d) if architecture.norm and architecture.mlp else None

    def forward(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        score = SCORES[self._of.layer]
        scores = (self.query(texts) * self._scale) @ self.key(texts).mT
        weights = score.attention(scores) / (1 if score.normalized else texts.shape[-2])
        attended = weights @ (texts if self.value is None else self.value(texts))
        state = self._joined(texts, attended, self.norm)
        return state if self.mlp is None else self._joined(state, self.mlp(state), self.mlp_norm)

    def _joined(self, before: Tensor, after: Tensor, norm: nn.LayerNorm | None) -> Tensor:
        state = before + after if self._of.residual else after
        return state if norm is None else norm(state)

    def alone(self) -> AttentionFeatures | None:
        """The block in float64, where it is attention and nothing besides."""
        if self._of.residual or self._of.norm or self._of.mlp:
            return None
        weights = {name: one.detach().double() for name, one in self.named_parameters()}
        temperature = self._of.temperature
        bias = AttentionBias(query=weights["query.bias"] / temperature, key=weights["key.bias"])
        return AttentionFeatures(
            weights["query.weight"].mT / temperature,
            weights["key.weight"].mT,
            weights["value.weight"].mT if self._of.value else None,
            score=SCORES[self._of.layer],
            bias=bias,
        )


def build_network(
    architecture: Architecture,
    n: int,
    d: int,
    seed: Seed = 0,
    *,
    dtype: torch.dtype = torch.float32,
) -> TextNetwork:
    """The network of that architecture for texts (n, d), with weights that the seed decides: of a
    linear layer N(0, 1 / its inputs), biases 0; a LayerNorm starts as the identity.

    Attention takes texts of any length; n is for dense layers.

    >>> network = build_network(Architecture(layer="relu", mlp=True), 5, 8, seed=1)
    >>> network(torch.ones(3, 5, 8)).shape, network.feature_map()
    (torch.Size([3]), FunctionFeatures(TextNetwork, batched=True, dtype=float32))
    """
    require_count("n", n, least=2)
    require_count("d", d)
    layers, hidden = architecture.layers, architecture.hidden
    # On no device yet: torch would fill the weights from its global state, which is then changed.
    with torch.device("meta"):
        if architecture.layer == DENSE:
            blocks = [DenseLayer(*sizes) for sizes in pairwise([n * d, *[hidden] * layers])]
            network = TextNetwork(blocks, hidden, lambda state: state)
        else:
            blocks = [AttentionBlock(d, architecture) for _ in range(layers)]
            network = TextNetwork(blocks, d, POOLINGS[architecture.pooling])
    network, stream = network.to_empty(device="cpu").to(dtype), generator(seed, "network")
    for name, weights in network.named_parameters():
        if weights.ndim == 2:
            nn.init.normal_(weights, std=weights.shape[1] ** -0.5, generator=stream)
        else:
            nn.init.constant_(weights, float("norm.weight" in name))
    return network
