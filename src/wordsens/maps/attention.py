"""Random attention features (RAF): one attention layer with Gaussian query-key weights and no value matrix."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import require_choice, require_count, require_positive
from wordsens.feature_map import DEFAULT_MEMORY_BUDGET, FeatureMap, feature_norm
from wordsens.maps.attention_change import AttentionWordChange
from wordsens.maps.scores import SCORES
from wordsens.seeds import gaussian_on, generator


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

    def word_change(
        self, rows: Float[Tensor, "n d"], *, memory_budget: int = DEFAULT_MEMORY_BUDGET
    ) -> AttentionWordChange:
        rows = self.accept(rows)
        norm = feature_norm(self.features(rows), self.name)
        scale = self.temperature * math.sqrt(rows.shape[-1])
        return AttentionWordChange(rows, self.weight.unsqueeze(0), scale, self.score, norm, memory_budget)
