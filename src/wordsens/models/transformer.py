"""Transformers as models: through their maps, or by their own forward pass alone where there is none."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError
from wordsens.maps.transformer.features import POOLS, TransformerFeatures
from wordsens.maps.transformer.loaded import LoadedModel
from wordsens.models.answers import Answers, require_texts
from wordsens.models.contract import Model
from wordsens.models.digest import features_digest
from wordsens.models.function import FunctionModel
from wordsens.text.hooks import call
from wordsens.text.transformer_encoder import context_of, encoder_part


class TransformerModel(Model):
    """A pooled transformer.

    Args:
        phi: with a pool, and a tokenizer.
        name: for tables and records.
        batch_size: texts of equally many tokens that run together, at most.
    """

    can_differentiate = True

    def __init__(self, phi: TransformerFeatures, *, name: str, batch_size: int = 32):
        self.name = name
        self._phi, self._batch_size = phi, batch_size
        self._answers = Answers(name)

    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        listed = require_texts(texts)
        return self._answers.rows(listed, self._phi.encode(listed, batch_size=self._batch_size))

    @property
    def layers(self) -> int | None:
        return self._phi.stack.layers + 1

    def encode_layers(self, texts: Sequence[str]) -> Float[Tensor, "layers m d"]:
        return self._phi.encode_layers(require_texts(texts), batch_size=self._batch_size)

    def features(self) -> TransformerFeatures:
        return self._phi

    def identity(self) -> str:
        return features_digest(self._phi)


class UnmappedTransformer(FunctionModel):
    """A transformer that cannot be run from rows, or has no gradient: its pooled last hidden states, and no map.

    Args:
        loaded: the model and its tokenizer; texts longer than the context are cut.
        pool: mean, cls, last or max.
        name: for tables and records.
        refused: why the model has no map.
    """

    def __init__(self, loaded: LoadedModel, pool: str, *, name: str, refused: InputError):
        model = encoder_part(getattr(loaded.model, "base_model", loaded.model)).eval()
        context = context_of(loaded.tokenizer, model)
        self._refused = refused

        @torch.no_grad()
        def encode(texts: list[str]) -> Tensor:
            cut = {"truncation": context is not None, "max_length": context}
            ids = [loaded.tokenizer(text, return_tensors="pt", verbose=False, **cut)["input_ids"] for text in texts]
            states = [call(model, each.to(next(model.parameters()).device)).last_hidden_state for each in ids]
            return torch.cat([POOLS[pool](each.float()) for each in states])

        super().__init__(encode, name=name)

    def features(self) -> TransformerFeatures:
        raise InputError(f"where gradients are needed {self.name} cannot be used: {self._refused}") from self._refused
