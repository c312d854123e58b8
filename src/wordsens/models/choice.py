"""Whatever a user calls a model, as a Model."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.models.contract import Model


class _Own(Model):
    def __init__(self, name: str, device: str):
        self.name = name
        self._phi = TransformerFeatures.from_pretrained(name, pool="own", device=device)
        self.layers = self._phi.stack.layers

    def encode(self, texts: Sequence[str]) -> Tensor:
        return torch.stack([self._phi(each).double() for each in self._phi.embed(texts)])

    def encode_layers(self, texts: Sequence[str]) -> Tensor:
        maps = [self._phi.at(layer=layer, pool="mean") for layer in range(self.layers + 1)]
        return torch.stack([torch.stack([one(each).double() for each in one.embed(texts)]) for one in maps])

    def identity(self) -> str:
        return self.name


class _Callable(Model):
    def __init__(self, encode: Callable[[list[str]], Any], name: str):
        self._encode = encode
        self.name = name

    def encode(self, texts: Sequence[str]) -> Tensor:
        return torch.as_tensor(self._encode(list(texts)), dtype=torch.float64)

    def identity(self) -> str:
        return self.name


def as_model(
    model: Any, *, pool: str | None = None, revision: str | None = None, device: str = "cpu", batch_size: int = 32
) -> Model:
    """The model as a Model."""
    if isinstance(model, Model):
        return model
    return _Own(model, device) if isinstance(model, str) else _Callable(getattr(model, 'encode', model), type(model).__name__ if hasattr(model, 'encode') else model.__name__)
