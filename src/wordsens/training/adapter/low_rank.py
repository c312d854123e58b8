"""Low-rank parts added to linear maps: W + B A, of which only A and B are trained (LoRA, Hu et al. 2021)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils import parametrize

from wordsens.seeds import generator


class _Part(nn.Module):
    """W + B A with A (rank, in) random and B (out, rank) zero at first."""

    def __init__(self, weight: Float[Tensor, "out in"], rank: int, stream: torch.Generator):
        super().__init__()
        out, into = weight.shape
        first = torch.randn(rank, into, generator=stream, dtype=weight.dtype) / into**0.5
        self.first = nn.Parameter(first.to(weight.device))
        self.second = nn.Parameter(torch.zeros(out, rank, dtype=weight.dtype, device=weight.device))

    def forward(self, weight: Float[Tensor, "out in"]) -> Float[Tensor, "out in"]:
        return weight + self.second @ self.first


def add_low_rank(block: nn.Module, rank: int, seed: int) -> None:
    """Give every matrix of the block a part of that rank; all else of it is frozen."""
    block.requires_grad_(False)
    linear = [(name, module) for name, module in block.named_modules() if getattr(module, "weight", None) is not None]
    for name, module in linear:
        weight = module.weight
        if isinstance(weight, Tensor) and weight.ndim == 2:
            part = _Part(weight, rank, generator(seed, "low rank", name))
            parametrize.register_parametrization(module, "weight", part)


def merged_weights(block: nn.Module) -> dict[str, Tensor]:
    """The block's tensors by their names, each part added to its matrix."""
    plain = {name: weight for name, weight in block.state_dict().items() if "parametrizations." not in name}
    for name, module in block.named_modules():
        if parametrize.is_parametrized(module):
            plain |= {f"{name}.{each}": getattr(module, each).detach() for each in module.parametrizations}  # pyright: ignore
    return plain
