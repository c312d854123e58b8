"""The spectral penalty: the operator norms of all weight matrices, whatever the texts."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.errors import require_positive
from wordsens.seeds import Seed, generator
from wordsens.studies.control.controls.contract import Control
from wordsens.studies.control.networks.contract import TextNetwork


class SpectralPenalty(Control):
    """weight * sum over linear layers of sigma(W)², sigma the largest singular value.

    sigma is u^T W v with the vectors of one power iteration a step, which go on from the last step's and are held fixed
    in the gradient: a lower bound of the operator norm that follows it (spectral norm regularisation, Yoshida and
    Miyato, 2017).
    """

    def __init__(self, weight: float = 0.01, seed: Seed = 0):
        generator(seed)
        self._weight, self._seed = require_positive("weight", weight), seed
        self._vectors: dict[str, Tensor] = {}

    def term(self, network: TextNetwork, rows: Float[Tensor, "b n d"]) -> Tensor:
        total = rows.new_zeros(())
        for name, module in network.named_modules():
            if isinstance(module, nn.Linear):
                total = total + self._largest(name, module.weight).square()
        return self._weight * total

    def _largest(self, name: str, weight: Float[Tensor, "out in"]) -> Tensor:
        with torch.no_grad():
            right = self._vectors.get(name)
            if right is None:
                drawn = torch.randn(weight.shape[1], generator=generator(self._seed, "spectral penalty", name))
                right = drawn.to(weight)
            left = nn.functional.normalize(weight @ right, dim=0)
            right = nn.functional.normalize(weight.T @ left, dim=0)
            self._vectors[name] = right
        return left @ weight @ right
