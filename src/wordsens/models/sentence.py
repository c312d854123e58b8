"""SentenceTransformers as models: their own `encode`, and their map where the model can be run from rows."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, first_line
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.vocabulary import whole_word_tokens
from wordsens.models.answers import Answers, require_texts
from wordsens.models.contract import Model
from wordsens.models.digest import joined_digest, tokenizer_settings, weights_digest

_WORDS = 9
# Coordinates are at most about 1: float32 leaves 1e-6 of difference, and halves a few hundredths.
_TOLERANCE, _HALF_TOLERANCE = 1e-4, 0.05


class SentenceTransformerModel(Model):
    """A loaded SentenceTransformer: prompts, pooling, truncation and all else are those of its own `encode`.

    Args:
        model: the object, on its own device.
        name: for tables and records.
        batch_size: texts at a time.
    """

    def __init__(self, model: Any, *, name: str, batch_size: int = 32):
        self.name = name
        self._model, self._batch_size = model, batch_size
        self._answers = Answers(name)

    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        listed = require_texts(texts)
        training = self._model.training
        try:
            found = self._model.encode(listed, batch_size=self._batch_size, show_progress_bar=False)
        except (ValueError, RuntimeError) as error:
            raise InputError(f"{self.name} failed on {len(listed)} texts: {first_line(error)}") from error
        finally:
            self._model.train(training)
        return self._answers.rows(listed, found)

    @property
    def can_differentiate(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return isinstance(self._map, TransformerFeatures)

    @property
    def layers(self) -> int | None:
        return self._map.stack.layers + 1 if isinstance(self._map, TransformerFeatures) else None

    def encode_layers(self, texts: Sequence[str]) -> Float[Tensor, "layers m d"]:
        return self.features().encode_layers(require_texts(texts), batch_size=self._batch_size)

    def features(self) -> TransformerFeatures:
        if isinstance(self._map, InputError):
            raise InputError(
                f"where gradients or layers are needed {self.name} cannot be used: {self._map}"
            ) from self._map
        return self._map

    def identity(self) -> str:
        modules = [(type(each).__name__, each.get_config_dict()) for each in self._model]
        texts = [getattr(self._model, key, None) for key in ("prompts", "default_prompt_name", "truncate_dim")]
        length = getattr(self._model, "max_seq_length", None)
        words = tokenizer_settings(self._model.tokenizer)
        return joined_digest(weights_digest(self._model), modules, texts, length, words)

    @cached_property
    def _map(self) -> TransformerFeatures | InputError:
        """The map, when it gives what the object's own `encode` gives; otherwise the reason why there is none."""
        try:
            phi = TransformerFeatures.from_pretrained(self._model, pool="own")
            texts = _readable(phi)
            apart = float((phi.encode(texts) - self.encode(texts)).abs().max())
        except InputError as refused:
            return refused
        tolerance = _TOLERANCE if phi.stack.dtype in (torch.float32, torch.float64) else _HALF_TOLERANCE
        if apart > tolerance:
            return InputError(
                f"its own encode differs from its modules' results by {apart:.2g} (tolerance {tolerance:g})"
            )
        return phi


def _readable(phi: TransformerFeatures) -> list[str]:
    """Texts of two and of nine words of the model's own vocabulary, whatever its language."""
    words = list(whole_word_tokens(phi.reading().tokenizer).values())
    spread = words[:: max(1, len(words) // _WORDS)][:_WORDS]
    return [" ".join(spread[:2]), " ".join(spread)]
