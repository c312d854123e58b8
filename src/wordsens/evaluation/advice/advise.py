"""Advice on length: how many tokens a passage may have if a negation must move its embedding."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from wordsens.errors import InputError, require_count, require_positive
from wordsens.evaluation.advice.crossing import Crossing, crossing, open_gaps
from wordsens.evaluation.advice.passages import PLACES, Change, Surroundings
from wordsens.evaluation.advice.result import DecayPoint, LengthAdvice, PlaceAdvice
from wordsens.models.black_box import Model
from wordsens.models.load import as_model
from wordsens.sensitivity.removals import cosine_distance
from wordsens.statistics.median import least_values, median_intervals
from wordsens.text.document import Document
from wordsens.text.embedding import Texts, as_documents
from wordsens.text.pairs import Pair, Pairs, read_pairs
from wordsens.text.shipped_data import minimal_pairs

NEGATION = "negation"
ANY = "any"
"""The name of all places together: a change's mean over them."""

_SEEN = 4
"""Lengths, each twice the one before, that are measured even where the change is lost at the shortest."""


@dataclass(frozen=True, kw_only=True)
class AdvicePlan:
    """The effort of an advice.

    Attributes:
        changes: changed sentences that are measured, at most: the interval's width falls with their root.
        longest: tokens (or words) of the longest passage; the model's context where that is shorter.
        finest: the ratio of neighbouring lengths at which no more are measured between them.
    """

    changes: int = 30
    longest: int = 1024
    finest: float = 1.2

    def __post_init__(self) -> None:
        require_count("changes", self.changes, least=least_values())
        require_count("longest", self.longest, least=16)
        if not 1 < self.finest <= 2:
            raise InputError(f"`finest` (={self.finest!r}) must be above 1 and at most 2")


