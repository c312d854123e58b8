"""A transformer and what reads texts for it: by name, or taken from a pair, a pipeline, a SentenceTransformer."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.errors import InputError, require_choice
from wordsens.maps.transformer.stack import Stack
from wordsens.text.encoders import require_device
from wordsens.text.loaded_models import is_sentence_transformer, model_parts
from wordsens.text.pretrained import ATTENTIONS, USUAL_ACCESS, Access, load_model

_DTYPES = (torch.float32, torch.bfloat16, torch.float64)


@dataclass(frozen=True, eq=False)
class SentenceModules:
    """The modules of a SentenceTransformer and its settings: prompt, length, pooling and all else are its own.

    Attributes:
        transformer: its first module, which runs the model.
        rest: pooling and all behind it.
        tokenizer: a fast one.
        prompt: what `encode` puts before every text unless told otherwise.
        most_tokens: the length to which texts are cut; None: the model's own alone.
        dimensions: how many leading coordinates of a vector are kept; None for all.
        prompts: all that the model has, by name.
    """

    transformer: nn.Module
    rest: Sequence[nn.Module]
    tokenizer: Any
    prompt: str
    most_tokens: int | None
    dimensions: int | None
    prompts: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, model: Any, modules: Sequence[nn.Module]) -> "SentenceModules":
        """The settings of a SentenceTransformer, with modules that may be frozen copies of its own."""
        prompt = model.prompts.get(model.default_prompt_name) or ""
        length, dimensions = model.max_seq_length, model.truncate_dim
        return cls(modules[0], modules[1:], model.tokenizer, prompt, length, dimensions, dict(model.prompts))

    def vectors(
        self, stack: Stack, rows: Float[Tensor, "b n d"], layer: int, prompted: int, dtype: torch.dtype
    ) -> Float[Tensor, "b p"]:
        """The vectors when the rows enter the first layer; of a layer below the last as `pooled` makes them."""
        if layer != stack.layers:
            return self.pooled(stack.states(rows, layer).to(dtype), prompted)
        features = stack.run(rows, lambda ids: self.transformer(self._features(ids, prompted)))
        return self._behind({**features, "token_embeddings": features["token_embeddings"].to(dtype)}, self.rest)

    def pooled(self, states: Float[Tensor, "b n d"], prompted: int) -> Float[Tensor, "b p"]:
        """The vectors of hidden states of any layer: weights behind the pooling are made for the last layer's alone,
        so that a model that has such weights is left with its pooling."""
        weights = any(next(module.parameters(), None) is not None for module in self.rest[1:])
        features = self._features(torch.zeros(states.shape[:2], dtype=torch.long, device=states.device), prompted)
        return self._behind({**features, "token_embeddings": states}, self.rest[:1] if weights else self.rest)

    def _features(self, ids: Tensor, prompted: int) -> dict[str, Any]:
        prompt = {"prompt_length": prompted} if self.prompt else {}
        return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **prompt}

    def _behind(self, features: dict[str, Any], modules: Sequence[nn.Module]) -> Tensor:
        for module in modules:
            features = module(features)
        kept = None if modules is not self.rest else self.dimensions
        return features["sentence_embedding"][..., :kept]


@dataclass(frozen=True)
class LoadedModel:
    """A running model and what reads texts for it.

    Attributes:
        model: of the transformers library.
        tokenizer: a fast one.
        name: for messages and records.
        sentence: from the model to the modules of the SentenceTransformer that runs it; None where there is none.
    """

    model: Any
    tokenizer: Any
    name: str
    sentence: Callable[[Any], SentenceModules] | None = None


def load_parts(
    given: Any,
    *,
    task: str = "base",
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    attention: str = "eager",
    access: Access = USUAL_ACCESS,
) -> LoadedModel:
    """The parts of a model by its name, or those of a loaded one. See `TransformerFeatures.from_pretrained`."""
    require_choice("attention", attention, ATTENTIONS)
    if dtype not in _DTYPES:
        raise InputError(f"`dtype` (={dtype}) must be torch.float32, torch.bfloat16 or torch.float64")
    if not isinstance(given, str | Path):
        parts = model_parts(given)
        made = partial(_given, given, parts.modules) if is_sentence_transformer(given) else None
        return LoadedModel(parts.model, parts.tokenizer, parts.name, made)
    name = str(given)
    tokenizer, model, library = load_model(name, task=task, dtype=dtype, attention=attention, access=access)
    model = model.to(require_device(device))
    made = None if library is None else partial(_by_name, name, library)
    return LoadedModel(model, tokenizer, name, made)


def _given(given: Any, modules: Sequence[nn.Module], model: Any) -> SentenceModules:
    del model  # which is in the modules
    return SentenceModules.of(given, modules)


def _by_name(name: str, library: Callable[[str], Any], model: Any) -> SentenceModules:
    """The modules of the SentenceTransformer of that name, made to run this model, whose weights were checked."""
    sentence = library(str(next(model.parameters()).device))
    own = next((part for part, child in sentence[0].named_children() if hasattr(child, "config")), None)
    if own is None:
        raise InputError(f"{name} does not run a transformer with a tokenizer, so that it has no rows to move")
    setattr(sentence[0], own, model)
    sentence.eval().requires_grad_(False)
    return SentenceModules.of(sentence, list(sentence))
