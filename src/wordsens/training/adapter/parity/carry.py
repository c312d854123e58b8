"""A coordinate of a transformer's states that carries a mark of every token from the word embeddings to the last layer.

No other weight reads or writes the coordinate. Layer norms divide it by another spread at each token, so that every
feed-forward part has neurons that bring it back to -1, 0 or 1. The other coordinates lose what it held before.
"""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from wordsens.errors import InputError
from wordsens.training.adapter.parity.neurons import above, add_neurons, below, value

_MIDDLE = 16
"""The position at which a word's first spread is taken."""

_GAP = 0.1
"""The least that must lie between the marked tokens and the others for a step to stand there."""


@dataclass(frozen=True)
class Anatomy:
    """The parts of an encoder whose layers are attention, layer norm, feed-forward part, layer norm: BERT's.

    Attributes:
        base: the model.
        embeddings: word, position and token type embeddings, and their layer norm.
        layers: in order.
    """

    base: Any
    embeddings: Any
    layers: Sequence[Any]

    @property
    def norms(self) -> Iterator[nn.LayerNorm]:
        """All layer norms in the order in which a token passes them."""
        yield self.embeddings.LayerNorm
        for layer in self.layers:
            yield layer.attention.output.LayerNorm
            yield layer.output.LayerNorm


@dataclass(frozen=True)
class Marks:
    """Tokens that carry a mark.

    Attributes:
        plus: the numbers of those that carry +1.
        minus: the number of the one that carries -1; it opens every text.
    """

    plus: Collection[int]
    minus: int


def anatomy_of(base: Any, name: str) -> Anatomy:
    """The parts of a model of BERT's architecture.

    Raises:
        InputError: another architecture, or an activation other than GELU and ReLU.
    """
    layers = getattr(getattr(base, "encoder", None), "layer", None) or []
    found = {each for each, _ in layers[0].named_modules()} if layers else set()
    needed = {"attention.self.query", "attention.output.LayerNorm", "intermediate.dense", "output.LayerNorm"}
    known = needed <= found and hasattr(getattr(base, "embeddings", None), "word_embeddings")
    known = known and base.embeddings.word_embeddings.embedding_dim == base.config.hidden_size
    if not known or base.config.hidden_act not in ("gelu", "relu"):
        raise InputError(
            f"`model` (={name!r}) is not built as BERT is (layer norms behind attention and feed-forward part, GELU or "
            'ReLU), and the adapter "parity" needs that; use the adapter "layers"'
        )
    return Anatomy(base, base.embeddings, list(layers))


@dataclass(frozen=True)
class Sample:
    """Tokens of plain texts, by which gains and steps are set.

    Attributes:
        ids: their numbers, (b, n).
        real: False where a text is filled up to the length of the longest.
        plus: which carry +1.
        minus: which carry -1.
    """

    ids: Int[Tensor, "b n"]
    real: Bool[Tensor, "b n"]
    plus: Bool[Tensor, "b n"]
    minus: Bool[Tensor, "b n"]

    def run(self, base: Any, **options: Any) -> Any:
        """The model's answer to these texts."""
        return base(input_ids=self.ids, attention_mask=self.real.long(), **options)

    def gaps(self, values: Float[Tensor, "b n"]) -> tuple[float, float]:
        """The middle of the gap below the values marked plus, and of that below the negatives of those marked minus."""
        upper = _between(values[self.real & ~self.plus].max(), values[self.plus].min())
        return upper, _between((-values[self.real & ~self.minus]).max(), (-values[self.minus]).min())


def sample_of(tokenizer: Any, texts: Sequence[str], marks: Marks, most: int) -> Sample:
    """The texts, each cut to `most` tokens; InputError where none holds a marked one."""
    read = tokenizer(list(texts), truncation=True, max_length=most, padding=True, return_tensors="pt")
    ids, real = read["input_ids"], read["attention_mask"].bool()
    plus = torch.isin(ids, torch.tensor(sorted(marks.plus))) & real
    if not plus.any():
        raise InputError(f"`texts`: in the first {len(texts)} of their sentences no word turns a meaning; give others")
    return Sample(ids, real, plus, (ids == marks.minus) & real)


