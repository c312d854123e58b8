"""Attention layers as feature maps: what random weights and one's own share."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, require_choice
from wordsens.maps.attention.any_score import AnyScoreChange
from wordsens.maps.attention.group_change import AttentionGroupChange
from wordsens.maps.attention.scores import SCORES, ClosedForm, Score, offered
from wordsens.maps.attention.weights import HeadWeights
from wordsens.maps.attention.word_change import AttentionWordChange
from wordsens.maps.contract import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.maps.mapping import feature_norm
from wordsens.maps.word_change import WordChange


class AttentionLayer(FeatureMap):
    """phi(X) = attention(scores) values: of one head (n, m), of several (heads, n, m), or of their sum (n, m).

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
    def head_weights(self, n: int, dtype: torch.dtype, *, isometric: bool = False) -> list[HeadWeights]:
        """The weights of every head, for texts of n words.

        `isometric`: values may be given by other coordinates, fewer perhaps, as long as their lengths and those of
        their differences are the same.
        """

    def scores(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "..."]:
        """The scores of all pairs of rows: (*batch, n, n), or (*batch, heads, n, n) for several heads."""
        return self._side_by_side([head.scores(texts) for head in self._weights(texts)])

    def attention(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "..."]:
        """The attention weights, shaped like the scores: entry (j, i) is how much row j takes from word i."""
        return self.score.attention(self.scores(texts))

    def attention_of(self, rows: Float[Tensor, "n d"], layer: int = 1) -> Float[Tensor, "heads n n"]:
        """The attention weights of every head on one text; there is one layer, 1."""
        weights = self.attention(rows)
        return weights.unsqueeze(0) if self.heads == 1 else weights

    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "..."]:
        outputs = [self.score.attention(head.scores(texts)) @ head.values(texts) for head in self._weights(texts)]
        return self._joined(outputs)

    def perturbed_features(
        self,
        rows: Float[Tensor, "n d"],
        words: Int[Tensor, "b g"],
        perturbations: Float[Tensor, "b g d"],
        *,
        at_once: int,
    ) -> Iterator[Float[Tensor, "c features"]]:
        """phi of each perturbed text X', whose scores differ from X's in g rows and g columns.

        The attention is taken anew from all scores. O(heads b (n² d + g d²)) against O(heads b (2 n² d + n d²)).
        """
        heads = [(head, head.scores_between(rows, rows)) for head in self._weights(rows)]
        for some, delta in zip(words.to(rows.device).split(at_once), perturbations.split(at_once), strict=True):
            yield self._perturbed(heads, rows, some, delta)

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
            output = (attention.flatten(end_dim=1) @ head.values(rows)).unflatten(0, attention.shape[:2])
            per_head.append(output.baddbmm_(to_moved, head.seen(perturbations)))
        return self._joined(per_head).flatten(start_dim=1)

    def word_change(self, rows: Float[Tensor, "n d"], *, memory_budget: int = DEFAULT_MEMORY_BUDGET) -> WordChange:
        score = self._closed_score()
        if score is None:
            weights = self._weights(self.accept(rows))
            return AnyScoreChange(self, rows, weights, self.score, memory_budget, summed=self.summed)
        return self._closed_form(score, rows, memory_budget)

    def group_change(
        self, rows: Float[Tensor, "n d"], groups: Int[Tensor, "m g"], *, memory_budget: int = DEFAULT_MEMORY_BUDGET
    ) -> AttentionGroupChange:
        rows = self.accept(rows)
        norm = feature_norm(self.features(rows), self.name)
        weights = self._weights(rows)
        return AttentionGroupChange(rows, groups, weights, self.score, norm, memory_budget, summed=self.summed)

    def _closed_score(self) -> ClosedForm | None:
        """The score, where the change has a closed form."""
        return None if self.summed else offered(self.score, ClosedForm)

    def _closed_form(self, score: ClosedForm, rows: Float[Tensor, "n d"], memory_budget: int) -> AttentionWordChange:
        rows = self.accept(rows)
        norm = feature_norm(self.features(rows), self.name)
        weights = self.head_weights(len(rows), self.dtype, isometric=True)
        return AttentionWordChange(rows, weights, score, norm, memory_budget)

    def _weights(self, texts: Float[Tensor, "*batch n d"]) -> list[HeadWeights]:
        return self.head_weights(texts.shape[-2], self.dtype)

    def _side_by_side(self, per_head: list[Tensor]) -> Tensor:
        return per_head[0] if self.heads == 1 else torch.stack(per_head, dim=-3)

    def _joined(self, outputs: list[Tensor]) -> Tensor:
        return torch.stack(outputs).sum(dim=0) if self.summed else self._side_by_side(outputs)


def checked_score(score: str | Score) -> Score:
    """The score of that name; an instance of a Score as it is, if it has what `Score` asks for."""
    if isinstance(score, str):
        return SCORES[require_choice("score", score, SCORES)]
    if not isinstance(score, Score):
        raise InputError(
            f"`score` (={score!r}) must be one of {', '.join(SCORES)}, or an instance of a class of your own that is "
            "derived from wordsens.Score"
        )
    missing = [
        name for name, kind in (("name", str), ("normalized", bool)) if not isinstance(getattr(score, name, 0), kind)
    ]
    if missing:
        raise InputError(
            f"`score` ({type(score).__name__}) must have a `name` (text) and say whether it is `normalized` (True or "
            f"False); set {' and '.join(missing)} in the class"
        )
    return score
