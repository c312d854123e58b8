"""Rows of two texts that a transformer reads together, as rerankers do: one stays and the other moves."""

import torch

from wordsens.errors import InputError, require_choice
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.text.matrix import TextMatrix
from wordsens.text.whole_words import whole_words

SIDES = ("first", "second")


def pair_rows(phi: TransformerFeatures, first: str, second: str, moves: str = "second") -> TextMatrix:
    """The rows that enter the first layer when phi's model reads the pair; `whole_words` are the moving text's.

    Args:
        phi: of a model that reads pairs; its logits are the pair's score.
        first, second: such as a query and a document; the longer one is cut where both do not fit.
        moves: "first" or "second".

    Raises:
        InputError: an unknown side, or a moving text without a token.
    """
    side = SIDES.index(require_choice("moves", moves, SIDES))
    reader = phi.reading()
    encoded = reader.tokenizer(
        first,
        second,
        truncation=reader.context is not None,
        max_length=reader.context,
        return_offsets_mapping=True,
        verbose=False,
    )
    ids, types = encoded["input_ids"], encoded.get("token_type_ids")
    moving = [at for at, text in enumerate(encoded.sequence_ids(0)) if text == side]
    if not moving:
        raise InputError(f"`{moves}` gives no token: it is empty or only blanks, so no word of it can move")
    start, stop = moving[0], moving[-1] + 1
    words = whole_words((first, second)[side], encoded["offset_mapping"][start:stop], start)
    rows = phi.stack.entering(torch.tensor([ids]), None if types is None else torch.tensor([types]))[0]
    return TextMatrix(rows.to(phi.dtype), reader.spelled(ids), None, "pair", tuple(words))
