"""Neighbours of texts in two models: how well the models agree, what differs, and the words that decide it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from wordsens.evaluation.difference import FAMILIES, NEAREST, NEIGHBOURS, RECALL, Difference
from wordsens.evaluation.texts import Progress, choose_words, common_span, encoded
from wordsens.evaluation.word_differences import Seen
from wordsens.models.black_box import Model
from wordsens.seeds import Seed, derive_seed
from wordsens.statistics.paired import Bounds, paired_means

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
"""Neighbours that are kept for each that counts: among 40, fewer than 10 of a half sample have a chance of .0003."""


@dataclass(frozen=True, kw_only=True)
class DecidingWord:
    """A word, and what its removal does to the margin by which the old neighbour leads the new one.

    Attributes:
        word, start, stop: the word and its place in the text.
        first, second: the change of cos(text, old) - cos(text, new) in each model without the word: one change.
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
        words: those whose removal moves the margin most differently; none of texts that were not taken apart.
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
    texts: Sequence[str], first: Seen, second: Seen, *, most: int, tolerance: float, seed: Seed
) -> tuple[list[Difference], list[ChangedNeighbour]]:
    """The share of texts whose first neighbour changed, the recall of neighbours, and the clearest changes.

    With N(i) a text's k nearest by cosine, the recall is |N_A(i) ∩ N_B(i)| / k; cosines within rounding are equal. Both
    numbers are set against the same between two calls of one model, mean over the two models: for models that can be
    exchanged the difference is 0 on average. The standard errors are
    those of `sampling_errors`, where they are larger than those of independent texts.

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
    calls = [agreement(observed.units, observed.again, k) for observed in (first, second)]
    changed, own_changed = between.changed, (calls[0].changed + calls[1].changed) / 2
    recall, own_recall = between.recall, (calls[0].recall + calls[1].recall) / 2
    saved = np.stack([changed - own_changed, recall - own_recall])
    saved = _spread(saved, sampling_errors(between, calls, k, seed=seed))
    # Without noise of their own, models can only differ in one direction.
    bounds: list[Bounds | None] = [(-float(own_changed.any()), 1.0), (-1.0, float((own_recall < 1).any()))]
    if torch.equal(first.units, second.units):
        bounds = [None, None]
    tested = paired_means(saved, np.full(2, tolerance), bounds, seed=seed)
    rows = [
        Difference(
            part=NEIGHBOURS, name=name, count=len(texts), first=float(own.mean()), second=float(both.mean()),
            difference=test.value, low=test.low, high=test.high, margin=tolerance, p=min(1.0, FAMILIES * test.p),
        )
        for name, own, both, test in zip(
            (NEAREST, RECALL), (own_changed, own_recall), (changed, recall), tested, strict=True
        )
    ]  # fmt: skip
    steady = (changed == 1) & (own_changed == 0)
    shown = [
        _changed(texts, (first, second), int(at), int(between.first[at, 0]), int(between.second[at, 0]))
        for at in np.flatnonzero(steady)
    ]
    return rows, sorted(shown, key=lambda one: -min(one.first, -one.second))[:LISTED]


def explained(
    changed: Sequence[ChangedNeighbour], models: tuple[Model, Model], observed: tuple[Seen, Seen], progress: Progress
) -> list[ChangedNeighbour]:
    """The changed texts with the words that decide between their old and their new neighbour in either model."""
    return [_explained(one, models, observed, progress) for one in changed]


def _spread(values: Float[np.ndarray, "rows texts"], errors: Sequence[float]) -> Float[np.ndarray, "rows texts"]:
    """The values, farther from their means where the standard error is larger than that of independent texts."""
    means = values.mean(axis=1, keepdims=True)
    plain = values.std(axis=1, ddof=1) / values.shape[1] ** 0.5
    stretch = [max(1.0, error / one) if one > 0 else 1.0 for error, one in zip(errors, plain, strict=True)]
    return means + (values - means) * np.array(stretch)[:, None]


def _changed(texts: Sequence[str], observed: tuple[Seen, Seen], at: int, old: int, new: int) -> ChangedNeighbour:
    first, second = (float(each.units[at] @ (each.units[old] - each.units[new])) for each in observed)
    return ChangedNeighbour(
        at=at, old=old, new=new, text=texts[at], old_text=texts[old], new_text=texts[new], first=first, second=second
    )


def _explained(
    one: ChangedNeighbour, models: tuple[Model, Model], observed: tuple[Seen, Seen], progress: Progress
) -> ChangedNeighbour:
    chosen = choose_words(one.text, WORDS, 0, common_span([model.read_span(one.text) for model in models]))
    margins = [
        normalize(encoded(model.encode, chosen.changed, progress), dim=1) @ (each.units[one.old] - each.units[one.new])
        for model, each in zip(models, observed, strict=True)
    ]
    words = [
        DecidingWord(
            word=word, start=span[0], stop=span[1], first=first - one.first, second=second - one.second,
            back=second > 0, away=first < 0,
        )
        for word, span, first, second in zip(
            chosen.words, chosen.spans, margins[0].tolist(), margins[1].tolist(), strict=True
        )
    ]  # fmt: skip
    return replace(one, words=tuple(sorted(words, key=lambda word: -abs(word.apart))))


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
        near = [result.indices[:, : min(_FARTHER * k, len(one) - 1)] for result in ordered]
        met = [cosines[side].gather(1, near[1 - side][:, :k]) for side in (0, 1)]
        lost = [ordered[side].values[:, 0] - met[side][:, 0] > ROUNDING for side in (0, 1)]
        saved = [met[side] >= ordered[side].values[:, k - 1 : k] - ROUNDING for side in (0, 1)]
        recall = (saved[0].double().mean(dim=1) + saved[1].double().mean(dim=1)) / 2
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
    result = []
    for _ in range(_HALVES):
        saved = np.zeros(texts, dtype=bool)
        saved[random.permutation(texts)[: texts // 2]] = True
        numbers = np.array([_numbers(each, saved, k) for each in (between, *calls)])
        result.append(numbers[0] - numbers[1:].mean(axis=0))
    nearest, recall = np.array(result).std(axis=0, ddof=1).tolist()
    return nearest, recall


def _numbers(result: Agreement, saved: Bool[np.ndarray, " texts"], k: int) -> tuple[float, float]:
    """The share of changed nearest ones and the recall among the kept texts."""
    one, other = (_first_kept(near[saved], saved, k) for near in (result.first, result.second))
    shared = (one[:, :, None] == other[:, None, :]).any(axis=2).mean()
    return float((one[:, 0] != other[:, 0]).mean()), float(shared)


def _first_kept(
    near: Int[np.ndarray, "half near"], saved: Bool[np.ndarray, " texts"], k: int
) -> Int[np.ndarray, "half k"]:
    order = np.argsort(~saved[near], axis=1, kind="stable")[:, :k]
    return np.take_along_axis(near, order, axis=1)
