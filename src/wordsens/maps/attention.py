"""Random attention features (RAF): one attention layer with Gaussian query-key weights and no value matrix."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import require_choice, require_count, require_positive
from wordsens.feature_map import FeatureMap
from wordsens.seeds import gaussian_on, generator


@dataclass(frozen=True)
class Score:
    """How scores s (..., n, n) become attention weights: weight(s), divided by the row sum where `normalized`.

    A row whose sum is 0 stays 0.
    """

    name: str
    weight: Callable[[Tensor], Tensor]
    normalized: bool

    def attention(self, scores: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch n n"]:
        if self.name == "softmax":
            return torch.softmax(scores, dim=-1)
        weights = self.weight(scores)
        if not self.normalized:
            return weights
        total = weights.sum(dim=-1, keepdim=True)
        return weights / torch.where(total > 0, total, torch.ones_like(total))


SCORES: dict[str, Score] = {
    score.name: score
    for score in (
        Score("softmax", torch.exp, normalized=True),
        Score("relu", torch.relu, normalized=True),
        Score("relu-unnormalized", torch.relu, normalized=False),
        Score("sigmoid", torch.sigmoid, normalized=False),
        Score("linear", lambda scores: scores, normalized=False),
    )
}


class RandomAttentionFeatures(FeatureMap):
    """phi(X) = attention(X W X^T / (temperature sqrt(d))) X, of shape (n, d); W (d, d) iid N(0, 1/d) (paper, eq. 3).

    W stands for W_Q W_K^T; there is no value matrix.

    Args:
        d: coordinates of a word.
        score: "softmax"; "relu" (divided by the row sum; a row whose sum is 0 stays 0); "relu-unnormalized";
            "sigmoid" and "linear" (not divided).
        seed: fixes W.
        dtype, device: where phi computes.
        temperature: divides the scores.
        weight: a W of your own, (d, d), in place of the Gaussian one.

    Raises:
        InputError: for a bad size, name, temperature or weight.

    >>> RandomAttentionFeatures(8, seed=0)(torch.ones(5, 4, 8)).shape
    torch.Size([5, 4, 8])
    """

    def __init__(
        self,
        d: int,
        score: str = "softmax",
        seed: int = 0,
        dtype: torch.dtype = torch.float64,
        *,
        temperature: float = 1.0,
        weight: Float[Tensor, "d d"] | None = None,
        device: torch.device | str = "cpu",
    ):
        self.text_shape = (None, require_count("d", d))
        self.score = SCORES[require_choice("score", score, SCORES)]
        self.temperature = require_positive("temperature", temperature)
        self.seed = seed
        self.dtype = dtype
        self.device = torch.device(device)
        self.name = "raf" if score == "softmax" else f"{score}-raf"
        if weight is None:
            stream = generator(seed, "attention")
            weight = gaussian_on(d, d, generator=stream, dtype=torch.float64, device=device) / math.sqrt(d)
        self.weight: Float[Tensor, "d d"] = weight.to(dtype=dtype, device=device)

    def scores(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n n"]:
        """X W X^T / (temperature sqrt(d))."""
        scale = self.temperature * math.sqrt(texts.shape[-1])
        return (texts @ self.weight) @ texts.mT / scale

    def attention(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n n"]:
        """The attention weights: entry (j, i) is how much row j takes from word i."""
        return self.score.attention(self.scores(texts))

    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        return self.attention(texts) @ texts
