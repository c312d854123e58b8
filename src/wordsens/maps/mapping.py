"""Texts to features: perturbed copies of a text, the features of each, their norm, and what a map may return."""

import math
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.errors import InputError, ZeroFeaturesError


@runtime_checkable
class TextMap(Protocol):
    """A map phi: its name for messages, the conversion of texts, and their features."""

    name: str

    def accept(self, rows: Tensor) -> Tensor: ...

    def __call__(self, texts: Tensor) -> Tensor: ...


def perturbed_texts(
    rows: Float[Tensor, "n d"], words: Int[Tensor, "b g"], perturbations: Float[Tensor, "b g d"]
) -> Float[Tensor, "b n d"]:
    """b copies of X, in which row words[p, k] is moved by perturbations[p, k]; differentiable in the perturbations."""
    texts = rows.unsqueeze(0).repeat(len(words), 1, 1)
    where = words.to(rows.device).unsqueeze(-1).expand_as(perturbations)
    return texts.scatter_add(1, where, perturbations)


def features_by_text(phi: TextMap, texts: Float[Tensor, "b n d"]) -> Float[Tensor, "b features"]:
    """The features of each of b texts in one row. InputError when phi does not keep the batch axis."""
    features = phi(texts)
    if features.shape[:1] != texts.shape[:1]:
        raise InputError(
            f"{phi.name} maps a batch of shape {tuple(texts.shape)} to features of shape {tuple(features.shape)}; "
            f"their first axis must be the batch's; a FunctionFeatures with batched=False maps one text at a time"
        )
    return features.reshape(len(texts), -1)


def feature_norm(features: Tensor, name: str) -> float:
    """‖phi(X)‖ over all features; ZeroFeaturesError when it is zero, InputError when it is not finite."""
    norm = torch.linalg.vector_norm(features, dtype=torch.float64).item()
    if not math.isfinite(norm):
        raise InputError(f"{name} gives features with norm {norm} on this text; use float64 or rescale the rows")
    if norm == 0:
        raise ZeroFeaturesError(
            f"{name} maps this text to zero, so the relative change of its features is not defined; "
            "use another text, seed or map"
        )
    return norm


def checked_features(features: Any, name: str) -> Tensor:
    """The features, when they are one tensor of real floating-point numbers; InputError otherwise."""
    if isinstance(features, Tensor) and features.is_floating_point():
        return features
    if isinstance(features, Tensor):
        found = f"a tensor of {str(features.dtype).removeprefix('torch.')}"
        remedy = "return its real and imaginary parts, torch.view_as_real(...)" if features.is_complex() else ""
        remedy = remedy or "return scores or probabilities, not classes"
    elif isinstance(features, (tuple, list, dict)):
        found = f"a {type(features).__name__} of {len(features)}"
        remedy = "return one of its tensors, such as lambda X: phi(X)[0]"
    else:
        found = f"a {type(features).__name__}"
        remedy = "write it with torch operations from end to end, so that gradients pass"
        if getattr(features, "last_hidden_state", None) is not None:
            remedy = "return one of its tensors, such as lambda X: phi(X).last_hidden_state"
    raise InputError(f"`phi` ({name}) must return one tensor of real floating-point numbers; it gave {found}; {remedy}")
