"""S against the words' mean cosine: equally correlated words, repeated words, real texts."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from statistics import fmean
from typing import Any, ClassVar

from wordsens.experiments.experiment import (
    Claim,
    Experiment,
    Grids,
    Section,
    Summary,
    mean_over_draws,
    ratio,
    text_title,
)
from wordsens.experiments.sensitivity import SensitivityCell, measure_sensitivity
from wordsens.experiments.store import Record, as_records
from wordsens.experiments.texts import Embedded, texts_at_least
from wordsens.maps.registry import map_title
from wordsens.statistics.mean import Estimate
from wordsens.text import load_encoder

CORRELATED = "correlated"

NEAR = 0.05
"""A ratio whose interval lies this near to 1 is said to hardly change."""


class CorrelationCell(SensitivityCell, frozen=True):
    """A sensitivity cell of this experiment."""

    experiment: ClassVar[str] = "correlations"


COSINES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95)
REPETITIONS = (2, 4, 10)
"""The number of times that each word of a repeated text stands in it."""

_LAZY: dict[str, Any] = {"gaussian": "lazy", "starts": 2}
_RF = {"map": ["rf"], **_LAZY, "words": {"sample": 4}}
_DRF = {"map": ["drf"], **_LAZY, "words": {"sample": 2}, "depth": 4, "steps": 20}
_ATTENTION: dict[str, Any] = {"map": ["raf", "relu-raf"]}
_QUICK = {**_ATTENTION, "search": "quick"}

PRESETS: dict[str, tuple[int, list[dict[str, Any]]]] = {
    "quick": (3, [{**_RF, "n": 20, "d": 32}, {**_QUICK, "n": 20, "d": 32, "dtype": "float32"}]),
    "laptop": (10, [{**_RF, "n": 50, "d": 192}, {**_DRF, "n": 50, "d": 96}, {**_QUICK, "n": 50, "d": 192}]),
    "full": (
        10,
        [
            {**_RF, "n": 100, "d": 384},
            {**_DRF, "n": 50, "d": 192},
            {**_ATTENTION, "n": 100, "d": 384},
        ],
    ),
}
"""Draws, and the grids but for their texts; d is the encoder's own where that is smaller."""


