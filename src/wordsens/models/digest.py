"""Digests of what decides a model's numbers."""

import hashlib
import json
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.maps.transformer.features import TransformerFeatures

_ANSWER_DIGITS = 4
# Written or left out according to where a model comes from.
_SILENT = ("transformers_version", "architectures", "dtype", "torch_dtype")


def weights_digest(module: nn.Module) -> str:
    """SHA-256 over the names, types, shapes and bytes of a module's tensors."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
        digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()


def features_digest(phi: TransformerFeatures) -> str:
    """SHA-256 over the weights, configuration, tokenizer, pooling and prompt of a pooled transformer."""
    reader, pooling = phi.reading(), phi.pooling
    way = None
    if pooling is not None:
        behind = [repr(pooling.behind), weights_digest(pooling.behind)]
        way = [pooling.parts, pooling.skipped, behind, pooling.dimensions]
    return joined_digest(
        weights_digest(phi.stack.model),
        settings_of(phi.stack.model.config),
        tokenizer_settings(reader.tokenizer),
        [reader.prompt, reader.context, reader.cuts],
        way,
        [phi.layer, phi.head, phi.output],
    )


def answers_digest(answers: Float[Tensor, "m d"]) -> str:
    """SHA-256 over vectors, rounded to a few digits of their largest number, so that rounding does not count."""
    rounded = (answers / answers.abs().max().clamp_min(1e-300) * 10**_ANSWER_DIGITS).round()
    # Adding zero makes one zero of two: -0.0 and 0.0.
    return joined_digest([tuple(answers.shape), (rounded + 0.0).tolist()])


def joined_digest(*parts: Any) -> str:
    """SHA-256 over values that JSON can hold."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def settings_of(config: Any) -> dict[str, Any]:
    """A transformers configuration without what decides no number, or stands in the weights' digest already."""
    return {key: value for key, value in config.to_dict().items() if key not in _SILENT and not key.startswith("_")}


def tokenizer_settings(tokenizer: Any) -> str:
    """A fast tokenizer as text, without the truncation and padding of its last call."""
    inner = getattr(tokenizer, "backend_tokenizer", tokenizer)
    whole = json.loads(inner.to_str())
    return json.dumps({key: value for key, value in whole.items() if key not in ("truncation", "padding")})
