"""The modules that a sentence-transformers model runs on the pooled vector: Dense, LayerNorm, Normalize."""

import re
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

EMBEDDING = "sentence_embedding"
"""The library's name for the pooled vector, on which these modules must work."""

_ACTIVATION = re.compile(r"torch\.nn\.modules\.(activation|linear)\.([A-Za-z0-9]+)")


class Dense(nn.Module):
    """A linear layer and an activation: activation(W x + b), plus x (or a matrix times x) where the module is residual.

    Args:
        config: of the library's module: in_features, out_features, bias, activation_function, use_residual.
        activation: the function behind the linear layer.
    """

    def __init__(self, config: dict[str, Any], activation: nn.Module):
        super().__init__()
        into, out = config["in_features"], config["out_features"]
        self.linear = nn.Linear(into, out, bias=config.get("bias", True))
        self.activation = activation
        self.residual = None
        self._adds_itself = bool(config.get("use_residual", False))
        if self._adds_itself and into != out:
            self.residual = nn.Linear(into, out, bias=False)

    def forward(self, vector: Float[Tensor, "b p"]) -> Float[Tensor, "b q"]:
        result = self.activation(self.linear(vector))
        if not self._adds_itself:
            return result
        return result + (vector if self.residual is None else self.residual(vector))


class LayerNorm(nn.Module):
    """A layer norm over the vector's coordinates."""

    def __init__(self, dimension: int):
        super().__init__()
        self.norm = nn.LayerNorm(dimension)

    def forward(self, vector: Float[Tensor, "b p"]) -> Float[Tensor, "b p"]:
        return self.norm(vector)


class Normalize(nn.Module):
    """The vector divided by its length."""

    def forward(self, vector: Float[Tensor, "b p"]) -> Float[Tensor, "b p"]:
        return functional.normalize(vector, dim=-1)


def module_behind(kind: str, config: dict[str, Any]) -> nn.Module | None:
    """The module of that class name and configuration, its weights not yet loaded; None for one that is not known."""
    names = (config.get("module_input_name") or EMBEDDING, config.get("module_output_name") or EMBEDDING)
    if names != (EMBEDDING, EMBEDDING):
        return None
    if kind == "Normalize":
        return Normalize()
    if kind == "LayerNorm":
        return LayerNorm(config["dimension"])
    if kind == "Dropout":
        return nn.Identity()
    if kind == "Dense":
        activation = _activation(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
        return None if activation is None else Dense(config, activation)
    return None


def _activation(path: str) -> nn.Module | None:
    """One of torch's own activations, without arguments; no other code is looked up."""
    named = _ACTIVATION.fullmatch(path)
    kind = None if named is None else getattr(nn, named[2], None)
    return kind() if isinstance(kind, type) and issubclass(kind, nn.Module) else None