def preset(scale: str, source: Embedded, seed: int, labels: str | None) -> Grids:
    """S of RF, DRF, RAF and ReLU-RAF on orthogonal to nearly equal words, repeated words, and real texts, taken at
    their layer and at the encoder's last.
    """
    draws, parts = PRESETS[scale]
    encoder = load_encoder(source.encoder)
    cosines, times_each = ((0.0, 0.5, 0.95), (4,)) if scale == "quick" else (COSINES, REPETITIONS)
    grids, notices = [], []
    for part in parts:
        n = part["n"]
        texts: list[dict[str, Any]] = [{"kind": CORRELATED, "mean_cosine": cosine} for cosine in cosines]
        texts += [{"kind": "repeated", "distinct": n // times} for times in times_each]
        if texts_at_least(source, n, seed=seed, most=1):
            layers = dict.fromkeys((source.layer, encoder.layers))
            texts += [source.model_copy(update={"layer": layer}).model_dump(mode="json") for layer in layers]
        else:
            notices.append(f"no text has {n} words: {'/'.join(part['map'])} are measured without real texts")
        own = {**part, "d": min(part["d"], encoder.dimension), "draw": list(range(draws))}
        grids += [{**own, "text": text} for text in texts]
    return grids, notices


@dataclass(frozen=True)
class Place:
    """The draws of one map on texts of one kind: `cosine` is the mean cosine that their rows have, measured."""

    map: str
    text: str
    cosine: float
    value: Estimate
    records: tuple[Record, ...]

    @property
    def title(self) -> str:
        """The texts in words."""
        one = self.records[0]
        if one.text == CORRELATED:
            return f"mean cosine {one.mean_cosine:g}"
        if one.text == "repeated":
            return f"{one.distinct} different words of {one.n}"
        return text_title(one.text) + (f", layer {one.layer}" if one.layer else "")


def places(records: Any) -> list[Place]:
    """The finished records of each map and kind of text, by mean cosine."""
    groups: dict[tuple[str, str, float], list[Record]] = defaultdict(list)
    for record in as_records(records):
        if record.done:
            text = f"{record.text}, layer {record.layer}" if record.layer else record.text
            groups[record.map, text, float(record.mean_cosine or record.distinct or 0)].append(record)
    found = [
        Place(*key[:2], round(fmean(one.cosine for one in own), 9), Estimate.of([one.value for one in own]), tuple(own))
        for key, own in groups.items()
    ]
    order = {key: at for at, key in enumerate(dict.fromkeys((one.map, one.text) for one in found))}
    return sorted(found, key=lambda one: (order[one.map, one.text], one.cosine))


def summarize(records: Sequence[Record]) -> Summary:
    """A row a map and kind of text; what the mean cosine does, and where real texts lie."""
    found = places(records)
    rows = tuple(
        (map_title(one.map), one.title, one.records[0].n, one.records[0].d, one.cosine, one.value, one.value.draws)
        for one in found
    )
    claims = []
    for name in dict.fromkeys(one.map for one in found):
        own = [one for one in found if one.map == name]
        curve = [one for one in own if one.text == CORRELATED]
        if len(curve) > 1:
            claims += _along(curve)
            claims += [claim for one in own if one.text != CORRELATED for claim in _beside(one, curve)]
    headings = ("map", "texts", "n", "d", "mean cosine", "S", "draws")
    return Summary(
        (Section("Correlated words", headings, rows),),
        "S: attained, means over draws with standard errors. Mean cosine: of two different rows, measured.",
        tuple(claims),
    )


def _along(curve: Sequence[Place]) -> list[Claim]:
    """The most correlated texts beside the least correlated ones: the same draws."""
    first, last = curve[0], curve[-1]
    change = ratio(last.records, first.records)
    if change is None:
        return []
    low, high = change.interval
    if low > 1 - NEAR and high < 1 + NEAR:
        does = f"S hardly changes, by the factor {change}"
    elif low > 1 or high < 1:
        does = f"S {'grows' if low > 1 else 'falls'} by the factor {change}, from {first.value} to {last.value}"
    else:
        return []
    sentence = (
        f"{map_title(first.map)}, {first.records[0].n} words: from mean cosine {first.cosine:.2g} to {last.cosine:.2g} "
        f"{does}."
    )
    return [Claim(f"×{change.mean:.2g}", sentence, mean_over_draws(change))]


def _beside(place: Place, curve: Sequence[Place]) -> list[Claim]:
    """Texts of another kind beside correlated ones of the same mean cosine, interpolated."""
    around = [(a, b) for a, b in pairwise(curve) if a.cosine <= place.cosine <= b.cosine]
    if not around:
        return []
    a, b = around[0]
    share = (place.cosine - a.cosine) / (b.cosine - a.cosine)
    expected = a.value.mean + share * (b.value.mean - a.value.mean)
    error = max(a.value.error, b.value.error)
    low, high = place.value.interval
    if low - 2 * error <= expected <= high + 2 * error:
        return []
    more = "more" if place.value.mean > expected else "less"
    sentence = (
        f"{map_title(place.map)}: {place.title} (mean cosine {place.cosine:.2g}) has S = {place.value}, {more} than "
        f"equally correlated texts of that mean cosine ({expected:.3g} ± {error:.2g}): the rest of the Gram matrix "
        "counts."
    )
    return [Claim(f"{place.value.mean:.2g}", sentence, mean_over_draws(place.value) + " The other is interpolated.")]


EXPERIMENT = Experiment(
    name="correlations",
    Cell=CorrelationCell,
    # The bounds would take as long as the searches, and correlated words leave them wide.
    measure=partial(measure_sensitivity, certificate=False),
    preset=preset,
    summarize=summarize,
    figures=("correlations",),
)
