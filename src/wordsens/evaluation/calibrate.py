"""A threshold for a budget of false hits: the smallest that keeps it with confidence, and what it
costs in near-duplicates."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from wordsens.display.numbers import plural
from wordsens.display.view import View
from wordsens.errors import InputError, argument
from wordsens.evaluation.pairs import (
    Progress,
    ScoredPairs,
    choose_pairs,
    prompted,
    scored_by,
)
from wordsens.evaluation.requirement import numbers_of
from wordsens.intervals import LEVEL, least_count, share_at_most, share_estimate
from wordsens.models.load import load
from wordsens.results import Answered, Estimate
from wordsens.text.pairs import DRAFT, ORIGIN, Pair, Pairs

# Of the table.
BUDGETS = (0.005, 0.01, 0.02, 0.05, 0.1)


@dataclass(frozen=True, kw_only=True)
class OperatingPoint:
    """The smallest threshold under a budget; all but the budget are None where there is none.

    Attributes:
        budget: the share of unwanted ones that may pass.
        threshold: the score at or above which a member passes, in as few decimals as let the same
            members pass.
        hits: the unwanted members of the sample that pass.
        limit: the upper limit of their share, of at most the budget.
        recall: the share of near-duplicates that pass.
    """

    budget: float
    threshold: float | None = None
    hits: int | None = None
    limit: float | None = None
    recall: Estimate | None = None


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Calibrated(Answered):
    """A threshold for a budget.

    Attributes:
        budget: the share of opposites, or of new questions, that may pass.
        confidence: of every upper limit.
        guard: whether a pair that the guard calls different is no hit.
    """

    budget: float
    confidence: float
    guard: bool

    def point_at(self, budget: float, *, guard: bool) -> OperatingPoint:
        """The smallest threshold under a budget, with the guard behind it or without it."""
        raise NotImplementedError

    @property
    def point(self) -> OperatingPoint:
        """The threshold with its hits, their limit and its recall."""
        return self.point_at(self.budget, guard=self.guard)

    @property
    def threshold(self) -> float | None:
        """The similarity at or above which two texts count as the same; None where no threshold
        keeps the budget."""
        return self.point.threshold

    @property
    def needed(self) -> int:
        """How many opposites, or new questions, the budget needs if none of them passes."""
        return least_count(self.budget, self.confidence)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Calibration(Calibrated):
    """A threshold for a budget of false hits.

    Attributes:
        scored: the pairs, their similarities, the guard's verdicts, and what was left out.
        notes: what a reader should know about the pairs.
    """

    scored: ScoredPairs
    notes: tuple[str, ...]

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.scored.models[0]

    def point_at(self, budget: float, *, guard: bool) -> OperatingPoint:
        """The smallest threshold under a budget, with the guard behind it or without it."""
        scores, scored = self._scores(guard), self.scored
        return operating_point(
            scores[scored.opposite], scores[scored.near], budget, confidence=self.confidence
        )

    def _scores(self, guard: bool) -> np.ndarray:
        values = self.scored.values
        return np.where(self.scored.different, -np.inf, values) if guard else values

    @property
    def kinds(self) -> list[dict[str, Any]]:
        """How many opposites of each kind there are and how many of them pass, with the exact upper
        limit of the share that passes; empty without a threshold."""
        threshold, scores = self.threshold, self._scores(self.guard)
        rows = []
        for kind, members in self.scored.opposites.items() if threshold is not None else ():
            hits, pairs = int((scores[members] >= threshold).sum()), int(members.sum())
            limit = share_at_most(hits, pairs, self.confidence)
            rows.append({"kind": kind, "pairs": pairs, "hits": hits, "limit": limit})
        return rows

    @property
    def distances(self) -> dict[str, float] | None:
        """The threshold as a distance, as `as_distances` gives it."""
        return as_distances(self.threshold, self.scored.cosines)

    @property
    def budgets(self) -> list[tuple[OperatingPoint, OperatingPoint]]:
        """The points of several budgets, without the guard and with it."""
        budgets = sorted({*BUDGETS, self.budget})
        return [
            (self.point_at(budget, guard=False), self.point_at(budget, guard=True))
            for budget in budgets
        ]

    def columns(self) -> dict[str, Any]:
        """One row per budget, without the guard and with it."""
        rows = [
            {"guard": guard, **vars(points[guard])}
            for points in self.budgets
            for guard in (False, True)
        ]
        return {name: [row[name] for row in rows] for name in rows[0]}

    def to_dict(self) -> dict[str, Any]:
        """The figures, as the JSON document has them."""
        budgets = [
            {
                "alone": numbers_of(vars(alone), "recall"),
                "guarded": numbers_of(vars(guarded), "recall"),
            }
            for alone, guarded in self.budgets
        ]
        return {
            "answer": list(self.answer),
            "confidence": self.confidence,
            "guard": self.guard,
            **numbers_of(vars(self.point), "recall"),
            "distances": self.distances,
            "opposites": int(self.scored.opposite.sum()),
            "needed": self.needed,
            "near_duplicates": int(self.scored.near.sum()),
            "kinds": self.kinds,
            "budgets": budgets,
            "notes": [*self.scored.changes, *self.notes],
        }

    def view(self, distance: str = "") -> View:
        """The answer, also as a `distance` ("l2" or "cosine"), the kinds of opposites, and what
        other budgets cost."""
        from wordsens.findings.calibrate import view

        return view(self, distance)


def calibrate(
    model: Any,
    pairs: Pairs | None,
    budget: float = 0.02,
    *,
    confidence: float = 0.95,
    guard: bool = False,
    prompt_names: Sequence[str] = (),
    progress: Progress = lambda done, total: None,
) -> Calibration:
    """The smallest threshold at which at most the budget of opposites pass as the same, at the
    given confidence.

    It is the smallest similarity at and above which the exact upper limit (Clopper and Pearson,
    one-sided) of the share of opposites that pass is at most the budget. Since that share falls as
    the threshold rises, the true share is above the budget in at most 1 - confidence of all samples
    of pairs, and no second sample is needed (risk-controlling prediction sets, Bates et al. 2021).
    This assumes that the pairs in use are drawn like these. Nothing is random.

    Args:
        model: whatever `check` takes.
        pairs: yours: a file, or rows (kind, first, second, same); None for the package's own.
        budget: the share of opposites that may pass.
        confidence: of the limit.
        guard: whether `wordsens.guard` checks the pairs that pass: a pair that it calls different
            does not pass.
        prompt_names: of a SentenceTransformer: the prompt of all texts, or those of the first and
            the second ones.
        progress: called with (done, total), in texts or pairs.

    Raises:
        InputError: no such model, a wrong row, or a budget or confidence that is no share.

    >>> def letters(texts):
    ...     return [[text.lower().count(letter) + 0.1 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
    >>> pairs = [("switch", f"Open door {n}.", f"Shut door {n}.", False) for n in range(90)]
    >>> pairs += [("near", f"Where is door {n}?", f"Where's door {n}?", True) for n in range(30)]
    >>> result = calibrate(letters, pairs, 0.05)
    >>> result.threshold, result.point.hits, result.point.recall.value
    (0.97, 0, 1.0)
    """  # noqa: E501
    require_share(budget=budget, confidence=confidence)
    chosen, changes = choose_pairs(pairs)
    chosen, drafted = _without_drafts(chosen)
    model = prompted(load(model), prompt_names)
    changes += drafted
    scored = scored_by([model], chosen, changes, guard=True, progress=progress)
    note = (
        "these are the package's pairs: the threshold is for opposites like them; give pairs of "
        "your own"
    )
    return Calibration(
        scored=scored,
        budget=float(budget),
        confidence=float(confidence),
        guard=guard,
        notes=() if pairs is not None else (note,),
    )


def require_share(**shares: float) -> None:
    """InputError for an argument that is no share above 0 and below 1."""
    for name, share in shares.items():
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
            raise InputError(
                f"{argument(name)} (={share!r}) must be a share above 0 and below 1, such as .02 "
                "for 2 %"
            )


def as_distances(threshold: float | None, cosines: bool) -> dict[str, float] | None:
    """A threshold as the largest distance of unit vectors: `l2` squared, 2 - 2c, and `cosine`,
    1 - c; None without a threshold, or where it is no cosine."""
    if threshold is None or not cosines:
        return None
    return {"l2": round(2 - 2 * threshold, 14), "cosine": round(1 - threshold, 14)}


def _without_drafts(pairs: list[Pair]) -> tuple[list[Pair], list[str]]:
    """The pairs without drafted opposites, and what was left out.

    A promise from drafts would be circular: the guard knows the rules that wrote them, and no user
    asks by rule.

    Raises:
        InputError: all opposites are drafted.
    """
    kept = [pair for pair in pairs if not pair.drafted]
    drafted = len(pairs) - len(kept)
    if drafted and all(pair.same for pair in kept):
        raise InputError(
            f"{argument('pairs')}: all {drafted} opposites were drafted by rule ({ORIGIN} = "
            f"{DRAFT}), and a threshold promised on them alone would let other wrong hits through; "
            "add pairs of different questions, on the same topic and on others, that must not "
            "share an answer"
        )
    return kept, [f"{plural(drafted, 'drafted opposite')} left out"] if drafted else []


def operating_point(
    unwanted: Float[np.ndarray, " m"],
    wanted: Float[np.ndarray, " n"],
    budget: float,
    *,
    confidence: float = LEVEL,
) -> OperatingPoint:
    """The smallest score at and above which every threshold has an upper limit of the share of
    unwanted ones that pass of at most the budget, and that keeps some wanted ones. A score of
    -infinity never passes.

    The limit is Clopper and Pearson's, one-sided. Fewer pass as the threshold rises, so that the
    share in truth is above the budget in at most 1 - confidence of all samples, though the
    threshold is chosen on the same sample (Bates et al. 2021, Distribution-free, risk-controlling
    prediction sets, Theorem 1).

    >>> unwanted, wanted = np.linspace(0, 0.9, 400), np.linspace(0.5, 1, 100)
    >>> point = operating_point(unwanted, wanted, 0.02)
    >>> point.threshold, point.hits, round(point.limit, 4), point.recall.value
    (0.8939, 3, 0.0193, 0.22)
    """
    excluded = largest_excluded(unwanted, budget, confidence)
    if not (wanted > excluded).any():
        return OperatingPoint(budget=budget)
    scores = np.concatenate([unwanted, wanted])
    threshold = shortest_between(excluded, float(scores[scores > excluded].min()))
    hits, passing = int((unwanted >= threshold).sum()), int((wanted >= threshold).sum())
    return OperatingPoint(
        budget=budget,
        threshold=threshold,
        hits=hits,
        limit=share_at_most(hits, len(unwanted), confidence),
        recall=share_estimate(passing, len(wanted)),
    )


def largest_excluded(
    unwanted: Float[np.ndarray, " m"], budget: float, confidence: float = LEVEL
) -> float:
    """The largest score that is too low for a threshold: at it one more passes than the budget
    allows at this confidence. Infinity where none may pass and there are too few."""
    count = len(unwanted)
    allowed = (
        bisect_right(range(count), budget, key=lambda hits: share_at_most(hits, count, confidence))
        - 1
    )
    return float(np.sort(unwanted)[count - 1 - allowed]) if allowed >= 0 else math.inf


def shortest_between(above: float, most: float) -> float:
    """The number of fewest decimals, two at least, that is above the one and at most the other.

    >>> shortest_between(0.8291, 0.82996), shortest_between(0.5, 0.9)
    (0.8299, 0.9)
    """
    for decimals in range(2, 16):
        number = math.floor(most * 10**decimals) / 10**decimals
        if above < number <= most:
            return number
    return most
