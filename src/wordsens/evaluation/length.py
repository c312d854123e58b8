"""Advice on length: how many tokens a passage may have if a negation must move its embedding."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from jaxtyping import Float

from wordsens.display.view import View
from wordsens.errors import InputError, require_count
from wordsens.evaluation.near_misses import SENTENCE_END, negate
from wordsens.intervals import least_values, median_estimate
from wordsens.models.embedding import Texts, as_documents
from wordsens.models.load import as_model
from wordsens.models.model import Model, require_cosines
from wordsens.results import Result
from wordsens.sensitivity.replacements import cosine_distance
from wordsens.text.pairs import Pair, Pairs, minimal_pairs, read_pairs

NEGATION = "negation"

PLACES = {"first": 0.0, "middle": 0.5, "last": 1.0}
"""The place of the changed sentence: the share of the other words that come before it."""

ANY = "any"
"""The name of all places together: a change's mean over them."""

WIDEST = 2.0
"""The largest ratio of an interval's ends at which a passage's length can be chosen by it."""

FINEST = 1.2
"""The ratio of neighbouring lengths at which no more are measured between them."""

STEEP = 0.5
"""The least share that is left from one length to the next: below it the decay counts as a step,
and nothing is read off between the two. An exponential that has fallen by e³ keeps .58 at the
finest spacing, 1.2."""

_SENTENCE = range(4, 25)
"""Words of a sentence that is changed: a shorter one is hardly one."""

_LEAST_LENGTHS = 4
"""Lengths, each twice the one before, that are measured even where the change is lost at the
shortest."""

ByChange = Float[np.ndarray, "changes lengths"]


