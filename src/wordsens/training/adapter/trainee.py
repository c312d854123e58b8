"""An encoder with an adapter that is trained: the states that enter it are computed once for every text."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.errors import InputError
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.stack import Stack, fast_bfloat16
from wordsens.training.adapter.low_rank import add_low_rank, merged_weights
from wordsens.training.adapter.plan import LINEAR, LOW_RANK, TunePlan

_TOGETHER = 4096
"""Tokens that run through the frozen layers together."""

_STRETCH = 1.4
"""Of lengths padded to one: a fifth of the products at most are padding; a group costs a pass over all gradients."""


class Trainee(ABC):
    """A pooled transformer of which a part is trained. Vectors have length one.

    Args:
        phi: with a pool and a tokenizer; it is left as it is.
    """

    def __init__(self, phi: TransformerFeatures):
        self._phi = phi
        self._kept: dict[str, tuple[Tensor, Tensor]] = {}

    @torch.no_grad()
    def keep(self, texts: Iterable[str]) -> None:
        """Compute and keep for these texts what enters the trained part, and their vectors before training."""
        new = list(dict.fromkeys(text for text in texts if text not in self._kept))
        for batch in _by_length(self._phi.reading().numbers(new)):
            with self.quickly():
                states = self._phi.stack.all_states(torch.tensor([ids for _, ids in batch]))
            vectors = self._pooled(states[-1].float())
            entering = self._entering(states, vectors).float()
            for (at, _), rows, vector in zip(batch, entering, vectors, strict=True):
                self._kept[new[at]] = (rows.clone(), vector)

    @torch.no_grad()
    def exactly(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        """The vectors now of any texts, in full precision throughout, one by one."""
        found = []
        for ids in self._phi.reading().numbers(texts):
            states = self._phi.stack.all_states(torch.tensor([ids]))
            found.append(self._adapted([self._entering(states, self._pooled(states[-1]))[0]])[0])
        return nn.functional.normalize(torch.stack(found), dim=1)

    def before(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        """The vectors of kept texts before training."""
        return torch.stack([self._kept[text][1] for text in texts])

    def vectors(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        """The vectors of kept texts now, with a gradient."""
        return nn.functional.normalize(self._adapted([self._kept[text][0] for text in texts]).float(), dim=1)

    def quickly(self) -> Any:
        """A context in which products are of bfloat16, where this processor multiplies those faster."""
        return torch.autocast(self._phi.device.type, torch.bfloat16, enabled=fast_bfloat16(self._phi.device))

    @abstractmethod
    def parameters(self) -> list[nn.Parameter]:
        """The tensors that are trained."""

    @abstractmethod
    def weights(self) -> dict[str, Tensor]:
        """The tensors of the transformer that have changed, by their names in its base model."""

    @property
    def matrix(self) -> Float[Tensor, "d d"] | None:
        """The matrix behind the model, where that is the adapter."""
        return None

    @abstractmethod
    def _entering(self, states: list[Tensor], vectors: Tensor) -> Tensor:
        """Of the states of all layers and the vectors, what is kept."""

    @abstractmethod
    def _adapted(self, kept: list[Tensor]) -> Tensor:
        """The vectors of what is kept, of any length."""

    def _pooled(self, states: Tensor) -> Tensor:
        return nn.functional.normalize(self._phi.pooled(states.to(self._phi.dtype)), dim=1)


class LastLayers(Trainee):
    """The last layers themselves, or low-rank parts added to their linear maps.

    Args:
        depth: how many layers.
        rank: of the parts; None for the layers themselves.
        seed: of the parts' first factors.
    """

    def __init__(self, phi: TransformerFeatures, depth: int, *, rank: int | None = None, seed: int = 0):
        super().__init__(phi)
        if depth > phi.stack.layers:
            raise InputError(f"`depth` (={depth}) must be at most the {phi.stack.layers} layers of {phi.stack.name}")
        self._first = phi.stack.layers - depth
        self._upper = _upper(phi.stack, self._first)
        for block in self._upper.anatomy.blocks:
            if rank is None:
                block.requires_grad_(True)
            else:
                add_low_rank(block, rank, seed)

    def parameters(self) -> list[nn.Parameter]:
        blocks = self._upper.anatomy.blocks
        return [weight for block in blocks for weight in block.parameters() if weight.requires_grad]

    def weights(self) -> dict[str, Tensor]:
        names = {id(module): name for name, module in self._phi.stack.anatomy.base.named_modules()}
        old = self._phi.stack.anatomy.blocks[self._first :]
        return {
            f"{names[id(before)]}.{name}": weight
            for before, after in zip(old, self._upper.anatomy.blocks, strict=True)
            for name, weight in merged_weights(after).items()
        }

    def _entering(self, states: list[Tensor], vectors: Tensor) -> Tensor:
        return states[self._first]

    def _adapted(self, kept: list[Tensor]) -> Tensor:
        found: list[Any] = [None] * len(kept)
        for members in _of_like_length([len(each) for each in kept]):
            rows = [kept[at] for at in members]
            mask = nn.utils.rnn.pad_sequence([torch.ones_like(each[:, 0], dtype=torch.long) for each in rows], True)
            states = self._upper.padded_states(nn.utils.rnn.pad_sequence(rows, batch_first=True), mask)
            for at, own, each in zip(members, states, rows, strict=True):
                found[at] = self._pooled(own[: len(each)][None])[0]
        return torch.stack(found)


class LinearMap(Trainee):
    """A matrix behind the whole model, at first the identity."""

    def __init__(self, phi: TransformerFeatures, dimension: int):
        super().__init__(phi)
        self._matrix = nn.Parameter(torch.eye(dimension, device=phi.device))

    def parameters(self) -> list[nn.Parameter]:
        return [self._matrix]

    def weights(self) -> dict[str, Tensor]:
        return {}

    @property
    def matrix(self) -> Float[Tensor, "d d"]:
        return self._matrix.detach()

    def _entering(self, states: list[Tensor], vectors: Tensor) -> Tensor:
        return vectors

    def _adapted(self, kept: list[Tensor]) -> Tensor:
        return torch.stack(kept) @ self._matrix.T


def trainee_of(phi: TransformerFeatures, plan: TunePlan, seed: int) -> Trainee:
    """The encoder with the plan's adapter, untrained: its vectors are those of phi."""
    if plan.adapter == LINEAR:
        return LinearMap(phi, phi.encode(["a"]).shape[1])
    return LastLayers(phi, plan.depth, rank=plan.rank if plan.adapter == LOW_RANK else None, seed=seed)


