"""From texts to vectors in one go: texts of equally many tokens run together, so that none is padded."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError

if TYPE_CHECKING:
    from wordsens.maps.transformer.features import TransformerFeatures

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


def vectors_of(phi: "TransformerFeatures", texts: Sequence[str], batch_size: int) -> Float[Tensor, "m d"]:
    """phi of every text. See `TransformerFeatures.encode`."""
    _require_vectors(phi)
    return by_length(_tokens(phi, texts), batch_size, lambda ids: phi.features(phi.rows_of(ids)).unsqueeze(0))[0]


def layers_of(phi: "TransformerFeatures", texts: Sequence[str], batch_size: int) -> Float[Tensor, "layers m d"]:
    """Every layer's states, pooled as phi pools. See `TransformerFeatures.encode_layers`."""
    _require_vectors(phi)
    if phi.pooling is None:
        raise InputError("`encode_layers` pools hidden states, and this map reads logits; leave output out")
    pooling = phi.pooling.of_any_layer()

    def pooled(ids: Tensor) -> Tensor:
        return torch.stack([pooling(states.to(phi.dtype)) for states in phi.stack.all_states(ids)])

    return by_length(_tokens(phi, texts), batch_size, pooled)


def largest_difference(phi: "TransformerFeatures", model: Encodes, texts: Sequence[str]) -> float:
    """max |phi - encode| over texts and coordinates. See `TransformerFeatures.check_against`."""
    theirs = torch.as_tensor(model.encode(list(texts)), dtype=torch.float64, device="cpu")
    ours = phi.encode(texts)
    if theirs.shape != ours.shape:
        raise InputError(
            f"the model's encode gives shape {tuple(theirs.shape)} for {len(texts)} texts, and {phi.name} "
            f"{tuple(ours.shape)}; compare models of one pooling and dimension"
        )
    return float((ours - theirs).abs().max())


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


def _tokens(phi: "TransformerFeatures", texts: Sequence[str]) -> list[list[int]]:
    return [phi.reading().tokens(text, f"text {at}")[0] for at, text in enumerate(texts)]


def _batches(lengths: Sequence[int], batch_size: int) -> Iterator[list[int]]:
    """The numbers of texts of one length, at most `batch_size` at a time."""
    groups: dict[int, list[int]] = {}
    for at, length in enumerate(lengths):
        groups.setdefault(length, []).append(at)
    for group in groups.values():
        for start in range(0, len(group), batch_size):
            yield group[start : start + batch_size]


def _require_vectors(phi: "TransformerFeatures") -> None:
    if phi.pooling is None and phi.output == "states":
        raise InputError(
            f"{phi.name} gives a text all its rows; choose a pool, such as pool='mean', for one vector a text"
        )
