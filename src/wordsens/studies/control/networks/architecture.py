"""The architecture of a small text network as data, and the network that a seed makes of it."""

from dataclasses import dataclass

import torch

from wordsens.errors import InputError, require_choice, require_count, require_positive
from wordsens.maps.attention.scores import SCORES
from wordsens.seeds import Seed, generator
from wordsens.studies.control.networks.attention import POOLINGS, AttentionBlock, AttentionNetwork
from wordsens.studies.control.networks.contract import TextNetwork, draw_parameters
from wordsens.studies.control.networks.dense import DenseNetwork

DENSE = "dense"
LAYER_NAMES = (DENSE, *SCORES)
MOST_LAYERS = 64
"""Beyond what trains on a processor in minutes, and before a mistyped number fills the memory."""


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The architecture of a text network.

    Attributes:
        layer: "dense" for layers on the flattened text, or the score of attention: softmax, relu, ...
        layers: how many, one above the other.
        hidden: features of a dense layer; ReLU units of the MLP of a block.
        temperature: what the scores are divided by, besides sqrt(d).
        value, residual, norm, mlp: whether a block of attention has a value matrix, residual connections, LayerNorm,
            an MLP.
        pooling: of the last rows: mean, max or first.

    Raises:
        InputError: an unknown layer or pooling, a number out of range, or options of attention for dense layers.

    >>> Architecture(layer="dense", mlp=True)
    Traceback (most recent call last):
    wordsens.errors.InputError: `mlp` (=True) is an option of attention, and `layer` is 'dense'; drop it
    """

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
                        f"`{name}` (={getattr(self, name)!r}) is an option of attention, and `layer` is 'dense'; "
                        "drop it"
                    )

    @classmethod
    def transformer(cls, layers: int, **options: object) -> "Architecture":
        """Softmax attention with all that a transformer has: value matrices, residual connections, LayerNorm, MLPs."""
        return cls(**{"layers": layers, "residual": True, "norm": True, "mlp": True, **options})  # pyright: ignore


def build_network(
    architecture: Architecture, n: int, d: int, seed: Seed = 0, *, dtype: torch.dtype = torch.float32
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