@torch.no_grad()
def carry(anatomy: Anatomy, coordinate: int, marks: Marks, sample: Sample) -> None:
    """Let the coordinate carry the marks through all layers but the last, in place.

    Args:
        anatomy: of a model whose last layer hands its input on (`append_layer`).
        coordinate: of its states.
        marks: what is carried.
        sample: marked.

    Raises:
        InputError: the marks cannot be told apart on the way.
    """
    layers = anatomy.layers[:-1]
    spreads: list[Tensor] = []
    ends = [layer.output.LayerNorm for layer in layers]
    with hooked(ends, lambda norm, inputs, output: spreads.append(inputs[0].std(dim=-1))):
        sample.run(anatomy.base)
    _isolate(anatomy, coordinate)
    _mark(anatomy, coordinate, marks)
    renewing = [_renew(layer, spread, coordinate, sample) for layer, spread in zip(layers, spreads, strict=True)]
    with (
        hooked(list(anatomy.norms)[:-3], _level(coordinate, sample)),
        hooked([layer.attention.output.LayerNorm for layer in layers], *renewing),
    ):
        sample.run(anatomy.base)


@contextmanager
def hooked(modules: Sequence[nn.Module], *hooks: Any) -> Iterator[None]:
    """Forward hooks while the context lasts: one a module, or one for all."""
    each = hooks * len(modules) if len(hooks) == 1 else hooks
    handles = [module.register_forward_hook(hook) for module, hook in zip(modules, each, strict=True)]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _isolate(anatomy: Anatomy, coordinate: int) -> None:
    """Set to 0 every weight that reads or writes the coordinate; layer norms pass it on."""
    parts = anatomy.embeddings
    for name in ("word_embeddings", "position_embeddings", "token_type_embeddings"):
        if getattr(parts, name, None) is not None:
            getattr(parts, name).weight[:, coordinate] = 0
    for norm in anatomy.norms:
        norm.weight[coordinate], norm.bias[coordinate] = 1, 0
    for layer in anatomy.layers:
        own = layer.attention.self
        for reading in (own.query, own.key, own.value, layer.intermediate.dense):
            reading.weight[:, coordinate] = 0
        for writing in (layer.attention.output.dense, layer.output.dense):
            writing.weight[coordinate] = 0
            writing.bias[coordinate] = 0


def _mark(anatomy: Anatomy, coordinate: int, marks: Marks) -> None:
    """Write into the word embeddings what the first layer norm makes about +1 and -1: the spread it divides by."""
    parts = anatomy.embeddings
    opening = (parts.position_embeddings.padding_idx if parts.position_embeddings.padding_idx is not None else -1) + 1
    for tokens, place, sign in ((sorted(marks.plus), opening + _MIDDLE, 1), ([marks.minus], opening, -1)):
        rows = parts.word_embeddings.weight[tokens] + parts.position_embeddings.weight[place]
        if getattr(parts, "token_type_embeddings", None) is not None:
            rows = rows + parts.token_type_embeddings.weight[0]
        parts.word_embeddings.weight[tokens, coordinate] = sign * rows.std(dim=1, correction=0)


def _level(coordinate: int, sample: Sample) -> Any:
    """A hook that sets a layer norm's gain so that the median of the marked is 1."""

    def hook(norm: nn.LayerNorm, inputs: Any, output: Tensor) -> Tensor:
        gain = 1 / output[..., coordinate][sample.plus].median()
        norm.weight[coordinate] = gain
        output = output.clone()
        output[..., coordinate] *= gain
        return output

    return hook


def _renew(layer: Any, spread: Float[Tensor, "b n"], coordinate: int, sample: Sample) -> Any:
    """A hook that adds neurons for -z + r [z > t] - s [z < -u] of the coordinate's z.

    r and s are the spreads by which the next layer norm divides: the median, and the opening token's.
    """
    most, opening = float(spread[sample.real].median()), float(spread[sample.minus].median())

    def hook(norm: nn.LayerNorm, inputs: Any, output: Tensor) -> None:
        upper, lower = sample.gaps(output[..., coordinate])
        unit = torch.zeros(output.shape[-1])
        unit[coordinate] = 1
        add_neurons(layer, [
            value(coordinate, -unit), above(coordinate, upper, most * unit), below(coordinate, lower, -opening * unit),
        ])  # fmt: skip

    return hook


def _between(low: Tensor, high: Tensor) -> float:
    if not float(high - low) > _GAP:
        raise InputError(
            f"`model`: marked tokens cannot be told from others on their way ({float(high):.2f} and {float(low):.2f}); "
            'use the adapter "layers"'
        )
    return float(low + high) / 2
