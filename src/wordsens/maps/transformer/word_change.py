"""The change of a transformer's features when words move: many pairs (word, Delta) in one forward
pass."""

from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.base import PlainGroupChange
from wordsens.maps.mapping import TextMap
from wordsens.search.objective import unit
from wordsens.search.plan import Stages

_DIRECTIONS = 2
"""The number of starting directions from a text's gradients; each costs one evaluation for all
words together."""

_STAGES = Stages(
    starts=6,
    steps=145,
    first_step=0.2,
    halvings=(8, 20, 40),
    finalists=1,
    finish=15,
    tolerance=1e-4,
)
"""Every evaluation is a pass of the model, about 250 per word. Long ascents from few starts, with
short steps, gain more than crossing, longer steps or starts in the best directions of other
words."""


class BatchedMap(TextMap, Protocol):
    """A map that knows the memory of a text."""

    def bytes_per_text(self, n: int) -> int: ...


class TransformerChange(PlainGroupChange):
    """‖phi(X^G(Delta)) - phi(X)‖² for groups of words (m, g), and its gradient by autograd through
    the frozen model.

    A batch of b pairs costs b evaluations of the model. groups None: every word alone, with Delta
    of shape (d,).
    """

    def __init__(
        self,
        phi: BatchedMap,
        rows: Float[Tensor, "n d"],
        groups: Int[Tensor, "m g"] | None,
        *,
        memory_budget: int,
    ):
        self._model = phi
        members = torch.arange(len(rows)).unsqueeze(1) if groups is None else groups
        super().__init__(phi, rows, members, memory_budget=memory_budget)
        self.stages = _STAGES
        if groups is None:
            self.shape = self.rows.shape[1:]

    def _base_features(self, rows: Float[Tensor, "n d"]) -> Float[Tensor, " features"]:
        with torch.no_grad():
            return self._phi(rows).flatten()

    def bytes_per_pair(self) -> int:
        return self._model.bytes_per_text(len(self.rows))

    def starts(
        self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
    ) -> Float[Tensor, "count w *shape"]:
        """The starts of the base class, and J_i^T u for random u, all words from one backward pass:
        large singular directions weigh most in it."""
        stream = torch.Generator().manual_seed(0)
        directions = []
        with torch.enable_grad():
            rows = self.rows.detach().requires_grad_()
            features = self._phi(rows).flatten()
            for _ in range(_DIRECTIONS):
                along = torch.randn(len(features), generator=stream, dtype=torch.float64).to(
                    features
                )
                (slope,) = torch.autograd.grad(features, rows, along, retain_graph=True)
                # A row that cannot move these features has no direction; take any.
                slope = torch.where(slope.abs().amax(dim=1, keepdim=True) > 0, slope, self.rows)
                directions.append(slope[self._groups[words]].reshape(len(words), *self.shape))
        ahead = unit(torch.stack(directions).flatten(start_dim=2)).view(
            _DIRECTIONS, len(words), *self.shape
        )
        return torch.cat([super().starts(words, radius), ahead])
