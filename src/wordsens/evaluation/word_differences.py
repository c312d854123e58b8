"""The differences between two models when words are removed: by category, by word, and by a word's
rank."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean, quantiles

import numpy as np
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import normalize

from wordsens.evaluation.difference import FAMILIES, RANK, REMOVAL, WORD, Difference
from wordsens.evaluation.texts import LEAST_TEXTS, ChosenWords, Progress, encoded
from wordsens.intervals import Bounds, mean_changes, mean_estimate
from wordsens.models.model import Model
from wordsens.seeds import Seed
from wordsens.text.english import kind_of, place_of

EVERY = "every word"

_TIE = 1e-5
"""Removals this close, as a share of the text's largest, are equal: float32 moves one by some 1e-7
of it."""

Values = Float[np.ndarray, " texts"]
Place = tuple[int, int]
"""A text's number, and a word's among those that are removed from it."""


@dataclass(frozen=True)
class ModelAnswers:
    """One model's answers.

    Attributes:
        units: every text's vector at length one.
        again: the same of a second call, in other batches.
        repeat: the mean of ‖second vector - first‖² / ‖first‖²: twice the variance of one answer.
        removals: for every text whose words are removed, ‖f(text without the word) - f(text)‖ /
            ‖f(text)‖.
    """

    units: Float[Tensor, "texts d"]
    again: Float[Tensor, "texts d"]
    repeat: float
    removals: tuple[Float[np.ndarray, " _"], ...]

    @classmethod
    def of(
        cls,
        model: Model,
        texts: Sequence[str],
        chosen: Sequence[tuple[int, ChosenWords]],
        progress: Progress,
    ) -> "ModelAnswers":
        """Encode every text twice, and every chosen text, given with its number, without each of
        its words."""
        once = encoded(model.encode, texts, progress)
        twice = encoded(model.encode, texts[::-1], progress).flip(0)
        norms = once.norm(dim=1)
        moved = encoded(
            model.encode, [text for _, each in chosen for text in each.changed], progress
        )
        parts = moved.split([len(each.words) for _, each in chosen]) if chosen else ()
        removals = tuple(
            ((part - once[at]).norm(dim=1) / norms[at]).numpy()
            for (at, _), part in zip(chosen, parts, strict=True)
        )
        repeat = float(((twice - once).square().sum(dim=1) / norms.square()).mean())
        return cls(normalize(once, dim=1), normalize(twice, dim=1), repeat, removals)

    def inflation(self, values: Float[np.ndarray, " words"]) -> Float[np.ndarray, " words"]:
        """The part of each removal that the model's own noise makes: r - sqrt(r² - repeat), r where
        r² is less."""
        return values - np.sqrt(np.clip(values**2 - self.repeat, 0, None))


def encodings(texts: Sequence[str], chosen: Sequence[tuple[int, ChosenWords]]) -> int:
    """The number of texts that `ModelAnswers.of` encodes."""
    return 2 * len(texts) + sum(len(each.words) for _, each in chosen)


@dataclass(frozen=True)
class _PairedRow:
    """One number a text for both models, NaN where the text has none; `noise` is what their own
    noise may make.

    `step` is one place among the words of a text, as a rank.
    """

    part: str
    name: str
    first: Values
    second: Values
    noise: float = 0.0
    step: float = 0.0

    @property
    def count(self) -> int:
        return int((~np.isnan(self.first)).sum())

    @property
    def crosses(self) -> bool:
        """True where the interval of one model lies below 1/2, and that of the other above."""
        means = [
            mean_estimate(values[~np.isnan(values)], (0.0, 1.0))
            for values in (self.first, self.second)
        ]
        below = [mean.high is not None and mean.high < 0.5 for mean in means]
        above = [mean.low is not None and mean.low > 0.5 for mean in means]
        return (below[0] and above[1]) or (below[1] and above[0])


def word_differences(
    chosen: Sequence[ChosenWords],
    first: ModelAnswers,
    second: ModelAnswers,
    *,
    tolerance: float,
    seed: Seed,
) -> list[Difference]:
    """The differences of removals and ranks, tested together.

    A row of removals is the mean over texts of the text's own mean over its words of the category;
    a row of ranks that of the share of the text's other words whose removal moves it less.

    Args:
        chosen: the texts.
        first, second: of the models, with the removals in the order of `chosen`.
        tolerance: differences up to this share of the two models' mean do not count; of ranks, up
            to this number.
        seed: of the signs.
    """
    rows = [row for row in _rows(chosen, first, second) if row.count >= LEAST_TEXTS]
    if not rows:
        return []
    # Ranks move by whole places, and mostly by none: one more text may have moved by one.
    same = all(map(np.array_equal, first.removals, second.removals))
    bounds: list[Bounds | None] = [
        (-1.0, 1.0) if row.part == RANK and not same else None for row in rows
    ]
    moved = [float(np.nanmean(row.first) + np.nanmean(row.second)) / 2 for row in rows]
    margins = [
        tolerance if row.part == RANK else tolerance * mean + row.noise
        for row, mean in zip(rows, moved, strict=True)
    ]
    tests = mean_changes(
        np.stack([row.second - row.first for row in rows]),
        np.array(margins),
        bounds,
        [row.step for row in rows],
        seed=seed,
    )
    return [
        Difference(
            part=row.part,
            name=row.name,
            count=row.count,
            first=float(np.nanmean(row.first)),
            second=float(np.nanmean(row.second)),
            difference=test.value,
            low=test.low,
            high=test.high,
            margin=margin,
            p=min(1.0, FAMILIES * (1.0 if test.p is None else test.p)),
            crosses=row.part == RANK and row.crosses,
        )
        for row, margin, test in zip(rows, margins, tests, strict=True)
    ]


def _rows(
    chosen: Sequence[ChosenWords], first: ModelAnswers, second: ModelAnswers
) -> Iterator[_PairedRow]:
    row = partial(_row, len(chosen), (first, second))
    places = [(number, at) for number, text in enumerate(chosen) for at in range(len(text.words))]
    yield row(REMOVAL, EVERY, places)
    third = _third_by_length([text.length for text in chosen])
    labels: dict[str, Callable[[ChosenWords, int], str]] = {
        "kind": lambda text, at: kind_of(text.words[at]),
        "place": lambda text, at: f"{place_of(text.places[at])} of a text",
        "length": lambda text, at: third(text.length),
    }
    for category, label_of in labels.items():
        groups = _grouped(
            places, lambda number, at, label_of=label_of: label_of(chosen[number], at)
        )
        for label in sorted(groups) if len(groups) > 1 or category == "kind" else ():
            yield row(REMOVAL, label, groups[label])
    by_word = _grouped(places, lambda number, at: chosen[number].words[at].lower())
    frequent = {
        word: group
        for word, group in sorted(by_word.items())
        if len({text for text, _ in group}) >= LEAST_TEXTS
    }
    for word, group in frequent.items():
        yield row(WORD, word, group)
    removals = zip(first.removals, second.removals, strict=True)
    ranks = [_ranks(text, both) for text, both in zip(chosen, removals, strict=True)]
    for word in frequent:
        of_word = np.array([ranked.get(word, (np.nan, np.nan)) for ranked in ranks])
        step = fmean(1 / (len(ranked) - 1) for ranked in ranks if ranked)
        yield _PairedRow(RANK, word, of_word[:, 0], of_word[:, 1], step=step)


def _grouped(
    places: Sequence[Place], label_of: Callable[[int, int], str]
) -> dict[str, list[Place]]:
    groups: dict[str, list[Place]] = {}
    for number, at in places:
        groups.setdefault(label_of(number, at), []).append((number, at))
    return groups


def _row(
    texts: int,
    models: tuple[ModelAnswers, ModelAnswers],
    part: str,
    name: str,
    places: Sequence[Place],
) -> _PairedRow:
    """Both models' removals at these places, as means by text."""
    owners = np.array([number for number, _ in places])
    counts = np.bincount(owners, minlength=texts).astype(float)
    counts[counts == 0] = np.nan
    means, inflated = [], []
    for answers in models:
        values = np.array([answers.removals[number][at] for number, at in places])
        means.append(np.bincount(owners, values, texts) / counts)
        inflated.append(fmean(answers.inflation(values)))
    return _PairedRow(part, name, *means, noise=abs(inflated[1] - inflated[0]))