def advise_length(
    model: Any,
    texts: Texts,
    pairs: Pairs | None = None,
    threshold: float = 0.05,
    *,
    plan: AdvicePlan | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LengthAdvice:
    """The longest passage in which a negation still moves the embedding by the threshold, measured on your texts.

    A sentence in two versions stands first, in the middle or last in passages of growing length whose other words are
    those around it in your texts. What is measured is the cosine distance 1 - cos of the two passages' embeddings; the
    advice is the length L at which its median over sentences falls under `threshold`, that is, at which half of the
    changes are lost. No law of decay is assumed: the interval of L is the sign test's, turned round (Thompson 1936),
    with lengths measured more closely where the median's interval crosses the threshold. Attained, not a bound.

    Args:
        model: whatever `wordsens.as_model` takes. Of a function or an endpoint lengths are in words.
        texts: yours, two or more; their order is the order of the words around a sentence.
        pairs: sentences in two versions, as `wordsens.read_pairs` takes them: those of kind "negation" where there are
            any, else all opposites; each is put before a text of yours. None: the shortest sentence of each text in
            which a "not" can be put in or taken out; where fewer than six texts have one, the shipped negations.
        threshold: of the cosine distance.
        plan: the effort.
        progress: called with (lengths done, lengths at most).

    Raises:
        InputError: fewer than two texts, a threshold that is not between 0 and 2, pairs without an opposite, or no
            sentence that the model's context has room for.

    >>> texts = [f"Lamp {n} is not as bright as it was. " + "It hangs over the table there. " * 20 for n in range(8)]
    >>> def fades(texts):
    ...     counts = [(len(text.split()), " not " in text) for text in texts]
    ...     return [[1.0, (8 / n) ** 0.5 if kept else 0.0] for n, kept in counts]
    >>> print(advise_length(fades, texts).advice)
    at most 74 words (95 %: 74 to 75) if a negation must move the embedding by 0.05
    """
    plan = plan or AdvicePlan()
    if require_positive("threshold", threshold) >= 2:
        raise InputError(f"`threshold` (={threshold!r}) must be below 2, the largest cosine distance")
    documents = as_documents(texts)
    if len(documents) < 2:
        raise InputError("`texts` holds 1 text; give two or more: the words of others make longer passages")
    found = as_model(model)
    reading = _Reading.of(found)
    around = Surroundings([document.text for document in documents], reading.count)
    source, kind, changes = _changes(documents, around, pairs, plan)
    measured = _Measured(found, around, changes, reading)
    shortest = measured.shortest
    longest = plan.longest if reading.context is None else min(plan.longest, reading.context)
    if not measured.changes or shortest > longest:
        raise InputError(
            f"no changed sentence fits {longest} {reading.unit}; give shorter sentences, or a model with a longer "
            "context"
        )
    steps = math.ceil(math.log2(longest / shortest)) + 1
    total = steps + 3 * math.ceil(math.log2(math.log(2) / math.log(plan.finest)))
    lengths = [shortest]
    while measured.at(lengths[-1]) is not None:
        if progress is not None:
            progress(len(lengths), total)
        if lengths[-1] >= longest or measured.gone(lengths[-1], threshold):
            break
        lengths.append(min(2 * lengths[-1], longest))
    while gaps := [gap for gap in measured.gaps(threshold) if gap[1] > max(plan.finest * gap[0], gap[0] + 1)]:
        for low, high in gaps:
            measured.at(round(math.sqrt(low * high)))
        if progress is not None:
            progress(min(len(measured.lengths), total), total)
    return measured.advice(source, kind, threshold)


@dataclass(frozen=True)
class _Reading:
    """A model's count: tokens of a transformer, words of anything else, and the most that it reads."""

    count: Callable[[str], int]
    unit: str
    context: int | None

    @classmethod
    def of(cls, model: Model) -> "_Reading":
        if model.can_differentiate:
            reader = model.features().reading()
            return cls(reader.count, "tokens", reader.context)
        return cls(lambda text: len(text.split()), "words", None)


def _changes(
    documents: Sequence[Document], around: Surroundings, pairs: Pairs | None, plan: AdvicePlan
) -> tuple[str, str, list[Change]]:
    """The source of the changes, their kind, and the changes: the user's own texts' where they give enough."""
    if pairs is None:
        own = around.own_changes([document.text for document in documents])
        if len(own) >= least_values():
            return "your texts", NEGATION, own[: plan.changes]
        shipped = [Pair(one.kind, one.first, one.second, False) for one in minimal_pairs() if one.kind == NEGATION]
        return "shipped pairs, in your texts", NEGATION, around.placed(_some(shipped, plan.changes))
    opposites = [pair for pair in read_pairs(pairs) if not pair.same]
    chosen = [pair for pair in opposites if pair.kind == NEGATION] or opposites
    if not chosen:
        raise InputError("`pairs` holds no opposite (same is true everywhere); give pairs whose meaning differs")
    kinds = sorted({pair.kind for pair in chosen})
    kind = kinds[0] if len(kinds) == 1 else "change"
    return "given pairs, in your texts", kind, around.placed(_some(chosen, plan.changes))


def _some(items: list[Any], most: int) -> list[Any]:
    """At most so many, spread evenly."""
    return items if len(items) <= most else [items[at * len(items) // most] for at in range(most)]


class _Measured:
    """The distances of the changes at every length that was asked for, place by place."""

    def __init__(self, model: Model, around: Surroundings, changes: Sequence[Change], reading: _Reading):
        self._model, self._around, self._reading = model, around, reading
        sizes = list(map(around.tokens, changes))
        room = math.inf if reading.context is None else reading.context // 2
        fitting = [(size, change) for size, change in zip(sizes, changes, strict=True) if size <= room]
        self.changes = [change for _, change in fitting]
        self.shortest = max((size for size, _ in fitting), default=0)
        self._found: dict[int, Float[np.ndarray, "places changes"]] = {}

    @property
    def lengths(self) -> list[int]:
        """Those that were measured, in order."""
        return sorted(self._found)

    def at(self, length: int) -> Float[np.ndarray, "places changes"] | None:
        """The distances at that length; None where the texts have not so many words."""
        if length not in self._found:
            passages = [self._around.passage(change, place, length) for place in PLACES for change in self.changes]
            if any(both is None for both in passages):
                return None
            self._found[length] = self._distances([both for both in passages if both is not None])
        return self._found[length]

    def _distances(self, passages: Sequence[tuple[str, str]]) -> Float[np.ndarray, "places changes"]:
        listed = sorted({text for both in passages for text in both})
        vectors = dict(zip(listed, self._model.encode(listed), strict=True))
        apart = [float(cosine_distance(vectors[first], vectors[second])) for first, second in passages]
        return np.array(apart).reshape(len(PLACES), -1)

    def curves(self) -> dict[str, Float[np.ndarray, "changes lengths"]]:
        """For each place, and for all together, the distances by change and length."""
        table = np.stack([self._found[length] for length in self.lengths], axis=-1)
        return {ANY: table.mean(axis=0), **dict(zip(PLACES, table, strict=True))}

    def gone(self, length: int, threshold: float) -> bool:
        """True where even the upper ends lie under the threshold, at every place, and the decay itself can be seen."""
        found = self._found[length]
        if len(self._found) < _SEEN:
            return False
        if len(self.changes) < least_values():
            return True
        return all((median_intervals(own[:, None])[2] < threshold).all() for own in [found.mean(axis=0), *found])

    def gaps(self, threshold: float) -> list[tuple[int, int]]:
        """Between which lengths a curve crosses the threshold."""
        if len(self.changes) < least_values():
            return []
        return sorted({gap for own in self.curves().values() for gap in open_gaps(self.lengths, own, threshold)})

    def advice(self, source: str, kind: str, threshold: float) -> LengthAdvice:
        """The advice at a threshold, from one source and kind of change."""
        lengths, unit = self.lengths, self._reading.unit
        curves = self.curves()
        crossings = {place: crossing(lengths, own, threshold, unit) for place, own in curves.items()}
        return LengthAdvice(
            model=self._model.name,
            source=source,
            kind=kind,
            threshold=threshold,
            unit=unit,
            changes=len(self.changes),
            **_rounded(crossings.pop(ANY)),
            places=tuple(PlaceAdvice(place=place, **_rounded(found)) for place, found in crossings.items()),
            curve=tuple(_points(curves, lengths)),
            context=self._reading.context,
        )


def _rounded(found: Crossing) -> dict[str, Any]:
    """Whole tokens: the advice and the low end down, the high end up."""
    length, low = (None if value is None else math.floor(value + 1e-9) for value in (found.length, found.low))
    high = None if found.high is None else math.ceil(found.high - 1e-9)
    return {"length": length, "low": low, "high": high, "reason": found.reason}


def _points(curves: dict[str, Float[np.ndarray, "changes lengths"]], lengths: Sequence[int]) -> Sequence[DecayPoint]:
    points = []
    for place, own in curves.items():
        many = len(own) >= least_values()
        middle, low, high = median_intervals(own) if many else (np.median(own, axis=0), None, None)
        for at, length in enumerate(lengths):
            point = DecayPoint(place, length, float(middle[at]), None, None)
            points.append(
                point if low is None or high is None else replace(point, low=float(low[at]), high=float(high[at]))
            )
    return points
