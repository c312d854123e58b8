"""Advice on length: how many tokens a passage may have if a negation must move its embedding."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, cycle, pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from wordsens.display.numbers import Estimate
from wordsens.display.view import View
from wordsens.errors import InputError, argument, require_count
from wordsens.evaluation.near_misses import SENTENCE_END, negate
from wordsens.evaluation.pairs import require_threshold
from wordsens.intervals import ends, least_values, median_estimate
from wordsens.models.embedding import Texts, as_documents
from wordsens.models.load import as_model
from wordsens.models.model import require_cosines
from wordsens.results import Answered
from wordsens.sensitivity.replacements import cosine_distance
from wordsens.text.pairs import Pairs, minimal_pairs, read_pairs

NEGATION = "negation"

# The place of the changed sentence: the share of the other words that come before it.
PLACES = {"first": 0.0, "middle": 0.5, "last": 1.0}

# The name of all places together: the mean of a change over them.
ANY = "any"

# The largest ratio of an interval's ends at which a passage's length can be chosen by it.
WIDEST = 2.0

# The ratio of neighbouring lengths at which no more are measured between them.
FINEST = 1.2

# The least share that is left from one length to the next. Below it the decay counts as a step, and
# nothing is interpolated between the two. An exponential that has fallen by e³ keeps .58 at the
# finest spacing, 1.2.
STEEP = 0.5

# Words of a sentence that is changed: a shorter one is hardly one.
_SENTENCE = range(4, 25)

# Lengths, each twice the one before, that are measured even where the change is lost at the
# shortest.
_LEAST_LENGTHS = 4


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class LengthAdvice(Answered):
    """The longest passage in which a change still moves the embedding past a threshold, and how
    fast the effect decays.

    Attributes:
        model: its name.
        source: where the changed sentences come from.
        kind: of the change, such as "negation".
        threshold: the cosine at or above which two passages count as the same.
        unit: "tokens", special ones included, or "words".
        changes: how many sentences were changed: each has two versions.
        length: the length at which the median distance, over changes and places, falls under the
            threshold; None where `reason` says why there is none.
        low, high: its 95 % interval; None: below the shortest, or beyond the longest, passage that
            was measured.
        reason: why there is no length.
        places: a table with the same for changes that are first, in the middle and last: place,
            length, low, high, reason.
        curve: a table of the lengths that were measured (its first column, named `unit`) with the
            median distance at each place; "any" is the mean over places.
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
    places: dict[str, tuple[str | int | None, ...]]
    curve: dict[str, tuple[int | Estimate, ...]]

    @property
    def decisive(self) -> bool:
        """True where the interval is narrow enough to act on."""
        return bool(self.length and self.low and self.high and self.high <= WIDEST * self.low)

    @property
    def longest(self) -> int:
        """The longest passages that were measured."""
        return max(length for length in self.curve[self.unit] if isinstance(length, int))

    def view(self) -> View:
        """The sentence, and one row per length."""
        from wordsens.findings.length import view

        return view(self)

    def columns(self) -> dict[str, Any]:
        """One row per length: the median at each place."""
        return dict(self.curve)


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

    A sentence in two versions is at the start, middle or end of passages of growing length whose
    other words are those around it in your texts. The cosine distance 1 - cos of the two passages'
    embeddings is measured. The advice is the length L at which its median over sentences falls
    under 1 - `threshold`: half of the changes are lost there. No law of decay is assumed. The
    interval of L inverts the sign test (Thompson 1936): at every length in it the median's own
    interval contains the threshold. It covers L with probability at least 95 % for independent
    changes whose median falls with the length. More lengths are measured where the median crosses
    the threshold.

    Args:
        model: whatever `wordsens.as_model` takes. For a function or an endpoint lengths are in
            words.
        texts: yours, two or more; their order is the order of the words around a sentence.
        pairs: sentences in two versions, as `wordsens.read_pairs` takes them; all opposites among
            them are used, whatever their kind, each before a text of yours. None: the shortest
            sentence of each text in which a "not" can be inserted or deleted; where fewer than six
            texts have one, the shipped negations.
        threshold: the cosine at or above which two passages count as the same.
        changes: how many changed sentences are measured at most: the interval's width falls with
            the square root of their number.
        longest: tokens (or words) of the longest passage; the model's context where that is
            shorter.
        progress: called with (lengths done, the most lengths).

    Raises:
        InputError: fewer than two texts, a threshold that is no cosine, fewer than six
            opposites, or fewer than six sentences that the model's context has room for.

    >>> texts = [f"Lamp {n} is not as bright as it was. " + "It hangs over the table there. " * 20 for n in range(8)]
    >>> def fades(texts):
    ...     counts = [(len(text.split()), " not " in text) for text in texts]
    ...     return [[1.0, (8 / n) ** 0.5 if negated else 0.0] for n, negated in counts]
    >>> print(advise_length(fades, texts))
    fades: at most 74 words (95 %: 74 to 75) if a negation must bring the cosine under 0.95
    """  # noqa: E501
    require_count("changes", changes, least=least_values())
    require_count("longest", longest, least=16)
    require_threshold(threshold, cosines=True)
    documents = as_documents(texts)
    if len(documents) < 2:
        raise InputError(
            f"{argument('texts')} holds 1 text; give two or more: the words of others make longer "
            "passages"
        )
    loaded = as_model(model)
    require_cosines(loaded, "lengths")
    count, unit, context = (lambda text: len(text.split())), "words", 2 * longest
    if loaded.no_rows is None:
        reader = loaded.text_model()
        count, unit, context = reader.count_tokens, "tokens", reader.context or context
    around = Surroundings([document.text for document in documents], count)
    source, kind, sentences = _sentences(around, pairs, changes)
    room, longest = min(context // 2, longest), min(context, longest)
    sentences = [sentence for sentence in sentences if around.tokens(sentence) <= room]
    if len(sentences) < least_values():
        raise InputError(
            f"only {len(sentences)} changed sentences fit {room} {unit}, and an interval takes "
            f"{least_values()}; give more or shorter sentences, or a model with a longer context"
        )
    shortest = max(map(around.tokens, sentences))
    doublings = math.ceil(math.log2(longest / shortest))
    tried = [*(shortest * 2**step for step in range(doublings)), longest]
    total = len(tried) + 3 * math.ceil(math.log2(math.log(2) / math.log(FINEST)))
    least = 1 - threshold
    medians: dict[int, dict[str, Estimate]] = {}

    def measure(length: int) -> bool:
        """Measure passages of that length; False where the texts do not have enough words."""
        passages = [
            around.passage(sentence, place, length) for place in PLACES for sentence in sentences
        ]
        if not all(passages):
            return False
        vectors = loaded.encode([text for versions in passages for text in versions])
        distances = cosine_distance(vectors[::2], vectors[1::2]).reshape(len(PLACES), -1).numpy()
        curves = {ANY: distances.mean(axis=0), **dict(zip(PLACES, distances, strict=True))}
        medians[length] = {place: median_estimate(values) for place, values in curves.items()}
        progress(min(len(medians), total), total)
        return True

    for length in tried:
        if not measure(length):
            break
        lost = all(ends(median)[1] < least for median in medians[length].values())
        if lost and len(medians) >= _LEAST_LENGTHS:
            break
    if not medians:
        raise InputError(
            f"{argument('texts')} hold too few words for passages of {shortest} {unit}, the "
            "longest changed sentence; give more or longer texts"
        )
    while gaps := _open_gaps(medians, least):
        for low, high in gaps:
            measure(round(math.sqrt(low * high)))
    lengths = sorted(medians)
    curves = {
        place: tuple(medians[length][place] for length in lengths) for place in (ANY, *PLACES)
    }
    advice = {place: _advice(lengths, curve, least, unit) for place, curve in curves.items()}
    overall = advice.pop(ANY)
    places = {name: tuple(row[name] for row in advice.values()) for name in overall}
    return LengthAdvice(
        model=loaded.name,
        source=source,
        kind=kind,
        threshold=threshold,
        unit=unit,
        changes=len(sentences),
        **overall,
        places={"place": tuple(PLACES), **places},
        curve={unit: tuple(lengths), **curves},
    )


class ChangedSentence(NamedTuple):
    """A sentence in two versions, and its place among the words of all texts.

    Attributes:
        versions: the two.
        start, stop: the words of `Surroundings` that it replaces; none where start == stop.
    """

    versions: tuple[str, str]
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
        self._words = " ".join(texts).split()
        self.starts = [0, *accumulate(len(text.split()) for text in texts)][:-1]
        self._tokens_of = cache(lambda word: max(1, count(f"a {word}") - count("a")))

    def negated_sentences(self) -> list[ChangedSentence]:
        """The shortest sentence of every text in which a "not" can be put in or taken out; the
        shortest of all first.

        A long sentence leaves no short passage to measure.
        """
        shortest, start = [], 0
        for text in self.texts:
            changed = []
            for sentence in SENTENCE_END.split(text):
                words = sentence.split()
                stop, plain = start + len(words), " ".join(words)
                opposite = negate(plain) if len(words) in _SENTENCE else None
                if opposite not in (None, plain):
                    changed.append(ChangedSentence((plain, opposite), start, stop))
                start = stop
            shortest += sorted(changed, key=self.tokens)[:1]
        return sorted(shortest, key=self.tokens)

    def tokens(self, sentence: ChangedSentence) -> int:
        """Tokens of the longer version, special ones included."""
        return max(map(self._count, sentence.versions))

    def passage(
        self,
        sentence: ChangedSentence,
        place: str,
        tokens: int,
    ) -> tuple[str, ...]:
        """Both versions with as many words around them as `tokens` has room for; nothing where
        the texts do not have enough.

        The longer version has at most `tokens` tokens.
        """
        most = len(self._words) - (sentence.stop - sentence.start)
        room, before, after = tokens - self.tokens(sentence), [], []
        while len(before) + len(after) < most:
            # The next word goes to the side that lacks most of its share.
            earlier = len(before) < PLACES[place] * (len(before) + len(after) + 1)
            index = sentence.start - 1 - len(before) if earlier else sentence.stop + len(after)
            word = self._words[index % len(self._words)]
            room -= self._tokens_of(word)
            if room < 0:
                return tuple(" ".join([*before[::-1], x, *after]) for x in sentence.versions)
            (before if earlier else after).append(word)
        return ()


def _sentences(
    around: Surroundings,
    pairs: Pairs | None,
    most: int,
) -> tuple[str, str, list[ChangedSentence]]:
    """The source of the changes, their kind, and the changed sentences: the user's own where they
    give enough."""
    if pairs is None:
        negated = around.negated_sentences()
        if len(negated) >= least_values():
            return "your texts", NEGATION, negated[:most]
        source, pairs = "shipped", [pair for pair in minimal_pairs() if pair.kind == NEGATION]
    else:
        source, pairs = "given", read_pairs(pairs)
    # A pair that is given twice, or turned around, is one change.
    chosen = list({pair.texts: pair for pair in pairs if not pair.same}.values())
    if len(chosen) < least_values():
        raise InputError(
            f"{argument('pairs')} holds {len(chosen)} opposites, whose meaning differs (same = "
            f"false), and an interval takes {least_values()}; give more"
        )
    kind = chosen[0].kind if len({pair.kind for pair in chosen}) == 1 else "change"
    count = min(most, len(chosen))
    spread = (chosen[number * len(chosen) // count] for number in range(count))
    # Each before a text; where there are more than texts, again from the first.
    placed = [
        ChangedSentence((pair.first, pair.second), start, start)
        for pair, start in zip(spread, cycle(around.starts), strict=False)
    ]
    return f"{source} sentences, put into your texts", kind, placed


def _open_gaps(
    medians: Mapping[int, Mapping[str, Estimate]], threshold: float
) -> list[tuple[int, int]]:
    """The neighbouring lengths between which a median, or an end of its interval, crosses the
    threshold, and that are not close enough."""
    under = {
        length: [
            number < threshold
            for median in medians[length].values()
            for number in (median.value, *ends(median))
        ]
        for length in sorted(medians)
    }
    return [
        (low, high)
        for low, high in pairwise(under)
        if under[low] != under[high] and high > max(FINEST * low, low + 1)
    ]


def _advice(
    lengths: Sequence[int],
    curve: Sequence[Estimate],
    threshold: float,
    unit: str,
) -> dict[str, Any]:
    """The length at which the median falls under the threshold, its interval, and the reason where
    there is no length. Length and low end are rounded down, the high end up."""
    median, below, above = np.array([(each.value, *ends(each)) for each in curve]).T
    reason = None
    if median[0] < threshold:
        reason = f"the change moves the embedding by less already at {lengths[0]} {unit}"
    elif median.min() >= threshold:
        reason = f"no fall below was measured up to {lengths[-1]} {unit}"
    length, low = (
        math.floor(_fall(lengths, numbers, threshold) + 1e-9) for numbers in (median, below)
    )
    high = _fall(lengths, above, threshold, last=True)
    return {
        "length": None if reason else length,
        "low": low or None,
        "high": None if math.isinf(high) else math.ceil(high - 1e-9),
        "reason": reason,
    }


def _fall(
    lengths: Sequence[int],
    curve: Float[np.ndarray, " lengths"],
    threshold: float,
    *,
    last: bool = False,
) -> float:
    """The length at which the curve first falls under the threshold, or with `last` the one from
    which it stays there.

    Between two lengths the curve is a power law. At a step it falls at the shorter, or with `last`
    at the longer. There is a step before the lengths (from 0) and one behind them (to infinity).
    """
    known = [0.0, *lengths, math.inf]
    values = np.array([math.inf, *curve, -math.inf])
    under = values < threshold
    index = np.flatnonzero(~under)[-1] + 1 if last else under.argmax()
    before, after = values[index - 1 : index + 1].tolist()
    if after < STEEP * before:
        return known[index] if last else known[index - 1]
    share = math.log(before / threshold) / math.log(before / after)
    return known[index - 1] * (known[index] / known[index - 1]) ** share
