"""Real swaps: the word of a vocabulary that, put in the place of a word of the text, moves a map most."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, SupportsIndex

import numpy as np
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import require_choice
from wordsens.maps.arguments import as_text, word_indices
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.maps.function import as_feature_map
from wordsens.search.objective import Progress
from wordsens.seeds import Seed
from wordsens.sensitivity.one_word import attained
from wordsens.sensitivity.result import SensitivityResult
from wordsens.sensitivity.swap_search import ShortlistPlan, scan, shortlist
from wordsens.text.matrix import TextMatrix
from wordsens.text.vocabulary import Vocabulary

SEARCHES = ("auto", "scan", "shortlist")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Swaps(SensitivityResult):
    """The swaps of words of one text that move a map most.

    Attributes:
        value: the largest of `per_word`.
        word: the row of its word.
        words: (w,), the rows that were swapped.
        tokens: what they are called.
        swapped_for: the vocabulary's entry of each that moves the map most.
        per_word: (w,), ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖ of that swap, recomputed through phi.
        perturbations: (w, d), from the word's row to the entry's.
        search: "scan" or "shortlist".
        exact: whether every entry was evaluated; if not, a better swap may exist.
        evaluations: swaps that were evaluated, a gradient counted as three.
    """

    word: int
    words: Int[Tensor, " w"]
    tokens: tuple[str, ...]
    swapped_for: tuple[str, ...]
    per_word: Float[Tensor, " w"]
    perturbations: Float[Tensor, "w d"]
    exact: bool

    def columns(self) -> dict[str, Any]:
        """A row a word."""
        return {
            "word": self.words.tolist(),
            "token": self.tokens,
            "swapped for": self.swapped_for,
            "change": self.per_word.tolist(),
        }


def best_swaps(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    words: Iterable[int] | Tensor | SupportsIndex | None = None,
    seed: Seed = 0,
    *,
    vocabulary: Vocabulary,
    search: str | ShortlistPlan = "auto",
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    progress: Progress | None = None,
) -> Swaps:
    """max over the vocabulary's entries v of ‖phi(X^i(x_v - x_i)) - phi(X)‖ / ‖phi(X)‖, for each word i.

    The swap may be longer than the radius of a ball around x_i. Cost: w v evaluations for a scan, which a map with a
    closed form makes cheap; ShortlistPlan.evaluations() = E passes of the model a word for a shortlist, and O(v E d)
    for its predictions.

    Args:
        phi: a feature map, or a differentiable function of an (n, d) tensor.
        X: the text.
        words: the rows that are swapped; None for all.
        seed: of a shortlist's first entries.
        vocabulary: what a word may become, with its row at each place.
        search: "scan": every entry, exact; "shortlist", or a ShortlistPlan: by gradients, then evaluated; "auto": the
            shortlist for transformers, the scan for all others.
        memory_budget: bytes for intermediate results.
        progress: called with (done, in all).

    >>> import torch
    >>> rows = torch.tensor([[2.0, 0.0], [0.0, 5.0]], dtype=torch.float64)
    >>> vocabulary = Vocabulary.of_rows(["a", "b"], rows)
    >>> swaps = best_swaps(lambda X: X, torch.eye(2, dtype=torch.float64), vocabulary=vocabulary)
    >>> swaps.swapped_for, swaps.exact
    (('b', 'b'), True)
    """
    started = time.perf_counter()
    phi, text = as_feature_map(phi), as_text(X)
    plan = search if isinstance(search, ShortlistPlan) else ShortlistPlan()
    if not isinstance(search, ShortlistPlan):
        require_choice("search", search, SEARCHES)
    rows = phi.accept(text.rows)
    chosen = word_indices(words, len(text)).to(rows.device)
    change = phi.word_change(rows, memory_budget=memory_budget)
    exact = search == "scan" or (search == "auto" and not hasattr(phi, "bytes_per_text"))
    if exact:
        best = scan(change, chosen, vocabulary, progress)
    else:
        best = shortlist(change, chosen, vocabulary, plan, seed, progress)
    per_word = attained(phi, rows, chosen.unsqueeze(1), best.perturbations.unsqueeze(1), memory_budget=memory_budget)
    most = int(per_word.argmax())
    return Swaps(
        value=float(per_word[most]),
        word=int(chosen[most]),
        words=chosen,
        tokens=tuple(text.word(int(word)) for word in chosen),
        swapped_for=tuple(vocabulary.tokens[int(entry)] for entry in best.entries),
        per_word=per_word,
        perturbations=best.perturbations,
        search="scan" if exact else "shortlist",
        exact=exact,
        converged=None,
        evaluations=best.evaluations + len(chosen),
        seconds=time.perf_counter() - started,
        seed=int(seed),
    )