def _third_by_length(lengths: Sequence[int]) -> Callable[[int], str]:
    """The third among all texts of a text's length, named by its words."""
    low, high = (
        (int(end) for end in quantiles(lengths, n=3))
        if len(lengths) > 1
        else (lengths[0], lengths[0])
    )

    def third(length: int) -> str:
        if length <= low:
            return f"texts of up to {low} words"
        return (
            f"texts of {low + 1} to {high} words"
            if length <= high
            else f"texts of more than {high} words"
        )

    return third


def _ranks(
    text: ChosenWords, both: tuple[np.ndarray, np.ndarray]
) -> dict[str, tuple[float, float]]:
    """Every word's rank in both models, 0 to 1; a word that stands twice counts by its mean. None
    of a single word."""
    names = list(dict.fromkeys(word.lower() for word in text.words))
    if len(names) < 2:
        return {}
    at = {
        name: [place for place, word in enumerate(text.words) if word.lower() == name]
        for name in names
    }
    ranked = []
    for removals in both:
        values = np.array([removals[at[name]].mean() for name in names])
        apart = values[:, None] - values
        apart[np.abs(apart) <= _TIE * values.max()] = 0
        below = (np.sign(apart).sum(axis=1) + len(names) - 1) / 2
        ranked.append(below / (len(names) - 1))
    return {
        name: (float(ranked[0][place]), float(ranked[1][place])) for place, name in enumerate(names)
    }
