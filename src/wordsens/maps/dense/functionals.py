"""Linear functionals of fully connected random features when one word moves."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.gaussian import DenseGaussian
from wordsens.maps.dense.features import DeepRandomFeatures
from wordsens.maps.word_functionals import Pull, WordFunctionals


class DenseFunctionals(WordFunctionals):
    """c . theta for RF and DRF: with h = V flat(X) kept, c = act(h + V_i Delta) - act(h) in one layer.

    Only the columns V_i (k, d) of the word are needed. A matrix sampled on demand is asked for the whole block once a
    word, d queries, since a search asks for more than d products: k d numbers of memory, and no query in the loop.
    One pair costs O(k d), forward and backward alike, and O(k²) more for each layer past the first.

    Args:
        phi: the map.
        rows: X, (n, d).
        thetas: (m, k).
        memory_budget: bytes for intermediate results.
    """

    one_word_at_a_time = True

    def __init__(
        self,
        phi: DeepRandomFeatures,
        rows: Float[Tensor, "n d"],
        thetas: Float[Tensor, "m k"],
        *,
        memory_budget: int,
    ):
        rows = phi.accept(rows)
        super().__init__(rows, len(thetas), memory_budget)
        self._phi, self._thetas = phi, thetas
        self._preactivation = phi.layers[0].multiply(rows.flatten())
        self._base = self._forward(self._preactivation.unsqueeze(0))[-1]
        self._block: tuple[int, Tensor] | None = None

    def bytes_per_pair(self) -> int:
        return (2 * self._phi.depth + 3) * self._phi.width * self.rows.element_size()

    def _columns(self, word: int) -> Float[Tensor, "d k"]:
        """V_i^T: a view of a dense matrix; else asked for once, and kept until another word's turn."""
        first, d = self._phi.layers[0], self.rows.shape[1]
        if isinstance(first, DenseGaussian):
            return first.matrix[:, word * d : (word + 1) * d].T
        if self._block is None or self._block[0] != word:
            self._block = None
            identity = torch.eye(d, dtype=self.rows.dtype, device=self.rows.device)
            self._block = (word, first.multiply_block(identity, word * d))
        return self._block[1]

    def _forward(self, preactivation: Float[Tensor, "b k"]) -> list[Float[Tensor, "b k"]]:
        """The pre-activations of every layer, then the features."""
        steps = [preactivation]
        for layer in self._phi.layers[1:]:
            steps.append(layer.multiply(self._phi.activation(steps[-1])))
        return [*steps, self._phi.activation(steps[-1])]

    def _evaluate(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"], pull: Pull | None
    ) -> tuple[Float[Tensor, "b m"], Float[Tensor, "b d"] | None]:
        groups = [(int(word), (words == word).nonzero().squeeze(1)) for word in words.unique()]
        preactivation = self._preactivation.repeat(len(words), 1)
        for word, members in groups:
            preactivation[members] += perturbations[members] @ self._columns(word)
        *steps, features = self._forward(preactivation)
        values = (features - self._base) @ self._thetas.T
        if pull is None:
            return values, None
        slope = pull(values) @ self._thetas
        for layer, step in zip(reversed(self._phi.layers[1:]), reversed(steps[1:]), strict=True):
            slope = layer.multiply_transposed(slope * self._phi.activation.derivative(step))
        slope = slope * self._phi.activation.derivative(steps[0])
        gradients = torch.empty_like(perturbations)
        for word, members in groups:
            gradients[members] = slope[members] @ self._columns(word).T
        return values, gradients
