"""Random features (RF) and deep random features (DRF): fully connected layers with Gaussian
weights."""

import copy
import math
from functools import partial
from typing import Annotated

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.activations import ACTIVATIONS, Activation, Elementwise, as_activation
from wordsens.errors import Count, InputError, require_count, require_device, require_dtype
from wordsens.gaussian import DenseGaussian, gaussian_matrices
from wordsens.gaussian.matrix import GAUSSIAN_KINDS, ON_DEMAND_BYTES
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.maps.dense_change import DenseChange, OneLayerChange
from wordsens.maps.mapping import feature_norm
from wordsens.seeds import Seed

# Through more layers than this no activation passes anything on.
Depth = Annotated[int, partial(require_count, most=10_000)]
ActivationName = Annotated[str | Activation | Elementwise, ACTIVATIONS]
GaussianKind = Annotated[str, GAUSSIAN_KINDS]

# Features of one layer up to which an ascent reaches hills that the search on great circles misses.
NARROW = 64

# Words of a text that are searched by default where one layer is sampled on demand, which remembers
# every query; of several layers, so many over their number.
_ON_DEMAND_WORDS = 16


class DeepRandomFeatures(FeatureMap):
    """L fully connected random layers: h_1 = act(V_1 flat(X)), h_l = act(V_l h_{l-1}), phi(X) = h_L
    in R^width.

    V_1 is (width, n d) with iid N(0, 1/(n d)) entries (paper, eq. 2), so pre-activations have
    variance 1 for rows of length sqrt(d). V_l is (width, width) with entries N(0, s/width), s =
    1/E[act(z)²], which keeps them there (He: s = 2 for ReLU).

    Args:
        n, d: words of a text, and coordinates of a word.
        depth: L, the number of layers.
        width: k, the number of features of each layer; None: n d, words times coordinates.
        activation: one of relu, leaky_relu, identity, tanh, gelu, erf; a torch function, such as
            torch.sin; or an `Activation`, which may state its Lipschitz constant: without it there
            is no upper bound.
        gaussian: "dense" keeps the matrices; "lazy" never builds them and samples their products on
            demand, exactly in law (docs/theory/search.md#gaussian-matrices-on-demand);
            "auto" is dense up to `AUTO_DENSE_BYTES` in all, lazy past it.
        seed: fixes the weights. A lazy map gives the same answers to the same sequence of calls.
        dtype, device: where phi computes.
        gaussian_bytes: the most memory that a lazy map may use for the queries and answers it
            remembers, over all layers.

    Raises:
        InputError: for a size that is not a positive whole number or an unknown name.
        BudgetError: when a dense matrix would exceed its limit, or a lazy map would need more than
            `gaussian_bytes`.

    >>> phi = DeepRandomFeatures(4, 8, depth=2, seed=0)
    >>> phi(torch.ones(5, 4, 8)).shape
    torch.Size([5, 32])
    """

    continuous = True

    def __init__(
        self,
        n: int,
        d: int,
        depth: Depth = 4,
        width: Count | None = None,
        activation: ActivationName = "relu",
        gaussian: GaussianKind = "auto",
        seed: Seed = 0,
        *,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
        gaussian_bytes: int = ON_DEMAND_BYTES,
    ):
        self.text_shape = (require_count("n", n), require_count("d", d))
        self.depth = require_count("depth", depth)
        self.width = n * d if width is None else require_count("width", width)
        self.activation = as_activation(activation)
        self.seed = seed
        self.dtype = require_dtype(dtype)
        self.device = torch.device(require_device(device))
        self.name = f"drf{depth}"
        first = (self.width, n * d, math.sqrt(1 / (n * d)))
        later = (self.width, self.width, math.sqrt(self.activation.he_variance / self.width))
        self.layers = gaussian_matrices(
            [first] + [later] * (depth - 1),
            gaussian=gaussian,
            gaussian_bytes=gaussian_bytes,
            seed=seed,
            dtype=dtype,
            device=device,
        )
        self.gaussian = "dense" if isinstance(self.layers[0], DenseGaussian) else "lazy"
        if self.gaussian == "lazy":
            self.affordable_words = max(2, _ON_DEMAND_WORDS // depth)

    def __repr__(self) -> str:
        n, d = self.text_shape
        depth = "" if isinstance(self, RandomFeatures) else f", depth={self.depth}"
        return (
            f"{type(self).__name__}(n={n}, d={d}{depth}, width={self.width}, "
            f"activation={self.activation.name!r}, "
            f"gaussian={self.gaussian!r}, seed={self.seed})"
        )

    @property
    def weights(self) -> list[Float[Tensor, "rows columns"]]:
        """The dense matrices V_1, ..., V_L. InputError for a lazy map, which has none."""
        if self.gaussian == "lazy":
            raise InputError(
                f"the weights of this {self.name} map are sampled on demand and never built; "
                "build it with gaussian='dense' to read them"
            )
        return [layer.matrix for layer in self.layers if isinstance(layer, DenseGaussian)]

    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch width"]:
        hidden = texts.flatten(start_dim=-2)
        for layer in self.layers:
            hidden = self.activation(layer.multiply(hidden))
        return hidden

    def relative_rounding(self, text: Float[Tensor, "n d"]) -> float:
        """As for any map. A matrix that is sampled on demand cannot be asked twice for nearly the
        same vector: there the estimate is 4 eps per layer, relative to the expected norm of the
        pre-activations, sqrt(width) ‖X‖ / sqrt(n d)."""
        if self.gaussian == "dense":
            return super().relative_rounding(text)
        size = math.sqrt(self.width / text.numel()) * float(
            torch.linalg.vector_norm(text, dtype=torch.float64)
        )
        units = (2 + math.sqrt(text.numel()) / 8) * torch.finfo(text.dtype).eps
        return 4 * self.depth * units * size / feature_norm(self(text), self.name)

    def fork(self, *, seed: int | None = None) -> "DeepRandomFeatures":
        """A map that repeats the answers given so far, for another search to start from; past
        answers are shared.

        Without a seed it gives this map's answers to the same calls. With a seed, what a lazy map
        has not determined yet is drawn again from its conditional law given the past
        (docs/proofs.md#proof-of-the-law): forks are then different maps that agree on what was
        asked. All forks of a dense map are the same.

        >>> phi, X = RandomFeatures(4, 8, gaussian="lazy"), torch.ones(4, 8)
        >>> features, other = phi(X), phi.fork(seed=1)
        >>> torch.allclose(other(X), features), torch.allclose(other(X.cumsum(0)), phi(X.cumsum(0)))
        (True, False)
        """
        twin = copy.copy(self)
        twin.layers = [layer.fork(seed=seed) for layer in self.layers]
        return twin

    def change(
        self,
        rows: Float[Tensor, "n d"],
        groups: Int[Tensor, "m g"],
        *,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> DenseChange:
        """See `FeatureMap.change`; one word of one layer is searched on great circles."""
        one_word = self.depth == 1 and groups.shape[1] == 1
        circles = one_word and (self.width > NARROW or self.gaussian == "lazy")
        kind = OneLayerChange if circles else DenseChange
        rows = self.accept(rows)
        return kind(
            self.layers, self.activation, rows, groups, self.name, memory_budget=memory_budget
        )


class RandomFeatures(DeepRandomFeatures):
    """One fully connected random layer: phi(X) = act(V flat(X)), V (width, n d), iid N(0, 1/(n d))
    (paper, eq. 2).

    Arguments as DeepRandomFeatures, with depth 1.

    >>> RandomFeatures(4, 8, seed=0)(torch.ones(4, 8)).shape
    torch.Size([32])
    """

    def __init__(
        self,
        n: int,
        d: int,
        width: Count | None = None,
        activation: ActivationName = "relu",
        gaussian: GaussianKind = "auto",
        seed: Seed = 0,
        *,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
        gaussian_bytes: int = ON_DEMAND_BYTES,
    ):
        super().__init__(
            n,
            d,
            1,
            width,
            activation,
            gaussian,
            seed,
            dtype=dtype,
            device=device,
            gaussian_bytes=gaussian_bytes,
        )
        self.name = "rf"

    @property
    def weight(self) -> Float[Tensor, "width columns"]:
        """The dense matrix V. InputError for a lazy map, which has none."""
        return self.weights[0]
