"""Linear functionals of the features of a text with one word moved: phi(X^i(Delta)) . theta for
several theta at once.

What regression needs of a map: the outputs of linear models, and their gradients in Delta. Every
`Change` evaluates them; attention and dense layers do so without building the perturbed texts.
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, AutogradChange, Change, FeatureMap, Pull
from wordsens.maps.dense import DeepRandomFeatures
from wordsens.maps.dense_change import WholeBlocksChange
from wordsens.search.objective import Evaluated


class WordFunctionals:
    """c . theta_1, ..., c . theta_m for the change c = phi(X^i(Delta)) - phi(X), for b pairs (word
    i, Delta).

    Attributes:
        rows: X, (n, d), in the map's dtype.
        count: m.
        memory_budget: bytes for intermediate results; a batch is cut into chunks that respect it.
        one_word_at_a_time: whether a search should finish one word before it takes up the next,
            and be short: the matrices are large, and the change nearly linear in one word.
        kinked: whether the functionals have kinks that a quasi-Newton search stumbles over.
    """

    def __init__(self, change: Change, thetas: Float[Tensor, "m p"]):
        self._change, self._thetas = change, thetas
        self.rows, self.count, self.memory_budget = change.rows, len(thetas), change.memory_budget
        self.kinked = change.kinked
        self.one_word_at_a_time = isinstance(change, WholeBlocksChange) and not change.small

    def bytes_per_pair(self) -> int:
        """About how many bytes of intermediate results one (word, Delta) costs."""
        return self._change.bytes_per_pair() * (1 + self.count // 4)

    def starting_directions(self) -> Float[Tensor, "starts d"]:
        """Directions in which the map is known to be sensitive."""
        return self._change.directions

    def values(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"]
    ) -> Float[Tensor, "b m"]:
        """The functionals of b pairs."""
        return torch.cat([values for values, _ in self._chunks(perturbations, words, None)])

    def values_and_gradient(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"], pull: Pull
    ) -> tuple[Float[Tensor, "b m"], Float[Tensor, "b d"]]:
        """The functionals, and the gradient in each Delta of their sum with the weights that `pull`
        makes of them.

        `pull` sees a chunk at a time, and must treat each row by itself.
        """
        values, gradients = zip(*self._chunks(perturbations, words, pull), strict=True)
        return torch.cat(values), torch.cat(gradients).squeeze(1)

    def _chunks(self, perturbations: Tensor, words: Tensor, pull: Pull | None) -> list[Evaluated]:
        size = max(1, self.memory_budget // max(1, self.bytes_per_pair()))
        return [
            self._change.functionals(delta.unsqueeze(1), some, self._thetas, pull)
            for delta, some in zip(perturbations.split(size), words.split(size), strict=True)
        ]


def word_functionals(
    phi: FeatureMap,
    rows: Float[Tensor, "n d"],
    thetas: Float[Tensor, "m p"],
    *,
    memory_budget: int = DEFAULT_MEMORY_BUDGET,
) -> WordFunctionals:
    """The fastest way the map has to evaluate linear functionals (m, p) of its flattened features,
    for rows (n, d)."""
    thetas = thetas.to(dtype=phi.dtype, device=phi.device)
    words = torch.arange(len(rows), device=phi.device).unsqueeze(1)
    if isinstance(phi, DeepRandomFeatures):
        change = WholeBlocksChange(
            phi.layers,
            phi.activation,
            phi.accept(rows),
            words,
            phi.name,
            memory_budget=memory_budget,
        )
    elif isinstance(phi, RandomAttentionFeatures):
        change = phi.change(rows, words, memory_budget=memory_budget)
    else:
        change = AutogradChange(phi, rows, words, memory_budget=memory_budget)
    return WordFunctionals(change, thetas)
