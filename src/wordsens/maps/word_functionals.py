"""Linear functionals of the features of a text with one word moved: phi(X^i(Delta)) . theta for several theta at once.

What regression needs of a map: the outputs of linear models, and their gradients in Delta. Maps that have a structure
of their own (attention, fully connected layers) evaluate the functionals without building the perturbed texts.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.contract import FeatureMap
from wordsens.maps.mapping import features_by_text, perturbed_texts

Pull = Callable[[Tensor], Tensor]
"""From the values (b, m) of the functionals to the weights (b, m) with which their gradients are summed."""


class WordFunctionals(ABC):
    """c . theta_1, ..., c . theta_m for the change c = phi(X^i(Delta)) - phi(X), for b pairs (word i, Delta).

    Attributes:
        rows: X, (n, d), in the map's dtype.
        count: m.
        memory_budget: bytes for intermediate results; a batch is cut into chunks that respect it.
        one_word_at_a_time: whether a search should finish one word before it takes up the next.
        kinked: whether the functionals have kinks that a quasi-Newton search stumbles over.
    """

    one_word_at_a_time: bool = False
    kinked: bool = False

    def __init__(self, rows: Float[Tensor, "n d"], count: int, memory_budget: int):
        self.rows = rows
        self.count = count
        self.memory_budget = memory_budget

    @abstractmethod
    def bytes_per_pair(self) -> int:
        """About how many bytes of intermediate results one (word, Delta) costs."""

    @abstractmethod
    def _evaluate(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"], pull: Pull | None
    ) -> tuple[Float[Tensor, "b m"], Float[Tensor, "b d"] | None]:
        """The values of one chunk, and the gradient of sum_m weights_m value_m, weights = pull(values) held fixed."""

    def starting_directions(self) -> Float[Tensor, "starts d"]:
        """Directions in which the map is known to be sensitive. None by default."""
        return self.rows.new_empty(0, self.rows.shape[1])

    def values(self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"]) -> Float[Tensor, "b m"]:
        """The functionals of b pairs."""
        return torch.cat([self._evaluate(delta, word, None)[0] for delta, word in self._chunks(perturbations, words)])

    def chunk(self) -> int:
        """The number of pairs that fit the memory budget."""
        return max(1, self.memory_budget // max(1, self.bytes_per_pair()))

    def values_and_gradient(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"], pull: Pull
    ) -> tuple[Float[Tensor, "b m"], Float[Tensor, "b d"]]:
        """The functionals, and the gradient in each Delta of their sum with the weights that `pull` makes of them.

        `pull` sees a chunk at a time, and must treat each row by itself.
        """
        values, gradients = [], []
        for delta, word in self._chunks(perturbations, words):
            value, gradient = self._evaluate(delta, word, pull)
            values.append(value)
            gradients.append(gradient)
        return torch.cat(values), torch.cat(gradients)

    def _chunks(self, perturbations: Tensor, words: Tensor) -> list[tuple[Tensor, Tensor]]:
        size = self.chunk()
        return list(zip(perturbations.split(size), words.split(size), strict=True))


class PlainFunctionals(WordFunctionals):
    """The functionals by definition: build the perturbed text, map it, differentiate with autograd.

    Args:
        phi: the map.
        rows: X, (n, d).
        thetas: (m, p), in the map's dtype.
        memory_budget: bytes for intermediate results.
    """

    _KEPT_COPIES = 8

    def __init__(
        self, phi: FeatureMap, rows: Float[Tensor, "n d"], thetas: Float[Tensor, "m p"], *, memory_budget: int
    ):
        rows = phi.accept(rows)
        super().__init__(rows, len(thetas), memory_budget)
        self._phi, self._thetas = phi, thetas
        with torch.no_grad():
            self._base = phi(rows).flatten()

    def bytes_per_pair(self) -> int:
        n = self.rows.shape[0]
        return self._KEPT_COPIES * (self.rows.numel() + self._base.numel() + n * n) * self.rows.element_size()

    def _evaluate(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"], pull: Pull | None
    ) -> tuple[Float[Tensor, "b m"], Float[Tensor, "b d"] | None]:
        with torch.set_grad_enabled(pull is not None):
            delta = perturbations.detach().requires_grad_(pull is not None)
            texts = perturbed_texts(self.rows, words.unsqueeze(1), delta.unsqueeze(1))
            values = (features_by_text(self._phi, texts) - self._base) @ self._thetas.T
        if pull is None:
            return values, None
        (gradient,) = torch.autograd.grad(values, delta, grad_outputs=pull(values.detach()))
        return values.detach(), gradient
