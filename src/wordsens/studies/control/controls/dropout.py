"""Word dropout: some words of every training text are left blank."""

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError
from wordsens.seeds import Seed, generator
from wordsens.studies.control.controls.contract import Control
from wordsens.studies.control.networks.contract import TextNetwork


class WordDropout(Control):
    """Every word of a training text becomes a row of zeros with probability `share`; one word of each text is kept."""

    def __init__(self, share: float = 0.1, seed: Seed = 0):
        if not 0 < share < 1:
            raise InputError(f"`share` (={share!r}) must be between 0 and 1; it is the chance of a word to be blank")
        generator(seed)
        self._share, self._seed = share, seed

    def texts(
        self, network: TextNetwork, rows: Float[Tensor, "b n d"], labels: Float[Tensor, " b"], step: int
    ) -> Float[Tensor, "b n d"]:
        drawn = torch.rand(rows.shape[:2], generator=generator(self._seed, "word dropout", step)).to(rows.device)
        keep_mask = (drawn >= self._share) | (drawn == drawn.amax(dim=1, keepdim=True))
        return rows * keep_mask.unsqueeze(2)
