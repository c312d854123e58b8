"""Random attention features (RAF): one attention layer with Gaussian query-key weights and no value matrix."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_count, require_positive
from wordsens.maps.attention.layer import AttentionLayer, checked_score
from wordsens.maps.attention.scores import Score, Softmax
from wordsens.maps.attention.weights import HeadWeights
from wordsens.seeds import Seed, gaussian_on, generator


class RandomAttentionFeatures(AttentionLayer):
    """phi(X) = attention(X W X^T / (temperature sqrt(d))) X, of shape (n, d); W (d, d) iid N(0, 1/d) (paper, eq. 3).

    W stands for W_Q W_K^T; there is no value matrix. With several heads each has a W of its own and
    phi(X) has shape (heads, n, d).

    Args:
        d: coordinates of a word.
        score: "softmax"; "relu" (divided by the row sum; a row whose sum is 0 stays 0); "relu-unnormalized";
            "sigmoid" and "linear" (not divided); or a `Score` of your own.
        seed: fixes W.
        dtype, device: where phi computes.
        temperature: divides the scores.
        heads: how many W.

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
        score: str | Score = "softmax",
        seed: Seed = 0,
        dtype: torch.dtype = torch.float64,
        *,
        temperature: float = 1.0,
        heads: int = 1,
        device: torch.device | str = "cpu",
    ):
        self.text_shape = (None, require_count("d", d))
        self.score = checked_score(score)
        self.temperature = require_positive("temperature", temperature)
        self.heads = require_count("heads", heads)
        self.seed = seed
        self.dtype = dtype
        self.device = torch.device(device)
        self.name = "raf" if type(self.score) is Softmax else f"{self.score.name}-raf"
        self._weight_is_drawn = True
        with torch.inference_mode(False):
            self.weight = self._drawn()

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
                f"`weight` (shape {tuple(weight.shape)}) must be a finite tensor of shape (d, d) or (heads, d, d); "
                "give one (d, d) matrix a head"
            )
        heads = len(weight) if weight.ndim == 3 else 1
        phi = cls(weight.shape[-1], score, 0, dtype, temperature=temperature, heads=heads, device=device)
        own = weight.clone() if weight.is_inference() else weight
        phi.weight = (own[0] if weight.ndim == 3 and heads == 1 else own).detach().to(dtype=dtype, device=phi.device)
        phi._weight_is_drawn = False
        return phi

    def __repr__(self) -> str:
        heads = "" if self.heads == 1 else f", heads={self.heads}"
        temperature = "" if self.temperature == 1 else f", temperature={self.temperature:g}"
        source = f"seed={self.seed}" if self._weight_is_drawn else "weight=..."
        return (
            f"RandomAttentionFeatures(d={self.text_shape[1]}, score={self.score.name!r}{temperature}{heads}, {source})"
        )

    @property
    def matrices(self) -> Float[Tensor, "heads d d"]:
        """W of every head."""
        return self.weight.view(self.heads, *self.weight.shape[-2:])

    def head_weights(self, n: int, dtype: torch.dtype, *, isometric: bool = False) -> list[HeadWeights]:
        return [HeadWeights(matrix.to(dtype), self._scale()) for matrix in self.matrices]

    def _scale(self) -> float:
        d = self.weight.shape[-1]
        return self.temperature * math.sqrt(d)

    def _drawn(self) -> Tensor:
        d = self.text_shape[1] or 0
        shape = (d, d) if self.heads == 1 else (self.heads, d, d)
        stream = generator(self.seed, "attention")
        # Drawn in float64 on the CPU, whatever the map's dtype and device: one seed is one map.
        weight = gaussian_on(*shape, generator=stream, dtype=torch.float64, device="cpu") / math.sqrt(d)
        return weight.to(dtype=self.dtype, device=self.device)
