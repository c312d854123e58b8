"""Linear functionals of the features of a text with one word moved: phi(X^i(Delta)) . theta for
several theta at once.

What regression needs of a map: the outputs of linear models, and their gradients in Delta.
Attention and dense layers evaluate them without building the perturbed texts. For attention, in the
notation of `maps.attention.change`,

    c . theta = sum over j != i of [p_ji Delta . theta_j + (p_ji - a_ji) r_ji . theta_j] + (change
    of row i) . theta_i,

theta_j being row j of theta (n, d). The products r_ji . theta_j do not depend on Delta: one number
a row. Derivation: docs/theory/generalization.md.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.gaussian import DenseGaussian
from wordsens.maps.attention.change import Head
from wordsens.maps.attention.features import RandomAttentionFeatures
from wordsens.maps.attention.scores import ClosedForm, offered
from wordsens.maps.base import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.maps.dense import DeepRandomFeatures
from wordsens.maps.dense_change import DenseChange
from wordsens.maps.mapping import features_by_text, perturbed_texts

Pull = Callable[[Tensor], Tensor]
"""From the values (b, m) of the functionals to the weights (b, m) with which their gradients are
summed."""


class WordFunctionals(ABC):
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
        """The values of one chunk, and the gradient of sum_m weights_m value_m, weights =
        pull(values) held fixed."""

    def starting_directions(self) -> Float[Tensor, "starts d"]:
        """Directions in which the map is known to be sensitive. None by default."""
        return self.rows.new_empty(0, self.rows.shape[1])

    def values(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"]
    ) -> Float[Tensor, "b m"]:
        """The functionals of b pairs."""
        return torch.cat(
            [
                self._evaluate(delta, word, None)[0]
                for delta, word in self._chunks(perturbations, words)
            ]
        )

    def chunk(self) -> int:
        """The number of pairs that fit the memory budget."""
        return max(1, self.memory_budget // max(1, self.bytes_per_pair()))

    def values_and_gradient(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"], pull: Pull
    ) -> tuple[Float[Tensor, "b m"], Float[Tensor, "b d"]]:
        """The functionals, and the gradient in each Delta of their sum with the weights that `pull`
        makes of them.

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
    thetas (m, p)."""

    def __init__(
        self,
        phi: FeatureMap,
        rows: Float[Tensor, "n d"],
        thetas: Float[Tensor, "m p"],
        *,
        memory_budget: int,
    ):
        rows = phi.accept(rows)
        super().__init__(rows, len(thetas), memory_budget)
        self._phi, self._thetas = phi, thetas
        with torch.no_grad():
            self._base = phi(rows).flatten()

    def bytes_per_pair(self) -> int:
        return (
            8
            * (self.rows.numel() + self._base.numel() + len(self.rows) ** 2)
            * self.rows.element_size()
        )

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


class _WholeBlocks(DenseChange):
    """Of a matrix sampled on demand the whole block of a word, d queries: a search asks for more
    than d products."""

    def _block(self, word: int) -> Float[Tensor, "width d"] | None:
        first, d = self._layers[0], self.rows.shape[1]
        if isinstance(first, DenseGaussian):
            return super()._block(word)
        if word not in self._blocks:
            identity = torch.eye(d, dtype=self.rows.dtype, device=self.rows.device)
            self._blocks = {word: first.multiply_block(identity, word * d).T}
        return self._blocks[word]


class DenseFunctionals(WordFunctionals):
    """c . theta for RF and DRF, of the change c that `DenseChange` gives; O(k d) a pair, and O(k²)
    more for each layer past the first, forward and backward alike."""

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
        words = torch.arange(len(rows), device=rows.device).unsqueeze(1)
        self._change = _WholeBlocks(
            phi.layers, phi.activation, rows, words, phi.name, memory_budget=memory_budget
        )
        self._thetas = thetas
        self.one_word_at_a_time = not self._change.small
        self.kinked = phi.activation.kinked and self._change.small

    def bytes_per_pair(self) -> int:
        return self._change.bytes_per_pair()

    def _evaluate(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"], pull: Pull | None
    ) -> tuple[Float[Tensor, "b m"], Float[Tensor, "b d"] | None]:
        change, steps = self._change.change(perturbations, words)
        values = change @ self._thetas.T
        if pull is None:
            return values, None
        gradient = self._change.pull_back(pull(values) @ self._thetas, steps, words)
        return values, gradient.squeeze(1)


class _HeadFunctionals:
    """One head on one text, with its part of every theta, (m, n, d)."""

    def __init__(self, head: Head, thetas: Float[Tensor, "m n d"]):
        self.head, self.thetas = head, thetas
        self.flat = thetas.flatten(end_dim=1)

    def owned(self, words: Int[Tensor, " b"]) -> tuple[Int[Tensor, " c"], Int[Tensor, " c"]]:
        """The pairs whose word owns a row, and the row."""
        which, row = (words.unsqueeze(1) == self.head.owner).nonzero(as_tuple=True)
        return which, row

    def rest_products(self, words: Int[Tensor, " w"]) -> Float[Tensor, "w m n"]:
        """r_ji . theta_j for each word i, theta and row j."""
        head = self.head
        products = torch.einsum("wd,mnd->wmn", head.values[words], self.thetas)
        if head.score.normalized:
            products -= torch.linalg.vecdot(head.outputs, self.thetas)
        which, row = self.owned(words)
        products[which, :, row] = torch.einsum("kd,mkd->km", head.rest[row], self.thetas[:, row])
        return products

    def values(
        self, delta: Float[Tensor, "b d"], words: Int[Tensor, " b"]
    ) -> tuple[Float[Tensor, "b m"], Callable[[Float[Tensor, "b m"]], Float[Tensor, "b d"]]]:
        """The functionals, and from weights (b, m) the gradient of their weighted sum."""
        head = self.head
        different, index = words.unique(return_inverse=True)
        on_rest = self.rest_products(different)[index]
        pair = torch.arange(len(words), device=words.device)
        moved = delta @ head.queries.T
        answer = head.response.move(moved, words)
        which, row = self.owned(words)
        if len(row):
            answer.gain[which, row] = head.response.owned_gain(moved[which, row], words[which], row)
            answer.gain_slope[which, row] = answer.p_slope[which, row]
        # Row i is not of this form: it is taken out here and evaluated plainly below.
        answer.p[pair, words] = 0
        answer.gain[pair, words] = 0
        on_delta = (delta @ self.flat.T).unflatten(1, (-1, len(head.rows)))
        values = torch.einsum("bn,bmn->bm", answer.p, on_delta) + torch.einsum(
            "bn,bmn->bm", answer.gain, on_rest
        )

        pushed = delta @ head.symmetric
        new_scores = head.scores[words] + delta @ head.keys.T
        new_scores[pair, words] += moved[pair, words] + 0.5 * torch.linalg.vecdot(pushed, delta)
        attention = head.score.attention(new_scores)
        change = (
            attention @ head.values
            + attention[pair, words].unsqueeze(1) * delta
            - head.outputs[words]
        )
        values += torch.einsum("bd,mbd->bm", change, self.thetas[:, words])

        def gradient(weights: Float[Tensor, "b m"]) -> Float[Tensor, "b d"]:
            on_scores = answer.p_slope * torch.einsum("bm,bmn->bn", weights, on_delta)
            on_scores += answer.gain_slope * torch.einsum("bm,bmn->bn", weights, on_rest)
            row_theta = torch.einsum("bm,mbd->bd", weights, self.thetas[:, words])
            on_weights = row_theta @ head.values.T
            on_weights[pair, words] += torch.linalg.vecdot(row_theta, delta)
            row_slope = head.score.pull_back(new_scores, attention, on_weights)
            row_slope_self = row_slope[pair, words]
            on_scores[pair, words] = row_slope_self
            slope = (weights.unsqueeze(2) * answer.p.unsqueeze(1)).flatten(start_dim=1) @ self.flat
            slope += (
                attention[pair, words].unsqueeze(1) * row_theta
                + row_slope_self.unsqueeze(1) * pushed
            )
            return slope + on_scores @ head.queries + row_slope @ head.keys

        return values, gradient


class AttentionFunctionals(WordFunctionals):
    """c . theta for random attention, thetas (m, heads n d). Exact; b pairs cost O(b (m n d +
    d²))."""

    def __init__(
        self,
        phi: RandomAttentionFeatures,
        score: ClosedForm,
        rows: Float[Tensor, "n d"],
        thetas: Float[Tensor, "m p"],
        *,
        memory_budget: int,
    ):
        rows = phi.accept(rows)
        super().__init__(rows, len(thetas), memory_budget)
        self.kinked = score.kinked
        parts = thetas.view(len(thetas), phi.heads, *rows.shape).unbind(1)
        weights = phi.head_weights(len(rows), phi.dtype)
        self._heads = [
            _HeadFunctionals(Head(rows, head, score), part)
            for head, part in zip(weights, parts, strict=True)
        ]

    def bytes_per_pair(self) -> int:
        n, d = self.rows.shape
        return ((12 + 4 * self.count) * n + 8 * d) * self.rows.element_size()

    def starting_directions(self) -> Float[Tensor, "count d"]:
        """Those of the word sensitivity, along which words draw other rows' attention."""
        return torch.cat([each.head.directions for each in self._heads])

    def _evaluate(
        self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"], pull: Pull | None
    ) -> tuple[Float[Tensor, "b m"], Float[Tensor, "b d"] | None]:
        parts, gradients = zip(
            *(head.values(perturbations, words) for head in self._heads), strict=True
        )
        values = torch.stack(parts).sum(dim=0)
        if pull is None:
            return values, None
        weights = pull(values)
        return values, torch.stack([gradient(weights) for gradient in gradients]).sum(dim=0)


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
    if isinstance(phi, DeepRandomFeatures):
        return DenseFunctionals(phi, rows, thetas, memory_budget=memory_budget)
    score = offered(phi.score, ClosedForm) if isinstance(phi, RandomAttentionFeatures) else None
    if isinstance(phi, RandomAttentionFeatures) and score is not None:
        return AttentionFunctionals(phi, score, rows, thetas, memory_budget=memory_budget)
    return PlainFunctionals(phi, rows, thetas, memory_budget=memory_budget)