def _upper(stack: Stack, first: int) -> Stack:
    """The layers from `first` on, as a model of their own; its weights are a copy."""
    model: Any = copy.deepcopy(stack.anatomy.base)
    for module in model.modules():
        for name, child in module.named_children():
            if isinstance(child, nn.ModuleList) and len(child) == stack.layers:
                setattr(module, name, nn.ModuleList(list(child)[first:]))
                model.config.num_hidden_layers = stack.layers - first
                return Stack(model, stack.name)
    raise InputError(f"`model` (={stack.name!r}) keeps its layers where they cannot be cut; tune another model")


def _of_like_length(lengths: Sequence[int]) -> Iterable[list[int]]:
    """The places of the lengths in groups, in each of which the longest is at most _STRETCH times the shortest."""
    group: list[int] = []
    for at in sorted(range(len(lengths)), key=lengths.__getitem__):
        if group and lengths[at] > _STRETCH * lengths[group[0]]:
            yield group
            group = []
        group.append(at)
    yield group


def _by_length(numbers: Sequence[Sequence[int]]) -> Iterable[list[tuple[int, Sequence[int]]]]:
    """Batches of (place, token numbers) of one length, of at most _TOGETHER tokens."""
    groups: dict[int, list[tuple[int, Sequence[int]]]] = {}
    for at, ids in enumerate(numbers):
        groups.setdefault(len(ids), []).append((at, ids))
    for length, members in groups.items():
        size = max(1, _TOGETHER // length)
        for start in range(0, len(members), size):
            yield members[start : start + size]
