"""The arguments that every measurement takes: a map, a text, the words and the radius, checked."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any, SupportsIndex

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, argument, require_positive
from wordsens.maps.base import FeatureMap
from wordsens.maps.function import FunctionFeatures
from wordsens.models.model import Model
from wordsens.models.pretrained import is_of, is_transformer
from wordsens.text.matrix import TextMatrix, as_text_matrix


def as_feature_map(phi: FeatureMap | Callable[[Tensor], Tensor]) -> FeatureMap:
    """A feature map as it is; any other callable as FunctionFeatures."""
    if isinstance(phi, FeatureMap):
        return phi
    if remedy := _map_of_texts(phi):
        raise InputError(
            f"`phi` (a {type(phi).__name__}) reads texts or tokens, and a map takes the rows of a "
            "text: pass phi = "
            f"{remedy} and X = phi.embed(text)[0]"
        )
    if not callable(phi) or isinstance(phi, type):
        raise InputError(
            f"`phi` ({type(phi).__name__}) must be a feature map or a differentiable function of "
            "(n, d)"
        )
    return FunctionFeatures(phi)


def _map_of_texts(phi: Any) -> str | None:
    """The expression that makes a map of a model of texts; None of anything else."""
    # Inside a wrapper, of torch.compile or DataParallel.
    phi = getattr(phi, "_orig_mod", getattr(phi, "module", phi))
    if isinstance(phi, str | Path):
        return (
            f"TransformerFeatures.from_pretrained({str(phi)!r}), where that is a transformer's "
            "name,"
        )
    if is_transformer(phi):
        return "TransformerFeatures.from_pretrained(model)"
    if isinstance(phi, Model):
        return "map_of(model)"
    parts = is_of(phi, "transformers", "PreTrainedModel") or hasattr(phi, "get_vocab")
    if parts or is_of(phi, "sentence_transformers", "BaseModel"):
        return "TransformerFeatures.from_pretrained((model, tokenizer))"
    return None


def as_text(X: TextMatrix | Tensor | np.ndarray) -> TextMatrix:
    """The text, checked and without autograd's history; InputError when it has fewer than two
    words."""
    text = as_text_matrix(X)
    if len(text) < 2:
        raise InputError(
            f"{argument('X')} has one word; word sensitivity compares words, so give a text of two "
            "words or more"
        )
    # What was made in inference mode takes no part in autograd: a copy does.
    rows = text.rows.clone() if text.rows.is_inference() else text.rows
    return replace(text, rows=rows.detach())


def word_indices(
    words: Iterable[int] | Tensor | np.ndarray | SupportsIndex | None, n: int, name: str = "words"
) -> Int[Tensor, " w"]:
    """The indices of the words, from 0; an error calls the argument by its name."""
    if words is None:
        return torch.arange(n)
    given: Any = words.tolist() if isinstance(words, (Tensor, np.ndarray)) else words
    several: Any = given if isinstance(given, Iterable) else [given]
    listed: list[Any] = [word.tolist() if isinstance(word, Tensor) else word for word in several]
    # A bool is a whole number to Python, and would name a word by accident.
    if not all(isinstance(word, Integral) and not isinstance(word, bool) for word in listed):
        raise InputError(
            f"{argument(name)} (={words!r}) must be whole numbers, such as {name}=[0, 3]; pass "
            "None for all words"
        )
    if not listed:
        raise InputError(
            f"{argument(name)} is empty; name at least one word, or pass None for all of them"
        )
    for word in listed:
        if not -n <= word < n:
            raise InputError(
                f"{argument(name)} has {word}, but the text has {n} words; indices run from 0 to "
                f"{n - 1}"
            )
    indices = torch.tensor([int(word) % n for word in listed])
    if len(indices.unique()) < len(indices):
        raise InputError(f"{argument(name)} (={listed!r}) names a word twice; name each word once")
    return indices


def radii(
    radius: float | Sequence[float] | np.ndarray | Tensor | None,
    phi: FeatureMap,
    rows: Float[Tensor, "n d"],
    words: Int[Tensor, " w"],
) -> Float[Tensor, " w"]:
    if radius is None:
        return phi.default_radius(rows)[words]
    listed = radius.tolist() if isinstance(radius, (Tensor, np.ndarray)) else radius
    if not isinstance(listed, (list, tuple)):
        listed = [listed] * len(words)
    if len(listed) != len(words):
        raise InputError(
            f"{argument('radius')} has {len(listed)} entries for {len(words)} words; give one per "
            "searched word"
        )
    remedy = "pass None for the map's default"
    values = [require_positive("radius", value, remedy=remedy) for value in listed]
    return torch.tensor(values, dtype=torch.float64, device=rows.device)
