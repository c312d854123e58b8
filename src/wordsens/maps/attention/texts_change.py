"""The change of an attention layer when one word moves, on several texts of equal length at once.

Word i of text t is word t n + i. Products with W + W^T are the same for every text; all others meet their own text's
matrices. For short texts this spares what a small operation costs besides its arithmetic.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.head import Head
from wordsens.maps.attention.weights import HeadWeights
from wordsens.maps.attention.word_change import AttentionWordChange
from wordsens.maps.word_change import MovedRows

_CACHED_COORDINATES = 1 << 14
"""Coordinates of all words that are searched together on a CPU: a search keeps 16 to 24 points a word, and past about
2^18 numbers an array leaves the cache, which costs more than larger operations spare. Timed with 16."""

_FEWEST = 4
"""The fewest texts worth searching together on a CPU; with fewer, one by one is as fast: at n = 20, d = 384, faster."""


class AttentionTextsChange(MovedRows):
    """‖phi(X^i(Delta)) - phi(X)‖² and its gradient for pairs of a word of any of T texts and a Delta.

    The numbers are those of each text's own AttentionWordChange. Cost: as there, per pair; memory O(T n (n + d)).

    Attributes:
        changes: each text's own.
    """

    def __init__(self, changes: Sequence[AttentionWordChange]):
        first = changes[0]
        rows = torch.cat([change.rows for change in changes])
        super().__init__(rows, first.memory_budget)
        self.changes = changes
        self.plan = first.plan
        self._words = len(first.rows)
        self._heads = [Head.joined(heads) for heads in zip(*(change.heads for change in changes), strict=True)]

    def coarse(self) -> "AttentionTextsChange":
        largest = max(change.largest_score for change in self.changes)
        coarse = [change.coarse_at(largest) for change in self.changes]
        same = any(one is change for one, change in zip(coarse, self.changes, strict=True))
        return self if same else AttentionTextsChange(coarse)

    def bytes_per_pair(self) -> int:
        return self.changes[0].bytes_per_pair()

    def starting_directions(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Float[Tensor, "starts w d"]:
        """Each text's own."""
        top = [head.top_directions for head in self._heads]
        return torch.stack([change.directions(top) for change in self.changes], dim=1)[:, words // self._words]

    def softened(self, radius: Float[Tensor, " w"], shares: Sequence[float]) -> "list[_EachText]":
        """Each text's own. They differ in temperature or width, so texts are evaluated one by one there."""
        reaches = radius.chunk(len(self.changes))
        relatives = [change.softened(reach, shares) for change, reach in zip(self.changes, reaches, strict=True)]
        return [_EachText(list(own)) for own in zip(*relatives, strict=True)]

    def second_look(self, radius: Float[Tensor, " w"]) -> "AttentionTextsChange | None":
        """Of each text's own; the texts agree in whether there is one."""
        reaches = radius.chunk(len(self.changes))
        looks = [change.second_look(reach) for change, reach in zip(self.changes, reaches, strict=True)]
        found = [look for look in looks if look is not None]
        return AttentionTextsChange(found) if len(found) == len(looks) else None

    def rounded(self, radius: Float[Tensor, " w"], shares: Sequence[float]) -> "list[_EachText]":
        """Each text's own."""
        reaches = radius.chunk(len(self.changes))
        relatives = [change.rounded(reach, shares) for change, reach in zip(self.changes, reaches, strict=True)]
        return [_EachText(list(own)) for own in zip(*relatives, strict=True)]

    def candidates(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Float[Tensor, "count w d"]:
        """Each text's own; the words are all words of all texts, in order."""
        texts = len(self.changes)
        by_text = zip(self.changes, words.chunk(texts), radius.chunk(texts), strict=True)
        return torch.cat([change.candidates(own % self._words, reach) for change, own, reach in by_text], dim=1)

    def kicking_directions(self) -> Float[Tensor, "m d"]:
        """Each text's own, as many for each, text by text."""
        return torch.cat([change.kicking_directions() for change in self.changes])

    def _evaluate(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b d"] | None]:
        texts = words // self._words
        order = texts.argsort(stable=True)
        counts = torch.bincount(texts, minlength=len(self.changes)).tolist()
        delta, word = perturbations[order], words[order]
        values, slopes = zip(*(head.evaluate(delta, word, gradient, counts) for head in self._heads), strict=True)
        squared = torch.empty_like(values[0])
        squared[order] = sum(values[1:], values[0])
        if not gradient:
            return squared, None
        slope = torch.empty_like(perturbations)
        slope[order] = sum(slopes[1:], slopes[0])
        return squared, slope


class _EachText(MovedRows):
    """The changes of several texts of n words, one after the other: word i of text t is word t n + i."""

    def __init__(self, changes: Sequence[AttentionWordChange]):
        super().__init__(torch.cat([change.rows for change in changes]), changes[0].memory_budget)
        self._changes, self._words = changes, len(changes[0].rows)

    def bytes_per_pair(self) -> int:
        return self._changes[0].bytes_per_pair()

    def kicking_directions(self) -> Float[Tensor, "m d"]:
        return torch.cat([change.kicking_directions() for change in self._changes])

    def _evaluate(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b d"] | None]:
        squared, slope = torch.empty_like(perturbations[:, 0]), torch.empty_like(perturbations)
        for text, change in enumerate(self._changes):
            mine = (words // self._words == text).nonzero().squeeze(1)
            if len(mine) == 0:
                continue
            delta, word = perturbations[mine], words[mine] % self._words
            if gradient:
                squared[mine], slope[mine] = change.value_and_gradient(delta, word)
            else:
                squared[mine] = change.value(delta, word)
        return squared, slope if gradient else None


def texts_at_once(n: int, weights: Sequence[HeadWeights], memory_budget: int) -> int:
    """The number of texts of n words to search together: by the memory budget, and on a CPU by its cache.

    1 on a CPU where n max(n, d) exceeds 4,096: there arithmetic, not the operations' own cost, takes the time.
    """
    weight = weights[0].matrix
    heads, d = len(weights), len(weight)
    kept = heads * (8 * n * n + 10 * n * d + 2 * d * d) * weight.element_size()
    fitting = memory_budget // (2 * kept)
    if weight.device.type != "cpu":
        return max(1, fitting)
    cached = _CACHED_COORDINATES // (n * max(n, d))
    return max(1, min(fitting, cached)) if cached >= _FEWEST else 1
