"""Points of a search on w words at once: how they are drawn, crossed and ranked.

Points are kept rank by rank, (ranks, w, size): entry [r, j] belongs to word j. A point has one or more blocks, each
with a unit ball of its own.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.search.ball import unit
from wordsens.seeds import gaussian_on

ALIKE = 0.98
"""Two points of a word whose cosine exceeds this count as the same hill while the search is young."""

SAME = 0.9995
"""The same once points have converged: hills whose cosine is 0.99 may differ by one captured row."""

_ELSEWHERE, _AS_IT_IS, _KICK = 0.5, 0.5, 0.7
_ADDED_SHARE, _OTHER_WORD_SHARE = 0.6, 0.5
"""Of the kicks: those that add their vector, not take it away; those whose vector is another word's point."""

_SHORTEST_KICK, _LONGEST_KICK = 0.2, 0.7


class Breeder:
    """Draws and crosses points from one generator.

    Args:
        words: w.
        blocks: balls a point.
        size: coordinates of a point, all blocks together.
        generator: the source of randomness; its numbers do not depend on the device of the points.
        device: where the points live.
    """

    def __init__(
        self, words: int, blocks: int, size: int, generator: torch.Generator, dtype: torch.dtype, device: torch.device
    ):
        self._words, self._blocks, self._size = words, blocks, size
        self._generator, self._dtype, self._device = generator, dtype, device

    def resized(self, size: int) -> "Breeder":
        """One for points of `size` coordinates, from the same generator."""
        return Breeder(self._words, self._blocks, size, self._generator, self._dtype, self._device)

    def random(self, ranks: int) -> Float[Tensor, "ranks w size"]:
        """Uniform directions."""
        drawn = gaussian_on(
            ranks, self._words, self._size, generator=self._generator, dtype=self._dtype, device=self._device
        )
        return self.unit(drawn)

    def children(self, parents: Float[Tensor, "ranks w size"], count: int) -> Float[Tensor, "count w size"]:
        """Mixtures of two points, the second in half of them another word's, which half of the time is taken as it is.

        A point that is mixed with itself is kicked in a random direction.
        """
        ranks, w, _ = parents.shape
        points, shape = self.unit(parents), (count, w)
        own = torch.arange(w, device=self._device).expand(shape)
        first, second = self._integers(ranks, shape), self._integers(ranks, shape)
        elsewhere = self._uniform(shape) < _ELSEWHERE
        partner = torch.where(elsewhere, self._integers(w, shape), own)
        share = 0.25 + 0.5 * self._uniform(shape)
        share = torch.where(elsewhere & (self._uniform(shape) < _AS_IT_IS), 0.0, share)
        share = share.unsqueeze(-1).to(points.dtype)
        child = share * points[first, own] + (1 - share) * points[second, partner]
        same = ((first == second) & (partner == own)).unsqueeze(-1)
        return self.unit(torch.where(same, child + _KICK * self.random(count), child))

    def kicked(
        self, parents: Float[Tensor, "ranks w size"], directions: Float[Tensor, "m size"], count: int
    ) -> Float[Tensor, "count w size"]:
        """Neighbours of each word's best point: a fraction of a unit vector is added to it, or taken away.

        The vector is half of the time another word's best point, else one of the `directions`, or a random one where
        there are none.
        """
        points, shape = self.unit(parents[0]), (count, parents.shape[1])
        borrowed = points[self._integers(len(points), shape)]
        drawn = self.unit(directions)[self._integers(len(directions), shape)] if len(directions) else self.random(count)
        added = torch.where((self._uniform(shape) < _OTHER_WORD_SHARE).unsqueeze(-1), borrowed, drawn)
        length = _SHORTEST_KICK + (_LONGEST_KICK - _SHORTEST_KICK) * self._uniform(shape)
        length = torch.where(self._uniform(shape) < _ADDED_SHARE, length, -length)
        return self.unit(points + length.unsqueeze(-1).to(points.dtype) * added)

    def some(self, points: Float[Tensor, "w size"], count: int) -> Float[Tensor, "count w size"]:
        """`count` of the points, drawn without replacement, the same for every word; all where there are fewer."""
        order = torch.randperm(len(points), generator=self._generator, device=self._generator.device)
        return points[order[:count].to(self._device)].unsqueeze(1).expand(-1, len(points), -1)

    def unit(self, points: Float[Tensor, "*ranks w size"]) -> Float[Tensor, "*ranks w size"]:
        """The points with every block scaled to the unit sphere; a zero block stays zero."""
        blocks = points.unflatten(-1, (self._blocks, -1))
        return unit(blocks).flatten(start_dim=-2)

    def _integers(self, below: int, shape: tuple[int, ...]) -> Int[Tensor, "..."]:
        drawn = torch.randint(below, shape, generator=self._generator, device=self._generator.device)
        return drawn.to(self._device)

    def _uniform(self, shape: tuple[int, ...]) -> Float[Tensor, "..."]:
        drawn = torch.rand(shape, generator=self._generator, dtype=torch.float64, device=self._generator.device)
        return drawn.to(self._device)


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


def fittest(
    squared: Float[Tensor, "ranks w"], points: Float[Tensor, "ranks w size"], count: int, alike: float = ALIKE
) -> Int[Tensor, "count w"]:
    """The ranks of each word's `count` best points, best first; points like a better one come after all others.

    Two points are alike where their cosine exceeds `alike`. Without that rule the best hill fills the population with
    copies of itself.
    """
    order = squared.argsort(dim=0, descending=True)
    sorted_points = points.gather(0, order.unsqueeze(-1).expand_as(points)).transpose(0, 1)
    directions = unit(sorted_points)
    close = torch.tril(directions @ directions.mT, diagonal=-1) > alike
    copies = close.any(dim=2).T
    # Stable: among originals, and among copies, the order by value stays.
    ranked = copies.to(torch.int8).argsort(dim=0, stable=True)
    return order.gather(0, ranked[:count])
