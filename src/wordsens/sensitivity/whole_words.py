"""Sensitivity word by word as a reader counts words: the tokens of one word move together."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.errors import InputError
from wordsens.maps.arguments import as_text
from wordsens.maps.base import FeatureMap
from wordsens.maps.function import as_feature_map
from wordsens.maps.mapping import leaves_the_map_as_found
from wordsens.results import Look, Result
from wordsens.search.ball import Ball
from wordsens.search.maximize import maximize
from wordsens.search.objective import Objective
from wordsens.search.plan import Search
from wordsens.seeds import generator
from wordsens.sensitivity.one_word import attained
from wordsens.sensitivity.result import Budget
from wordsens.text.matrix import TextMatrix, Word


@dataclass(frozen=True, eq=False, repr=False)
class WholeWordSensitivity(Result):
    """The sensitivity of one text, word by word as a reader counts words.

    Attributes:
        value: the largest of `per_word`: attained, a lower bound of the sup.
        word: the index, in the text's `whole_words`, of its word.
        words: the indices of the searched words.
        whole: the searched words, each with its rows.
        tokens: the tokens of each of them.
        per_word: (w,), the relative change at each word's witness, recomputed through phi.
        perturbations: a witness for each word, (tokens of the word, d).
        radius: the radius of each token's ball, word by word.
        search: what the search was allowed, in words, such as "normal"; see SearchPlan.
        evaluations: how many perturbed texts were evaluated.
        seconds: what the call took.
        converged: (w,), whether the search stopped gaining, before its steps ran out, at a stationary point.
        notes: what the map says of itself.
    """

    value: float
    word: int
    words: tuple[int, ...]
    whole: tuple[Word, ...]
    tokens: tuple[tuple[str, ...], ...]
    per_word: Float[Tensor, " w"]
    perturbations: tuple[Tensor, ...]
    radius: tuple[tuple[float, ...], ...]
    search: str
    evaluations: int
    seconds: float = field(compare=False)
    converged: Bool[Tensor, " w"]
    notes: tuple[str, ...] = ()

    def look(self) -> Look:
        """A row a word as a reader counts them, with its tokens."""
        columns = {
            "word": self.words,
            "text": [word.text for word in self.whole],
            "tokens": [" ".join(pieces) for pieces in self.tokens],
            "sensitivity": self.per_word.tolist(),
            "converged": self.converged.tolist(),
        }
        heading = f"S >= {self.value:.4f}, at word {self.word}"
        return Look(heading, columns, "sensitivity", "text", notes=self.notes)


@leaves_the_map_as_found
def whole_word_sensitivity(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix,
    words: Sequence[int] | None = None,
    seed: int = 0,
    *,
    radius: float | None = None,
    search: Search | Budget = "normal",
) -> WholeWordSensitivity:
    """sup over whole words G and ‖Delta_j‖ <= radius_j, j in G, of ‖phi(X^G(Delta)) - phi(X)‖ / ‖phi(X)‖ (ours).

    Eq. 1 with the tokens of one word in place of one row, each with a ball of its own. Attained: a lower bound, each
    witness recomputed through phi. A word of one token is searched as word_sensitivity searches it.

    Args:
        phi: a feature map, or a differentiable function of an (n, d) tensor.
        X: a text that knows its whole words, as `TransformerFeatures.embed` gives it.
        words: indices of X.whole_words; None for all.
        radius: of every token's ball; None for the map's default, a transformer's being the token's own row norm.
        seed: as for word_sensitivity.
        search: likewise; or a Budget.

    Raises:
        InputError: a text that does not know its words, or an index out of range.

    >>> X = TextMatrix(torch.ones(4, 9, dtype=torch.float64), whole_words=(Word("un", (0, 1)), Word("a", (3,))))
    >>> r = whole_word_sensitivity(lambda X: X, X)
    >>> round(r.value, 6), r.whole[r.word].text
    (0.707107, 'un')
    """
    started, budget = time.perf_counter(), Budget.of(search)
    text, phi = as_text(X), as_feature_map(phi)
    chosen = _chosen(text, words)
    whole = [text.whole_words[at] for at in chosen] if text.whole_words else []
    rows = phi.accept(text.rows)
    lengths = phi.default_radius(rows) if radius is None else torch.full((len(text),), float(radius)).double()
    per_word = torch.empty(len(whole), dtype=torch.float64)
    converged = torch.empty(len(whole), dtype=torch.bool)
    perturbations: list[Tensor] = [torch.empty(0)] * len(whole)
    evaluations = 0
    for size in sorted({len(word.rows) for word in whole}):
        at = [index for index, word in enumerate(whole) if len(word.rows) == size]
        members = torch.tensor([whole[index].rows for index in at], device=rows.device)
        moved = phi.group_change(rows, members, memory_budget=budget.memory_budget)
        change = InRadii(moved, lengths[members])
        found = maximize(
            change,
            torch.arange(len(at), device=rows.device),
            Ball(torch.ones(len(at), dtype=torch.float64, device=rows.device)),
            budget.plan,
            blocks=size,
            generator=generator(seed, "whole words", size),
            progress=budget.progress,
        )
        delta = found.perturbations * lengths[members].unsqueeze(-1).to(found.perturbations.dtype)
        values = attained(phi, rows, members, delta, memory_budget=budget.memory_budget)
        evaluations += found.evaluations + len(at)
        for position, index in enumerate(at):
            per_word[index], converged[index] = values[position], found.converged[position]
            perturbations[index] = delta[position]
    best = int(per_word.argmax())
    return WholeWordSensitivity(
        value=float(per_word[best]),
        word=chosen[best],
        words=tuple(chosen),
        whole=tuple(whole),
        tokens=tuple(tuple(text.word(row) for row in word.rows) for word in whole),
        per_word=per_word,
        perturbations=tuple(perturbations),
        radius=tuple(tuple(lengths[list(word.rows)].tolist()) for word in whole),
        search=str(budget.plan),
        evaluations=evaluations,
        seconds=time.perf_counter() - started,
        converged=converged,
        notes=phi.notes,
    )


class InRadii(Objective):
    """A change of groups in coordinates where the ball of every row has radius 1.

    Args:
        change: the change.
        radius: of each row of each group.
    """

    def __init__(self, change: Objective, radius: Float[Tensor, "m g"]):
        super().__init__(
            change.shape,
            dtype=change.dtype,
            device=change.device,
            memory_budget=change.memory_budget,
            typical_length=change.typical_length,
        )
        self._change, self._radius = change, radius.unsqueeze(-1)
        self.stages, self.kinked = change.stages, change.kinked

    def bytes_per_pair(self) -> int:
        return self._change.bytes_per_pair()

    def coarse(self) -> Objective:
        coarse = self._change.coarse()
        return self if coarse is self._change else InRadii(coarse, self._radius.squeeze(-1))

    def starts(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Tensor:
        return self._change.starts(words, torch.ones_like(radius)) / self._radius[words].to(self.dtype)

    def _evaluate(self, perturbations: Tensor, words: Tensor, *, gradient: bool) -> tuple[Tensor, Tensor | None]:
        scale = self._radius[words].to(perturbations.dtype)
        squared, slope = self._change._evaluate(perturbations * scale, words, gradient=gradient)
        return squared, None if slope is None else slope * scale


def _chosen(text: TextMatrix, words: Sequence[int] | None) -> list[int]:
    if not text.whole_words:
        raise InputError(
            "`X` does not know its whole words; embed it with TransformerFeatures.embed, or name the rows with "
            "group_sensitivity"
        )
    count = len(text.whole_words)
    listed: list[Any] = list(range(count)) if words is None else list(words)
    if not listed or len(set(listed)) != len(listed) or any(not 0 <= word < count for word in listed):
        raise InputError(f"`words` (={listed!r}) must name different words from 0 to {count - 1}, at least one")
    return [int(word) for word in listed]
