"""What the records of the depth study say: how S goes on over the layers, and what stands beside
it."""

import math
from collections.abc import Iterable, Sequence
from statistics import fmean
from typing import Any

import numpy as np

from wordsens.display.numbers import Estimate
from wordsens.display.view import Finding, Table
from wordsens.intervals import ends
from wordsens.sweeps.experiment import (
    INTERVALS,
    Column,
    Summary,
    estimate,
    finding,
    grouped,
    over_draws,
    ratio,
    table,
    text_title,
    value_of,
)
from wordsens.sweeps.store import Record

_MEASURES: dict[str, Column] = {
    "S": "value",
    "average": "average",
    "small radius": "small_radius",
    "removal": "removal",
}
_CURVE: dict[str, Column] = {
    "layers of": "series",
    "texts": lambda record: texts_of(record),
    "n": "n",
    "d": "d",
}
_BY_LAYER: dict[str, Column] = {**_CURVE, "layer": "at_layer"}
_AROUND: dict[str, Column] = {**_CURVE, "words in front": "front", "behind": "behind"}


def summarize(records: Sequence[Record]) -> Summary:
    """Exponents of growth by layer, every layer, the trained model by kind of text, and words in
    front and behind."""
    plain = [record for record in records if not in_context(record)]
    random = [record for record in plain if record.model is None]
    trained = [record for record in plain if record.model is not None]
    tables = [
        _growth("Random transformers: S of one word over the layers", random, "value"),
        _growth("Trained model: S of one word over the layers", trained, "value"),
        _growth("Random transformers: the average case over the layers", random, "average"),
        table(
            "Random transformers, every layer",
            random,
            _BY_LAYER,
            _MEASURES | {"predicted": "predicted"},
        ),
        table("Trained model, every layer", trained, _BY_LAYER, _MEASURES),
        table(
            "Words in front and behind",
            [record for record in records if in_context(record)],
            _AROUND,
            {name: _MEASURES[name] for name in ("S", "average")},
        ),
    ]
    return Summary(
        tuple(table for table in tables if len(table)),
        "S of one word, a lower bound. Means over draws and exponents b of S ~ layer^b, "
        f"{INTERVALS} over draws.",
        (*_over_layers(random), *_training(trained), *_predictions(random), *_contexts(records)),
        "Average: random Deltas; predicted: its law as d grows. Small radius: the Jacobian's norm "
        "times the radius, "
        "over the features' norm. Removal: the change of the other rows when the word is left out.",
    )


def in_context(record: Record) -> bool:
    """True of a record of the part that varies the words in front and behind."""
    return bool(record.front or record.behind or record.last_row) or record.series.startswith("RAF")


def texts_of(record: Record) -> str:
    """The name of the record's kind of text."""
    return text_title(record.text) if record.where is None else record.where.partition("=")[2]


def settings(records: Iterable[Record]) -> dict[tuple[Any, ...], list[Record]]:
    """The curves: records by series, kind of text, n and d."""
    return grouped(records, "series", texts_of, "n", "d")


def exponent(curve: Sequence[Record], column: str = "value") -> Estimate | None:
    """b of S ~ layer^b: the mean over draws of each draw's least-squares slope; None for a single
    layer."""
    slopes = []
    for draw in grouped(curve, "draw").values():
        points = [
            (record.at_layer, getattr(record, column)) for record in draw if getattr(record, column)
        ]
        if len({layer for layer, _ in points}) > 1:
            layers, values = np.log(np.array(points, dtype=np.float64)).T
            slopes.append(float(np.polyfit(layers, values, 1)[0]))
    return over_draws(slopes) if slopes else None


def _growth(title: str, records: Sequence[Record], column: str) -> Table:
    """A row a curve: the measure behind its first and last layer, and its exponent."""
    rows = []
    for curve in settings(records).values():
        first, last = _ends(curve)
        if (slope := exponent(curve, column)) is None:
            continue
        keys = [value_of(curve[0], key) for key in _CURVE.values()]
        layers = f"{first[0].at_layer}-{last[0].at_layer}"
        rows.append((*keys, layers, estimate(first, column), estimate(last, column), slope))
    return Table.of_rows(title, (*_CURVE, "layers", "first", "last", "exponent"), rows)


def _ends(curve: Sequence[Record]) -> tuple[list[Record], list[Record]]:
    """The records behind the first and the last layer."""
    layers = sorted({record.at_layer for record in curve})
    first, last = (
        [record for record in curve if record.at_layer == layer]
        for layer in (layers[0], layers[-1])
    )
    return first, last


