"""A threshold without labels: how often a new question would get the answer to another question.
One half of the given questions fills a cache, and the other half is looked up in it."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from wordsens.display.numbers import plural
from wordsens.display.view import View
from wordsens.errors import InputError, argument
from wordsens.evaluation.calibrate import (
    Calibrated,
    OperatingPoint,
    as_distances,
    largest_excluded,
    require_share,
    shortest_between,
)
from wordsens.evaluation.guard import guard as judge
from wordsens.evaluation.pairs import (
    DIGITS,
    SIMILARITY_OF,
    Progress,
    prompted,
    similarity_name,
    similarity_of,
)
from wordsens.evaluation.texts import counting, encoded, readable_texts
from wordsens.intervals import share_at_most
from wordsens.models.embedding import Texts
from wordsens.models.load import load
from wordsens.models.model import COSINE
from wordsens.models.pairs import PairModel
from wordsens.seeds import Seed, derive_seed
from wordsens.text.pairs import Pair, Pairs, read_pairs

# Thresholds of the table, and the share of new questions that hit at the first of them, in budgets.
_ROWS, _WIDEST = 8, 5

# New questions whose similarities with the whole cache are held at once.
_BLOCK = 512

# A threshold is above the largest similarity that is too low by this share of it at most.
_STEP = 1e-4


LABELLED = "labelled different"
"""In the place of the guard's verdict, where a label says so."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Collisions(Calibrated):
    """How often a new question would get the answer to another one, by the threshold.

    Attributes:
        model: its name.
        identity: a digest of its weights; "unknown" where they cannot be read.
        score: what is compared: "cosine", or another similarity.
        asked: the new questions, those with the nearest neighbour in the cache first.
        nearest: for each the nearest question in the cache; with the guard, the nearest one that
            it does not call different.
        verdicts: of the guard on the two, or LABELLED.
        similarities: for each, the similarity of its nearest question in the cache, without the
            guard and with it; then the same for a quarter of the cache; -infinity where there is
            none.
        cached: how many questions the cache and the quarter hold.
        repeated: the similarities of the pairs that you labelled as the same; these are no hits.
        differing: how many pairs you labelled as different.
        changes: which texts and labels were left out; the first line of the answer says so.
    """

    model: str
    identity: str
    score: str
    asked: tuple[str, ...]
    nearest: tuple[str, ...]
    verdicts: tuple[str, ...]
    similarities: Float[np.ndarray, "4 asked"]
    cached: tuple[int, int]
    repeated: Float[np.ndarray, " pairs"]
    differing: int
    changes: tuple[str, ...]

    def point_at(self, budget: float, *, guard: bool) -> OperatingPoint:
        """The smallest threshold under a budget, with the guard behind it or without it."""
        excluded = max(
            largest_excluded(self._scores(guard), budget, self.confidence),
            float(self._scores(guard=False).min()),
        )
        most = excluded + _STEP * max(1.0, abs(excluded))
        if not np.isfinite(excluded) or (self.score == COSINE and most > 1):
            return OperatingPoint(budget=budget)
        threshold = shortest_between(excluded, most)
        hits, limit = self.hits(threshold, guard=guard)
        return OperatingPoint(budget=budget, threshold=threshold, hits=hits, limit=limit)

    def hits(self, threshold: float, *, guard: bool, quarter: bool = False) -> tuple[int, float]:
        """How many new questions hit at a threshold, and the upper limit of their true share
        (Clopper and Pearson, exact for a given cache)."""
        hits = int((self._scores(guard, quarter) >= threshold).sum())
        return hits, share_at_most(hits, len(self.asked), self.confidence)

    def _scores(self, guard: bool, quarter: bool = False) -> Float[np.ndarray, " asked"]:
        return self.similarities[2 * quarter + guard]

    @property
    def reached(self) -> int:
        """How many of the pairs that you labelled as the same reach the threshold."""
        threshold = np.inf if self.threshold is None else self.threshold
        return int((self.repeated >= threshold).sum())

    @property
    def distances(self) -> dict[str, float] | None:
        """The threshold as the largest distance between unit vectors, as in `Calibration`."""
        return as_distances(self.threshold, self.score == COSINE)

    @property
    def thresholds(self) -> list[float]:
        """Round thresholds, starting where five times the budget would hit, and the thresholds that
        keep the budget."""
        scores = np.sort(self._scores(guard=False))
        first = scores[int(len(scores) * max(0.0, 1 - _WIDEST * self.budget))]
        steps = np.linspace(first, scores[-1], _ROWS)
        decimals = max(0, 1 - int(np.floor(np.log10(max(1e-12, scores[-1] - first)))))
        points = [self.point_at(self.budget, guard=guard) for guard in (False, True)]
        chosen = [point.threshold for point in points if point.threshold is not None]
        return sorted({*steps.round(decimals).tolist(), *chosen})

    def columns(self) -> dict[str, Any]:
        """One row per threshold: the share of new questions that hit and its upper limit, for the
        cache and its quarter, without the guard and with it."""
        columns: dict[str, list[float]] = {"threshold": self.thresholds}
        for quarter in (False, True):
            for guard in (False, True):
                name = " ".join(("quarter" if quarter else "cache", *["guarded"] * guard))
                rows = [self.hits(t, guard=guard, quarter=quarter) for t in self.thresholds]
                columns[name] = [hits / len(self.asked) for hits, _ in rows]
                columns[f"{name} at most"] = [limit for _, limit in rows]
        return columns

    def worst(self, most: int = 20) -> list[dict[str, Any]]:
        """The highest hits, those that the guard calls the same first: the new question, the one in
        the cache, the guard's verdict (or LABELLED) and their similarity."""
        scores = self._scores(self.guard).tolist()
        rows: list[dict[str, Any]] = [
            {"first": asked, "second": nearest, "guard": verdict, "similarity": score}
            for asked, nearest, verdict, score in zip(
                self.asked, self.nearest, self.verdicts, scores, strict=True
            )
            if nearest
        ]
        return sorted(rows, key=lambda row: row["guard"] != "same")[:most]

    def to_label(self, most: int = 20) -> list[dict[str, Any]]:
        """The pairs whose labels would help most: the worst hits without a label, with an empty
        `same`. A pair that you label as the same and give back in `pairs` is no longer a hit, which
        lowers the threshold."""
        rows = self.worst(len(self.asked))
        return [{"same": "", **row} for row in rows if row["guard"] != LABELLED][:most]

    def to_dict(self) -> dict[str, Any]:
        """The figures, as the JSON document has them."""
        columns = self.columns()
        cells = zip(*columns.values(), strict=True)
        rows = [dict(zip(columns, row, strict=True)) for row in cells]
        return {
            "answer": list(self.answer),
            "confidence": self.confidence,
            "guard": self.guard,
            **{name: value for name, value in vars(self.point).items() if name != "recall"},
            "distances": self.distances,
            "asked": len(self.asked),
            "cached": list(self.cached),
            "needed": self.needed,
            "labelled": {
                "same": len(self.repeated),
                "reached": self.reached,
                "different": self.differing,
            },
            "thresholds": rows,
            "worst": self.worst(),
            "notes": list(self.changes),
        }

    def view(self, distance: str = "") -> View:
        """The answer, also as a `distance` ("l2" or "cosine"), the share that hits by the
        threshold, and the worst hits."""
        from wordsens.findings.collisions import view

        return view(self, distance)


