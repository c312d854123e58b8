"""Random transformers: layers of attention with Gaussian weights, each with or without residual,
LayerNorm and MLP."""

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import (
    Count,
    InputError,
    Positive,
    require_choice,
    require_count,
    require_device,
    require_dtype,
    require_positive,
)
from wordsens.maps.attention.features import ScoreName, checked_score, gaussian_products
from wordsens.maps.attention.head import HeadWeights, ScoredHead, attention_starts
from wordsens.maps.attention.scores import Softmax
from wordsens.maps.base import (
    DEFAULT_MEMORY_BUDGET,
    AutogradChange,
    FeatureMap,
    gradient_starts,
)
from wordsens.maps.dense import Depth
from wordsens.search.plan import Stages
from wordsens.seeds import Seed, generator

NORMS = ("pre", "post")
ATTENTIONS = ("dot", "normalized-dot", "l2")
_LOCAL = (
    "Behind several layers S has many local maxima: 'converged' says that a search ended at one of "
    "them, not at the highest.",
)
# Added to a row's variance in LayerNorm, as transformers do: rows that attention averaged are
# short.
_EPSILON = 1e-5


@dataclass(frozen=True)
class LayerWeights:
    """The matrices of one layer, for rows multiplied from the left.

    Attributes:
        scores: W of every head, (heads, d, d), N(0, 1/d) entries or W_Q W_K^T (see
            RandomAttentionFeatures).
        queries, keys: W_Q and W_K, (heads, d, m) of N(0, 1/sqrt(d m)) entries, where scores are no
            function of W alone; W_K = W_Q where they are tied. None for untied dot products.
        values, output: W_V (heads, d, m) and W_O (heads, m, d), m = d / heads, all entries N(0,
            1/d); None: identities.
        inner, outer: of the MLP, (d, width) N(0, 1/d) and (width, d) N(0, 2/width); None without
            one.
    """

    scores: Float[Tensor, "heads d d"]
    queries: Float[Tensor, "heads d m"] | None
    keys: Float[Tensor, "heads d m"] | None
    values: Float[Tensor, "heads d m"] | None
    output: Float[Tensor, "heads m d"] | None
    inner: Float[Tensor, "d width"] | None
    outer: Float[Tensor, "width d"] | None


