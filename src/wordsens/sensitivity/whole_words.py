"""Sensitivity word by word as a reader counts words: the tokens of one word move together."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Bool, Float
from torch import Tensor

from wordsens.errors import InputError
from wordsens.maps.arguments import as_text
from wordsens.maps.base import FeatureMap
from wordsens.maps.function import as_feature_map
from wordsens.maps.mapping import restores_state
from wordsens.results import Result, ResultTable
from wordsens.search.plan import Search
from wordsens.sensitivity.result import Budget
from wordsens.sensitivity.several_words import radii_of_rows, search_groups
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

    def result_table(self) -> ResultTable:
        """A row a word as a reader counts them, with its tokens."""
        columns = {
            "word": self.words,
            "text": [word.text for word in self.whole],
            "tokens": [" ".join(pieces) for pieces in self.tokens],
            "sensitivity": self.per_word.tolist(),
            "converged": self.converged.tolist(),
        }
        text = self.whole[self.words.index(self.word)].text
        heading = f"Word {self.word} {text!r} can move the output {self.value:.3g} times its size"
        return ResultTable(heading, columns, "sensitivity", "text", notes=self.notes)


@restores_state
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

    >>> import torch
    >>> X = TextMatrix(torch.ones(4, 9, dtype=torch.float64), whole_words=(Word("un", (0, 1)), Word("a", (3,))))
    >>> r = whole_word_sensitivity(lambda X: X, X)
    >>> round(r.value, 6), r.whole[r.word].text
    (0.707107, 'un')
    """
    started, budget = time.perf_counter(), Budget.of(search)
    phi, text = as_feature_map(phi), as_text(X)
    chosen = _chosen(text, words)
    whole = [text.whole_words[at] for at in chosen] if text.whole_words else []
    lengths = radii_of_rows(phi, text, radius)
    result = search_groups(phi, text, [tuple(word.rows) for word in whole], lengths, seed, budget)
    best = int(result.per_group.argmax())
    return WholeWordSensitivity(
        value=float(result.per_group[best]),
        word=chosen[best],
        words=tuple(chosen),
        whole=tuple(whole),
        tokens=tuple(tuple(text.word(row) for row in word.rows) for word in whole),
        per_word=result.per_group,
        perturbations=tuple(result.perturbations),
        radius=tuple(tuple(lengths[list(word.rows)].tolist()) for word in whole),
        search=str(budget.plan),
        evaluations=result.evaluations,
        seconds=time.perf_counter() - started,
        converged=result.converged,
        notes=phi.notes,
    )


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
