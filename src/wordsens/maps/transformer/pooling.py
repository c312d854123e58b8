"""From the hidden states of a text to one vector: mean, CLS, last token, maximum, or the model's own way."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn

Pool = Callable[[Float[Tensor, "b n d"]], Float[Tensor, "b d"]]

OWN = "own"
SIMPLE_POOLS: dict[str, Pool] = {
    "mean": lambda states: states.mean(dim=-2),
    "cls": lambda states: states[..., 0, :],
    "last": lambda states: states[..., -1, :],
    "max": lambda states: states.amax(dim=-2),
}
POOL_NAMES = (*SIMPLE_POOLS, OWN)


@dataclass(frozen=True)
class Pooling:
    """A way to make one vector of a text's rows.

    Every row counts, those of [CLS] and [SEP] included, as in sentence-transformers; there is no padding here.

    Attributes:
        name: mean, cls, last, max or own.
        parts: the simple poolings whose vectors stand side by side; more than one only where the model's own has more.
        skipped: how many leading rows do not count: a prompt's, where the model's own pooling leaves them out.
        behind: what the model makes of the pooled vector: dense layers, normalising.
        dimensions: how many leading coordinates of the result are kept; None for all.
    """

    name: str
    parts: tuple[str, ...]
    skipped: int = 0
    behind: nn.Sequential = nn.Sequential()  # noqa: RUF009 - empty, and never changed
    dimensions: int | None = None

    def __call__(self, states: Float[Tensor, "b n d"]) -> Float[Tensor, "b p"]:
        counted = states[..., self.skipped :, :]
        pooled = torch.cat([SIMPLE_POOLS[part](counted) for part in self.parts], dim=-1)
        return self.behind(pooled)[..., : self.dimensions]

    def of_any_layer(self) -> "Pooling":
        """The part that suits the states of every layer: weights behind the pooling are made for the last one's."""
        if next(self.behind.parameters(), None) is None:
            return self
        return replace(self, behind=nn.Sequential(), dimensions=None)