class RandomTransformer(FeatureMap):
    """The rows behind `depth` layers of a transformer with Gaussian weights, (n, d).

    With norm(.) the LayerNorm of a row without parameters, a layer takes the rows X to

        Y = X + attention(norm(X)),         Z = Y + mlp(norm(Y))             norm="pre",
        Y = norm(X + attention(X)),         Z = norm(Y + mlp(Y))             norm="post",

    without the first summands where `residual` is False, without norm(.) where `norm` is None, and
    Z = Y without an MLP. attention(X) = sum over heads h of A_h X W_V,h W_O,h with A_h the weights
    of the scores X W_h X^T / (temperature sqrt(d)); mlp(X) = relu(X W_1) W_2. Entries have the
    variances that keep the length of a row that is not averaged: 1/d, and 2/width for W_2. Layer l
    has the same weights whatever the depth. There are no positions, no biases, and no norm behind
    the last layer. With `causal`, a row takes nothing from the rows behind it.

    Those scores are "dot". With q_j = W_Q^T x_j and k_l = W_K^T x_l, W_Q and W_K (d, m), the others
    are

        sqrt(m) cos(q_j, k_l) / temperature                                  "normalized-dot",
        -‖q_j - k_l‖² / (2 temperature sqrt(d))                              "l2" (Kim et al. 2021).

    Like dot products those of rows of length sqrt(d) scatter by order 1. Tied keys are the queries,
    W_K = W_Q; a row's score with itself is then higher by sqrt(m) / temperature than with a row at
    right angles to it.

    One layer of one head without residual, norm, MLP and values is `RandomAttentionFeatures`
    exactly (paper, eq. 3); several are it, applied again and again.

    Args:
        d: coordinates of a word.
        depth: layers.
        heads: of every layer; they divide d.
        residual: whether a layer adds its input.
        norm: "pre", "post" or None.
        mlp: the width of the hidden layer; 0 for no MLP.
        values: whether attention has values and output matrices; None: yes, but for one head
            without residual, norm and MLP.
        causal: whether rows see themselves and earlier rows only.
        score: as for RandomAttentionFeatures.
        temperature: divides the scores.
        head_dimension: m, the rank of each W_h = W_Q W_K^T; None for independent entries of W_h,
            or of square W_Q and W_K where the scores need them.
        attention: what a score is: "dot", "normalized-dot" or "l2".
        tied: whether the keys are the queries.
        seed: fixes all weights.
        dtype, device: where phi computes.

    Raises:
        InputError: a bad size, name or temperature; heads that do not divide d; several heads
            without values; "l2" with another score than softmax.

    >>> phi = RandomTransformer(16, 3, heads=2, mlp=64, seed=0)
    >>> phi(torch.ones(5, 4, 16)).shape, [tuple(rows.shape) for rows in phi.states(torch.ones(4, 16))]
    (torch.Size([5, 4, 16]), [(4, 16), (4, 16), (4, 16), (4, 16)])
    """  # noqa: E501

    def __init__(
        self,
        d: int,
        depth: Depth = 4,
        *,
        heads: Count = 1,
        residual: bool = True,
        norm: Annotated[str, NORMS] | None = "pre",
        mlp: Annotated[int, partial(require_count, least=0)] = 0,
        values: bool | None = None,
        causal: bool = False,
        score: ScoreName = "softmax",
        temperature: Positive = 1.0,
        head_dimension: Count | None = None,
        attention: Annotated[str, ATTENTIONS] = "dot",
        tied: bool = False,
        seed: Seed = 0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ):
        self.text_shape = (None, require_count("d", d))
        self.depth, self.heads = require_count("depth", depth), require_count("heads", heads)
        self.residual, self.causal = residual, causal
        self.norm = None if norm is None else require_choice("norm", norm, NORMS, remedy="or None")
        self.mlp = require_count("mlp", mlp, least=0)
        alone = not residual and norm is None and not mlp
        self.has_values = not (alone and heads == 1) if values is None else values
        if d % heads:
            raise InputError(
                f"`heads` (={heads}) must divide `d` (={d}), which the heads' values share"
            )
        if heads > 1 and not self.has_values:
            raise InputError(
                f"`values` (=False) with `heads` (={heads}): several heads are joined by their "
                "values' output"
            )
        self.score, self.temperature = (
            checked_score(score),
            require_positive("temperature", temperature),
        )
        self.head_dimension = (
            None if head_dimension is None else require_count("head_dimension", head_dimension)
        )
        self.attention, self.tied = require_choice("attention", attention, ATTENTIONS), tied
        if attention == "l2" and not isinstance(self.score, Softmax):
            raise InputError(
                f"`score` (={self.score.name!r}) must be 'softmax' with `attention` (='l2'), whose "
                "scores are never positive; choose another attention"
            )
        self.seed = seed
        self.dtype, self.device = require_dtype(dtype), torch.device(require_device(device))
        self.name = f"transformer{depth}"
        self.notes = _LOCAL if depth > 1 else ()
        with torch.inference_mode(False):
            self.layers = [self._drawn(layer, d, head_dimension) for layer in range(1, depth + 1)]

    def _drawn(self, layer: int, d: int, head_dimension: int | None) -> LayerWeights:
        # The first layer's W is that of RandomAttentionFeatures.
        purpose = ("attention",) if layer == 1 else ("attention", layer)
        stream = generator(self.seed, *purpose)
        stored: dict[str, Any] = {"dtype": self.dtype, "device": self.device}
        queries = keys = None
        if self.attention == "dot" and not self.tied:
            scores = gaussian_products(d, self.heads, head_dimension, stream)
        else:
            size = head_dimension or d
            drawn = torch.randn(2, self.heads, d, size, generator=stream, dtype=torch.float64)
            queries, keys = drawn / (d * size) ** 0.25
            keys = queries if self.tied else keys
            scores = queries @ keys.mT
            queries, keys = queries.to(**stored), keys.to(**stored)
        stream, size = generator(self.seed, "layer", layer), d // self.heads

        def gaussian(*shape: int, variance: float) -> Tensor:
            drawn = math.sqrt(variance) * torch.randn(shape, generator=stream, dtype=torch.float64)
            return drawn.to(**stored)

        return LayerWeights(
            scores.to(**stored),
            queries,
            keys,
            gaussian(self.heads, d, size, variance=1 / d) if self.has_values else None,
            gaussian(self.heads, size, d, variance=1 / d) if self.has_values else None,
            gaussian(d, self.mlp, variance=1 / d) if self.mlp else None,
            gaussian(self.mlp, d, variance=2 / self.mlp) if self.mlp else None,
        )

    def at(self, *, layer: int) -> "RandomTransformer":
        """The map that ends behind that layer, 1 to `depth`; it shares the weights.

        >>> torch.equal(RandomTransformer(8, 3).at(layer=2)(torch.eye(8)), RandomTransformer(8, 2)(torch.eye(8)))
        True
        """  # noqa: E501
        require_count("layer", layer, most=self.depth)
        other = copy.copy(self)
        other.depth, other.layers = layer, self.layers[:layer]
        other.name = f"transformer{layer}"
        other.notes = _LOCAL if layer > 1 else ()
        return other

    def __repr__(self) -> str:
        names = ("depth", "heads", "residual", "norm", "mlp", "causal", "attention", "tied", "seed")
        options = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"RandomTransformer(d={self.text_shape[1]}, {options}, score={self.score.name!r})"

    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        for weights in self.layers:
            texts = self._layer(texts, weights)
        return texts

    def states(self, texts: Float[Tensor, "*batch n d"]) -> list[Float[Tensor, "*batch n d"]]:
        """The rows behind every layer in one pass, layer 0, the text itself, first."""
        states = [self.accept(texts)]
        for weights in self.layers:
            states.append(self._layer(states[-1], weights))
        return states

    def _layer(
        self, rows: Float[Tensor, "*batch n d"], weights: LayerWeights
    ) -> Float[Tensor, "*batch n d"]:
        rows = self._added(rows, self._attention(self._before(rows), weights))
        if weights.inner is None or weights.outer is None:
            return rows
        return self._added(rows, torch.relu(self._before(rows) @ weights.inner) @ weights.outer)

    def _before(self, rows: Tensor) -> Tensor:
        return _layer_norm(rows) if self.norm == "pre" else rows

    def _added(self, rows: Tensor, update: Tensor) -> Tensor:
        rows = rows + update if self.residual else update
        return _layer_norm(rows) if self.norm == "post" else rows

    def _attention(
        self, rows: Float[Tensor, "*batch n d"], weights: LayerWeights
    ) -> Float[Tensor, "*batch n d"]:
        outputs = []
        for head, mixing in enumerate(self._weights(rows, weights)):
            if weights.values is None or weights.output is None:
                return mixing @ rows
            outputs.append(mixing @ (rows @ weights.values[head]) @ weights.output[head])
        return torch.stack(outputs).sum(dim=0) if len(outputs) > 1 else outputs[0]

    def _weights(
        self,
        rows: Float[Tensor, "*batch n d"],
        weights: LayerWeights,
    ) -> Iterator[Float[Tensor, "*batch n n"]]:
        """The attention weights of every head on the rows that enter attention."""
        scale = self.temperature * math.sqrt(rows.shape[-1])
        for head, matrix in enumerate(weights.scores):
            if self.attention == "dot" or weights.queries is None or weights.keys is None:
                scores = (rows @ matrix) @ rows.mT / scale
            else:
                queries, keys = rows @ weights.queries[head], rows @ weights.keys[head]
                scores = self.scores_between(queries, keys)
            yield self.score.attention(self.masked(scores))

    @property
    def attention_layers(self) -> int:
        """The layers: each has attention."""
        return self.depth

    def attention_of(
        self,
        rows: Float[Tensor, "n d"],
        layer: int = 1,
    ) -> Float[Tensor, "heads n n"]:
        """The attention weights of every head of a layer, counted from 1, on one text."""
        require_count("layer", layer, most=self.depth)
        entering = self._before(self.states(rows)[layer - 1])
        return torch.stack(list(self._weights(entering, self.layers[layer - 1])))

    def scores_between(
        self,
        queries: Float[Tensor, "*batch n m"],
        keys: Float[Tensor, "*batch n m"],
    ) -> Float[Tensor, "*batch n n"]:
        """The scores of queries and keys, "l2" or "normalized-dot"."""
        if self.attention == "normalized-dot":
            size = math.sqrt(queries.shape[-1]) / self.temperature
            queries, keys = (torch.nn.functional.normalize(x, dim=-1) for x in (queries, keys))
            return size * queries @ keys.mT
        scale = self.temperature * math.sqrt(self.text_shape[1] or 1)
        apart = queries.square().sum(dim=-1, keepdim=True) - 2 * queries @ keys.mT
        apart = apart + keys.square().sum(dim=-1).unsqueeze(-2)
        return -apart / (2 * scale)

    def masked(self, scores: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch n n"]:
        """The scores; for a causal map, -inf where a row would see later rows."""
        if not self.causal:
            return scores
        return scores.masked_fill(
            torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1), -torch.inf
        )

    def first_heads(self, n: int) -> list[HeadWeights]:
        """The weights of the first layer's heads on a text of n rows."""
        weights, scale = self.layers[0], self.temperature * math.sqrt(self.text_shape[1] or 1)
        bias = self.masked(weights.scores.new_zeros(n, n)) if self.causal else None
        values = [None] * self.heads
        if weights.values is not None and weights.output is not None:
            values = list(weights.values @ weights.output)
        return [
            HeadWeights(matrix, scale, bias=bias, value=value)
            for matrix, value in zip(weights.scores, values, strict=True)
        ]

    def bytes_per_text(self, n: int) -> int:
        """The approximate bytes for one text of n rows, with what autograd keeps of every layer."""
        d, queries = self.text_shape[1] or 1, self.layers[0].queries
        projected = 0 if queries is None else 8 * self.heads * queries.shape[-1]
        numbers = n * (14 * d + 4 * self.mlp + projected) + 4 * self.heads * n * n
        return self.depth * numbers * self.dtype.itemsize

    def change(
        self,
        rows: Float[Tensor, "n d"],
        groups: Int[Tensor, "m g"],
        *,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> AutogradChange:
        """By autograd, from starts that the first layer's attention would take too, and from those
        of trained transformers."""
        rows = self.accept(rows)
        heads = [ScoredHead(rows, head) for head in self.first_heads(len(rows))]

        def more_starts(places: Tensor, radius: Tensor) -> Tensor:
            ahead = gradient_starts(self, rows, groups[places])
            return torch.cat([attention_starts(heads, groups[places], radius), ahead])

        return AutogradChange(
            self,
            rows,
            groups,
            memory_budget=memory_budget,
            stages=_STAGES,
            kinked=self.score.kinked,
            more_starts=more_starts,
        )


def _layer_norm(rows: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(rows, rows.shape[-1:], eps=_EPSILON)


# Behind several layers there are many hills of unlike height: many starts, of which few are climbed
# to the end.
_STAGES = Stages(starts=48, steps=100, first_step=0.2, halvings=(8, 20, 40), finish=60)
