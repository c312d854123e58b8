"""The attention of two texts side by side: by token, or by word where their tokens do not match one
for one."""

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.display.view import Chart, View
from wordsens.errors import InputError, argument
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.models.embedding import embed
from wordsens.results import Result
from wordsens.text.matrix import TextMatrix, as_text_matrix

Text = str | TextMatrix | Tensor | np.ndarray


@runtime_checkable
class AttentionMap(Protocol):
    """A map with attention weights: a transformer, or random attention features."""

    name: str

    @property
    def attention_layers(self) -> int: ...

    def attention_of(self, rows: Tensor, layer: int) -> Tensor: ...

    def accept(self, rows: Tensor) -> Tensor: ...


@dataclass(frozen=True, eq=False, repr=False)
class AttentionPair(Result):
    """The attention weights of one layer on two texts (paper, figure 1).

    Attributes:
        layer, head: of the weights; head None is the mean over the layer's heads.
        model: the map's name, without its layer.
        tokens: of each text.
        weights: of each text, (n, n): entry (j, i) is how much token j takes from token i; rows sum
            to 1, but for scores that are not divided.
        changed: where the tokens differ, for texts of the same number of tokens; else empty.
    """

    layer: int
    head: int | None
    model: str
    tokens: tuple[tuple[str, ...], tuple[str, ...]]
    weights: tuple[Float[Tensor, "n n"], Float[Tensor, "m m"]]
    changed: tuple[int, ...]

    @property
    def headline(self) -> str:
        """Which weights these are."""
        head = "mean over the heads" if self.head is None else f"head {self.head}"
        return f"{self.model}: attention of layer {self.layer}, {head}"

    def columns(self) -> dict[str, Any]:
        """One row per token, with how much of its attention moves; one row per text where the texts
        differ in length."""
        first, second = self.tokens
        if self.difference is None:
            return {"text": ["first", "second"], "tokens": [" ".join(first), " ".join(second)]}
        moved = self.difference.abs().sum(dim=1) / 2
        return {"first": first, "second": second, "attention that moves": moved.tolist()}

    def view(self) -> View:
        """The headline and the table; a figure draws each text's weights, and their difference."""
        matrices: dict[str, Tensor] = {}
        matrices |= zip(("first text", "second text"), self.weights, strict=True)
        scales = dict.fromkeys(matrices, "attention from row to column")
        if self.difference is not None:
            matrices["second minus first"] = self.difference
            scales["second minus first"] = "difference"
        cells = [
            (to, source, weight, text, scales[text])
            for text, matrix in matrices.items()
            for to, row in enumerate(matrix.tolist())
            for source, weight in enumerate(row)
        ]
        axes = ("to", "from", "attention", "text", "scale")
        columns: dict[str, list[Any]] = {}
        columns |= zip(axes, map(list, zip(*cells, strict=True)), strict=True)
        both = zip(*self.tokens, strict=False)
        joined = [one if one == other else f"{one}/{other}" for one, other in both]
        names = dict(zip(matrices, (*self.tokens, joined), strict=False))
        options = {
            "x": "from",
            "y": "to",
            "colour": "attention",
            "panel": "text",
            "scale": "scale",
            "names": {text: [_bare(name) for name in each] for text, each in names.items()},
            "bold": self.changed,
            "title": self.headline,
            "caption": "Row by row: how much attention each word pays to each word. Bold: where "
            "the texts differ.",
        }
        return replace(super().view(), chart=Chart("heat", columns, options))

    @property
    def difference(self) -> Float[Tensor, "n n"] | None:
        """The second text's weights minus the first's; None for texts of different length."""
        first, second = self.weights
        return second - first if first.shape == second.shape else None


