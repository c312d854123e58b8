"""Small text networks, fully connected or of attention, made from an architecture and a seed."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.errors import InputError, require_choice, require_count, require_positive
from wordsens.maps.attention.given_weights import AttentionBias, AttentionFeatures
from wordsens.maps.attention.scores import SCORES
from wordsens.maps.function import FunctionFeatures
from wordsens.seeds import Seed, generator


class TextNetwork(nn.Module, ABC):
    """A torch module from texts (*batch, n, d) to logits (*batch): head(features(X)), positive for
    the label +1.

    Attributes:
        head: the linear layer on the features.
    """

    head: nn.Linear

    @abstractmethod
    def states(self, texts: Float[Tensor, "*batch n d"]) -> list[Tensor]:
        """The states behind each layer, lowest first; the axes behind *batch are the layer's
        features."""

    @abstractmethod
    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch h"]:
        """The vector that the head reads: the phi whose sensitivity is controlled and measured."""

    @abstractmethod
    def certified_layer(self) -> AttentionFeatures | None:
        """The first layer as a map that has certificates; None where it is none."""

    def forward(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch"]:
        return self.head(self.features(texts)).squeeze(-1)

    def feature_map(self, layer: int | None = None) -> FunctionFeatures:
        """A feature map for `ws.word_sensitivity`: the features, or the states behind one layer (1,
        2, ...)."""
        if layer is None:
            return FunctionFeatures(self.features, batched=True, name=type(self).__name__)

        def behind(texts: Tensor) -> Tensor:
            return self.states(texts)[layer - 1].flatten(texts.ndim - 2)

        weight = self.head.weight
        name = f"{type(self).__name__}, layer {layer}"
        return FunctionFeatures(
            behind, batched=True, name=name, dtype=weight.dtype, device=weight.device
        )


def draw_parameters(network: nn.Module, stream: torch.Generator) -> None:
    """Fill a network with the weights that a stream of random numbers gives, whatever torch's
    global state.

    A weight of a linear layer is N(0, 1 / its inputs), its bias 0; a LayerNorm starts as the
    identity.
    """
    for module in network.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=module.in_features**-0.5, generator=stream)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.LayerNorm):
            module.reset_parameters()


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


POOLINGS = ("mean", "max", "first")


class AttentionBlock(nn.Module):
    """Y = a(Q K^T / (T sqrt(d))) V with Q = X W_q + b_q, K = X W_k + b_k, V = X W_v; V = X without
    a value matrix.

    a: the score, row by row; scores that are not divided by their sum are divided by n. With
    `residual` X is added, with `norm` each row goes through LayerNorm; with `mlp` each row then
    goes through a layer of `hidden` ReLU units, which has its own residual and LayerNorm (after it,
    as in BERT). There are no positions: the block is equivariant.
    """

    def __init__(
        self,
        d: int,
        *,
        score: str,
        temperature: float,
        value: bool,
        residual: bool,
        norm: bool,
        mlp: int | None,
    ):
        super().__init__()
        self._score, self._scale, self._residual = (
            SCORES[score],
            1 / (temperature * math.sqrt(d)),
            residual,
        )
        self.query, self.key = nn.Linear(d, d), nn.Linear(d, d)
        self.value = nn.Linear(d, d, bias=False) if value else None
        self.norm = nn.LayerNorm(d) if norm else None
        self.mlp = (
            None if mlp is None else nn.Sequential(nn.Linear(d, mlp), nn.ReLU(), nn.Linear(mlp, d))
        )
        self.mlp_norm = nn.LayerNorm(d) if norm and mlp is not None else None

    def forward(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        scores = (self.query(texts) * self._scale) @ self.key(texts).transpose(-1, -2)
        weights = self._score.attention(scores)
        if not self._score.normalized:
            weights = weights / texts.shape[-2]
        state = weights @ (texts if self.value is None else self.value(texts))
        state = self._joined(texts, state, self.norm)
        return state if self.mlp is None else self._joined(state, self.mlp(state), self.mlp_norm)

    def alone(self) -> AttentionFeatures | None:
        """The block in float64, where it is attention and nothing besides."""
        if self._residual or self.norm is not None or self.mlp is not None:
            return None
        parts = [
            part.detach().double() for part in (*self.query.parameters(), *self.key.parameters())
        ]
        query, on_query, key, on_key = parts
        temperature = 1 / (self._scale * math.sqrt(len(query)))
        return AttentionFeatures(
            query.mT / temperature,
            key.mT,
            None if self.value is None else self.value.weight.detach().double().mT,
            score=self._score,
            bias=AttentionBias(query=on_query / temperature, key=on_key),
        )

    def _joined(self, before: Tensor, after: Tensor, norm: nn.LayerNorm | None) -> Tensor:
        state = before + after if self._residual else after
        return state if norm is None else norm(state)


class AttentionNetwork(TextNetwork):
    """Blocks of attention, then the rows pooled into one vector: their mean, largest entries, or
    the first row."""

    def __init__(self, d: int, blocks: list[AttentionBlock], *, pooling: str):
        super().__init__()
        self.blocks = nn.ModuleList(blocks)
        self._pooling = pooling
        self.head = nn.Linear(d, 1)

    def states(self, texts: Float[Tensor, "*batch n d"]) -> list[Tensor]:
        state, result = texts, []
        for block in self.blocks:
            state = block(state)
            result.append(state)
        return result

    def certified_layer(self) -> AttentionFeatures | None:
        block = self.blocks[0]
        assert isinstance(block, AttentionBlock)
        return block.alone()

    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch d"]:
        rows = self.states(texts)[-1]
        if self._pooling == "mean":
            return rows.mean(dim=-2)
        return torch.amax(rows, dim=-2) if self._pooling == "max" else rows[..., 0, :]


DENSE = "dense"
LAYER_NAMES = (DENSE, *SCORES)
MOST_LAYERS = 64
"""Beyond what trains on a processor in minutes, and before a mistyped number fills the memory."""


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
        require_choice("layer", self.layer, LAYER_NAMES)
        require_choice("pooling", self.pooling, POOLINGS)
        require_count("layers", self.layers, most=MOST_LAYERS)
        require_count("hidden", self.hidden)
        require_positive("temperature", self.temperature)
        if self.layer == DENSE:
            for name in ("temperature", "value", "residual", "norm", "mlp", "pooling"):
                if getattr(self, name) != getattr(Architecture, name):
                    raise InputError(
                        f"`{name}` (={getattr(self, name)!r}) is an option of attention, and "
                        "`layer` is 'dense'; "
                        "drop it"
                    )

    @classmethod
    def transformer(cls, layers: int, **options: object) -> "Architecture":
        """Softmax attention with all that a transformer has: value matrices, residual connections,
        LayerNorm, MLPs."""
        return cls(**{"layers": layers, "residual": True, "norm": True, "mlp": True, **options})  # pyright: ignore


def build_network(
    architecture: Architecture,
    n: int,
    d: int,
    seed: Seed = 0,
    *,
    dtype: torch.dtype = torch.float32,
) -> TextNetwork:
    """The network of that architecture for texts (n, d), with weights that the seed decides.

    Attention takes texts of any length; n is for dense layers.

    >>> network = build_network(Architecture(layer="relu", mlp=True), 5, 8, seed=1)
    >>> network(torch.ones(3, 5, 8)).shape, network.feature_map()
    (torch.Size([3]), FunctionFeatures(AttentionNetwork, batched=True, dtype=float32))
    """
    require_count("n", n, least=2)
    require_count("d", d)
    one = architecture
    # On no device yet: torch would fill the weights from its global state, which is then changed.
    with torch.device("meta"):
        network: TextNetwork
        if one.layer == DENSE:
            network = DenseNetwork(n, d, hidden=one.hidden, layers=one.layers)
        else:
            blocks = [
                AttentionBlock(
                    d,
                    score=one.layer,
                    temperature=one.temperature,
                    value=one.value,
                    residual=one.residual,
                    norm=one.norm,
                    mlp=one.hidden if one.mlp else None,
                )
                for _ in range(one.layers)
            ]
            network = AttentionNetwork(d, blocks, pooling=one.pooling)
    network = network.to_empty(device="cpu").to(dtype)
    draw_parameters(network, generator(seed, "network"))
    return network
