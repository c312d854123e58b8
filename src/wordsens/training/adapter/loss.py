"""The loss of a batch: flips below paraphrases, paraphrases found, everything else where it was."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

SOFTNESS = 0.1
"""Of the ranking, in cosines: about the spread of paraphrases' cosines in MiniLM."""

TEMPERATURE = 0.05
"""Of the contrast, as sentence-transformers has it."""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """The parts of the loss; see `batch_loss`."""

    margin: float = 0.15
    floor: float = 0.3
    near: float = 0.85
    rank: float = 1.0
    push: float = 1.0
    contrast: float = 1.0
    geometry: float = 20.0
    anchor: float = 10.0


@dataclass(frozen=True)
class Batch:
    """Vectors of length one.

    Attributes:
        text, same: of the examples.
        other: of the flips of some of them.
        plain: of other sentences.
    """

    text: Float[Tensor, "m d"]
    same: Float[Tensor, "m d"]
    other: Float[Tensor, "f d"]
    plain: Float[Tensor, "p d"]

    @classmethod
    def of(cls, vectors: Float[Tensor, "all d"], examples: int, flips: int) -> "Batch":
        """The vectors one after another, `text`, `same`, `other` and `plain`."""
        sizes = (examples, examples, flips, len(vectors) - 2 * examples - flips)
        return cls(*vectors.split(sizes))


def batch_loss(now: Batch, before: Batch, flipped: list[int], weights: Weights) -> Tensor:
    """The weighted sum of

    - rank: the mean of s softplus((cos(flip) - cos(paraphrase) + margin) / s) over all pairs of the two, s = SOFTNESS;
    - push: the mean of (cos(flip) - floor)^2 where a flip's cosine is above the floor;
    - contrast: the cross-entropy of finding each text's paraphrase among all paraphrases, flips and plain sentences;
    - geometry: the mean squared change of the cosines between texts of different meaning;
    - anchor: the mean of (near - cos(now, before))^2 where a vector is farther from its old place than that.

    Args:
        now, before: the vectors with the adapter and without it.
        flipped: the rows of `text` that the rows of `other` are flips of.
        weights: of the parts.
    """
    alike = (now.text * now.same).sum(1)
    apart = (now.text[flipped] * now.other).sum(1)
    gaps = (apart[:, None] - alike[None, :] + weights.margin) / SOFTNESS
    logits = now.text @ torch.cat([now.same, now.other, now.plain]).T / TEMPERATURE
    here, there = (torch.cat([batch.text, batch.same, batch.plain]) for batch in (now, before))
    numbers = torch.arange(len(now.text) + len(now.plain), device=here.device)
    meaning = torch.cat([numbers[: len(now.text)], numbers])
    different = meaning[:, None] != meaning[None, :]
    stayed = torch.cat([(here * there).sum(1), (now.other * before.other).sum(1)])
    return (
        weights.rank * SOFTNESS * nn.functional.softplus(gaps).mean()
        + weights.push * (nn.functional.relu(apart - weights.floor) ** 2).mean()
        + weights.contrast * nn.functional.cross_entropy(logits, numbers[: len(now.text)])
        + weights.geometry * ((here @ here.T - there @ there.T)[different] ** 2).mean()
        + weights.anchor * (nn.functional.relu(weights.near - stayed) ** 2).mean()
    )
