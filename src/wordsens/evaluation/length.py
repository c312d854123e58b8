"""Advice on length: how many tokens a passage may have if a negation must move its embedding."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from jaxtyping import Float

from wordsens.errors import InputError, require_count
from wordsens.evaluation.near_misses import SENTENCE_END, negate
from wordsens.models.black_box import Model, require_cosines
from wordsens.models.load import as_model
from wordsens.results import ResultTable, Saved, Shown
from wordsens.sensitivity.removals import cosine_distance
from wordsens.statistics.mean import least_values, median_intervals
from wordsens.text.document import Document
from wordsens.text.embedding import Texts, as_documents
from wordsens.text.pairs import Pair, Pairs, read_pairs
from wordsens.text.shipped_data import minimal_pairs

WIDEST = 2.0
"""The largest ratio of an interval's ends at which a passage's length can be chosen by it."""


@dataclass(frozen=True)
class DecayPoint:
    """The median distance at one length and place, with its 95 % interval; None with fewer than six changes."""

    place: str
    length: int
    median: float
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class PlaceAdvice:
    """The advice for changes at one place, as of `LengthAdvice`."""

    place: str
    length: int | None
    low: int | None
    high: int | None
    reason: str | None


@dataclass(frozen=True, kw_only=True)
class LengthAdvice(Shown, Saved):
    """The longest passage in which a change still moves the embedding by a threshold, and how fast it decays.

    Attributes:
        model: its name.
        source: where the changed sentences come from.
        kind: of the change, such as "negation".
        threshold: the cosine from which on two passages count as the same.
        unit: "tokens", special ones included, or "words".
        changes: how many sentences were changed: each has two versions.
        length: at which the median distance, over changes and places, falls under the threshold; None where `reason`
            says why there is none.
        low, high: its 95 % interval; None: below the shortest, or beyond the longest, passage that was measured.
        reason: why there is no length.
        places: likewise for changes that stand first, in the middle and last.
        curve: the decay as it was measured; the place "any" is the mean over places.
        context: the most that the model reads; None where that is not known.
    """

    model: str
    source: str
    kind: str
    threshold: float
    unit: str
    changes: int
    length: int | None
    low: int | None
    high: int | None
    reason: str | None
    places: tuple[PlaceAdvice, ...]
    curve: tuple[DecayPoint, ...]
    context: int | None = None

    @property
    def decisive(self) -> bool:
        """True where the interval is narrow enough to act on."""
        if self.length is None or self.low is None or self.high is None:
            return False
        return self.high <= WIDEST * self.low

    @property
    def longest(self) -> int:
        """The longest passages that were measured."""
        return max(point.length for point in self.curve)

    @property
    def advice(self) -> str:
        """One sentence: the length, with its interval, or why there is none."""
        article = "an" if self.kind[0] in "aeiou" else "a"
        must = f"if {article} {self.kind} must bring the cosine under {self.threshold:g}"
        if self.length is None:
            return f"no length can be given {must}: {self.reason}{self._half_known()}"
        low = "any" if self.low is None else self.low
        high = f"more than {self.longest}" if self.high is None else self.high
        shown = f"at most {self.length} {self.unit} (95 %: {low} to {high}) {must}"
        return shown if self.decisive else f"{shown}; too uncertain to act on, give more texts or pairs"

    def _half_known(self) -> str:
        if self.low is not None:
            return f" (95 %: {self.low} or more)"
        return "" if self.high is None else f" (95 %: {self.high} or fewer)"

    def result_table(self) -> ResultTable:
        """A row a length: the median at each place."""
        places = list(dict.fromkeys(point.place for point in self.curve))
        lengths = sorted({point.length for point in self.curve})
        median = {(point.place, point.length): point.median for point in self.curve}
        columns = {self.unit: lengths, **{place: [median[place, length] for length in lengths] for place in places}}
        notes = [f"{one.place}: {_told(one, self.unit)}" for one in self.places]
        source = f"{self.changes} changed sentences of {self.source}; median cosine distance"
        return ResultTable(f"{self.model}: {self.advice}", columns, notes=(source, *notes))


def _told(one: PlaceAdvice, unit: str) -> str:
    if one.length is None:
        return str(one.reason)
    low, high = "any" if one.low is None else one.low, "no end measured" if one.high is None else one.high
    return f"{one.length} {unit} ({low} to {high})"


STEEP = 0.5
"""The least share that is left from one length to the next: below it the decay counts as a step, and nothing is read
off between the two. An exponential that has fallen by e³ keeps .58 at the finest spacing, 1.2."""


@dataclass(frozen=True)
class Crossing:
    """The length at which the median falls under the threshold.

    Attributes:
        length: None where `reason` says why there is none.
        low, high: its 95 % interval: at every length in it the median's own interval holds the threshold. None: it
            reaches below the shortest, or beyond the longest, length that was measured.
        reason: why there is no length.
    """

    length: float | None
    low: float | None
    high: float | None
    reason: str | None = None


def crossing(
    lengths: Sequence[int], distances: Float[np.ndarray, "changes lengths"], threshold: float, unit: str = "tokens"
) -> Crossing:
    """The first length at which the median over changes is under the threshold.

    The ends are those of the sign test's interval, turned round: coverage 95 % at least for independent changes whose
    median falls with the length, whatever the law and the noise. Between two measured lengths a straight line in
    log distance and log length.

    >>> made = np.linspace(0.8, 1.2, 6)[:, None] / np.array([[10, 20, 40, 80]])
    >>> found = crossing([10, 20, 40, 80], made, 0.03)
    >>> round(found.length, 1), round(found.low, 1), round(found.high, 1)
    (33.3, 26.7, 40.0)
    """
    if len(distances) < least_values():
        few = f"{len(distances)} changed sentences are too few for an interval; it takes {least_values()}"
        return Crossing(None, None, None, few)
    middle, below, above = median_intervals(distances)
    low, high = _first_fall(lengths, below, threshold, end="low"), _last_fall(lengths, above, threshold)
    if middle[0] < threshold:
        reason = f"the change moves the embedding by less already at {lengths[0]:.0f} {unit}"
        return Crossing(None, None, high, reason)
    length = _first_fall(lengths, middle, threshold)
    if length is None:
        return Crossing(None, low, None, f"no fall below was measured up to {lengths[-1]:.0f} {unit}")
    return Crossing(length, low, high)


def open_gaps(
    lengths: Sequence[int], distances: Float[np.ndarray, "changes lengths"], threshold: float
) -> list[tuple[int, int]]:
    """The neighbouring lengths between which the median, or an end of its interval, falls under the threshold."""
    gaps = []
    for curve in median_intervals(distances):
        under = curve < threshold
        gaps += [(lengths[at], lengths[at + 1]) for at in range(len(lengths) - 1) if under[at] != under[at + 1]]
    return sorted(set(gaps))


def _first_fall(
    lengths: Sequence[int], curve: Float[np.ndarray, " k"], threshold: float, *, end: str = "length"
) -> float | None:
    """The length at which the curve is first under the threshold; None where it begins so, or never is.

    Of a low end that is never under it, the longest length.
    """
    under = np.flatnonzero(curve < threshold)
    if len(under) == 0:
        return float(lengths[-1]) if end == "low" else None
    return None if under[0] == 0 else _between(lengths, curve, int(under[0]), threshold)


def _last_fall(lengths: Sequence[int], curve: Float[np.ndarray, " k"], threshold: float) -> float | None:
    """The length from which the curve stays under the threshold; None where it does not in the end."""
    over = np.flatnonzero(curve >= threshold)
    if len(over) == 0:
        return float(lengths[0])
    at = int(over[-1]) + 1
    return None if at == len(lengths) else _between(lengths, curve, at, threshold, later=True)


def _between(
    lengths: Sequence[int], curve: Float[np.ndarray, " k"], at: int, threshold: float, *, later: bool = False
) -> float:
    """The length between those at - 1 and at at which the curve, a power law there, crosses the threshold.

    At a step it is one of the two: the shorter, or with `later` the longer.
    """
    before, after = float(curve[at - 1]), float(curve[at])
    if after < STEEP * before:
        return float(lengths[at] if later else lengths[at - 1])
    share = math.log(before / threshold) / math.log(before / after)
    return lengths[at - 1] * (lengths[at] / lengths[at - 1]) ** share


PLACES = {"first": 0.0, "middle": 0.5, "last": 1.0}
"""The place of the changed sentence: the share of the other words that come before it."""

_SENTENCE = range(4, 25)
"""Words of a sentence that is changed: a shorter one is hardly one."""


@dataclass(frozen=True)
class Change:
    """A sentence in two versions, and its place among the words of all texts.

    Attributes:
        first, second: the two versions.
        start, stop: the words of `Surroundings` that it stands in the place of; none where start == stop.
    """

    first: str
    second: str
    start: int
    stop: int


class Surroundings:
    """The words of all texts in their order, the last followed by the first, and how many tokens each has.

    Args:
        texts: not empty.
        count: the number of tokens that a model reads for a text, special ones included.
    """

    def __init__(self, texts: Sequence[str], count: Callable[[str], int]):
        self._count = count
        split = [text.split() for text in texts]
        self._words = [word for words in split for word in words]
        self.starts = [0, *accumulate(map(len, split))][:-1]
        self._known: dict[str, int] = {}

    def own_changes(self, texts: Sequence[str]) -> list[Change]:
        """The shortest sentence of every text in which a "not" can be put in or taken out; the shortest of all first.

        A long sentence leaves no short passage to measure.
        """
        result = []
        for text, start in zip(texts, self.starts, strict=True):
            changes, at = [], start
            for sentence in SENTENCE_END.split(text):
                words = sentence.split()
                plain = " ".join(words)
                if len(words) in _SENTENCE and (opposite := negate(plain)) not in (None, plain):
                    changes.append(Change(plain, str(opposite), at, at + len(words)))
                at += len(words)
            if changes:
                result.append(min(changes, key=self.tokens))
        return sorted(result, key=self.tokens)

    def tokens(self, change: Change) -> int:
        """Of the longer version, special ones included."""
        return max(self._count(change.first), self._count(change.second))

    def placed(self, pairs: Sequence[Pair]) -> list[Change]:
        """Each pair before a text of its own, as far as there are texts; then from the first again."""
        starts = self.starts
        at = [starts[number % len(starts)] for number in range(len(pairs))]
        return [Change(pair.first, pair.second, place, place) for pair, place in zip(pairs, at, strict=True)]

    def passage(self, change: Change, place: str, tokens: int) -> tuple[str, str] | None:
        """Both versions with as many words around them as `tokens` has room for; None where there are not so many.

        The longer version has `tokens` tokens at most.
        """
        most = len(self._words) - (change.stop - change.start)
        share = PLACES[place]
        room = tokens - self.tokens(change)
        if room < 0:
            return None
        before, after, spent = [], [], 0
        while len(before) + len(after) < most:
            # The next word goes to the side that lacks most of its share.
            earlier = len(before) < share * (len(before) + len(after) + 1) and share > 0
            at = change.start - 1 - len(before) if earlier else change.stop + len(after)
            word = self._words[at % len(self._words)]
            spent += self._tokens_of(word)
            if spent > room:
                break
            (before if earlier else after).append(word)
        else:
            return None
        around = " ".join(before[::-1]), " ".join(after)
        first, second = (
            " ".join(part for part in (around[0], own, around[1]) if part) for own in (change.first, change.second)
        )
        return first, second

    def _tokens_of(self, word: str) -> int:
        if word not in self._known:
            self._known[word] = max(1, self._count(f"a {word}") - self._count("a"))
        return self._known[word]


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
    threshold: float = 0.95,
    *,
    plan: AdvicePlan | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LengthAdvice:
    """The longest passage in which a negation still moves the embedding by the threshold, measured on your texts.

    A sentence in two versions stands first, in the middle or last in passages of growing length whose other words are
    those around it in your texts. What is measured is the cosine distance 1 - cos of the two passages' embeddings; the
    advice is the length L at which its median over sentences falls under 1 - `threshold`, that is, at which half of the
    changes are lost. No law of decay is assumed: the interval of L is the sign test's, turned round (Thompson 1936),
    with lengths measured more closely where the median's interval crosses the threshold. Attained, not a bound.

    Args:
        model: whatever `wordsens.as_model` takes. Of a function or an endpoint lengths are in words.
        texts: yours, two or more; their order is the order of the words around a sentence.
        pairs: sentences in two versions, as `wordsens.read_pairs` takes them: those of kind "negation" where there are
            any, else all opposites; each is put before a text of yours. None: the shortest sentence of each text in
            which a "not" can be put in or taken out; where fewer than six texts have one, the shipped negations.
        threshold: the cosine from which on two passages count as the same.
        plan: the effort.
        progress: called with (lengths done, lengths at most).

    Raises:
        InputError: fewer than two texts, a threshold that is no cosine, pairs without an opposite, or no
            sentence that the model's context has room for.

    >>> texts = [f"Lamp {n} is not as bright as it was. " + "It hangs over the table there. " * 20 for n in range(8)]
    >>> def fades(texts):
    ...     counts = [(len(text.split()), " not " in text) for text in texts]
    ...     return [[1.0, (8 / n) ** 0.5 if kept else 0.0] for n, kept in counts]
    >>> print(advise_length(fades, texts).advice)
    at most 74 words (95 %: 74 to 75) if a negation must bring the cosine under 0.95
    """
    plan = plan or AdvicePlan()
    if isinstance(threshold, bool) or not -1 < threshold < 1:
        raise InputError(f"`threshold` (={threshold!r}) must be a cosine between -1 and 1, such as 0.95")
    least = 1 - threshold
    documents = as_documents(texts)
    if len(documents) < 2:
        raise InputError("`texts` holds 1 text; give two or more: the words of others make longer passages")
    loaded = as_model(model)
    require_cosines(loaded, "lengths")
    reading = _Reading.of(loaded)
    around = Surroundings([document.text for document in documents], reading.count)
    source, kind, changes = _changes(documents, around, pairs, plan)
    measured = _Measured(loaded, around, changes, reading)
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
        if lengths[-1] >= longest or measured.gone(lengths[-1], least):
            break
        lengths.append(min(2 * lengths[-1], longest))
    if not measured.lengths:
        raise InputError(
            f"`texts` hold too few words for passages of {shortest} {reading.unit}, the longest changed sentence; give "
            "more or longer texts"
        )
    while gaps := [gap for gap in measured.gaps(least) if gap[1] > max(plan.finest * gap[0], gap[0] + 1)]:
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
        result = self._found[length]
        if len(self._found) < _SEEN:
            return False
        if len(self.changes) < least_values():
            return True
        return all((median_intervals(own[:, None])[2] < threshold).all() for own in [result.mean(axis=0), *result])

    def gaps(self, threshold: float) -> list[tuple[int, int]]:
        """Between which lengths a curve crosses the threshold."""
        if len(self.changes) < least_values():
            return []
        return sorted({gap for own in self.curves().values() for gap in open_gaps(self.lengths, own, threshold)})

    def advice(self, source: str, kind: str, threshold: float) -> LengthAdvice:
        """The advice at a threshold, from one source and kind of change."""
        lengths, unit = self.lengths, self._reading.unit
        curves = self.curves()
        crossings = {place: crossing(lengths, own, 1 - threshold, unit) for place, own in curves.items()}
        return LengthAdvice(
            model=self._model.name,
            source=source,
            kind=kind,
            threshold=threshold,
            unit=unit,
            changes=len(self.changes),
            **_rounded(crossings.pop(ANY)),
            places=tuple(PlaceAdvice(place=place, **_rounded(result)) for place, result in crossings.items()),
            curve=tuple(_points(curves, lengths)),
            context=self._reading.context,
        )


def _rounded(result: Crossing) -> dict[str, Any]:
    """Whole tokens: the advice and the low end down, the high end up."""
    length, low = (None if value is None else math.floor(value + 1e-9) for value in (result.length, result.low))
    high = None if result.high is None else math.ceil(result.high - 1e-9)
    return {"length": length, "low": low, "high": high, "reason": result.reason}


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
