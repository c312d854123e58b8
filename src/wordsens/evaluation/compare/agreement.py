"""Neighbours of the same texts under two sets of vectors, and how much those shared depend on the choice of texts."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.seeds import Seed, derive_seed

ROUNDING = 1e-6
"""The difference of two cosines up to which they are one number: float32 moves one by some 1e-7."""

_BLOCK = 512
"""Texts whose cosines with all others are held at once."""

_HALVES = 200
"""Half samples: a standard error is then known to 5 %."""

_FARTHER = 4
"""Neighbours that are kept for each that counts: among 40, fewer than 10 of a half sample have a chance of .0003."""


@dataclass(frozen=True)
class Agreement:
    """Neighbours under two sets of vectors of the same texts.

    Attributes:
        first, second: every text's nearest others in each, the nearest first; of equally near ones the earlier text.
        changed: 1 where the nearest of one is not as near as the nearest in the other, else 0.
        recall: the share of a text's k nearest of one that are as near as the k-th in the other, mean of both ways.
    """

    first: Int[np.ndarray, "texts near"]
    second: Int[np.ndarray, "texts near"]
    changed: Float[np.ndarray, " texts"]
    recall: Float[np.ndarray, " texts"]


def agreement(one: Float[Tensor, "texts d"], other: Float[Tensor, "texts e"], k: int) -> Agreement:
    """The neighbours by cosine under both, for vectors at length one; k is less than the number of texts."""
    parts: list[tuple[Tensor, ...]] = []
    for start in range(0, len(one), _BLOCK):
        cosines = [_others(units, start) for units in (one, other)]
        ordered = [table.sort(dim=1, descending=True, stable=True) for table in cosines]
        near = [found.indices[:, : min(_FARTHER * k, len(one) - 1)] for found in ordered]
        met = [cosines[side].gather(1, near[1 - side][:, :k]) for side in (0, 1)]
        lost = [ordered[side].values[:, 0] - met[side][:, 0] > ROUNDING for side in (0, 1)]
        kept = [met[side] >= ordered[side].values[:, k - 1 : k] - ROUNDING for side in (0, 1)]
        recall = (kept[0].double().mean(dim=1) + kept[1].double().mean(dim=1)) / 2
        parts.append((near[0], near[1], (lost[0] | lost[1]).double(), recall))
    return Agreement(*(torch.cat(columns).numpy() for columns in zip(*parts, strict=True)))


def _others(units: Float[Tensor, "texts d"], start: int) -> Float[Tensor, "block texts"]:
    """The cosines of a block of texts with all, -infinity with themselves."""
    cosines = units[start : start + _BLOCK] @ units.T
    cosines[torch.arange(len(cosines)), torch.arange(start, start + len(cosines))] = -torch.inf
    return cosines


def sampling_errors(between: Agreement, calls: Sequence[Agreement], k: int, *, seed: Seed) -> tuple[float, float]:
    """The standard errors of the mean of `changed` and of `recall`, each less its mean over `calls`.

    Texts are queries and neighbours at once, so that their numbers are not independent. The standard deviation over
    random half samples, with each half as its own corpus, is the standard error of the whole (Wu 1986: leaving one
    text out at a time makes it twice as large for neighbours, which do not vary smoothly).
    """
    random = np.random.default_rng(derive_seed(seed, "half samples"))
    texts = len(between.first)
    found = []
    for _ in range(_HALVES):
        kept = np.zeros(texts, dtype=bool)
        kept[random.permutation(texts)[: texts // 2]] = True
        numbers = np.array([_numbers(each, kept, k) for each in (between, *calls)])
        found.append(numbers[0] - numbers[1:].mean(axis=0))
    nearest, recall = np.array(found).std(axis=0, ddof=1).tolist()
    return nearest, recall


def _numbers(found: Agreement, kept: Bool[np.ndarray, " texts"], k: int) -> tuple[float, float]:
    """The share of changed nearest ones and the recall among the kept texts."""
    one, other = (_first_kept(near[kept], kept, k) for near in (found.first, found.second))
    shared = (one[:, :, None] == other[:, None, :]).any(axis=2).mean()
    return float((one[:, 0] != other[:, 0]).mean()), float(shared)


def _first_kept(
    near: Int[np.ndarray, "half near"], kept: Bool[np.ndarray, " texts"], k: int
) -> Int[np.ndarray, "half k"]:
    order = np.argsort(~kept[near], axis=1, kind="stable")[:, :k]
    return np.take_along_axis(near, order, axis=1)
