"""The decay of one changed word's effect as the passage around it grows."""

import math
import reprlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_count, require_kind, require_positive
from wordsens.maps.mapping import feature_norm
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.models.black_box import Model, require_cosines
from wordsens.seeds import derive_seed
from wordsens.sensitivity.removals import cosine_distance
from wordsens.statistics.power_law import PowerLaw, centred, fit_power_law, least_squares_slope
from wordsens.text import MeaningPair, MinimalPair, shipped_reviews
from wordsens.text.whole_words import reading_words

MULTIPLES = (1, 2, 4, 8, 16, 32)

LEAST_PAIRS = 5
"""Fewer pairs give no interval: a bootstrap of four has 35 different samples."""

RESAMPLES = 2000
"""Of the bootstrap: the ends of a 95 % interval are then the 50th and the 1950th of them."""

COVERAGE = 0.95

BATCH = 64
"""Passages between two reports of progress."""

WIDEST = 2.0
"""The largest ratio of an interval's ends at which a passage's length can be chosen by it: measured lengths double from
one to the next."""


@dataclass(frozen=True)
class PairDistance:
    """One pair in one passage.

    Attributes:
        pair: its id.
        kind: e.g. "negation"; "synonym" is the control.
        multiple: the length of the passage, in lengths of the sentence, about.
        tokens: of the longer of the two passages, special ones included.
        distance: 1 - cos between the embeddings of the passage with the first and with the second sentence.
    """

    pair: str
    kind: str
    multiple: int
    tokens: int
    distance: float


@dataclass(frozen=True)
class Decay:
    """A power law that `decay` fitted to the distances of one kind: mean distance = constant * tokens^exponent.

    Attributes:
        kind: of the pairs.
        pairs: how many of them every mean is over.
        means: the mean distance for each multiple.
        fit: least squares of log mean distance on log mean tokens; its standard error is the bootstrap's. None where
            `reason` says why there is none.
        reason: why there is no fit.
        threshold: the distance under which the effect counts as lost.
        length: the number of tokens at which the fitted distance falls under it; None where it does not fall, or
            is under it from the beginning.
        interval: a 95 % interval of that length over pairs (percentile bootstrap); an end of None is infinite. None
            where there is no length, or there are fewer than LEAST_PAIRS pairs.
        longest: mean tokens of the longest passages that were measured: a longer `length` is extrapolated.
    """

    kind: str
    pairs: int
    means: dict[int, float]
    fit: PowerLaw | None
    reason: str | None
    threshold: float
    length: int | None
    interval: tuple[int, int | None] | None
    longest: int

    @property
    def decisive(self) -> bool:
        """True where the interval of the length is narrow enough to act on."""
        if self.interval is None or self.interval[1] is None:
            return False
        return self.interval[1] <= WIDEST * self.interval[0]


