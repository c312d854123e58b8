"""S against the words' mean cosine: equally correlated words, repeated words, real texts."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from statistics import fmean
from typing import Any, ClassVar

from wordsens.display.view import Finding
from wordsens.intervals import ends
from wordsens.maps.registry import map_title
from wordsens.models.embedding import load_encoder
from wordsens.sweeps.experiment import (
    INTERVALS,
    Column,
    Experiment,
    Grids,
    Summary,
    estimate,
    finding,
    grouped,
    mean_over_draws,
    over_draws,
    ratio,
    table,
    text_title,
)
from wordsens.sweeps.measurement import (
    SensitivityCell,
    alike,
    measure_sensitivities,
    measure_sensitivity,
)
from wordsens.sweeps.store import Record, as_records
from wordsens.sweeps.texts import Embedded, texts_at_least

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
    "quick": (5, [{**_RF, "n": 20, "d": 32}, {**_QUICK, "n": 20, "d": 32, "dtype": "float32"}]),
    "laptop": (
        10,
        [{**_RF, "n": 50, "d": 192}, {**_DRF, "n": 50, "d": 96}, {**_QUICK, "n": 50, "d": 192}],
    ),
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
    """S of RF, DRF, RAF and ReLU-RAF on orthogonal to nearly equal words, repeated words, and real
    texts, taken at their layer and at the encoder's last.
    """
    draws, parts = PRESETS[scale]
    encoder = load_encoder(source.encoder)
    cosines, times_each = ((0.0, 0.5, 0.95), (4,)) if scale == "quick" else (COSINES, REPETITIONS)
    grids, notices = [], []
    for part in parts:
        n = part["n"]
        texts: list[dict[str, Any]] = [
            {"kind": CORRELATED, "mean_cosine": cosine} for cosine in cosines
        ]
        texts += [{"kind": "repeated", "distinct": n // times} for times in times_each]
        if texts_at_least(source, n, seed=seed, most=1):
            layers = dict.fromkeys((source.layer, encoder.layers))
            texts += [
                source.model_copy(update={"layer": layer}).model_dump(mode="json")
                for layer in layers
            ]
        else:
            notices.append(
                f"no text has {n} words: {'/'.join(part['map'])} are measured without real texts"
            )
        common = {**part, "d": min(part["d"], encoder.dimension), "draw": list(range(draws))}
        grids += [{**common, "text": text} for text in texts]
    return grids, notices


def texts_title(record: Record) -> str:
    """The texts in words."""
    if record.text == CORRELATED:
        return f"mean cosine {record.mean_cosine:g}"
    if record.text == "repeated":
        return f"{record.distinct} different words of {record.n}"
    return text_title(record.text) + (f", layer {record.layer}" if record.layer else "")


def by_cosine(records: Any) -> list[Record]:
    """The finished records map by map and kind of text, by `cosine`: from here on its mean over the
    draws."""
    groups = grouped(
        (one for one in as_records(records) if one.done), "map", "text", "layer", texts_title
    )
    order = {key[:3]: at for at, key in enumerate(groups)}
    means = {
        key: round(fmean(one.cosine for one in group), 9) + 0.0 for key, group in groups.items()
    }  # no -0.0
    keys = sorted(groups, key=lambda key: (order[key[:3]], means[key]))
    return [one.replace(cosine=means[key]) for key in keys for one in groups[key]]


def summarize(records: Sequence[Record]) -> Summary:
    """A row a map and kind of text; what the mean cosine does, and where real texts lie."""
    ordered = by_cosine(records)
    along, beside, untold = [], [], []
    for (name,), group in grouped(ordered, "map").items():
        curve = list(
            grouped([one for one in group if one.text == CORRELATED], texts_title).values()
        )
        if len(curve) > 1:
            told = _along(curve[0], curve[-1])
            along += told
            untold += [] if told else [map_title(name)]
            others = grouped([one for one in group if one.text != CORRELATED], texts_title)
            beside += [claim for other in others.values() for claim in _beside(other, curve)]
    if along and untold:
        sentence = f"Of {', '.join(untold)} these texts tell no change."
        along.append(
            finding(
                str(len(untold)),
                sentence,
                "Its 95 % interval holds the factor 1.",
                len(untold),
                ordered,
            )
        )
    keys: dict[str, Column] = {
        "map": lambda one: map_title(one.map),
        "texts": texts_title,
        "n": "n",
        "d": "d",
    }
    return Summary(
        (table("Correlated words", ordered, {**keys, "mean cosine": "cosine"}, {"S": "value"}),),
        f"S: attained, means over draws, {INTERVALS}. Mean cosine: of two different rows, "
        "measured.",
        (*along, *beside),
        leading=max(1, len(along)),
    )


def _along(first: Sequence[Record], last: Sequence[Record]) -> list[Finding]:
    """The most correlated texts beside the least correlated ones: the same draws."""
    change = ratio(last, first)
    if change is None:
        return []
    low, high = ends(change)
    if low > 1 - NEAR and high < 1 + NEAR:
        does = f"S hardly changes, by the factor {change}"
    elif low > 1 or high < 1:
        does = (
            f"S {'grows' if low > 1 else 'falls'} by the factor {change}, from "
            f"{estimate(first)} to {estimate(last)}"
        )
    else:
        return []
    sentence = (
        f"{map_title(first[0].map)}, {first[0].n} words: from mean cosine {first[0].cosine:.2g} to "
        f"{last[0].cosine:.2g} {does}."
    )
    return [finding(f"factor {change}", sentence, mean_over_draws(change), change, [*first, *last])]


def _beside(records: Sequence[Record], curve: Sequence[list[Record]]) -> list[Finding]:
    """Texts of another kind beside correlated ones of the same mean cosine, interpolated."""
    value, place = over_draws([one.value for one in records]), records[0]
    for few, many in pairwise(curve):
        if few[0].cosine <= place.cosine <= many[0].cosine:
            a, b = (over_draws([one.value for one in group]) for group in (few, many))
            share = (place.cosine - few[0].cosine) / (many[0].cosine - few[0].cosine)
            expected = a.value + share * (b.value - a.value)
            low, high = ends(value)
            reach = max(ends(one)[1] - one.value for one in (a, b))
            if low - reach <= expected <= high + reach:
                return []
            sentence = (
                f"{map_title(place.map)}: {texts_title(place)} (mean cosine {place.cosine:.2g}) "
                f"has S = {value}, "
                f"{'more' if value.value > expected else 'less'} than equally correlated texts of "
                "that mean cosine "
                f"({expected:.3g}): the rest of the Gram matrix counts."
            )
            known = f"{mean_over_draws(value)} The other is interpolated."
            return [finding(f"S = {value}", sentence, known, value, [*records, *few, *many])]
    return []


def _correlations(records: Sequence[Record]) -> dict[str, Any]:
    """S against the words' measured mean cosine, a panel a map."""
    from wordsens.plotting.axes import Panel, grid, interval
    from wordsens.plotting.records import curves_of
    from wordsens.plotting.style import BARS, styles_of

    joined = (CORRELATED, "repeated")

    def name(record: Record) -> str:
        if record.text == CORRELATED:
            return "equally correlated words"
        return texts_title(record) if record.text not in joined else text_title(record.text)

    ordered = by_cosine(records)
    drawn = []
    for (recorded,), group in grouped(ordered, "map").items():
        curves = curves_of(group, name, "cosine")
        single_places = frozenset(name(one) for one in group if one.text not in joined)
        top = max(interval(value)[1] for points in curves.values() for _, value in points)
        title = f"{map_title(recorded)}, {group[0].n} words"
        drawn.append(Panel(title, curves, limits=(0.0, 1.15 * top), scattered=single_places))
    figure = grid(
        "Word sensitivity against the words' mean cosine",
        *(drawn, styles_of(map(name, ordered)), ("mean cosine of two words", "word sensitivity S")),
        share_y=False,
        caption=f"{BARS} Every panel has its own scale.",
    )
    return {"correlations": figure}


CORRELATIONS = Experiment(
    name="correlations",
    Cell=CorrelationCell,
    # The bounds would take as long as the searches, and correlated words leave them wide.
    measure=partial(measure_sensitivity, certificate=False),
    together=alike,
    measure_together=partial(measure_sensitivities, certificate=False),
    preset=preset,
    summarize=summarize,
    figures=_correlations,
)
