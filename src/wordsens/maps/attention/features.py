"""Attention layers as feature maps, and random attention features (RAF): one layer with Gaussian
query-key weights."""

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated

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
from wordsens.maps.attention.change import AttentionChange, Head, attention_stages
from wordsens.maps.attention.head import HeadWeights, ScoredHead, attention_starts
from wordsens.maps.attention.scores import SCORES, ClosedForm, Score, Softmax, offered
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, AutogradChange, Change, FeatureMap
from wordsens.maps.mapping import feature_norm
from wordsens.seeds import Seed, generator

ScoreName = Annotated[str | Score, SCORES]

# heads n² d, what a pair costs, up to which a text is searched as widely as with a closed form.
_MOST_SMALL = 1 << 16


class AttentionLayer(FeatureMap):
    """phi(X) = attention(scores) values: of one head (n, m), of several (heads, n, m), or of their
    sum (n, m).

    Attributes:
        score: how scores become weights.
        heads: the number of heads.
        summed: whether the heads' outputs are added.
    """

    score: Score
    heads: int
    summed: bool = False
    attention_layers = 1

    @abstractmethod
    def head_weights(
        self, n: int, dtype: torch.dtype, *, isometric: bool = False
    ) -> list[HeadWeights]:
        """The weights of every head, for texts of n words.

        `isometric`: whether the values may be given in other, possibly fewer coordinates, in which
        their lengths and distances are the same.
        """

    def scores(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "..."]:
        """The scores of all pairs of rows: (*batch, n, n), or (*batch, heads, n, n) for several
        heads."""
        return self._side_by_side([head.scores(texts) for head in self._weights(texts)])

    def attention(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "..."]:
        """The attention weights, shaped like the scores: entry (j, i) is how much row j takes from
        word i."""
        return self.score.attention(self.scores(texts))

    def attention_of(
        self, rows: Float[Tensor, "n d"], layer: int = 1
    ) -> Float[Tensor, "heads n n"]:
        """The attention weights of every head on one text; there is one layer, 1."""
        weights = self.attention(rows)
        return weights.unsqueeze(0) if self.heads == 1 else weights

    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "..."]:
        outputs = [
            self.score.attention(head.scores(texts)) @ head.values(texts)
            for head in self._weights(texts)
        ]
        return self._joined(outputs)

    def perturbed(
        self, rows: Float[Tensor, "n d"]
    ) -> Callable[[Int[Tensor, "b g"], Float[Tensor, "b g d"]], Float[Tensor, "b features"]]:
        """phi of each perturbed text X', whose scores differ from X's in g rows and g columns.

        The attention is computed again from all scores. O(heads b (n² d + g d²)) against
        O(heads b (2 n² d + n d²)).
        """
        heads = [(head, head.scores_between(rows, rows)) for head in self._weights(rows)]
        return partial(self._perturbed, heads, rows)

    def _perturbed(
        self,
        heads: Sequence[tuple[HeadWeights, Float[Tensor, "n n"]]],
        rows: Float[Tensor, "n d"],
        words: Int[Tensor, "b g"],
        perturbations: Float[Tensor, "b g d"],
    ) -> Float[Tensor, "b features"]:
        """phi of each perturbed text by its heads, each with the scores of the text as it is."""
        moved = rows[words] + perturbations
        pair, place = torch.arange(len(words), device=rows.device).unsqueeze(1), words.unsqueeze(2)
        per_head = []
        for head, before in heads:
            scores = before.repeat(len(words), 1, 1)
            scores[pair, words] = head.scores_between(moved, rows)
            scores.mT[pair, words] = head.scores_with(rows, moved)
            scores[pair.unsqueeze(2), place, place.mT] = head.scores_between(moved, moved)
            attention = self.score.attention(head.biased(scores))
            to_moved = attention.mT[pair, words].mT
            output = (attention.flatten(end_dim=1) @ head.values(rows)).unflatten(
                0, attention.shape[:2]
            )
            per_head.append(output.baddbmm_(to_moved, head.value_change(perturbations)))
        return self._joined(per_head).flatten(start_dim=1)

    def change(
        self,
        rows: Float[Tensor, "n d"],
        groups: Int[Tensor, "m g"],
        *,
        memory_budget: int = DEFAULT_MEMORY_BUDGET,
    ) -> Change:
        """By the closed form, where one word moves at a time and the score has one; else by
        autograd through `perturbed`."""
        rows, score = self.accept(rows), None if self.summed else offered(self.score, ClosedForm)
        if score is not None and groups.shape[1] == 1:
            feature_norm(self.features(rows), self.name)
            weights = self.head_weights(len(rows), self.dtype, isometric=True)
            return AttentionChange(
                [[Head(rows, head, score) for head in weights]], [groups], memory_budget
            )
        heads = [ScoredHead(rows, head) for head in self._weights(rows)]

        def more_starts(places: Tensor, radius: Tensor) -> Tensor:
            return attention_starts(heads, groups[places], radius, self.score)

        (n, d), known = rows.shape, offered(self.score, ClosedForm) is not None
        small = known or self.heads * n * n * d <= _MOST_SMALL
        return AutogradChange(
            self,
            rows,
            groups,
            memory_budget=memory_budget,
            stages=attention_stages(n, d) if small else None,
            kinked=self.score.kinked,
            more_starts=more_starts,
            in_float32=_resolved_in_float32(heads),
        )

    def _weights(self, texts: Float[Tensor, "*batch n d"]) -> list[HeadWeights]:
        return self.head_weights(texts.shape[-2], texts.dtype)

    def _side_by_side(self, per_head: list[Tensor]) -> Tensor:
        return per_head[0] if self.heads == 1 else torch.stack(per_head, dim=-3)

    def _joined(self, outputs: list[Tensor]) -> Tensor:
        return torch.stack(outputs).sum(dim=0) if self.summed else self._side_by_side(outputs)


