"""From texts to vectors in one go: texts of equally many tokens run together, so that none is padded."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError
from wordsens.maps.transformer.pooling import Pooling
from wordsens.maps.transformer.stack import Stack

PROBES = (
    "The service is not available on Sundays.",
    "a",
    "Please turn the alarm on before you leave, and do not open the second door until the light has gone out.",
)
"""Sentences of ours, of one word to twenty, on which two ways to compute an embedding are compared."""


@runtime_checkable
class Encodes(Protocol):
    """Anything with the common `encode(texts)`, such as a SentenceTransformer."""

    def encode(self, sentences: list[str], /) -> Any: ...


@torch.no_grad()
def by_length(
    ids: Sequence[Sequence[int]], batch_size: int, run: Callable[[Tensor], Tensor]
) -> Float[Tensor, "layers m d"]:
    """`run` on token numbers (b, n), texts of one length together; its results (layers, b, d) in the texts' order."""
    found: dict[int, Tensor] = {}
    for batch in _batches([len(each) for each in ids], batch_size):
        result = run(torch.tensor([list(ids[at]) for at in batch])).double().cpu()
        found |= dict(zip(batch, result.unbind(1), strict=True))
    return torch.stack([found[at] for at in range(len(ids))], dim=1)


def pooled_layers(
    stack: Stack, pooling: Pooling | None, dtype: torch.dtype, ids: Int[Tensor, "b n"]
) -> Float[Tensor, "layers b p"]:
    """Every layer's states for these tokens, pooled in that dtype; InputError where nothing is pooled."""
    if pooling is None:
        raise InputError("`encode_layers` pools hidden states, and this map reads logits; leave output out")
    pool = pooling.of_any_layer()
    return torch.stack([pool(states.to(dtype)) for states in stack.all_states(ids)])


def largest_difference(ours: Float[Tensor, "m d"], theirs: Any, name: str) -> float:
    """max |ours - theirs| over texts and coordinates; `theirs` is any array.

    Raises:
        InputError: another shape.
    """
    other = torch.as_tensor(theirs, dtype=torch.float64, device="cpu")
    if other.shape != ours.shape:
        raise InputError(
            f"the model's encode gives shape {tuple(other.shape)} for {len(ours)} texts, and {name} "
            f"{tuple(ours.shape)}; compare models of one pooling and dimension"
        )
    return float((ours - other).abs().max())


def _batches(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """The numbers of texts of one length, at most `batch_size` at a time."""
    groups: dict[int, list[int]] = {}
    for at, length in enumerate(lengths):
        groups.setdefault(length, []).append(at)
    for group in groups.values():
        for start in range(0, len(group), batch_size):
            yield group[start : start + batch_size]
