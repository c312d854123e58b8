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
    for name, value in sorted(module.state_dict().items()):
        # Quantised layers keep tuples of a weight and a bias.
        for each in value if isinstance(value, tuple) else (value,):
            if not isinstance(each, Tensor):
                digest.update(f"{name}\0{each!r}\0".encode())
                continue
            tensor = each.dequantize() if each.is_quantized else each
            digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
            digest.update(tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def features_digest(phi: TransformerFeatures) -> str:
    """SHA-256 over the weights, configuration, tokenizer and pooling of a transformer."""
    reader = phi.reading()
    return joined_digest(
        weights_digest(phi.stack.model),
        settings_of(phi.stack.model.config),
        tokenizer_settings(reader.tokenizer),
        reader.context,
        [phi.layer, phi.head, phi.pool, phi.output],
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
    """A tokenizer as text: a fast one without the truncation and padding of its last call, of another its words."""
    inner = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(inner, "to_str"):
        return json.dumps(getattr(tokenizer, "get_vocab", lambda: type(tokenizer).__name__)(), default=str)
    whole = json.loads(inner.to_str())
    return json.dumps({key: value for key, value in whole.items() if key not in ("truncation", "padding")})
