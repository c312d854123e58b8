"""How the effect of one changed word fades as the passage around it grows."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import torch

from wordsens.errors import InputError, require_count, require_positive
from wordsens.maps.transformer import TransformerFeatures
from wordsens.text import MinimalPair, shipped_reviews

MULTIPLES = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class PairDistance:
    """One pair in one passage.

    Attributes:
        pair: its id.
        kind: e.g. "negation"; "synonym" is the control.
        multiple: how many times as long the passage is as the sentence, in tokens, about.
        tokens: of the longer of the two passages, special ones included.
        distance: 1 - cos between the embeddings of the passage with the first and with the second sentence.
    """

    pair: str
    kind: str
    multiple: int
    tokens: int
    distance: float


@dataclass(frozen=True)
class Fading:
    """What `fading` fitted to the distances of one kind: distance ≈ constant * tokens^exponent.

    Attributes:
        kind: of the pairs.
        means: the mean distance for each multiple.
        exponent, constant: least squares of log mean distance on log mean tokens.
        threshold: the distance under which the effect counts as lost.
        length: the number of tokens at which the fitted distance falls under it; None where it does not fall, or
            is under it from the beginning.
    """

    kind: str
    means: dict[int, float]
    exponent: float
    constant: float
    threshold: float
    length: int | None


def pair_distances(
    phi: TransformerFeatures,
    pairs: Iterable[MinimalPair],
    *,
    multiples: Sequence[int] = MULTIPLES,
    filler: str | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[PairDistance]:
    """The cosine distance between the two sentences of every pair, alone and inside longer passages.

    A passage has the sentence in its middle; the filler around it is the same for both sentences. A passage longer than
    the model's context is left out. One forward pass a passage.

    Args:
        phi: a transformer that gives one vector a text.
        pairs: e.g. `wordsens.minimal_pairs()`.
        multiples: lengths, in multiples of the sentence's.
        filler: what stands around; None for shipped reviews.
        progress: called with (pairs done, pairs in all).
    """
    if phi.reader is None or (phi.output == "states" and phi.pooling is None):
        raise InputError(f"{phi.name} does not give one vector a text; choose a pool, such as pool='mean'")
    for multiple in multiples:
        require_count("multiples", multiple)
    words = (filler or " ".join(review.text for review in shipped_reviews()[:12])).split()
    listed = list(pairs)
    found = []
    for done, pair in enumerate(listed):
        for multiple in multiples:
            extra = (multiple - 1) * max(len(pair.first.split()), 1)
            before, after = words[: extra // 2], words[extra // 2 : extra]
            if extra > len(words):
                break
            passages = [" ".join([*before, sentence, *after]) for sentence in (pair.first, pair.second)]
            counted = [len(phi.reader.tokenizer(passage, verbose=False)["input_ids"]) for passage in passages]
            if phi.reader.context is not None and max(counted) > phi.reader.context:
                break
            with torch.no_grad():
                one, other = (phi(text).flatten().double() for text in phi.embed(passages))
            distance = 1 - float(torch.cosine_similarity(one, other, dim=0))
            found.append(PairDistance(pair.id, pair.kind, multiple, max(counted), distance))
        if progress is not None:
            progress(done + 1, len(listed))
    return found


def fading(distances: Iterable[PairDistance], *, threshold: float) -> list[Fading]:
    """A power law of each kind's mean distance in the passage's length, and the length it needs to reach a threshold.

    A multiple counts where at least half of the pairs reach it; means are over the pairs that reach all of these, so
    they fall because passages grow, not because other pairs are in them.

    >>> made = [PairDistance("a", "negation", m, 10 * m, 0.4 / m) for m in (1, 2, 4)]
    >>> (fit,) = fading(made, threshold=0.01)
    >>> round(fit.exponent, 6), fit.length
    (-1.0, 400)
    """
    require_positive("threshold", threshold)
    kinds: dict[str, list[PairDistance]] = defaultdict(list)
    for distance in distances:
        kinds[distance.kind].append(distance)
    return [_fitted(kind, own, threshold) for kind, own in sorted(kinds.items())]


def _fitted(kind: str, own: list[PairDistance], threshold: float) -> Fading:
    reached = {
        multiple: {one.pair for one in own if one.multiple == multiple} for multiple in {o.multiple for o in own}
    }
    most = max(map(len, reached.values()))
    kept = sorted(multiple for multiple, pairs in reached.items() if len(pairs) * 2 >= most)
    common = set.intersection(*(reached[multiple] for multiple in kept))
    means, sizes = {}, {}
    for multiple in kept:
        here = [one for one in own if one.multiple == multiple and one.pair in common]
        means[multiple] = math.fsum(one.distance for one in here) / len(here)
        sizes[multiple] = math.fsum(one.tokens for one in here) / len(here)
    x = [math.log(sizes[multiple]) for multiple in kept]
    y = [math.log(max(means[multiple], 1e-300)) for multiple in kept]
    middle_x, middle_y = math.fsum(x) / len(x), math.fsum(y) / len(y)
    spread = math.fsum((one - middle_x) ** 2 for one in x)
    exponent = 0.0 if spread == 0 else math.fsum((a - middle_x) * b for a, b in zip(x, y, strict=True)) / spread
    constant = math.exp(middle_y - exponent * middle_x)
    length = None
    if exponent < 0 and means[kept[0]] > threshold:
        length = math.ceil((threshold / constant) ** (1 / exponent) - 1e-9)
    return Fading(kind, means, exponent, constant, threshold, length)
