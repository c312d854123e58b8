"""Any differentiable function of a text as a feature map: a lambda, a method, a torch module."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.errors import InputError, require_device, require_dtype
from wordsens.maps.base import FeatureMap
from wordsens.maps.mapping import checked_features


class FunctionFeatures(FeatureMap):
    """Any differentiable callable as a feature map, a torch module included.

    Args:
        function: takes (n, d), or (*batch, n, d) when `batched`, and returns the features, one real
            tensor.
        batched: whether the function takes a leading batch axis; if not, texts are mapped one at a
            time.
        name: for messages and records; None for the function's or the module's own.
        dtype, device: where phi computes; None for those of a module's parameters, else float64 on
            the CPU.

    Raises:
        InputError: not a function; from a call, features that are not one tensor of real
            floating-point numbers.

    >>> FunctionFeatures(torch.nn.Linear(16, 8))
    FunctionFeatures(Linear, dtype=float32)
    """

    def __init__(
        self,
        function: Callable[[Tensor], Tensor],
        *,
        batched: bool = False,
        name: str | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ):
        if not callable(function):
            raise InputError(
                f"`function` ({type(function).__name__}) must be a differentiable function of an "
                "(n, d) tensor, or a "
                "torch module"
            )
        self._function = function
        self._batched = batched
        owner = function if isinstance(function, nn.Module) else getattr(function, "__self__", None)
        parts = [*owner.parameters(), *owner.buffers()] if isinstance(owner, nn.Module) else []
        weight = next(
            (part for part in parts if part.is_floating_point()),
            torch.empty(0, dtype=torch.float64),
        )
        module_name = type(function).__name__ if isinstance(function, nn.Module) else "function"
        self.name = getattr(function, "__name__", module_name) if name is None else name
        self.dtype = weight.dtype if dtype is None else require_dtype(dtype)
        self.device = torch.device(weight.device if device is None else require_device(device))

    def features(self, texts: Float[Tensor, "*batch n d"]) -> Float[Tensor, "..."]:
        if self._batched or texts.ndim == 2:
            return checked_features(self._function(texts), self.name)
        batch = texts.shape[:-2]
        mapped = [
            checked_features(self._function(text), self.name) for text in texts.flatten(end_dim=-3)
        ]
        return torch.stack(mapped).unflatten(0, batch)

    def __repr__(self) -> str:
        batched = ", batched=True" if self._batched else ""
        return (
            f"FunctionFeatures({self.name}{batched}, "
            f"dtype={str(self.dtype).removeprefix('torch.')})"
        )
