"""A transformer's own vocabulary as entries for real swaps."""

import unicodedata
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from wordsens.errors import InputError, require_choice
from wordsens.text.english import NEGATIONS
from wordsens.text.matrix import rescale_rows
from wordsens.text.vocabulary import Vocabulary

CASES = ("any", "lower", "capital")
# How tokenizers mark a token that begins a word: of bytes, and of sentence pieces; WordPiece marks the others instead.
_BYTES_BEGIN, _PIECE_BEGINS, _GOES_ON = "Ġ", "▁", "##"


def whole_word_tokens(
    tokenizer: Any,
    *,
    rows: int | None = None,
    pieces: bool = False,
    special: bool = False,
    signs: bool = False,
    case: str = "any",
) -> dict[int, str]:
    """Number and spelling, without the tokenizer's marks, of the tokens that may stand for a word.

    Args:
        tokenizer: of the Hugging Face library.
        rows: of the model's table; tokens past it, which were added to the tokenizer alone, are left out.
        pieces: let through tokens that only continue a word.
        special: let through special tokens.
        signs: let through tokens with anything but letters and the marks on them.
        case: "any", "lower" (no capital letter) or "capital" (begins with one).

    Raises:
        InputError: an unknown case, or no token left.
    """
    require_choice("case", case, CASES)
    numbers = tokenizer.get_vocab()
    reserved = set(tokenizer.all_special_ids)
    from tokenizers.decoders import ByteLevel  # of an extra

    mark = max((_BYTES_BEGIN, _PIECE_BEGINS), key=lambda each: sum(token.startswith(each) for token in numbers))
    marked = any(token.startswith(mark) for token in numbers)
    allowed: dict[int, str] = {}
    for token, number in numbers.items():
        begins = token.startswith(mark) if marked else not token.startswith(_GOES_ON)
        bare = token.removeprefix(_GOES_ON).lstrip(mark)
        if marked and mark == _BYTES_BEGIN:
            # Each letter of such a token stands for a byte; a piece of a character is no word.
            bare = ByteLevel().decode([bare])
        if rows is not None and number >= rows:
            continue
        if number in reserved:
            if special:
                allowed[number] = token
            continue
        fits = case == "any" or (bare == bare.lower() if case == "lower" else bare[:1].isupper())
        if (begins or pieces) and (signs or _is_word(bare)) and fits and "\ufffd" not in bare:
            allowed[number] = bare
    if not allowed:
        raise InputError("the filters leave no token of the vocabulary; let pieces, signs or another case through")
    return dict(sorted(allowed.items()))


def _is_word(text: str) -> bool:
    """Letters and, from the second character on, the vowel signs that many scripts put on them."""
    return text[:1].isalpha() and all(sign.isalpha() or unicodedata.category(sign)[0] == "M" for sign in text)


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
        at = positions + first
        # A token's row depends on its place and on no other token, so n copies of it give its rows at all places.
        texts = ids[entries.cpu()].unsqueeze(1).expand(-1, int(at.max()) + 1)
        entering = rows_of(texts)[:, at]
        return rescale_rows(entering.flatten(end_dim=1)).view_as(entering) if rescale else entering

    # On MiniLM nearly all that a shortlist by slopes alone missed, of 40 words, were negations.
    unlike = [entry for entry, token in enumerate(tokens.values()) if token.lower() in NEGATIONS]
    return Vocabulary(list(tokens.values()), rows, name=name, outliers=unlike)
