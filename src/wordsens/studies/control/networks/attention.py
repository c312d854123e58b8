"""One layer of attention, or a stack of them: a small transformer."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.maps.attention.given_weights import AttentionBias, AttentionFeatures
from wordsens.maps.attention.scores import SCORES
from wordsens.studies.control.networks.contract import TextNetwork

POOLINGS = ("mean", "max", "first")


class AttentionBlock(nn.Module):
    """Y = a(Q K^T / (T sqrt(d))) V with Q = X W_q + b_q, K = X W_k + b_k, V = X W_v; V = X without a value matrix.

    a: the score, row by row; scores that are not divided by their sum are divided by n. With `residual` X is added,
    with `norm` each row goes through LayerNorm; with `mlp` each row then goes through a layer of `hidden` ReLU units,
    which has its own residual and LayerNorm (after it, as in BERT). There are no positions: the block is equivariant.
    """

    def __init__(
        self, d: int, *, score: str, temperature: float, value: bool, residual: bool, norm: bool, mlp: int | None
    ):
        super().__init__()
        self._score, self._scale, self._residual = SCORES[score], 1 / (temperature * math.sqrt(d)), residual
        self.query, self.key = nn.Linear(d, d), nn.Linear(d, d)
        self.value = nn.Linear(d, d, bias=False) if value else None
        self.norm = nn.LayerNorm(d) if norm else None
        self.mlp = None if mlp is None else nn.Sequential(nn.Linear(d, mlp), nn.ReLU(), nn.Linear(mlp, d))
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
        parts = [part.detach().double() for part in (*self.query.parameters(), *self.key.parameters())]
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
    """Blocks of attention, then the rows pooled into one vector: their mean, largest entries, or the first row."""

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
