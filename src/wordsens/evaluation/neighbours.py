"""Neighbours of texts in two models: how well the models agree, what differs, and the words that
decide it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from wordsens.evaluation.difference import FAMILIES, NEAREST, NEIGHBOURS, RECALL, Difference
from wordsens.evaluation.texts import choose_words, common_span, encoded
from wordsens.evaluation.word_differences import ModelAnswers
from wordsens.intervals import Bounds, mean_changes
from wordsens.models.model import Model
from wordsens.seeds import Seed, derive_seed

LEAST_TEXTS = 8
"""Fewer texts have hardly any neighbours to choose from."""

LISTED = 50
"""Texts with another first neighbour that are named, the clearest first."""

WORDS = 48
"""Words of a text that are removed to see which decides between two neighbours."""

ROUNDING = 1e-6
"""The difference of two cosines up to which they are one number: float32 moves one by some 1e-7."""

_BLOCK = 512
"""Texts whose cosines with all others are held at once."""

_HALVES = 200
"""Half samples: a standard error is then known to 5 %."""

_FARTHER = 4
"""Neighbours that are kept for each that counts: among 40, fewer than 10 of a half sample have a
chance of .0003."""


@dataclass(frozen=True, kw_only=True)
class DecidingWord:
    """A word, and what its removal does to the margin by which the old neighbour leads the new one.

    Attributes:
        word, start, stop: the word and its place in the text.
        first, second: the change of cos(text, old) - cos(text, new) in each model without the word:
            one change.
        back: whether the second model has the old neighbour nearer without it.
        away: whether the first model has the new neighbour nearer without it.
    """

    word: str
    start: int
    stop: int
    first: float
    second: float
    back: bool
    away: bool

    @property
    def apart(self) -> float:
        """The difference between the models in what the word does to the margin."""
        return self.second - self.first


@dataclass(frozen=True, kw_only=True)
class ChangedNeighbour:
    """A text whose first neighbour is another in the second model, and in both calls of each model.

    Attributes:
        at, old, new: the numbers of the text and its two neighbours.
        text, old_text, new_text: the texts.
        first: the margin cos(text, old) - cos(text, new) in the first model, positive.
        second: the same in the second model, negative.
        words: those whose removal moves the margin most differently; none of texts that were not
            taken apart.
    """

    at: int
    old: int
    new: int
    text: str
    old_text: str
    new_text: str
    first: float
    second: float
    words: tuple[DecidingWord, ...] = ()


def neighbour_differences(
    texts: Sequence[str],
    first: ModelAnswers,
    second: ModelAnswers,
    *,
    most: int,
    tolerance: float,
    seed: Seed,
) -> tuple[list[Difference], list[ChangedNeighbour]]:
    """The share of texts whose first neighbour changed, the recall of neighbours, and the clearest
    changes.

    With N(i) a text's k nearest by cosine, the recall is |N_A(i) ∩ N_B(i)| / k; cosines within
    rounding are equal. Both numbers are set against the same between two calls of one model, mean
    over the two models: for models that can be exchanged the difference is 0 on average. The
    standard errors are those of `sampling_errors`, where they are larger than those of independent
    texts.

    Args:
        texts: all texts.
        first, second: of the models.
        most: k, at most a quarter of the other texts.
        tolerance: differences up to this do not count.
        seed: of the signs.
    """
    if len(texts) < LEAST_TEXTS:
        return [], []
    k = max(1, min(most, (len(texts) - 1) // 4))
    between = agreement(first.units, second.units, k)
    calls = [agreement(answers.units, answers.again, k) for answers in (first, second)]
    within_changed, within_recall = (
        (getattr(calls[0], name) + getattr(calls[1], name)) / 2 for name in ("changed", "recall")
    )
    differences = np.stack([between.changed - within_changed, between.recall - within_recall])
    errors = sampling_errors(between, calls, k, seed=seed)
    independent = (differences.std(axis=1, ddof=1) / differences.shape[1] ** 0.5).tolist()
    # Farther from their means where the standard error is larger than that of independent texts.
    stretch = [
        max(1.0, error / plain) if plain > 0 else 1.0
        for error, plain in zip(errors, independent, strict=True)
    ]
    means = differences.mean(axis=1, keepdims=True)
    spread = means + (differences - means) * np.array(stretch)[:, None]
    # Without noise of their own, models can only differ in one direction.
    bounds: list[Bounds | None] = [
        (-float(within_changed.any()), 1.0),
        (-1.0, float((within_recall < 1).any())),
    ]
    if torch.equal(first.units, second.units):
        bounds = [None, None]
    tests = mean_changes(spread, np.full(2, tolerance), bounds, seed=seed)
    numbers = ((NEAREST, within_changed, between.changed), (RECALL, within_recall, between.recall))
    rows = [
        Difference(
            part=NEIGHBOURS,
            name=name,
            count=len(texts),
            first=float(within.mean()),
            second=float(across.mean()),
            difference=test.value,
            low=test.low,
            high=test.high,
            margin=tolerance,
            p=min(1.0, FAMILIES * (1.0 if test.p is None else test.p)),
        )
        for (name, within, across), test in zip(numbers, tests, strict=True)
    ]
    changed = []
    for at in np.flatnonzero((between.changed == 1) & (within_changed == 0)).tolist():
        old, new = int(between.first[at, 0]), int(between.second[at, 0])
        margins = [
            float(each.units[at] @ (each.units[old] - each.units[new])) for each in (first, second)
        ]
        changed.append(
            ChangedNeighbour(
                at=at,
                old=old,
                new=new,
                text=texts[at],
                old_text=texts[old],
                new_text=texts[new],
                first=margins[0],
                second=margins[1],
            )
        )
    return rows, sorted(changed, key=lambda neighbour: -min(neighbour.first, -neighbour.second))[
        :LISTED
    ]


def with_words(
    neighbour: ChangedNeighbour, models: Sequence[Model], answers: Sequence[ModelAnswers]
) -> ChangedNeighbour:
    """The changed text with the words that decide between its old and its new neighbour in either
    model."""
    text = neighbour.text
    chosen = choose_words(text, WORDS, 0, common_span([model.read_span(text) for model in models]))
    margins = [
        normalize(encoded(model.encode, chosen.changed), dim=1)
        @ (each.units[neighbour.old] - each.units[neighbour.new])
        for model, each in zip(models, answers, strict=True)
    ]
    words = [
        DecidingWord(
            word=word,
            start=start,
            stop=stop,
            first=first - neighbour.first,
            second=second - neighbour.second,
            back=second > 0,
            away=first < 0,
        )
        for word, (start, stop), first, second in zip(
            chosen.words, chosen.spans, margins[0].tolist(), margins[1].tolist(), strict=True
        )
    ]
    return replace(neighbour, words=tuple(sorted(words, key=lambda word: -abs(word.apart))))


@dataclass(frozen=True)
class Agreement:
    """Neighbours under two sets of vectors of the same texts.

    Attributes:
        first, second: every text's nearest others in each, the nearest first; of equally near ones
            the earlier text.
        changed: 1 where the nearest of one is not as near as the nearest in the other, else 0.
        recall: the share of a text's k nearest of one that are as near as the k-th in the other,
            mean of both ways.
    """

    first: Int[np.ndarray, "texts near"]
    second: Int[np.ndarray, "texts near"]
    changed: Float[np.ndarray, " texts"]
    recall: Float[np.ndarray, " texts"]


def agreement(
    first: Float[Tensor, "texts d"], second: Float[Tensor, "texts e"], k: int
) -> Agreement:
    """The neighbours by cosine under both, for vectors at length one; k is less than the number of
    texts."""
    parts: list[tuple[Tensor, ...]] = []
    for start in range(0, len(first), _BLOCK):
        cosines = [units[start : start + _BLOCK] @ units.T for units in (first, second)]
        for block in cosines:  # no text is its own neighbour
            block[torch.arange(len(block)), torch.arange(start, start + len(block))] = -torch.inf
        ordered = [block.sort(dim=1, descending=True, stable=True) for block in cosines]
        near = [block.indices[:, : min(_FARTHER * k, len(first) - 1)] for block in ordered]
        # Each model's cosines with the other's k nearest.
        of_other = [cosines[side].gather(1, near[1 - side][:, :k]) for side in (0, 1)]
        changed = [ordered[side].values[:, 0] - of_other[side][:, 0] > ROUNDING for side in (0, 1)]
        shared = [
            (of_other[side] >= ordered[side].values[:, k - 1 : k] - ROUNDING).double()
            for side in (0, 1)
        ]
        recall = (shared[0].mean(dim=1) + shared[1].mean(dim=1)) / 2
        parts.append((near[0], near[1], (changed[0] | changed[1]).double(), recall))
    return Agreement(*(torch.cat(columns).numpy() for columns in zip(*parts, strict=True)))


def sampling_errors(
    between: Agreement, calls: Sequence[Agreement], k: int, *, seed: Seed
) -> tuple[float, float]:
    """The standard errors of the mean of `changed` and of `recall`, each less its mean over
    `calls`.

    Texts are queries and neighbours at once, so that their numbers are not independent. The
    standard deviation over random half samples, with each half as its own corpus, is the standard
    error of the whole (Wu 1986: leaving one text out at a time makes it twice as large for
    neighbours, which do not vary smoothly).
    """
    random = np.random.default_rng(derive_seed(seed, "half samples"))
    texts = len(between.first)
    draws = []
    for _ in range(_HALVES):
        in_half = np.zeros(texts, dtype=bool)
        in_half[random.permutation(texts)[: texts // 2]] = True
        numbers = np.array([_of_half(each, in_half, k) for each in (between, *calls)])
        draws.append(numbers[0] - numbers[1:].mean(axis=0))
    nearest, recall = np.array(draws).std(axis=0, ddof=1).tolist()
    return nearest, recall


def _of_half(agreed: Agreement, in_half: Bool[np.ndarray, " texts"], k: int) -> tuple[float, float]:
    """The share of changed nearest ones and the recall among the texts of a half."""
    nearest = []
    for near in (agreed.first[in_half], agreed.second[in_half]):
        order = np.argsort(~in_half[near], axis=1, kind="stable")[:, :k]
        nearest.append(np.take_along_axis(near, order, axis=1))
    first, second = nearest
    shared = (first[:, :, None] == second[:, None, :]).any(axis=2).mean()
    return float((first[:, 0] != second[:, 0]).mean()), float(shared)
