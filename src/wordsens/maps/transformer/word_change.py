"""The change that moved words make to a transformer's features, batched; causal models rerun only the later rows."""

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.mapping import feature_norm, perturbed_texts
from wordsens.maps.transformer.stack import Stack
from wordsens.maps.word_change import WordChange
from wordsens.search.plan import Stages

_DIRECTIONS = 2
"""The number of starting directions from a text's gradients: each costs one evaluation for all words together."""


@runtime_checkable
class Readout(Protocol):
    """The methods of a map that a change needs: features of texts, or of their later rows, and a faster twin of it."""

    name: str

    @property
    def stack(self) -> Stack: ...

    @property
    def dtype(self) -> torch.dtype: ...

    def accept(self, rows: Tensor) -> Tensor: ...

    def features(self, texts: Tensor) -> Tensor: ...

    def token_features(self, texts: Tensor) -> Tensor:
        """The features of every row, before pooling."""
        ...

    def pooled(self, tokens: Tensor) -> Tensor:
        """From what stands at all rows to the features."""
        ...

    def reads_rows(self) -> bool:
        """True where features are made of `token_features` alone, so that earlier rows may be kept."""
        ...

    def bytes_per_text(self, n: int) -> int: ...

    def fast_twin(self) -> "Readout | None": ...


class TransformerChange(WordChange):
    """‖phi(X^G(Delta)) - phi(X)‖² for groups of words, and its gradient by autograd through the frozen model.

    A batch of b pairs costs b evaluations of the model; of a causal model only the rows from the batch's first moved
    word on are evaluated, after keys and values that are kept. Exact: it agrees with mapping X^G(Delta) to rounding.

    Args:
        phi: the map.
        rows: X, (n, d).
        groups: (m, g), the words that move together; None: every word alone, with Delta of shape (d,).
        memory_budget: bytes for intermediate results.
    """

    # Few starts, for every evaluation is a pass of the model; relays, because a direction that moves one word's text
    # far often moves its neighbours' (measured in benchmarks/transformer_search.py).
    plan = Stages(
        starts=2, climb_steps=4, population=2, generations=1, children=2, relays=12, finalists=1, steps=12,
        tolerance=1e-4, rule="momentum",
    )  # fmt: skip

    def __init__(
        self, phi: Readout, rows: Float[Tensor, "n d"], groups: Int[Tensor, "m g"] | None, *, memory_budget: int
    ):
        rows = phi.accept(rows)
        self._phi = phi
        n, d = rows.shape
        alone = torch.arange(n, device=rows.device).unsqueeze(1)
        self._groups = alone if groups is None else groups.to(rows.device)
        self._given = groups
        self._resumes = phi.stack.resumes and phi.reads_rows()
        with torch.no_grad():
            if self._resumes:
                self._prefix = phi.stack.prefix(rows.to(phi.stack.dtype))
                self._tokens = phi.token_features(rows.unsqueeze(0))[0]
                self._base = phi.pooled(self._tokens.unsqueeze(0))[0].flatten()
            else:
                self._base = phi.features(rows).flatten()
        shape = (d,) if groups is None else (self._groups.shape[1], d)
        super().__init__(rows, feature_norm(self._base, phi.name), memory_budget, shape)

    def bytes_per_pair(self) -> int:
        return self._phi.bytes_per_text(len(self.rows))

    def coarse(self) -> WordChange:
        twin = self._phi.fast_twin()
        if twin is None:
            return self
        return TransformerChange(twin, self.rows, self._given, memory_budget=self.memory_budget)

    def starting_directions(
        self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
    ) -> Float[Tensor, "starts w *shape"]:
        """J_i^T u for random u, all words from one backward pass: long singular directions weigh most in it."""
        stream = torch.Generator().manual_seed(0)
        directions = []
        with torch.enable_grad():
            rows = self.rows.detach().requires_grad_()
            features = self._phi.features(rows).flatten()
            for _ in range(_DIRECTIONS):
                along = torch.randn(len(features), generator=stream, dtype=torch.float64)
                along = along.to(dtype=features.dtype, device=features.device)
                (slope,) = torch.autograd.grad(features, rows, along, retain_graph=True)
                # A row that cannot move these features has no direction; any will do.
                slope = torch.where(slope.abs().amax(dim=1, keepdim=True) > 0, slope, self.rows)
                directions.append(slope[self._groups[words]].reshape(len(words), *self.shape))
        return torch.stack(directions)

    def _evaluate(
        self, perturbations: Float[Tensor, "b *shape"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b *shape"] | None]:
        members = self._groups[words]
        with torch.set_grad_enabled(gradient):
            delta = perturbations.detach().requires_grad_(gradient)
            texts = perturbed_texts(self.rows, members, delta.view(*members.shape, -1))
            features = self._later(texts, int(members.min())) if self._resumes else self._phi.features(texts)
            squared = (features.reshape(len(words), -1) - self._base).square().sum(dim=1)
        if not gradient:
            return squared, None
        (slope,) = torch.autograd.grad(squared.sum(), delta, allow_unused=True)
        return squared.detach(), torch.zeros_like(perturbations) if slope is None else slope

    def _later(self, texts: Float[Tensor, "b n d"], start: int) -> Tensor:
        """The features when no row before `start` differs from X."""
        with self._phi.stack.resumed(self._prefix, start, len(texts)):
            later = self._phi.token_features(texts[:, start:])
        earlier = self._tokens[:start].expand(len(texts), *self._tokens[:start].shape)
        return self._phi.pooled(torch.cat([earlier, later], dim=1))
