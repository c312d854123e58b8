"""The contract of a model of texts, and the digests that tell one model from another."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.errors import InputError
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.text.loaded_models import is_instance
from wordsens.text.whole_words import Span

UNKNOWN = "unknown"
"""The identity of a model of which nothing can be hashed."""

PROBES = (
    "The service is not available on Sundays.",
    "a",
    "Please turn the alarm on before you leave, and do not open the second door until the light "
    "has gone out.",
)
"""Sentences of one word to twenty, on which two ways to compute an embedding are compared."""

COSINE = "cosine"
SIMILARITIES = {
    COSINE: "cosine",
    "dot": "dot product",
    "euclidean": "negative Euclidean distance",
    "manhattan": "negative Manhattan distance",
}
"""What two vectors are compared by: the names that sentence-transformers has, in words."""

# Written or left out according to where a model comes from.
_SILENT = ("transformers_version", "architectures", "dtype", "torch_dtype")


class Model(ABC):
    """Anything that gives every text a vector.

    Attributes:
        name: for tables and records.
        can_differentiate: whether `features` gives a map with gradients; not so for a black box.
        similarity: what the model's vectors are compared by, a name of SIMILARITIES.
    """

    name: str
    can_differentiate: bool = False
    similarity: str = COSINE

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        """One vector a text: float64 on the CPU, finite, none of them zero, and d the same in every
        call.

        Raises:
            InputError: the texts are no texts, or the model's answer is not that.
        """

    def identity(self) -> str:
        """A digest of what decides the numbers: weights, configuration, tokenizer, pooling,
        prompts; UNKNOWN where none of this can be read."""
        return UNKNOWN

    def fingerprint(self) -> str:
        """A digest that changes when the model does: its identity, or, where that is unknown, that
        of a few answers, which two models may share."""
        identity = self.identity()
        return identity if identity != UNKNOWN else answers_digest(self.encode(PROBES))

    def read_span(self, text: str) -> Span:
        """Where the part of the text that the model reads starts and stops; all of it where no
        limit is known."""
        return 0, len(text)

    def unreadable(self, text: str) -> str | None:
        """Why the model refuses the text; None where it does not, or nothing is known."""
        return None

    def refusals(self, texts: Sequence[str]) -> dict[str, str]:
        """The texts that the model refuses, each with the reason."""
        reasons = {text: self.unreadable(text) for text in texts}
        return {text: reason for text, reason in reasons.items() if reason}

    def prompted(self, name: str) -> "Model":
        """The model that puts its prompt of that name before every text.

        Raises:
            InputError: a model without prompts, or without this one.
        """
        raise InputError(
            f"`prompt_name` (={name!r}) is of a SentenceTransformer; {self.name} has no prompts"
        )

    @property
    def layers(self) -> int | None:
        """The number of layers that `encode_layers` gives, the embedding layer first; None where it
        cannot."""
        return None

    def encode_layers(self, texts: Sequence[str]) -> Float[Tensor, "layers m d"]:
        """The vectors that the model's own pooling makes of every layer, the embedding layer first.

        Raises:
            InputError: a model whose layers cannot be seen.
        """
        raise InputError(
            f"the layers of {self.name} cannot be seen: it gives one vector a text, for pairs, "
            "removals, swaps and "
            "lengths; for layers pass the transformer (a name, a folder, or a pair (model, "
            "tokenizer))"
        )

    def features(self) -> TransformerFeatures:
        """The model as a map from the rows that enter its first layer.

        Raises:
            InputError: a model without gradients.
        """
        raise InputError(
            f"where gradients are needed {self.name} cannot be used: it gives one vector a text, "
            "for pairs, removals, "
            "swaps and lengths; pass the transformer (a name, a folder, or a pair (model, "
            "tokenizer))"
        )


def require_cosines(model: Any, what: str) -> None:
    """InputError for a model whose vectors are not compared by cosines, where nothing else is
    measured.

    Args:
        model: a Model, or a map of a transformer.
        what: what is measured, in the plural.
    """
    if model.similarity != COSINE:
        raise InputError(
            f"{what} are measured by cosines, and {model.name} compares by the "
            f"{SIMILARITIES[model.similarity]} "
            "(similarity_fn_name); for cosines pass the model with similarity_fn_name='cosine'"
        )


def content_digest(*parts: nn.Module) -> str | None:
    """SHA-256 over the weights, configurations and tokenizers of modules, and those inside them.

    None where a module may hold what is none of these: a class or a hook that is not of torch,
    transformers or sentence-transformers, weights that another runtime holds (ONNX), a method that
    was replaced.
    """
    inner = [module for part in parts for module in part.modules()]
    if not all(map(_shows_all, inner)):
        return None
    try:
        configured: list[Any] = [module for module in inner if hasattr(module, "get_config_dict")]
        configs = [(type(module).__name__, module.get_config_dict()) for module in configured]
        tokenizers = [
            tokenizer_settings(words)
            for each in configured
            if (words := getattr(each, "tokenizer", None))
        ]
        plain = [(type(module).__name__, module.extra_repr()) for module in inner]
        pretrained = [
            module.config
            for module in inner
            if is_instance(module, "transformers", "PreTrainedModel")
        ]
    except (AttributeError, NotImplementedError, TypeError):
        return None
    weights = list(map(weights_digest, parts))
    return joined_digest(weights, plain, configs, tokenizers, list(map(settings_of, pretrained)))


def _shows_all(module: nn.Module) -> bool:
    """True where state and configuration of a module decide what it computes."""
    hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    origins = [getattr(each, "__module__", "") or "" for each in (type(module), *hooks)]
    known = all(
        origin.partition(".")[0] in ("torch", "transformers", "sentence_transformers")
        for origin in origins
    )
    replaced = {"forward", "encode", "preprocess", "tokenize"} & vars(module).keys()
    return known and not replaced and isinstance(getattr(module, "auto_model", module), nn.Module)


def answers_digest(answers: Float[Tensor, "m d"]) -> str:
    """SHA-256 over vectors, rounded to 1e-4 of the largest number."""
    rounded = (answers / answers.abs().max().clamp_min(1e-300) * 1e4).round()
    # Adding zero makes one zero of two: -0.0 and 0.0.
    return joined_digest(tuple(answers.shape), (rounded + 0.0).tolist())


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
            digest.update(
                tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data
            )
    return digest.hexdigest()


def joined_digest(*parts: Any) -> str:
    """SHA-256 over values that JSON can hold."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def settings_of(config: Any) -> dict[str, Any]:
    """A transformers configuration without what decides no number, or stands in the weights' digest
    already."""
    return {
        key: value
        for key, value in config.to_dict().items()
        if key not in _SILENT and not key.startswith("_")
    }


def tokenizer_settings(tokenizer: Any) -> str:
    """A tokenizer as text: a fast one without the truncation and padding of its last call, of
    another its words."""
    inner, side = (
        getattr(tokenizer, "backend_tokenizer", tokenizer),
        getattr(tokenizer, "truncation_side", None),
    )
    if not hasattr(inner, "to_str"):
        return json.dumps(
            [getattr(tokenizer, "get_vocab", lambda: type(tokenizer).__name__)(), side], default=str
        )
    whole = json.loads(inner.to_str())
    return json.dumps(
        [{key: value for key, value in whole.items() if key not in ("truncation", "padding")}, side]
    )