def _over_layers(records: Sequence[Record]) -> list[Finding]:
    """The architectures by what S does over the layers on the kinds and lengths of text; then the
    average case's."""
    claims = []
    for column, name, surety in (
        ("value", "S of one word", ("attained", "95 % interval")),
        ("average", "the average case, a random move,", ("95 % interval",)),
    ):
        everywhere, elsewhere = list[str](), dict[str, list[str]]()
        layers, most = ("", ""), 0
        for (series,), of_series in grouped(records, "series").items():
            slopes, factors = [], []
            for curve in settings(of_series).values():
                first, last = _ends(curve)
                slope, change = exponent(curve, column), ratio(last, first, column)
                if slope is not None and change is not None and slope.low is not None:
                    slopes.append(ends(slope))
                    factors.append(change.value)
                    layers = first[0].at_layer, last[0].at_layer
            if not slopes:
                continue
            count, most = len(slopes), max(most, len(slopes))
            grows, falls = sum(low > 0 for low, _ in slopes), sum(high < 0 for _, high in slopes)
            member = f"{series} (×{min(factors):.2g} to ×{max(factors):.2g})"
            if grows == count:
                everywhere.append(member)
                continue
            does = [f"grows on {grows} of {count}"] * bool(grows) + [
                f"falls on {falls} of {count}"
            ] * bool(falls)
            elsewhere.setdefault(" and ".join(does) or "shows no trend", []).append(member)
        total = len(everywhere) + sum(map(len, elsewhere.values()))
        if not total:
            continue
        where = (
            f"all {most} kinds and lengths of text"
            if most > 1
            else "the one kind and length of text"
        )
        sentence = (
            f"From layer {layers[0]} to {layers[1]} {name} grows in {len(everywhere)} of {total} "
            f"architectures on {where}" + (f": {', '.join(everywhere)}" if everywhere else "")
        )
        others = [f"in {', '.join(members)} it {does}" for does, members in elsewhere.items()]
        known = (
            "Grows, falls: by the 95 % interval of the exponent over draws. In brackets: last "
            "layer over first."
        )
        number, value = f"{len(everywhere)} of {total}", len(everywhere)
        claims.append(
            finding(number, f"{'; '.join([sentence, *others])}.", known, value, records, surety)
        )
    return claims


def _training(records: Sequence[Record]) -> list[Finding]:
    """A trained model beside its architecture with random weights, behind the last layer, on each
    kind of text."""
    claims = []
    for (model,), of_model in grouped(records, "model").items():
        parts, ratios = [], []
        for (texts, n), of_texts in grouped(of_model, texts_of, "n").items():
            twins = [
                [r for r in of_texts if bool(r.random_weights) == random]
                for random in (False, True)
            ]
            if not all(twins):
                continue
            last = max(record.at_layer for record in of_texts)
            trained, untrained = ([r for r in twin if r.at_layer == last] for twin in twins)
            change, values = (
                ratio(trained, untrained),
                [estimate(group) for group in (trained, untrained)],
            )
            if change is not None:
                ratios.append(change.value)
                parts.append(f"{texts} of {n} rows {values[0]} against {values[1]}")
        if parts:
            factors = " to ".join(
                dict.fromkeys(f"{factor:.2g}" for factor in (min(ratios), max(ratios)))
            )
            sentence = (
                f"Behind its last layer one word moves {model} {factors} times as much as the same "
                "architecture with "
                f"random weights: {'; '.join(parts)}."
            )
            known = (
                f"Attained; means over draws, {INTERVALS}. The ball's radius is the "
                "word's own length."
            )
            claims.append(
                finding(
                    f"×{fmean(ratios):.2g}", sentence, known, fmean(ratios), of_model, ("attained",)
                )
            )
    return claims


def _predictions(records: Sequence[Record]) -> list[Finding]:
    """How far the law for growing d is from the average case that was measured."""
    errors = []
    for curve in grouped(records, "series", texts_of, "n", "d", "at_layer").values():
        measured, predicted = estimate(curve, "average"), estimate(curve, "predicted")
        if measured is not None and predicted is not None:
            errors.append((abs(predicted.value / measured.value - 1), curve[0]))
    if not errors:
        return []
    typical = sorted(error for error, _ in errors)[len(errors) // 2]
    worst, where = max(errors, key=lambda pair: pair[0])
    sentence = (
        f"The law for growing d predicts the average case to {typical:.0%} in the median setting; "
        "worst is "
        f"{worst:.0%}, {where.series} behind layer {where.at_layer}, {texts_of(where)} of "
        f"{where.n} words."
    )
    known = "Means over draws; a prediction, no bound (docs/theory/depth.md)."
    return [finding(f"{typical:.0%}", sentence, known, typical, records, ("predicted",))]


def _contexts(records: Sequence[Record]) -> list[Finding]:
    """S of a word with the most words in front or behind, beside S with none."""
    parts, factors, used = [], [], []
    of_context = [record for record in records if in_context(record)]
    for (series, texts), of_series in grouped(of_context, "series", texts_of).items():
        without = [record for record in of_series if not record.front and not record.behind]
        for place, name in (("front", "in front of"), ("behind", "behind")):
            most = max(getattr(record, place) for record in of_series)
            change = (
                ratio([r for r in of_series if getattr(r, place) == most], without)
                if most and without
                else None
            )
            if change is not None:
                factors.append(change.value)
                parts.append(f"{series}, {most} {name} {without[0].n}: ×{change} ({texts})")
                used += of_series
    if not parts:
        return []
    sentence = (
        "More words around those of which one moves change its S by these factors: "
        f"{'; '.join(parts)}."
    )
    known = (
        f"Attained; paired draws, {INTERVALS}. The last row's S is of that row alone, "
        "the others' of all rows."
    )
    largest = max(factors, key=lambda factor: abs(math.log(factor)))
    return [finding(f"×{largest:.2g}", sentence, known, largest, used, ("attained",))]
