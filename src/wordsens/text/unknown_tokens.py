"""Texts that a tokenizer cannot read: its unknown token stands where the words should be."""

from collections.abc import Sequence
from typing import Any

from wordsens.errors import InputError

MOST_UNKNOWN = 0.8
"""A larger share of unknown tokens is refused: such a text's rows say nothing of its words. A text in a script that the
vocabulary lacks is unknown but for digits and signs, about a tenth of ordinary prose; rare names stay far below."""


def require_known_tokens(ids: Sequence[int], tokenizer: Any, where: str, name: str) -> None:
    """Refuse a text nearly all of whose tokens are the tokenizer's unknown token.

    Args:
        ids: the text's own tokens, special ones left out.
    """
    unknown = 0 if tokenizer.unk_token_id is None else sum(token == tokenizer.unk_token_id for token in ids)
    if unknown > MOST_UNKNOWN * len(ids):
        raise InputError(
            f"{where}: {unknown} of its {len(ids)} tokens are unknown to {name} ({tokenizer.unk_token}), so a number "
            "would not speak of its words; use a model for this language, or one whose tokenizer files are complete"
        )