def pair_distances(
    phi: TransformerFeatures | Model,
    pairs: Iterable[MinimalPair | MeaningPair],
    *,
    multiples: Sequence[int] = MULTIPLES,
    filler: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[PairDistance]:
    """The cosine distance between the two sentences of every pair, alone and inside longer passages.

    A passage has the sentence in its middle; the filler around it is the same for both sentences. A passage longer than
    the model's context is left out; of a model that gives vectors and nothing else no context is known, and words count
    as tokens. Passages of like length are encoded together, each once.

    Args:
        phi: a transformer that gives one vector a text, or a Model.
        pairs: e.g. `wordsens.minimal_pairs()`.
        multiples: lengths, in multiples of the sentence's.
        filler: the text around the sentence; None: shipped reviews.
        progress: called with (characters read, characters in all).
    """
    count, context = _tokens(phi)
    require_cosines(phi, "distances by length")
    for multiple in multiples:
        require_count("multiples", multiple)
    words = (filler or " ".join(review.text for review in shipped_reviews()[:12])).split()
    listed = list(pairs)
    for pair in listed:
        if not isinstance(pair, (MinimalPair, MeaningPair)):
            raise InputError(
                f"`pairs` has {reprlib.repr(pair)}, which is not a MinimalPair or MeaningPair; give pairs such as "
                "those of wordsens.minimal_pairs(), with an id, a kind and two texts each"
            )
    placed: list[tuple[MinimalPair | MeaningPair, int, int, list[str]]] = []
    for pair in listed:
        for multiple in multiples:
            extra = (multiple - 1) * max(len(pair.first.split()), 1)
            before, after = words[: extra // 2], words[extra // 2 : extra]
            if extra > len(words):
                break
            passages = [" ".join([*before, sentence, *after]) for sentence in (pair.first, pair.second)]
            tokens = max(map(count, passages))
            if context is not None and tokens > context:
                break
            placed.append((pair, multiple, tokens, passages))
    vectors = _encoded(phi, [passage for *_, passages in placed for passage in passages], progress)
    return [
        PairDistance(
            pair.id, pair.kind, multiple, tokens, float(cosine_distance(*(vectors[text] for text in passages)))
        )
        for pair, multiple, tokens, passages in placed
    ]


def _tokens(phi: TransformerFeatures | Model) -> tuple[Callable[[str], int], int | None]:
    """The count of a text's tokens, and the largest that the model reads."""
    if isinstance(phi, Model):
        return lambda text: len(reading_words(text)), None
    require_kind("phi", phi, TransformerFeatures, remedy="load one with TransformerFeatures.from_pretrained")
    if phi.reader is None or (phi.output == "states" and phi.pool is None):
        raise InputError(f"{phi.name} does not give one vector a text; choose a pool, such as pool='mean'")
    return phi.reader.count, phi.reader.context


def _encoded(
    phi: TransformerFeatures | Model, texts: Sequence[str], progress: Callable[[int, int], None] | None
) -> dict[str, Tensor]:
    """Every text's vector."""
    ordered = sorted(set(texts), key=lambda text: (len(text), text))
    result: dict[str, Tensor] = {}
    read, total = 0, sum(map(len, ordered))
    for start in range(0, len(ordered), BATCH):
        part = ordered[start : start + BATCH]
        for text, vector in zip(part, phi.encode(part), strict=True):
            feature_norm(vector, phi.name)
            result[text] = vector
        read += sum(map(len, part))
        if progress is not None:
            progress(read, total)
    return result


def decay(distances: Iterable[PairDistance], *, threshold: float, seed: int = 0) -> list[Decay]:
    """A power law of each kind's mean distance in the passage's length, and the length it needs to reach a threshold.

    A multiple counts where at least half of the pairs reach it; means are over the pairs that reach all of these, so
    they fall because passages grow, not because other pairs are in them. A pair's distances at different lengths are
    not independent: intervals come from drawing whole pairs with replacement, RESAMPLES times.

    >>> made = [PairDistance("a", "negation", m, 10 * m, 0.4 / m) for m in (1, 2, 4)]
    >>> (law,) = decay(made, threshold=0.01)
    >>> round(law.fit.exponent, 6), law.length, law.interval
    (-1.0, 400, None)
    """
    require_positive("threshold", threshold)
    kinds: dict[str, list[PairDistance]] = defaultdict(list)
    for distance in distances:
        kinds[distance.kind].append(distance)
    return [_fitted(kind, kinds[kind], threshold, derive_seed(seed, "pairs", kind)) for kind in sorted(kinds)]


def _fitted(kind: str, measured: list[PairDistance], threshold: float, seed: int) -> Decay:
    multiples, tokens, distances = _common(measured)
    pairs = len(tokens)
    sizes, means = tokens.mean(axis=0), distances.mean(axis=0)
    fit, length, interval, reason = None, None, None, None
    if len(multiples) < 3:
        reason = f"its pairs were measured at {len(multiples)} lengths, and an exponent needs 3"
    elif means.min() <= 0:
        reason = f"its mean distance at {multiples[int(means.argmin())]} times the sentence's length is 0"
    else:
        law = fit_power_law(sizes.tolist(), means.tolist())
        slopes, crossings = _resampled(tokens, distances, threshold, seed)
        fit = PowerLaw(law.exponent, float(slopes.std(ddof=1)) if pairs >= LEAST_PAIRS else math.nan, law.constant)
        if law.exponent < 0 and means[0] > threshold:
            length = _up(law.constant, law.exponent, threshold)
            interval = _interval(crossings) if pairs >= LEAST_PAIRS else None
    shown = dict(zip(multiples, means.tolist(), strict=True))
    return Decay(kind, pairs, shown, fit, reason, threshold, length, interval, int(sizes[-1]))


def _common(measured: list[PairDistance]) -> tuple[list[int], Float[np.ndarray, "p m"], Float[np.ndarray, "p m"]]:
    """The multiples that count, and tokens and distance of each pair that reaches them all, at each of them."""
    at = {(distance.pair, distance.multiple): distance for distance in measured}
    reached = {multiple: {pair for pair, other in at if other == multiple} for _, multiple in at}
    most = max(map(len, reached.values()))
    multiples = sorted(multiple for multiple, pairs in reached.items() if len(pairs) * 2 >= most)
    pairs = sorted(set.intersection(*(reached[multiple] for multiple in multiples)))
    table = [[at[pair, multiple] for multiple in multiples] for pair in pairs]
    tokens = np.array([[entry.tokens for entry in row] for row in table], dtype=np.float64)
    return multiples, tokens, np.array([[entry.distance for entry in row] for row in table])


def _resampled(
    tokens: Float[np.ndarray, "p m"], distances: Float[np.ndarray, "p m"], threshold: float, seed: int
) -> tuple[Float[np.ndarray, " b"], Float[np.ndarray, " b"]]:
    """The exponent, and the length at which the threshold is reached (infinite where nothing falls), of each sample."""
    drawn = np.random.default_rng(seed).integers(len(tokens), size=(RESAMPLES, len(tokens)))
    means = distances[drawn].mean(axis=1)
    # A sample of pairs whose distance is 0 has no power law; it says that the effect may be lost at once.
    whole = (means > 0).all(axis=1)
    x, y = np.log(tokens[drawn].mean(axis=1))[whole], np.log(means[whole])
    slopes = least_squares_slope(centred(x), centred(y))
    crossings = np.full(RESAMPLES, 0.0)
    with np.errstate(divide="ignore", over="ignore"):
        logs = x.mean(axis=1) + (math.log(threshold) - y.mean(axis=1)) / slopes
        crossings[whole] = np.where(slopes < 0, np.exp(logs), np.inf)
    return slopes, crossings


def _interval(crossings: Float[np.ndarray, " b"]) -> tuple[int, int | None]:
    tail = round((1 - COVERAGE) / 2 * len(crossings))
    ordered = np.sort(crossings)
    low, high = ordered[tail - 1], ordered[-tail]
    return int(low), None if math.isinf(high) else math.ceil(high)


def _up(constant: float, exponent: float, threshold: float) -> int:
    """The first whole number at which the power law is at the threshold or under it."""
    length = (threshold / constant) ** (1 / exponent)
    # A length that is a whole number up to rounding is that number.
    return round(length) if math.isclose(length, round(length), rel_tol=1e-12) else math.ceil(length)
