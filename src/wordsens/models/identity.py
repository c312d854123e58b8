"""Digests of what decides a loaded model's numbers."""

import hashlib
import json
from typing import Any

import torch
from torch import Tensor, nn

UNKNOWN = "unknown"
"""The identity of a model that cannot be hashed."""

_KNOWN = ("torch", "transformers", "sentence_transformers")
_METHODS = {"forward", "encode", "preprocess", "tokenize"}
# Entries that depend on where a model comes from, not on what it computes.
_SILENT = ("transformers_version", "architectures", "dtype", "torch_dtype", "use_cache")


def content_digest(*parts: nn.Module) -> str | None:
    """SHA-256 over the weights, configurations and tokenizers of modules and the modules inside
    them.

    None if something else may decide the numbers: a class or a hook that is not from torch,
    transformers or sentence-transformers, weights in another runtime (ONNX), a replaced method.
    """
    inner: list[Any] = [module for part in parts for module in part.modules()]
    if not all(map(_shows_all, inner)):
        return None
    configs = [module.config for module in inner if hasattr(module, "base_model_prefix")]
    tokenizers = [module.tokenizer for module in inner if hasattr(module, "tokenizer")]
    return joined_digest(
        [weights_digest(part) for part in parts],
        [repr(part) for part in parts],
        [module.extra_repr() for module in inner],  # such as the epsilon of a norm
        [_settings(config) for config in configs],
        [tokenizer_settings(tokenizer) for tokenizer in tokenizers],
    )


def _shows_all(module: nn.Module) -> bool:
    """True if the state and settings of a module decide what it computes."""
    hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    origins = [getattr(each, "__module__", "") or "" for each in (type(module), *hooks)]
    known = all(origin.partition(".")[0] in _KNOWN for origin in origins)
    replaced = _METHODS & vars(module).keys()
    return known and not replaced and isinstance(getattr(module, "auto_model", module), nn.Module)


def weights_digest(module: nn.Module) -> str:
    """SHA-256 over the names, types, shapes and bytes of a module's tensors."""
    digest = hashlib.sha256()
    for name, value in sorted(module.state_dict().items()):
        # Quantised layers keep tuples of a weight and a bias.
        for each in value if isinstance(value, tuple) else (value,):
            if not isinstance(each, Tensor):
                digest.update(f"{name}\0{each!r}\0".encode())
                continue
            tensor = (each.dequantize() if each.is_quantized else each).detach().cpu()
            digest.update(f"{name}\0{tensor.dtype}\0{tuple(tensor.shape)}\0".encode())
            digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


def joined_digest(*parts: Any) -> str:
    """SHA-256 over values that JSON can hold."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _settings(config: Any) -> dict[str, Any]:
    """A transformers configuration without what decides no number, or is in the weights' digest."""
    return {
        key: value
        for key, value in config.to_dict().items()
        if key not in _SILENT and not key.startswith("_")
    }


def tokenizer_settings(tokenizer: Any) -> list[Any]:
    """A tokenizer's settings: for a fast one all but the truncation and padding of its last call,
    for another its vocabulary."""
    inner = getattr(tokenizer, "backend_tokenizer", tokenizer)
    side = getattr(tokenizer, "truncation_side", None)
    if hasattr(inner, "to_str"):
        return [{**json.loads(inner.to_str()), "truncation": None, "padding": None}, side]
    return [tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else repr(tokenizer), side]