@dataclass(frozen=True)
class DecayPoint:
    """The median distance at one length and place, with its 95 % interval; None with fewer than six
    changes."""

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


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LengthAdvice(Result):
    """The longest passage in which a change still moves the embedding by a threshold, and how fast
    it decays.

    Attributes:
        model: its name.
        source: where the changed sentences come from.
        kind: of the change, such as "negation".
        threshold: the cosine from which on two passages count as the same.
        unit: "tokens", special ones included, or "words".
        changes: how many sentences were changed: each has two versions.
        length: at which the median distance, over changes and places, falls under the threshold;
            None where `reason` says why there is none.
        low, high: its 95 % interval; None: below the shortest, or beyond the longest, passage that
            was measured.
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
        from wordsens.findings.length import answer

        return answer(self)

    @property
    def headline(self) -> str:
        """The advice."""
        return f"{self.model}: {self.advice}"

    def view(self) -> View:
        """The sentence, and one row per length."""
        from wordsens.findings.length import view

        return view(self)

    def columns(self) -> dict[str, Any]:
        """A row a length: the median at each place."""
        lengths = sorted({point.length for point in self.curve})
        median = {(point.place, point.length): point.median for point in self.curve}
        places = dict.fromkeys(point.place for point in self.curve)
        return {
            self.unit: lengths,
            **{place: [median[place, length] for length in lengths] for place in places},
        }


def advise_length(
    model: Any,
    texts: Texts,
    pairs: Pairs | None = None,
    threshold: float = 0.95,
    *,
    changes: int = 30,
    longest: int = 1024,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> LengthAdvice:
    """The longest passage in which a negation still moves the embedding by the threshold, measured
    on your texts.

    A sentence in two versions stands first, in the middle or last in passages of growing length
    whose other words are those around it in your texts. What is measured is the cosine distance 1 -
    cos of the two passages' embeddings; the advice is the length L at which its median over
    sentences falls under 1 - `threshold`, that is, at which half of the changes are lost. No law of
    decay is assumed: the interval of L is the sign test's, turned round (Thompson 1936): at every
    length in it the median's own interval holds the threshold. It covers L with 95 % at least for
    independent changes whose median falls with the length; lengths are measured more closely where
    it crosses the threshold.

    Args:
        model: whatever `wordsens.as_model` takes. Of a function or an endpoint lengths are in
            words.
        texts: yours, two or more; their order is the order of the words around a sentence.
        pairs: sentences in two versions, as `wordsens.read_pairs` takes them: all opposites,
            whatever their kind; each is put before a text of yours. None: the shortest sentence of each text in which a "not" can be put in or taken out;
            where fewer than six texts have one, the shipped negations.
        threshold: the cosine from which on two passages count as the same.
        changes: changed sentences that are measured, at most: the interval's width falls with their
            root.
        longest: tokens (or words) of the longest passage; the model's context where that is
            shorter.
        progress: called with (lengths done, lengths at most).

    Raises:
        InputError: fewer than two texts, a threshold that is no cosine, pairs without an opposite,
            or no sentence that the model's context has room for.

    >>> texts = [f"Lamp {n} is not as bright as it was. " + "It hangs over the table there. " * 20 for n in range(8)]
    >>> def fades(texts):
    ...     counts = [(len(text.split()), " not " in text) for text in texts]
    ...     return [[1.0, (8 / n) ** 0.5 if negated else 0.0] for n, negated in counts]
    >>> print(advise_length(fades, texts).advice)
    at most 74 words (95 %: 74 to 75) if a negation must bring the cosine under 0.95
    """  # noqa: E501
    require_count("changes", changes, least=least_values())
    require_count("longest", longest, least=16)
    if isinstance(threshold, bool) or not -1 < threshold < 1:
        raise InputError(
            f"`threshold` (={threshold!r}) must be a cosine between -1 and 1, such as 0.95"
        )
    documents = as_documents(texts)
    if len(documents) < 2:
        raise InputError(
            "`texts` holds 1 text; give two or more: the words of others make longer passages"
        )
    loaded = as_model(model)
    require_cosines(loaded, "lengths")
    count, unit, context = (lambda text: len(text.split())), "words", None
    if loaded.no_rows is None:
        reader = loaded.text_model()
        count, unit, context = reader.count_tokens, "tokens", reader.context
    around = Surroundings([document.text for document in documents], count)
    source, kind, sentences = _sentences(around, pairs, changes)
    room = math.inf if context is None else context // 2
    sentences = [sentence for sentence in sentences if around.tokens(sentence) <= room]
    shortest = max(map(around.tokens, sentences), default=0)
    longest = longest if context is None else min(longest, context)
    if not sentences or shortest > longest:
        raise InputError(
            f"no changed sentence fits {longest} {unit}; give shorter sentences, or a model with a "
            "longer context"
        )
    distances: dict[int, Float[np.ndarray, "places changes"]] = {}
    doublings = math.ceil(math.log2(longest / shortest)) + 1
    total = doublings + 3 * math.ceil(math.log2(math.log(2) / math.log(FINEST)))

    def measure(length: int) -> bool:
        """Measure passages of that length; False where the texts have not so many words."""
        passages = [
            around.passage(sentence, place, length) for place in PLACES for sentence in sentences
        ]
        whole = [both for both in passages if both is not None]
        if len(whole) < len(passages):
            return False
        distances[length] = _distances(loaded, whole).reshape(len(PLACES), -1)
        progress(min(len(distances), total), total)
        return True

    length, least = shortest, 1 - threshold
    while measure(length) and length < longest and not _lost(distances, length, least):
        length = min(2 * length, longest)
    if not distances:
        raise InputError(
            f"`texts` hold too few words for passages of {shortest} {unit}, the longest changed "
            "sentence; give more or "
            "longer texts"
        )
    while gaps := [
        gap for gap in _open_gaps(distances, least) if gap[1] > max(FINEST * gap[0], gap[0] + 1)
    ]:
        for low, high in gaps:
            measure(round(math.sqrt(low * high)))
    lengths, curves = sorted(distances), _curves(distances)
    overall, *places = (
        _place_advice(place, lengths, curve, least, unit) for place, curve in curves.items()
    )
    return LengthAdvice(
        model=loaded.name,
        source=source,
        kind=kind,
        threshold=threshold,
        unit=unit,
        changes=len(sentences),
        length=overall.length,
        low=overall.low,
        high=overall.high,
        reason=overall.reason,
        places=tuple(places),
        curve=tuple(
            point for place, curve in curves.items() for point in _points(place, lengths, curve)
        ),
        context=context,
    )


@dataclass(frozen=True)
class ChangedSentence:
    """A sentence in two versions, and its place among the words of all texts.

    Attributes:
        first, second: the two versions.
        start, stop: the words of `Surroundings` that it stands in the place of; none where start ==
            stop.
    """

    first: str
    second: str
    start: int
    stop: int


class Surroundings:
    """The words of all texts in their order, the last followed by the first, and how many tokens
    each has.

    Args:
        texts: not empty.
        count: the number of tokens that a model reads for a text, special ones included.
    """

    def __init__(self, texts: Sequence[str], count: Callable[[str], int]):
        self.texts, self._count = texts, count
        split = [text.split() for text in texts]
        self._words = [word for words in split for word in words]
        self._starts = [0, *accumulate(map(len, split))][:-1]
        self._known: dict[str, int] = {}

    def negated_sentences(self) -> list[ChangedSentence]:
        """The shortest sentence of every text in which a "not" can be put in or taken out; the
        shortest of all first.

        A long sentence leaves no short passage to measure.
        """
        shortest = []
        for text, start in zip(self.texts, self._starts, strict=True):
            changed = []
            for sentence in SENTENCE_END.split(text):
                words = sentence.split()
                plain = " ".join(words)
                if len(words) in _SENTENCE and (opposite := negate(plain)) not in (None, plain):
                    changed.append(ChangedSentence(plain, str(opposite), start, start + len(words)))
                start += len(words)
            if changed:
                shortest.append(min(changed, key=self.tokens))
        return sorted(shortest, key=self.tokens)

    def placed(self, pairs: Sequence[Pair]) -> list[ChangedSentence]:
        """Each pair before a text of its own, as far as there are texts; then from the first
        again."""
        starts = [self._starts[number % len(self._starts)] for number in range(len(pairs))]
        return [
            ChangedSentence(pair.first, pair.second, at, at)
            for pair, at in zip(pairs, starts, strict=True)
        ]

    def tokens(self, sentence: ChangedSentence) -> int:
        """Of the longer version, special ones included."""
        return max(self._count(sentence.first), self._count(sentence.second))

    def passage(self, sentence: ChangedSentence, place: str, tokens: int) -> tuple[str, str] | None:
        """Both versions with as many words around them as `tokens` has room for; None where there
        are not so many.

        The longer version has `tokens` tokens at most.
        """
        most = len(self._words) - (sentence.stop - sentence.start)
        share, room = PLACES[place], tokens - self.tokens(sentence)
        if room < 0:
            return None
        before, after = [], []
        while len(before) + len(after) < most:
            # The next word goes to the side that lacks most of its share.
            earlier = len(before) < share * (len(before) + len(after) + 1) and share > 0
            place_of_word = (
                sentence.start - 1 - len(before) if earlier else sentence.stop + len(after)
            )
            word = self._words[place_of_word % len(self._words)]
            room -= self._tokens_of(word)
            if room < 0:
                break
            (before if earlier else after).append(word)
        else:
            return None
        words = before[::-1], after
        first, second = (
            " ".join([*words[0], version, *words[1]])
            for version in (sentence.first, sentence.second)
        )
        return first, second

    def _tokens_of(self, word: str) -> int:
        if word not in self._known:
            self._known[word] = max(1, self._count(f"a {word}") - self._count("a"))
        return self._known[word]


def _sentences(
    around: Surroundings, pairs: Pairs | None, most: int
) -> tuple[str, str, list[ChangedSentence]]:
    """The source of the changes, their kind, and the changed sentences: the user's own where they
    give enough."""
    if pairs is None:
        negated = around.negated_sentences()
        if len(negated) >= least_values():
            return "your texts", NEGATION, negated[:most]
        shipped = [pair for pair in minimal_pairs() if pair.kind == NEGATION]
        return (
            "shipped sentences, put into your texts",
            NEGATION,
            around.placed(_evenly(shipped, most)),
        )
    # A pair that is given twice, or turned around, is one change.
    distinct: dict[frozenset[str], Pair] = {}
    for pair in read_pairs(pairs):
        distinct.setdefault(pair.texts, pair)
    chosen = [pair for pair in distinct.values() if not pair.same]
    if not chosen:
        raise InputError(
            "`pairs` holds no opposite (same is true everywhere); give pairs whose meaning differs"
        )
    kinds = {pair.kind for pair in chosen}
    kind = kinds.pop() if len(kinds) == 1 else "change"
    return "given sentences, put into your texts", kind, around.placed(_evenly(chosen, most))


def _evenly(pairs: list[Pair], most: int) -> list[Pair]:
    """At most so many, spread evenly."""
    return (
        pairs
        if len(pairs) <= most
        else [pairs[number * len(pairs) // most] for number in range(most)]
    )


def _distances(model: Model, passages: Sequence[tuple[str, str]]) -> Float[np.ndarray, " passages"]:
    texts = sorted({text for both in passages for text in both})
    vectors = dict(zip(texts, model.encode(texts), strict=True))
    return np.array(
        [float(cosine_distance(vectors[first], vectors[second])) for first, second in passages]
    )


def _curves(distances: dict[int, Float[np.ndarray, "places changes"]]) -> dict[str, ByChange]:
    """For all places together, and for each, the distances by change and length."""
    table = np.stack([distances[length] for length in sorted(distances)], axis=-1)
    return {ANY: table.mean(axis=0), **dict(zip(PLACES, table, strict=True))}


def _medians(distances: ByChange) -> Float[np.ndarray, "3 lengths"]:
    """By length the median over the changes, and the ends of its interval."""
    medians = map(median_estimate, distances.T)
    return np.array([(each.value, each.low, each.high) for each in medians]).T


def _lost(
    distances: dict[int, Float[np.ndarray, "places changes"]], length: int, threshold: float
) -> bool:
    """True where even the upper ends lie under the threshold, at every place, and the decay itself
    can be seen."""
    if len(distances) < _LEAST_LENGTHS:
        return False
    at_length = distances[length]
    if at_length.shape[1] < least_values():
        return True
    return all(
        (median_estimate(row).high or 0.0) < threshold
        for row in [at_length.mean(axis=0), *at_length]
    )


def _open_gaps(
    distances: dict[int, Float[np.ndarray, "places changes"]], threshold: float
) -> Iterator[tuple[int, int]]:
    """The neighbouring lengths between which a median, or an end of its interval, crosses the
    threshold."""
    lengths = sorted(distances)
    if distances[lengths[0]].shape[1] < least_values():
        return
    under = np.array(
        [curve < threshold for by in _curves(distances).values() for curve in _medians(by)]
    )
    for index in np.flatnonzero((under[:, 1:] != under[:, :-1]).any(axis=0)):
        yield lengths[index], lengths[index + 1]


def _place_advice(
    place: str, lengths: Sequence[int], distances: ByChange, threshold: float, unit: str
) -> PlaceAdvice:
    """The first length at which the median over changes is under the threshold, in whole tokens:
    the length and the low end down, the high end up."""

    def advice(
        length: float | None, low: float | None, high: float | None, reason: str | None = None
    ) -> PlaceAdvice:
        down = [None if end is None else math.floor(end + 1e-9) for end in (length, low)]
        up = None if high is None else math.ceil(high - 1e-9)
        return PlaceAdvice(place=place, length=down[0], low=down[1], high=up, reason=reason)

    if len(distances) < least_values():
        few = (
            f"{len(distances)} changed sentences are too few for an interval; it takes "
            f"{least_values()}"
        )
        return advice(None, None, None, few)
    median, below, above = _medians(distances)
    length, low = _first_fall(lengths, median, threshold), _first_fall(lengths, below, threshold)
    high = _last_fall(lengths, above, threshold)
    if median[0] < threshold:
        reason = f"the change moves the embedding by less already at {lengths[0]} {unit}"
        return advice(None, None, high, reason)
    if not (below < threshold).any():
        low = float(lengths[-1])
    if length is None:
        return advice(None, low, None, f"no fall below was measured up to {lengths[-1]} {unit}")
    return advice(length, low, high)


def _first_fall(
    lengths: Sequence[int], curve: Float[np.ndarray, " k"], threshold: float
) -> float | None:
    """The length at which the curve is first under the threshold; None where it begins so, or never
    is."""
    under = np.flatnonzero(curve < threshold)
    return (
        None
        if len(under) == 0 or under[0] == 0
        else _between(lengths, curve, int(under[0]), threshold)
    )


def _last_fall(
    lengths: Sequence[int], curve: Float[np.ndarray, " k"], threshold: float
) -> float | None:
    """The length from which the curve stays under the threshold; None where it does not in the
    end."""
    over = np.flatnonzero(curve >= threshold)
    if len(over) == 0:
        return float(lengths[0])
    index = int(over[-1]) + 1
    return None if index == len(lengths) else _between(lengths, curve, index, threshold, later=True)


def _between(
    lengths: Sequence[int],
    curve: Float[np.ndarray, " k"],
    index: int,
    threshold: float,
    *,
    later: bool = False,
) -> float:
    """The length between those at index - 1 and index at which the curve, a power law there,
    crosses the threshold.

    At a step it is one of the two: the shorter, or with `later` the longer.
    """
    before, after = float(curve[index - 1]), float(curve[index])
    if after < STEEP * before:
        return float(lengths[index] if later else lengths[index - 1])
    share = math.log(before / threshold) / math.log(before / after)
    return lengths[index - 1] * (lengths[index] / lengths[index - 1]) ** share


def _points(place: str, lengths: Sequence[int], distances: ByChange) -> Iterator[DecayPoint]:
    if len(distances) < least_values():
        for length, median in zip(lengths, np.median(distances, axis=0).tolist(), strict=True):
            yield DecayPoint(place, length, median, None, None)
        return
    curves = (curve.tolist() for curve in _medians(distances))
    for length, median, low, high in zip(lengths, *curves, strict=True):
        yield DecayPoint(place, length, median, low, high)