def attention_pair(
    phi: AttentionMap, first: Text, second: Text, *, layer: int = 1, head: int | None = None
) -> AttentionPair:
    """The attention of a layer on two texts; for a transformer, special tokens are included.

    Args:
        phi: a transformer with its tokenizer, loaded with attention="eager"; or
            RandomAttentionFeatures.
        first, second: two texts, as strings or as their rows (n, d); to be compared they need the
            same number of tokens. For RandomAttentionFeatures strings are embedded as `embed` does
            it by default.
        layer: 1 to L; negative from the last, -1. RandomAttentionFeatures has one.
        head: 0, 1, ...; None for the mean over the heads.

    Raises:
        InputError: a map without attention; no such layer or head; a model that does not give its
            weights.

    >>> phi = TransformerFeatures.from_pretrained("minilm")
    >>> pair = attention_pair(phi, "I love her much", "I love her smile")
    >>> pair.changed, tuple(pair.weights[0].shape)
    ((4,), (6, 6))
    """
    if not isinstance(phi, AttentionMap):
        raise InputError(
            f"`phi` ({getattr(phi, 'name', type(phi).__name__)}) has no attention weights; give a "
            "TransformerFeatures "
            "or RandomAttentionFeatures"
        )
    layers = phi.attention_layers
    number = layer if layer > 0 else layers + 1 + layer
    if layer == 0 or not 1 <= number <= layers:
        raise InputError(
            f"{argument('layer')} (={layer}) has no attention; choose 1 to {layers}, or -1 for the "
            "last"
        )
    texts = [_as_text(phi, text) for text in (first, second)]
    weights = []
    with torch.no_grad():
        for text in texts:
            heads = phi.attention_of(phi.accept(text.rows), number).double()
            if head is not None and not 0 <= head < len(heads):
                raise InputError(
                    f"{argument('head')} (={head}) does not exist; choose 0 to {len(heads) - 1}, "
                    "or None for their mean"
                )
            weights.append(heads.mean(dim=0) if head is None else heads[head])
    first_tokens, second_tokens = (
        tuple(text.word(row) for row in range(len(text))) for text in texts
    )
    changed = (
        _changed(first_tokens, second_tokens) if len(first_tokens) == len(second_tokens) else ()
    )
    name = phi.model.name if isinstance(phi, TransformerFeatures) else phi.name
    return AttentionPair(
        number, head, name, (first_tokens, second_tokens), (weights[0], weights[1]), changed
    )


def _bare(token: str) -> str:
    """A token without the marks of GPT-2 and Llama for a blank."""
    return token.lstrip("Ġ▁") or "␣"


def _as_text(phi: AttentionMap, text: Text) -> TextMatrix:
    if not isinstance(text, str):
        return as_text_matrix(text)
    return (phi.embed([text]) if isinstance(phi, TransformerFeatures) else embed([text]))[0]


def comparable_pair(
    phi: TransformerFeatures, first: str, second: str, *, layer: int = 1, head: int | None = None
) -> AttentionPair:
    """The attention of a layer on two texts whose difference can be taken: token by token, or else
    word by word.

    Where the texts have different numbers of tokens, the tokens of a word count as one: what a row
    gives them is added, and their own rows are averaged, so that rows still sum to 1.

    The texts have two words or more and differ; they have equally many tokens or equally many
    words. Arguments as for `attention_pair`.

    Raises:
        InputError: what `attention_pair` raises; a text of one word; texts that read the same;
            neither equally many tokens nor equally many words.
    """
    texts = phi.embed([first, second])
    for name, text in zip(("first", "second"), texts, strict=True):
        if len(text.whole_words or ()) < 2:
            raise InputError(
                f"`{name}` (={first if name == 'first' else second!r}) has one word; give two or "
                "more"
            )
    pair = attention_pair(phi, texts[0], texts[1], layer=layer, head=head)
    if pair.tokens[0] == pair.tokens[1]:
        raise InputError(
            f"`second` (={second!r}) reads the same as `first` to {pair.model}; change a word of it"
        )
    if pair.difference is not None:
        return pair
    units = [_units(text) for text in texts]
    if len(units[0]) != len(units[1]):
        words = [len(text.whole_words or ()) for text in texts]
        raise InputError(
            f"`first` has {words[0]} words and `second` has {words[1]}, so that their attention "
            "cannot be compared; "
            "change words in place, one for one"
        )
    first_names, second_names = (tuple(name for name, _ in side) for side in units)
    by_unit = []
    for weights, side in zip(pair.weights, units, strict=True):
        taken = torch.stack([weights[:, rows].sum(dim=1) for _, rows in side], dim=1)
        by_unit.append(torch.stack([taken[rows].mean(dim=0) for _, rows in side]))
    changed = _changed(first_names, second_names)
    return replace(
        pair, tokens=(first_names, second_names), weights=(by_unit[0], by_unit[1]), changed=changed
    )


def _changed(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(
        place
        for place, (before, after) in enumerate(zip(first, second, strict=True))
        if before != after
    )


def _units(text: TextMatrix) -> list[tuple[str, list[int]]]:
    """The words, and the tokens that belong to none, each with its rows, in order."""
    words = [(word.text, list(word.rows)) for word in text.whole_words or ()]
    within = {row for _, rows in words for row in rows}
    alone = [(text.word(row), [row]) for row in range(len(text)) if row not in within]
    return sorted(words + alone, key=lambda unit: unit[1][0])
