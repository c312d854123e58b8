"""Real swaps: the word of a vocabulary that, put in the place of a word of the text, moves a map most."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import require_choice
from wordsens.maps.arguments import as_text, word_indices
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.maps.function import as_feature_map
from wordsens.results import Result, ResultTable
from wordsens.search.plan import Search
from wordsens.sensitivity.one_word import attained, word_sensitivity
from wordsens.sensitivity.result import Sensitivity
from wordsens.sensitivity.swap_search import Entries, ShortlistPlan, Tick, scan, shortlist
from wordsens.text.matrix import TextMatrix
from wordsens.text.vocabulary import Vocabulary

METHODS = ("auto", "scan", "shortlist")


@dataclass(frozen=True, eq=False, repr=False)
class Swaps(Result):
    """The swaps of words of one text that move a map most.

    Attributes:
        value: the largest of `per_word`.
        word: the row of its word.
        words: (w,), the rows that were swapped.
        tokens: what they are called.
        swapped_for: the vocabulary's entry of each that moves the map most.
        per_word: (w,), ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖ of that swap, recomputed through phi.
        perturbations: (w, d), from the word's row to the entry's.
        exact: whether every entry was evaluated; if not, a better swap may exist.
        evaluations: swaps that were evaluated, a gradient counted as three.
        seconds: what the call took.
    """

    value: float
    word: int
    words: Int[Tensor, " w"]
    tokens: tuple[str, ...]
    swapped_for: tuple[str, ...]
    per_word: Float[Tensor, " w"]
    perturbations: Float[Tensor, "w d"]
    exact: bool
    evaluations: int
    seconds: float = field(compare=False)

    def result_table(self) -> ResultTable:
        """A row a word."""
        columns = {
            "word": self.words.tolist(),
            "token": self.tokens,
            "swapped for": self.swapped_for,
            "change": self.per_word.tolist(),
        }
        at = int((self.words == self.word).nonzero()[0])
        heading = (
            f"{self.swapped_for[at]!r} in the place of {self.tokens[at]!r} (word {self.word}) moves the output "
            f"{self.value:.3g} times its size, {'the most of all' if self.exact else 'the most that was tried'}"
        )
        return ResultTable(heading, columns, "change", "token")


def best_swaps(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    vocabulary: Vocabulary,
    words: Iterable[int] | SupportsIndex | None = None,
    *,
    method: str | ShortlistPlan = "auto",
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
    progress: Tick | None = None,
) -> Swaps:
    """max over the vocabulary's entries v of ‖phi(X^i(x_v - x_i)) - phi(X)‖ / ‖phi(X)‖, for each word i.

    Attained. The swap may be longer than the radius of a ball around x_i. Cost: w v evaluations for a scan, which a map
    with a closed form makes cheap; ShortlistPlan.evaluations() = E passes of the model a word for a shortlist, and
    O(v E d) for its predictions.

    Args:
        phi: a feature map, or a differentiable function of an (n, d) tensor.
        X: the text.
        vocabulary: what a word may become, with its row at each place.
        words: the rows that are swapped; None for all.
        method: "scan": every entry, exact; "shortlist", or a ShortlistPlan: by gradients, then evaluated; "auto": the
            shortlist for transformers, the scan for all others.
        memory_budget: bytes for intermediate results.
        progress: called with (done, in all).

    >>> rows = torch.tensor([[2.0, 0.0], [0.0, 5.0]], dtype=torch.float64)
    >>> found = best_swaps(lambda X: X, torch.eye(2, dtype=torch.float64), Vocabulary.of_rows(["a", "b"], rows))
    >>> found.swapped_for, found.exact
    (('b', 'b'), True)
    """
    started = time.perf_counter()
    phi, text = as_feature_map(phi), as_text(X)
    plan = method if isinstance(method, ShortlistPlan) else ShortlistPlan()
    if method is not plan:
        require_choice("method", method, METHODS)
    rows = phi.accept(text.rows)
    chosen = word_indices(words, len(text)).to(rows.device)
    change = phi.word_change(rows, memory_budget=memory_budget)
    exact = method == "scan" or (method == "auto" and not hasattr(phi, "bytes_per_text"))
    result: Entries
    if exact:
        result = scan(change, chosen, vocabulary, progress)
    else:
        result = shortlist(change, chosen, vocabulary, plan, progress)
    per_word = attained(phi, rows, chosen.unsqueeze(1), result.perturbations.unsqueeze(1), memory_budget=memory_budget)
    best = int(per_word.argmax())
    return Swaps(
        value=float(per_word[best]),
        word=int(chosen[best]),
        words=chosen,
        tokens=tuple(text.word(int(word)) for word in chosen),
        swapped_for=tuple(vocabulary.tokens[int(entry)] for entry in result.entries),
        per_word=per_word,
        perturbations=result.perturbations,
        exact=exact,
        evaluations=result.evaluations + len(chosen),
        seconds=time.perf_counter() - started,
    )


@dataclass(frozen=True, eq=False, repr=False)
class SwapRatio(Result):
    """The share of the continuous sup that a real word reaches.

    Attributes:
        ratio: (w,), the continuous value over the swap's, at least 1.
        continuous: the sensitivity of each word in the ball whose radius is the length of its best swap.
        swaps: the swaps.
    """

    ratio: Float[Tensor, " w"]
    continuous: Float[Tensor, " w"]
    swaps: Swaps

    def result_table(self) -> ResultTable:
        """A row a word, beside its swap."""
        columns = {
            **self.swaps.result_table().columns,
            "sup": self.continuous.tolist(),
            "ratio": self.ratio.tolist(),
        }
        return ResultTable("the sup within a real word's reach, over the real word's change", columns, "ratio", "token")


def swap_ratio(
    phi: FeatureMap | Callable[[Tensor], Tensor],
    X: TextMatrix | Tensor | np.ndarray,
    swaps: Swaps,
    seed: int = 0,
    *,
    search: Search = "normal",
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> SwapRatio:
    """sup over ‖Delta‖ <= ‖x_v - x_i‖ of the change, over the change by the swap to v, for each word i (ours).

    Both are allowed the same distance. The sup is attained by a search, or by the swap itself where that is farther:
    the ratio is a lower bound of the true one, and at least 1. Words whose best swap does not move the map are refused
    by word_sensitivity (radius 0). `search` is what the search spends.
    """
    lengths = torch.linalg.vector_norm(swaps.perturbations, dim=1, dtype=torch.float64)
    result: Sensitivity = word_sensitivity(
        phi, X, swaps.words, lengths.cpu(), seed, search=search, certificate=False, memory_budget=memory_budget
    )
    continuous = torch.maximum(result.per_word, swaps.per_word)
    return SwapRatio(continuous / swaps.per_word, continuous, swaps)
