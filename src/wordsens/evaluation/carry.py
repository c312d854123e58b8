"""A threshold after a change of the model: the one of the new model that keeps the old recall, and
the one that keeps the old false hits."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from wordsens.display.view import View
from wordsens.evaluation.calibrate import shortest_between
from wordsens.evaluation.pairs import (
    Progress,
    choose_pairs,
    require_threshold,
    scored_by,
    similarity_name,
)
from wordsens.evaluation.requirement import numbers_of
from wordsens.intervals import DRAWS, ENDS, share_estimate
from wordsens.models.load import load
from wordsens.models.model import COSINE
from wordsens.results import Answered, Estimate
from wordsens.seeds import Seed, derive_seed
from wordsens.text.pairs import Pairs

OLD, UNCHANGED, SAME_RECALL, SAME_FALSE_HITS = SETTINGS = (
    "old model",
    "unchanged",
    "same recall",
    "same false hits",
)

# Near-duplicates below which a recall says little.
_FEW = 20

# A threshold is below the lowest similarity that passes by this at most.
_STEP = 1e-4


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A model with a threshold.

    Attributes:
        name: of SETTINGS: the old model; the new one with the old number; and the new one with the
            threshold that keeps the recall, or the false hits.
        threshold: of a new number with its 95 % interval, a paired bootstrap over the pairs whose
            share it keeps.
        recall: the share of near-duplicates at or above it.
        false_hits: the share of opposites at or above it.
    """

    name: str
    threshold: Estimate
    recall: Estimate
    false_hits: Estimate


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class CarriedThreshold(Answered):
    """A threshold after a change of the model.

    Attributes:
        old, new: the models' names.
        identities: digests of their weights; "unknown" where they cannot be read.
        settings: one for each of SETTINGS.
        changes: which pairs were left out or replaced; the first line of the answer says so.
        notes: what a reader should know about the pairs.
    """

    old: str
    new: str
    identities: tuple[str, ...]
    settings: tuple[Setting, ...]
    changes: tuple[str, ...]
    notes: tuple[str, ...]

    def __getitem__(self, name: str) -> Setting:
        """The setting of that name."""
        return self.settings[SETTINGS.index(name)]

    def columns(self) -> dict[str, Any]:
        """One row per setting."""
        return {
            name: [getattr(setting, name) for setting in self.settings]
            for name in ("name", "threshold", "recall", "false_hits")
        }

    def to_dict(self) -> dict[str, Any]:
        """The figures, as the JSON document has them."""
        estimates = ("threshold", "recall", "false_hits")
        return {
            "old": self.old,
            "new": self.new,
            "identities": list(self.identities),
            "answer": list(self.answer),
            "settings": [numbers_of(vars(setting), *estimates) for setting in self.settings],
            "notes": [*self.changes, *self.notes],
        }

    def view(self) -> View:
        """The two thresholds and what the old number would do, and a row per setting."""
        from wordsens.findings.carry import view

        return view(self)


def carry_threshold(
    old: Any,
    new: Any,
    threshold: float,
    pairs: Pairs | None = None,
    seed: Seed = 0,
    *,
    progress: Progress = lambda done, total: None,
) -> CarriedThreshold:
    """The thresholds of a new model that keep the recall and the false hits of the old one, and
    what the old number would do.

    The threshold of the new model accepts as many near-duplicates, or opposites, as `threshold`
    does with the old model on the same pairs. Nothing is promised about other pairs: for a budget
    of false hits use `calibrate`.

    Args:
        old, new: whatever `check` takes.
        threshold: the similarity at or above which two texts count as the same with the old model.
        pairs: as for `check`.
        seed: of the bootstrap.
        progress: called with (done, total), in texts or pairs.

    Raises:
        InputError: no such model, a wrong pair, or a threshold that the old model cannot have.

    >>> def letters(texts):
    ...     return [[text.lower().count(letter) + 0.1 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
    >>> def vowels(texts):
    ...     return [[text.lower().count(letter) + 1.0 for letter in "aeiou"] for text in texts]
    >>> carried = carry_threshold(letters, vowels, 0.9)
    >>> carried["same recall"].threshold.value > 0.9
    True
    """  # noqa: E501
    models = load(old), load(new)
    require_threshold(threshold, similarity_name(models[0]) == COSINE)
    chosen, changes = choose_pairs(pairs)
    scored = scored_by(models, chosen, changes, progress=progress)
    near = scored.similarities[:, scored.near]
    opposite = scored.similarities[:, scored.opposite]
    kept = {
        SAME_RECALL: matched_threshold(threshold, *near, seed=seed),
        SAME_FALSE_HITS: matched_threshold(threshold, *opposite, seed=seed),
    }
    thresholds = {OLD: Estimate(threshold), UNCHANGED: Estimate(threshold), **kept}
    settings = []
    for name, number in thresholds.items():
        model = 0 if name == OLD else 1
        recall, false_hits = (
            share_estimate(int((scores[model] >= number.value).sum()), scores.shape[1])
            for scores in (near, opposite)
        )
        settings.append(Setting(name=name, threshold=number, recall=recall, false_hits=false_hits))
    few = f"{near.shape[1]} near-duplicates are few to keep a recall of; give {_FEW} or more"
    package = "these are the package's pairs; give pairs of your own"
    return CarriedThreshold(
        old=scored.models[0],
        new=scored.models[1],
        identities=scored.identities,
        settings=tuple(settings),
        changes=scored.changes,
        notes=(*[package] * (pairs is None), *[few] * (near.shape[1] < _FEW)),
    )


def matched_threshold(
    threshold: float,
    first: Float[np.ndarray, " pairs"],
    second: Float[np.ndarray, " pairs"],
    *,
    seed: Seed = 0,
) -> Estimate:
    """The threshold of the second model that accepts as many near-duplicates as `threshold` does
    with the first, with the 95 % interval of a paired bootstrap over the near-duplicates.

    >>> first, second = np.array([0.2, 0.6, 0.8]), np.array([0.5, 0.7, 0.9])
    >>> matched_threshold(0.6, first, second).value
    0.7
    """

    def matching(first: np.ndarray, second: np.ndarray) -> float:
        hits = int((first >= threshold).sum())
        ordered = np.sort(second)
        return float(ordered[-hits] if hits else ordered[-1] + _STEP)

    random = np.random.default_rng(derive_seed(seed, "matched threshold"))
    drawn = random.integers(len(first), size=(DRAWS, len(first)))
    draws = [matching(first[members], second[members]) for members in drawn]
    low, high = np.quantile(draws, ENDS, method="nearest").tolist()
    exact = matching(first, second)
    below = float(second[second < exact].max(initial=-math.inf))
    value = shortest_between(max(below, exact - _STEP), exact)
    return Estimate(value, min(low, value), max(high, value), n=len(first), method="bootstrap")