# Scores past which, times the median, float32 does not resolve them.
_LARGEST_COARSE = 1e5


def _resolved_in_float32(heads: Sequence[ScoredHead]) -> bool:
    """Whether float32 resolves the scores, those beside a huge row among them, and what a score may
    make of small ones: squares, say."""
    sizes = torch.cat([head.score_sizes for head in heads])
    even = sizes.max() <= _LARGEST_COARSE * sizes.median().clamp(max=1)
    return bool(even and sizes.median() >= 1 / _LARGEST_COARSE)


def checked_score(score: str | Score) -> Score:
    """The score of that name; an instance of a Score as it is, if it has what `Score` asks for."""
    if isinstance(score, str):
        return SCORES[require_choice("score", score, SCORES)]
    if not isinstance(score, Score):
        raise InputError(
            f"`score` (={score!r}) must be one of {', '.join(SCORES)}, or an instance of a class "
            "of your own that is "
            "derived from wordsens.Score"
        )
    missing = [
        name
        for name, kind in (("name", str), ("normalized", bool))
        if not isinstance(getattr(score, name, 0), kind)
    ]
    if missing:
        raise InputError(
            f"`score` ({type(score).__name__}) must have a `name` (text) and say whether it is "
            "`normalized` (True or "
            f"False); set {' and '.join(missing)} in the class"
        )
    return score


def gaussian_products(
    d: int, heads: int, head_dimension: int | None, stream: torch.Generator
) -> Float[Tensor, "heads d d"]:
    """W of every head, with entries of variance 1/d: independent Gaussian ones, or W_Q W_K^T of
    rank `head_dimension`.

    Drawn in float64 on the CPU, whatever the map's dtype and device: one seed is one map.
    """
    if head_dimension is None:
        return torch.randn(heads, d, d, generator=stream, dtype=torch.float64) / math.sqrt(d)
    queries, keys = torch.randn(2, heads, d, head_dimension, generator=stream, dtype=torch.float64)
    return queries @ keys.mT / math.sqrt(d * head_dimension)


