"""What a network can do and how sensitive it is, along its training."""

import copy
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import ZeroFeaturesError
from wordsens.statistics.auc import auc
from wordsens.training.judge import judged, share_right
from wordsens.training.networks.contract import TextNetwork
from wordsens.training.tasks.contract import Task
from wordsens.training.tasks.pairs import TextPairs

SHARES = (0.0, 1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Of the training's steps, after which the network is measured: most is learned early."""

_AT_ONCE = 128
"""Texts whose features are taken in one batch."""


class AlongTraining:
    """Looks at a network after given steps of its training; called as the `progress` of `train`.

    Args:
        network: that is being trained.
        task: what it learns.
        pairs: to judge by.
        probe: a one-word task of the same shape with a vocabulary of its own.
        sensitivity: S of a network's features; may raise ZeroFeaturesError.
        steps: of the training.
    """

    def __init__(
        self,
        network: TextNetwork,
        task: Task,
        pairs: TextPairs,
        probe: Task,
        sensitivity: Callable[[TextNetwork], float],
        steps: int,
    ):
        self._network, self._task, self._pairs, self._probe = network, task, pairs, probe
        self._sensitivity = sensitivity
        self._steps = {round(share * steps) for share in SHARES}
        self._looks: list[dict[str, float | None]] = []

    def __call__(self, step: int, most: int) -> None:
        """Measure the network where that step is one of those."""
        if step not in self._steps:
            return
        still = copy.deepcopy(self._network).requires_grad_(False)
        self._looks.append(
            {
                "steps": step,
                "accuracy": judged(still, self._task.test)[1],
                "sensitivity": self._sensitivity_of(still),
                **told_apart(still, self._pairs),
                "probe": probe_accuracy(still, self._probe),
            }
        )

    def _sensitivity_of(self, still: TextNetwork) -> float | None:
        try:
            return self._sensitivity(still)
        except ZeroFeaturesError:
            return None

    def columns(self) -> dict[str, Any]:
        """A column for each thing that was measured, of one number a look; None where a look does not have it."""
        found = {name: tuple(look[name] for look in self._looks) for name in self._looks[0]}
        return {f"along_{name}": None if None in values else values for name, values in found.items()}


def told_apart(network: TextNetwork, pairs: TextPairs) -> dict[str, float | None]:
    """What a network makes of pairs: the answer to those that mean the same, and how well it tells the others.

    Returns:
        `kept`: the share of pairs that mean the same whose two logits have one sign. `told`: the chance that the
        relative change ‖phi(B) - phi(A)‖ / ‖phi(A)‖ of a flipped pair is larger than that of one that means the same,
        ties half (AUC); None where no pair is flipped, or where some phi(A) = 0.
    """
    first, second = (_features(network, rows) for rows in pairs.rows())
    before, after = (network.head(features).squeeze(1) > 0 for features in (first, second))
    same = ~pairs.flipped
    kept = float((before == after)[same].double().mean())
    lengths = torch.linalg.vector_norm(first.double(), dim=1)
    if not bool(pairs.flipped.any()) or not bool((lengths > 0).all()):
        return {"kept": kept, "told": None}
    moved = torch.linalg.vector_norm((second - first).double(), dim=1) / lengths
    return {"kept": kept, "told": auc(moved[same].numpy(), moved[pairs.flipped].numpy())}


def probe_accuracy(network: TextNetwork, probe: Task) -> float:
    """The accuracy on a task of a linear function of the features: least squares on its training texts, min-norm."""
    learned, asked = (_with_one(_features(network, part.rows())) for part in (probe.training, probe.test))
    weights = torch.linalg.lstsq(learned, probe.training.labels.double().unsqueeze(1), driver="gelsd").solution
    return share_right(probe.test.labels * (asked @ weights).squeeze(1))


def _with_one(features: Float[Tensor, "m h"]) -> Float[Tensor, "m more"]:
    return torch.cat([features, torch.ones(len(features), 1)], dim=1).double()


@torch.no_grad()
def _features(network: TextNetwork, rows: Float[Tensor, "m n d"]) -> Float[Tensor, "m h"]:
    weight = network.head.weight
    return torch.cat([network.features(some.to(weight)) for some in rows.split(_AT_ONCE)]).cpu()
