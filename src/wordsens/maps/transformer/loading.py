"""A transformer by name: loaded once a process, and known by the content of its files."""

from functools import lru_cache

import torch

from wordsens.errors import InputError
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.text.model_files import model_digest


def content_of(model: str, revision: str | None = None) -> str:
    """The digest of the model's files; a model of the hub that is not on this machine yet is brought here."""
    try:
        return model_digest(model, revision)
    except InputError:
        TransformerFeatures.from_pretrained(model, revision=revision)
        return model_digest(model, revision)


def loaded_model(model: str, dtype: torch.dtype, device: str) -> TransformerFeatures:
    """The model's map, of the files that are there now; the one asked for last is kept in memory."""
    return _loaded(model, dtype, device, content_of(model))


@lru_cache(maxsize=1)
def _loaded(model: str, dtype: torch.dtype, device: str, content: str) -> TransformerFeatures:
    phi = TransformerFeatures.from_pretrained(model, dtype=dtype, device=device)
    if content_of(model) != content:
        raise InputError(f"the files of the model {model!r} changed while they were read; start again")
    return phi