def collisions(
    model: Any,
    texts: Texts,
    budget: float = 0.02,
    *,
    pairs: Pairs | None = None,
    confidence: float = 0.95,
    guard: bool = False,
    seed: Seed = 0,
    prompt_names: Sequence[str] = (),
    progress: Progress = lambda done, total: None,
) -> Collisions:
    """A threshold for a cache from questions without labels, no two of which mean the same.

    One half of them, drawn by the seed, is the cache; the other half asks. A new question hits
    where its nearest question in the cache is at or above the threshold, and each hit is a wrong
    answer. Given the cache, the hits of questions that are drawn like these are binomial, so that
    the upper limit of their share (Clopper and Pearson, one-sided) is exact, and holds at
    the threshold that was chosen on them too, as in `calibrate`. The share grows with the cache.

    Args:
        model: a model of texts, as `as_model` takes it.
        texts: distinct questions; equal ones count once.
        budget: the share of new questions that may hit.
        pairs: labelled pairs, such as those of `to_label`: those that mean the same are no hits.
            Rows without a label are passed over.
        confidence: of the limit.
        guard: if True, a question that `wordsens.guard` calls different from the new one is no hit.
        seed: of the halves, and of the quarter of the cache that is also searched alone.
        prompt_names: of a SentenceTransformer: the prompt of all texts, or those of the cache and
            of the new questions.
        progress: called with (done, total), in texts.

    Raises:
        InputError: no such model, fewer than six different texts, a wrong pair, or a budget or
            confidence that is no share.

    >>> def letters(texts):
    ...     return [[text.lower().count(letter) + 0.1 for letter in "abcdefghijklmnopqrstuvwxyz"] for text in texts]
    >>> words = [first + last for first in ("ba", "cu", "di", "fo", "ge") for last in "klmnprstvwxz"]
    >>> found = collisions(letters, words, 0.2)
    >>> len(found.asked), found.cached, found.point.limit <= 0.2
    (30, (30, 7), True)
    """  # noqa: E501
    require_share(budget=budget, confidence=confidence)
    labelled = [] if pairs is None else read_pairs(pairs, unlabelled=False)
    loaded = prompted(load(model), prompt_names)
    if isinstance(loaded, PairModel):
        raise InputError(
            f"{argument('model')} scores pairs and gives texts no vectors; give it labelled pairs "
            f"as {argument('pairs')} alone"
        )
    sides = loaded if isinstance(loaded, tuple) else (loaded, loaded)
    kept, changes = readable_texts(texts, sides)
    random = np.random.default_rng(derive_seed(seed, "cache"))
    order = [kept[place] for place in random.permutation(len(kept))]
    cache: list[str] = order[: len(kept) // 2]
    asked: list[str] = order[len(kept) // 2 :]
    quarter = max(1, len(cache) // 4)
    places = {_plain(text): place for place, text in enumerate(cache)}
    count = counting(progress, len(kept))
    rows = [
        encoded(side.encode, part, count) for side, part in zip(sides, (cache, asked), strict=True)
    ]
    compare = SIMILARITY_OF[similarity_of(loaded)]
    labels, differing, unknown = _labels(labelled, kept)
    nearest: list[_Nearest] = []
    repeated: list[float] = []
    for start in range(0, len(asked), _BLOCK):
        block = compare(rows[1][start : start + _BLOCK], rows[0]).numpy().round(DIGITS)
        for question, similarities in zip(asked[start : start + _BLOCK], block, strict=True):
            partners = labels.get(_plain(question), {})
            same = [places[text] for text in partners if partners[text] and text in places]
            repeated += similarities[same].tolist()
            similarities[same] = -np.inf
            found = _nearest(question, cache, similarities, quarter, guard=guard)
            if _plain(found.cached) in partners:
                found = found._replace(verdict=LABELLED)
            nearest.append(found)
    progress(len(kept), len(kept))
    nearest.sort(key=lambda each: -each.similarities[guard])
    return Collisions(
        model=sides[0].name,
        identity=sides[0].identity(),
        score=similarity_name(loaded),
        asked=tuple(each.asked for each in nearest),
        nearest=tuple(each.cached for each in nearest),
        verdicts=tuple(each.verdict for each in nearest),
        similarities=np.array([each.similarities for each in nearest]).T,
        cached=(len(cache), quarter),
        budget=float(budget),
        confidence=float(confidence),
        guard=guard,
        repeated=np.array(repeated),
        differing=differing,
        changes=(*changes, *unknown),
    )


class _Nearest(NamedTuple):
    """A new question, its nearest question in the cache, the guard's verdict on the two, and the
    similarity of the nearest one in each use of the cache."""

    asked: str
    cached: str
    verdict: str
    similarities: list[float]


def _nearest(
    question: str,
    cache: list[str],
    similarities: Float[np.ndarray, " cached"],
    quarter: int,
    *,
    guard: bool,
) -> _Nearest:
    """What a new question finds in the cache, whose first questions are the quarter."""
    order = np.argsort(-similarities, kind="stable").tolist()
    order = [at for at in order if np.isfinite(similarities[at])]
    found = []
    for places in (order, [at for at in order if at < quarter]):
        kept = (at for at in places if judge(cache[at], question).verdict != "different")
        found += [next(iter(places), None), next(kept, None)]
    place = found[guard]
    cached = "" if place is None else cache[place]
    verdict = judge(cached, question).verdict if cached else ""
    values = [-np.inf if at is None else float(similarities[at]) for at in found]
    return _Nearest(question, cached, verdict, values)


def _labels(
    pairs: Sequence[Pair], texts: Sequence[str]
) -> tuple[dict[str, dict[str, bool]], int, list[str]]:
    """For each text whether it means the same as others, as far as labels say so; how many pairs
    differ; and how many pairs were left out, with a text that is not among these."""
    known = {_plain(text) for text in texts}
    kept = [pair for pair in pairs if pair.texts <= known]
    labels: dict[str, dict[str, bool]] = {}
    for pair in kept:
        for text, other in permutations(pair.texts):
            labels.setdefault(text, {})[other] = pair.same
    changes = []
    if unknown := len(pairs) - len(kept):
        count = plural(unknown, "labelled pair")
        changes.append(f"{count} left out, with a text that is not among your questions")
    return labels, sum(not pair.same for pair in kept), changes


def _plain(text: str) -> str:
    return " ".join(text.split())
