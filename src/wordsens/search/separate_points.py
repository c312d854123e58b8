"""Points of a search on several texts at once, which never meet: every text draws and crosses its own."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.search.points import Breeder


class SeparateBreeders:
    """One Breeder a text, each from a generator of its own, so that a text's points depend on no other text.

    Does what a Breeder does, on points (ranks, w, size) whose words are those of the first text, then of the second...
    """

    def __init__(self, breeders: Sequence[Breeder]):
        self._breeders = breeders

    def resized(self, size: int) -> "SeparateBreeders":
        return SeparateBreeders([breeder.resized(size) for breeder in self._breeders])

    def random(self, ranks: int) -> Float[Tensor, "ranks w size"]:
        return torch.cat([breeder.random(ranks) for breeder in self._breeders], dim=1)

    def children(self, parents: Float[Tensor, "ranks w size"], count: int) -> Float[Tensor, "count w size"]:
        own = parents.chunk(len(self._breeders), dim=1)
        return torch.cat([b.children(points, count) for b, points in zip(self._breeders, own, strict=True)], dim=1)

    def kicked(
        self, parents: Float[Tensor, "ranks w size"], directions: Float[Tensor, "m size"], count: int
    ) -> Float[Tensor, "count w size"]:
        """As Breeder's; the directions are those of the first text, then as many of the second..."""
        texts = len(self._breeders)
        own = zip(self._breeders, parents.chunk(texts, dim=1), directions.tensor_split(texts), strict=True)
        return torch.cat([breeder.kicked(points, along, count) for breeder, points, along in own], dim=1)

    def some(self, points: Float[Tensor, "w size"], count: int) -> Float[Tensor, "count w size"]:
        own = points.chunk(len(self._breeders))
        return torch.cat([b.some(mine, count) for b, mine in zip(self._breeders, own, strict=True)], dim=1)

    def unit(self, points: Float[Tensor, "*ranks w size"]) -> Float[Tensor, "*ranks w size"]:
        return self._breeders[0].unit(points)
