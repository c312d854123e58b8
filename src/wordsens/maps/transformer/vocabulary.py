"""A transformer's own vocabulary as entries for real swaps."""

import unicodedata
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wordsens.errors import InputError
from wordsens.text.english import NEGATIONS
from wordsens.text.matrix import rescale_rows
from wordsens.text.vocabulary import Vocabulary

# How tokenizers mark a token that begins a word: of bytes, and of sentence pieces; WordPiece marks
# the others instead.
_BYTES_BEGIN, _PIECE_BEGINS, _GOES_ON = "Ġ", "▁", "##"


def whole_word_tokens(tokenizer: Any, *, rows: int | None = None) -> dict[int, str]:
    """Number and spelling, without the tokenizer's marks, of the tokens that are whole words of
    letters.

    Args:
        tokenizer: of the Hugging Face library.
        rows: of the model's table; tokens past it, which were added to the tokenizer alone, are
            left out.

    Raises:
        InputError: no token left.
    """
    from tokenizers.decoders import ByteLevel  # of an extra

    numbers, reserved = tokenizer.get_vocab(), set(tokenizer.all_special_ids)
    mark = max(
        (_BYTES_BEGIN, _PIECE_BEGINS),
        key=lambda each: sum(token.startswith(each) for token in numbers),
    )
    marked = any(token.startswith(mark) for token in numbers)
    allowed: dict[int, str] = {}
    for token, number in numbers.items():
        begins = token.startswith(mark) if marked else not token.startswith(_GOES_ON)
        if not begins or number in reserved or (rows is not None and number >= rows):
            continue
        bare = token.lstrip(mark)
        if marked and mark == _BYTES_BEGIN:
            # Each letter of such a token stands for a byte; a piece of a character is no word.
            bare = ByteLevel().decode([bare])
        # Letters and, from the second character on, the vowel signs that many scripts put on them.
        if bare[:1].isalpha() and all(
            sign.isalpha() or unicodedata.category(sign)[0] == "M" for sign in bare
        ):
            allowed[number] = bare
    if not allowed:
        raise InputError("no token of the vocabulary is a whole word of letters")
    return dict(sorted(allowed.items()))


def transformer_vocabulary(
    tokens: dict[int, str],
    rows_of: Callable[[Tensor], Tensor],
    *,
    name: str,
    first: int = 0,
    rescale: bool = False,
) -> Vocabulary:
    """The tokens with the rows that enter the first layer when they stand at a place.

    English negations are the vocabulary's outliers.

    Args:
        tokens: number and spelling.
        rows_of: from token numbers (b, n) to rows (b, n, d).
        name: of the model.
        first: how many rows of the model stand before the text's row 0.
        rescale: scale rows to length sqrt(d), as `wordsens.embed` does.
    """
    ids = torch.tensor(list(tokens))

    def rows(entries: Tensor, positions: Tensor) -> Tensor:
        places = positions + first
        # A token's row depends on its place and on no other token, so n copies of it give its rows
        # places all places.
        texts = ids[entries.cpu()].unsqueeze(1).expand(-1, int(places.max()) + 1)
        entering = rows_of(texts)[:, places]
        return rescale_rows(entering.flatten(end_dim=1)).view_as(entering) if rescale else entering

    # On MiniLM nearly all that a shortlist by slopes alone missed, of 40 words, were negations.
    unlike = [entry for entry, token in enumerate(tokens.values()) if token.lower() in NEGATIONS]
    return Vocabulary(list(tokens.values()), rows, name=name, outliers=unlike)
