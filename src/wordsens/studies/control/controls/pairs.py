"""Supervised pairs: features learn from pairs which words matter, and are moved by those alone."""

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_count, require_positive
from wordsens.seeds import Seed, generator
from wordsens.studies.control.controls.contract import Control
from wordsens.studies.control.networks.contract import TextNetwork
from wordsens.studies.control.tasks.pairs import TextPairs


class SupervisedPairs(Control):
    """weight * the contrastive loss of some pairs is added to the loss of every step.

    With the relative change delta = ‖phi(B) - phi(A)‖ / ‖phi(A)‖ of a pair (A, B), as in word sensitivity, a pair that
    means the same adds delta², a flipped one max(0, margin - delta)² (the loss of Hadsell, Chopra and LeCun, 2006, on
    relative changes); the term is the mean over the pairs. A penalty on S moves the features' response to every word;
    this one tells words that matter from those that do not. Pairs with phi(A) = 0 are left out of a step.

    Args:
        pairs: to learn from.
        weight: of the term.
        margin: the relative change beyond which a flipped pair is told well enough.
        batch: pairs a step, drawn with replacement.
        seed: of the choice.

    Raises:
        InputError: no pairs, or a number that is not positive.
    """

    def __init__(self, pairs: TextPairs, weight: float = 1.0, *, margin: float = 1.0, batch: int = 16, seed: Seed = 0):
        if not len(pairs):
            raise InputError("`pairs` (=0 pairs) must hold at least one")
        generator(seed)
        self._pairs, self._seed = pairs, seed
        self._weight, self._margin = require_positive("weight", weight), require_positive("margin", margin)
        self._batch = require_count("batch", batch)
        self._step = 0

    def texts(
        self, network: TextNetwork, rows: Float[Tensor, "b n d"], labels: Float[Tensor, " b"], step: int
    ) -> Float[Tensor, "b n d"]:
        self._step = step  # every step asks for its texts before its term
        return rows

    def term(self, network: TextNetwork, rows: Float[Tensor, "b n d"]) -> Tensor | None:
        stream = generator(self._seed, "supervised pairs", self._step)
        chosen = torch.randint(len(self._pairs), (self._batch,), generator=stream)
        first, second = (part.to(rows) for part in self._pairs.rows(chosen))
        before, after = network.features(torch.cat([first, second])).chunk(2)
        change, lengths = (torch.linalg.vector_norm(part, dim=1) for part in (after - before, before))
        defined = lengths > 0
        if not bool(defined.any()):
            return None
        relative = change[defined] / lengths[defined]
        flipped = self._pairs.flipped[chosen].to(rows.device)[defined]
        short = (self._margin - relative).clamp(min=0)
        return self._weight * torch.where(flipped, short, relative).square().mean()
