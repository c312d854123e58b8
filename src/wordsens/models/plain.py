"""Transformers whose parts are not known: their own forward pass, pooled, without a map."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.loaded import LoadedModel
from wordsens.maps.transformer.pooling import Pooling
from wordsens.maps.transformer.texts import by_length
from wordsens.models.answers import Answers, require_texts
from wordsens.models.contract import Model
from wordsens.models.digest import joined_digest, settings_of, tokenizer_settings, weights_digest
from wordsens.text.transformer_encoder import context_of, encoder_part


class PlainTransformerModel(Model):
    """A transformer that gives hidden states, of any architecture; of one with encoder and decoder, the encoder.

    Args:
        loaded: the model and its tokenizer; texts longer than the context are cut.
        pool: mean, cls, last or max.
        name: for tables and records.
        refused: why the model has no map.
        batch_size: texts of equally many tokens that run together, at most.
    """

    def __init__(self, loaded: LoadedModel, pool: str, *, name: str, refused: InputError, batch_size: int = 32):
        self.name = name
        self._model: Any = encoder_part(loaded.model.base_model).eval()
        self._tokenizer, self._pooling = loaded.tokenizer, Pooling(pool, (pool,))
        self._context = context_of(loaded.tokenizer, self._model)
        self._refused, self._batch_size = refused, batch_size
        self._answers = Answers(name)

    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        listed = require_texts(texts)
        return self._answers.rows(listed, self._pooled(listed, slice(-1, None))[0])

    @property
    def layers(self) -> int | None:
        return int(self._model.config.num_hidden_layers) + 1

    def encode_layers(self, texts: Sequence[str]) -> Float[Tensor, "layers m d"]:
        return self._pooled(require_texts(texts), slice(None))

    def features(self) -> TransformerFeatures:
        raise InputError(f"where gradients are needed {self.name} cannot be used: {self._refused}") from self._refused

    def identity(self) -> str:
        words = tokenizer_settings(self._tokenizer)
        return joined_digest(weights_digest(self._model), settings_of(self._model.config), words, self._pooling.parts)

    def _pooled(self, texts: list[str], layers: slice) -> Float[Tensor, "layers m d"]:
        cut = {"truncation": self._context is not None, "max_length": self._context}
        ids = [self._tokenizer(text, verbose=False, **cut)["input_ids"] for text in texts]

        def run(batch: Tensor) -> Tensor:
            numbers = batch.to(next(self._model.parameters()).device)
            found = self._model(
                input_ids=numbers, attention_mask=torch.ones_like(numbers), output_hidden_states=True
            ).hidden_states[layers]
            return torch.stack([self._pooling(states.float()) for states in found])

        return by_length(ids, self._batch_size, run)
