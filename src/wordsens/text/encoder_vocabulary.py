"""The rows that real words would have at one position of a text: what a swapped word becomes."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_count
from wordsens.text.encoder import Encoder, EncoderInput
from wordsens.text.encoders import load_encoder
from wordsens.text.matrix import rescale_rows


def vocabulary_rows(
    encoder: str | Encoder = "minilm",
    position: int = 0,
    *,
    special_tokens: bool = False,
    rescale: bool = True,
    keep: Callable[[str], bool] = str.isalpha,
    dtype: torch.dtype = torch.float64,
    batch_size: int = 1024,
) -> tuple[tuple[str, ...], Float[Tensor, "v d"]]:
    """The words of the encoder's vocabulary and their rows at layer 0, as `embed` would give them at that position.

    Layer 0 of a BERT-like encoder is the normalised sum of the token's, the position's and the type's embedding: a
    word's row depends on its position, not on the words around it.

    Args:
        encoder: as for `embed`.
        position: the word's index in the text, counted as `embed` counts.
        special_tokens: whether the leading special tokens count as words.
        rescale: scale every row to length sqrt(d).
        keep: which tokens are words; by default those of letters only: no number, and no piece of a word of BERT's.
        dtype: of the rows.
        batch_size: how many words the model takes at once.

    Raises:
        InputError: an encoder that does not list its vocabulary, a position past its context, or no word kept.

    >>> words, rows = vocabulary_rows("minilm", 1, keep=lambda token: token == "love")
    >>> words, tuple(rows.shape)
    (('love',), (1, 384))
    """
    chosen = load_encoder(encoder) if isinstance(encoder, str) else encoder
    require_count("position", position, least=0)
    entries = [(number, token) for number, token in chosen.vocabulary().items() if keep(token)]
    if not entries:
        raise InputError(f"`keep` leaves no word of {chosen.name}'s vocabulary; let some tokens through")
    frame = chosen.tokenize("a")
    before = frame.ids[: frame.leading]
    at = position if special_tokens else position + frame.leading
    if chosen.context is not None and at >= chosen.context:
        raise InputError(
            f"`position` (={position}) is past the context of {chosen.name}, {chosen.context} tokens; "
            "choose a smaller one"
        )
    filling = before + (frame.ids[frame.leading],) * at
    rows = []
    for start in range(0, len(entries), batch_size):
        batch = [EncoderInput((*filling[:at], number)) for number, _ in entries[start : start + batch_size]]
        rows.append(torch.stack([output[at] for output in chosen.encode(batch, layer=0)]).to(dtype))
    stacked = torch.cat(rows)
    return tuple(token for _, token in entries), rescale_rows(stacked) if rescale else stacked