class RandomAttentionFeatures(AttentionLayer):
    """phi(X) = attention(X W X^T / (temperature sqrt(d))) X, of shape (n, d); W (d, d) iid N(0,
    1/d) (paper, eq. 3).

    W stands for W_Q W_K^T; there is no value matrix. With several heads each has a W of its own and
    phi(X) has shape (heads, n, d).

    Args:
        d: coordinates of a word.
        score: "softmax"; "relu" (divided by the row sum; a row whose sum is 0 stays 0);
            "relu-unnormalized"; "sigmoid" and "linear" (not divided); or a `Score` of your own.
        seed: fixes W.
        dtype, device: where phi computes.
        temperature: divides the scores.
        heads: the number of heads, each with its own W.
        head_dimension: d_k, for W = W_Q W_K^T with W_Q, W_K (d, d_k) iid N(0, 1/sqrt(d d_k)):
            entries of W still have variance 1/d; None for a W of independent entries.

    Attributes:
        weight: W, (d, d) for one head, else (heads, d, d).

    Raises:
        InputError: for a bad size, name or temperature.

    >>> RandomAttentionFeatures(8, seed=0)(torch.ones(5, 4, 8)).shape
    torch.Size([5, 4, 8])
    """

    def __init__(
        self,
        d: int,
        score: ScoreName = "softmax",
        seed: Seed = 0,
        dtype: torch.dtype = torch.float64,
        *,
        temperature: Positive = 1.0,
        heads: Count = 1,
        head_dimension: Count | None = None,
        device: torch.device | str = "cpu",
    ):
        self.text_shape = (None, require_count("d", d))
        self.score = checked_score(score)
        self.temperature = require_positive("temperature", temperature)
        self.heads = require_count("heads", heads)
        self.head_dimension = (
            None if head_dimension is None else require_count("head_dimension", head_dimension)
        )
        self.seed = seed
        self.dtype = require_dtype(dtype)
        self.device = torch.device(require_device(device))
        self.name = "raf" if type(self.score) is Softmax else f"{self.score.name}-raf"
        self._weight_is_drawn = True
        with torch.inference_mode(False):
            drawn = gaussian_products(d, heads, head_dimension, generator(seed, "attention"))
            self.weight = (drawn[0] if heads == 1 else drawn).to(dtype=dtype, device=self.device)

    @classmethod
    @torch.inference_mode(False)
    def of_weight(
        cls,
        weight: Tensor,
        score: str | Score = "softmax",
        *,
        temperature: float = 1.0,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
    ) -> "RandomAttentionFeatures":
        """The map with a W of your own in place of the Gaussian one.

        Args:
            weight: (d, d), or (heads, d, d).
            score, temperature, dtype, device: as above.

        Raises:
            InputError: a weight of another shape or with entries that are not finite.

        >>> RandomAttentionFeatures.of_weight(torch.eye(2))(torch.eye(2)).shape
        torch.Size([2, 2])
        """
        square = weight.ndim in (2, 3) and weight.shape[-1] == weight.shape[-2]
        if not square or not bool(torch.isfinite(weight).all()):
            raise InputError(
                f"`weight` (shape {tuple(weight.shape)}) must be a finite tensor of shape (d, d) "
                "or (heads, d, d); "
                "give one (d, d) matrix a head"
            )
        heads = len(weight) if weight.ndim == 3 else 1
        phi = cls(
            weight.shape[-1], score, 0, dtype, temperature=temperature, heads=heads, device=device
        )
        matrix = weight.clone() if weight.is_inference() else weight
        phi.weight = (
            (matrix[0] if weight.ndim == 3 and heads == 1 else matrix)
            .detach()
            .to(dtype=dtype, device=phi.device)
        )
        phi._weight_is_drawn = False
        return phi

    def __repr__(self) -> str:
        heads = "" if self.heads == 1 else f", heads={self.heads}"
        temperature = "" if self.temperature == 1 else f", temperature={self.temperature:g}"
        rank = "" if self.head_dimension is None else f", head_dimension={self.head_dimension}"
        source = f"seed={self.seed}" if self._weight_is_drawn else "weight=..."
        options = f"{temperature}{heads}{rank}, {source}"
        return (
            f"RandomAttentionFeatures(d={self.text_shape[1]}, score={self.score.name!r}{options})"
        )

    @property
    def matrices(self) -> Float[Tensor, "heads d d"]:
        """W of every head."""
        return self.weight.view(self.heads, *self.weight.shape[-2:])

    def head_weights(
        self, n: int, dtype: torch.dtype, *, isometric: bool = False
    ) -> list[HeadWeights]:
        scale = self.temperature * math.sqrt(self.weight.shape[-1])
        return [HeadWeights(matrix.to(dtype), scale) for matrix in self.matrices]
