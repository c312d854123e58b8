"""Attention of a pair of texts that differ in words, word by word where their tokens do not stand one for one."""

from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError
from wordsens.maps.attention_pair import AttentionPair, attention_pair
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.text.matrix import TextMatrix


def comparable_pair(
    phi: TransformerFeatures, first: str, second: str, *, layer: int = 1, head: int | None = None
) -> AttentionPair:
    """The attention of a layer on two texts whose difference can be taken: token by token, or else word by word.

    Where the texts have different numbers of tokens, the tokens of a word count as one: what a row gives them is
    added, and their own rows are averaged, so that rows still sum to 1.

    Args:
        phi: as for `attention_pair`.
        first, second: texts of two words or more that differ, with equally many tokens or equally many words.
        layer, head: as for `attention_pair`.

    Raises:
        InputError: what `attention_pair` raises; a text of one word; texts that read the same; neither equally many
            tokens nor equally many words.
    """
    texts = phi.embed([first, second])
    for name, text in zip(("first", "second"), texts, strict=True):
        if len(text.whole_words or ()) < 2:
            raise InputError(f"`{name}` (={first if name == 'first' else second!r}) has one word; give two or more")
    pair = attention_pair(phi, texts[0], texts[1], layer=layer, head=head)
    if pair.tokens[0] == pair.tokens[1]:
        raise InputError(f"`second` (={second!r}) reads the same as `first` to {pair.model}; change a word of it")
    if pair.difference is not None:
        return pair
    units = [_units(text) for text in texts]
    if len(units[0]) != len(units[1]):
        words = [len(text.whole_words or ()) for text in texts]
        raise InputError(
            f"`first` has {words[0]} words and `second` has {words[1]}, so that their attention cannot be compared; "
            "change words in place, one for one"
        )
    names = [tuple(name for name, _ in own) for own in units]
    weights = [_by_unit(one, [rows for _, rows in own]) for one, own in zip(pair.weights, units, strict=True)]
    changed = tuple(at for at, (one, other) in enumerate(zip(*names, strict=True)) if one != other)
    return replace(pair, tokens=(names[0], names[1]), weights=(weights[0], weights[1]), changed=changed)


def _units(text: TextMatrix) -> list[tuple[str, list[int]]]:
    """The words, and the tokens that belong to none, each with its rows, in order."""
    words = [(word.text, list(word.rows)) for word in text.whole_words or ()]
    within = {row for _, rows in words for row in rows}
    alone = [(text.word(row), [row]) for row in range(len(text)) if row not in within]
    return sorted(words + alone, key=lambda unit: unit[1][0])


def _by_unit(weights: Float[Tensor, "n n"], rows: list[list[int]]) -> Float[Tensor, "u u"]:
    taken = torch.stack([weights[:, own].sum(dim=1) for own in rows], dim=1)
    return torch.stack([taken[own].mean(dim=0) for own in rows])
