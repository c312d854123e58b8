"""S against n: one text and one map a cell (paper, figures 2 and 3)."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median, stdev
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from jaxtyping import Float
from pydantic import Field, model_serializer, model_validator
from torch import Tensor

from wordsens.certificates.base import CERTIFIED
from wordsens.display.content import minus, times
from wordsens.errors import InputError, require_choice
from wordsens.maps.arguments import radii, word_indices
from wordsens.maps.base import FeatureMap
from wordsens.maps.registry import base_name, map_title, plain_name
from wordsens.seeds import generator
from wordsens.sensitivity.one_word import attained, word_sensitivity
from wordsens.sensitivity.result import Sensitivity
from wordsens.sensitivity.witness_effect import witness_effect
from wordsens.statistics.mean import student
from wordsens.statistics.power_law import PowerLaw, power_law_and_interval
from wordsens.statistics.trend import Trend
from wordsens.sweeps.experiment import (
    Claim,
    Experiment,
    Grids,
    Section,
    Summary,
    grouped,
    key_text,
    rank,
    text_title,
    varying_columns,
)
from wordsens.sweeps.map_cell import MapCell
from wordsens.sweeps.spec import Strict
from wordsens.sweeps.store import Record, Store, as_records, json_text, record_of, spec_columns
from wordsens.sweeps.texts import Embedded, GivenText, load_text, texts_at_least
from wordsens.text import load_encoder
from wordsens.text.matrix import TextMatrix
from wordsens.theory import predict
from wordsens.theory.prediction import TYPICAL

GIVEN = "given"
"""The kind of text of `wordsens measure`."""

_AVERAGE_WORDS, _AVERAGE_DELTAS = 8, 4
"""Searched words, and random Deltas of each, over which the average case is taken."""


class WordChoice(Strict, frozen=True):
    """The searched words of a text: all of them, a random sample, or those listed."""

    sample: Annotated[int, Field(ge=1)] | None = None
    indices: tuple[int, ...] | None = Field(default=None, strict=False)

    @model_validator(mode="before")
    @classmethod
    def _spelled_out(cls, value: Any) -> Any:
        if isinstance(value, str):
            require_choice("words", value, ["all"])
            return {}
        return value

    @model_validator(mode="after")
    def _one_way(self) -> "WordChoice":
        if self.sample is not None and self.indices is not None:
            raise InputError("`words` has both a sample and indices; give one of them")
        return self

    @model_serializer
    def _short(self) -> Any:
        if self.sample is not None:
            return {"sample": self.sample}
        return "all" if self.indices is None else {"indices": list(self.indices)}


class SensitivityCell(MapCell, frozen=True):
    """One text, one map.

    Attributes:
        n, d: the text is its first n words, the first d coordinates of each, rows rescaled to sqrt(d); of a
            transformer, its own n rows (special tokens included), whose d coordinates are the model's.
        words: "all", {"sample": k} or {"indices": [...]}.
    """

    experiment: ClassVar[str] = "sensitivity"

    words: WordChoice = WordChoice()

    @model_validator(mode="after")
    def _valid(self) -> "SensitivityCell":
        for word in self.words.indices or ():
            if not -self.n <= word < self.n:
                raise InputError(f"`words` has {word}, but the text has n = {self.n} words: 0 to {self.n - 1}")
        indices = self.words.indices
        self.require_answers_fit(len(set(indices)) if indices else min(self.n, self.words.sample or self.n))
        return self

    def described(self) -> dict[str, Any]:
        content = self.text.content if isinstance(self.text, GivenText) else None
        return {**super().described(), "content": content, "map_seed": self.seed_of("map")}


def measure_sensitivity(cell: SensitivityCell, *, certificate: bool = True) -> dict[str, Any]:
    """Measure one cell.

    The text, the weights, the searched words and the random starts each have a seed of their own, derived from the
    cell's seed, n, d and draw: maps that differ in nothing else see the same text, and no cell depends on another.
    """
    phi = cell.build()
    model = phi if cell.reads_texts_itself else None
    text = load_text(cell.text, cell.n, cell.d, draw=cell.draw, seed=cell.seed, model=model)
    words = _searched_words(cell)
    # Before the search: a matrix that is sampled on demand may forget a word's columns after it, to save memory.
    average = average_change(phi, text, words, cell.radius, seed=cell.seed_of("average"))
    result = word_sensitivity(
        phi,
        text,
        words=words,
        radius=cell.radius,
        seed=cell.seed_of("search"),
        search=cell.search_plan,
        certificate=certificate,
    )
    return {
        **columns_of_result(phi, text, result, usual_radius=cell.radius is None),
        "average": average,
        "arrays": {
            "rows": text.rows,
            **{name: getattr(result, name) for name in ("words", "per_word", "perturbations")},
        },
    }


def average_change(
    phi: FeatureMap, text: TextMatrix, words: Sequence[int] | None, radius: float | None, *, seed: int
) -> float:
    """The average case beside the sup: the mean of ‖phi(X^i(Delta)) - phi(X)‖ / ‖phi(X)‖ over a few searched words i,
    evenly spaced, and Deltas uniform on the sphere of the word's radius.
    """
    rows = phi.accept(text.rows)
    searched = word_indices(words, len(rows)).to(rows.device)
    places = torch.linspace(0, len(searched) - 1, min(len(searched), _AVERAGE_WORDS)).long()
    places = places.repeat_interleave(_AVERAGE_DELTAS)
    directions = torch.randn(len(places), rows.shape[1], generator=generator(seed, "directions"), dtype=torch.float64)
    lengths = radii(radius, phi, rows, searched).cpu().double()[places] / torch.linalg.vector_norm(directions, dim=1)
    deltas = (directions * lengths.unsqueeze(1)).to(rows)
    return float(attained(phi, rows, searched[places.to(rows.device)].unsqueeze(1), deltas.unsqueeze(1)).mean())


def _searched_words(cell: SensitivityCell) -> list[int] | None:
    if cell.words.indices is not None:
        return list(cell.words.indices)
    if cell.words.sample is None or cell.words.sample >= cell.n:
        return None
    stream = generator(cell.seed, "words", cell.n, cell.d, cell.draw)
    return sorted(torch.randperm(cell.n, generator=stream)[: cell.words.sample].tolist())


def columns_of_result(phi: FeatureMap, text: TextMatrix, result: Sensitivity, *, usual_radius: bool) -> dict[str, Any]:
    """The columns that a measurement gives; predictions are about the usual radius.

    tokens, whole_words, swapped_for and moved are lists as JSON; searched, per_word and upper_per_word have an entry a
    searched word, in one order.
    """
    whole = None if text.whole_words is None else [[word.text, list(word.rows)] for word in text.whole_words]
    at = int((result.words == result.word).nonzero()[0])
    predicted = predict(phi, text, words=len(result.words)) if usual_radius else None
    return {
        "map": phi.name,
        "depth": getattr(phi, "depth", None),
        "width": getattr(phi, "width", None),
        "temperature": getattr(phi, "temperature", None),
        "source": text.source,
        "label": text.label,
        "tokens": None if text.tokens is None else json_text(text.tokens),
        "whole_words": None if whole is None else json_text(whole),
        "words": len(result.words),
        "searched": tuple(result.words.tolist()),
        "per_word": tuple(result.per_word.tolist()),
        "upper_per_word": None if result.upper_per_word is None else tuple(result.upper_per_word.tolist()),
        "swap": None,
        "swapped_for": None,
        "moved": None,
        "word": result.word,
        "token": result.tokens[at],
        "value": result.value,
        "average": None,
        "cosine": mean_cosine(text.rows),
        "median_word": float(result.per_word.double().quantile(0.5)),
        "upper": result.upper,
        "rigor": result.rigor,
        "predicted": None if predicted is None else predicted.value,
        "predicted_of": None if predicted is None else predicted.of,
        "predicted_in_range": None if predicted is None else predicted.in_range,
        "radius": float(result.radius[at]),
        "evaluations": result.evaluations,
        "converged": float(result.converged.double().mean()),
    }


def mean_cosine(rows: Float[Tensor, "n d"]) -> float:
    """The mean over pairs of different rows of their cosine: (‖sum_i u_i‖² - n) / (n (n - 1)), u_i = x_i / ‖x_i‖."""
    n = len(rows)
    summed = torch.nn.functional.normalize(rows.double(), dim=1).sum(dim=0)
    return (float(summed @ summed) - n) / (n * (n - 1))


_TENSORS = (
    "words", "per_word", "rounding", "perturbations", "radius", "converged", "upper_per_word", "evaluations_per_word",
)  # fmt: skip


def save_measurement(
    store: Store,
    cell: SensitivityCell,
    started: str,
    phi: FeatureMap,
    text: TextMatrix,
    result: Sensitivity,
    *,
    swaps: tuple[tuple[float, ...], tuple[str, ...]] | None = None,
) -> None:
    """Write the record of a measurement of `wordsens measure`, with its tensors.

    `swaps`: for each searched word, the relative change by the best real word in its place, and that word.
    """
    effect = witness_effect(phi, text, result)
    rows = None if effect is None else [[[m.row, m.change, m.before, m.after] for m in moved] for moved in effect]
    columns = {
        **columns_of_result(phi, text, result, usual_radius=cell.radius is None),
        "swap": None if swaps is None else swaps[0],
        "swapped_for": None if swaps is None else json_text(swaps[1]),
        "moved": None if rows is None else json_text(rows),
    }
    tensors = {name: getattr(result, name) for name in _TENSORS if getattr(result, name) is not None}
    record = record_of(cell, "done", columns, started=started, seconds=result.seconds)
    store.write(record, {"rows": text.rows, **tensors})


def saved_measurement(
    store: Store, cell: SensitivityCell, phi: FeatureMap, text: TextMatrix
) -> tuple[Sensitivity, Record] | None:
    """The measurement that `save_measurement` wrote, and its record; None where the store does not have both."""
    tensors = store.arrays(cell.key())
    records = [record for record in store.records([cell.key()]) if record.done]
    if tensors is None or not records or not {"rounding", "radius", "converged"} <= set(tensors):
        return None
    (record,) = records
    result = Sensitivity(
        **{field: tensors.get(field) for field in _TENSORS},  # pyright: ignore[reportArgumentType]
        value=record.value,
        word=record.word,
        tokens=tuple(text.word(word) for word in tensors["words"].tolist()),
        search=str(cell.search_plan),
        evaluations=record.evaluations,
        seconds=record.seconds,
        seed=cell.seed,
        map_name=record.map,
        upper=record.upper,
        rigor=record.rigor,
        notes=phi.notes,
    )
    return result, record


_ATTENTION_SIZES = (10, 20, 50, 100, 150, 200, 250)
# Matrices on demand: at n d = 48,000 a dense one would take 9 GB.
_FEW_WORDS: dict[str, Any] = {"words": {"sample": 4}, "gaussian": "lazy"}
_FAST: dict[str, Any] = {"starts": 2, "dtype": "float32"}
_ATTENTION = ["raf", "relu-raf"]
_DRF: dict[str, Any] = {"map": ["drf"], "depth": [2, 4, 8]}

# Quick takes larger n than the paper for RF and DRF. With k = D, S sqrt(n) is about 1 + sqrt(2/n) for RF, so the slope
# lies below -1/2 by about sqrt(2/n)/2, and longer texts come closer to the limit; more range steadies the fit.
PRESETS: dict[str, list[dict[str, Any]]] = {
    "quick": [
        {"map": ["rf"], "n": (100, 150, 200, 250), "d": (192,), "draw": 5, **_FAST, **_FEW_WORDS},
        {**_DRF, "n": (50, 80, 120, 160), "d": (64,), "draw": 4, **_FAST, **_FEW_WORDS,
         "words": {"sample": 2}, "starts": 1, "steps": 20},
        {"map": _ATTENTION, "n": (10, 20, 50, 100, 200), "d": (192,), "draw": 3, "dtype": "float32",
         "search": "quick"},
    ],
    "laptop": [
        {"map": ["rf"], "n": (90, 110, 130, 150), "d": (192, 384), "draw": 5, "starts": 2, **_FEW_WORDS},
        {**_DRF, "n": (50, 60, 70, 80), "d": (192,), "draw": 5, "starts": 2, **_FEW_WORDS},
        {"map": _ATTENTION, "n": _ATTENTION_SIZES, "d": (192, 384), "draw": 5},
    ],
    "full": [
        {"map": ["rf"], "n": tuple(range(90, 151, 10)), "d": (192, 384, 768), "draw": 10, **_FEW_WORDS,
         "dtype": "float32"},
        {**_DRF, "n": (50, 60, 70, 80), "d": (768,), "draw": 5, "starts": 2, **_FEW_WORDS, "dtype": "float32"},
        {"map": _ATTENTION, "n": _ATTENTION_SIZES, "d": (192, 384, 768), "draw": 5},
    ],
}  # fmt: skip
"""The grids on Gaussian texts, `draw` the number of draws; real texts have the n and d that they allow."""


def preset(scale: str, source: Embedded, seed: int, labels: str | None) -> Grids:
    """S against n for RF, DRF, RAF and ReLU-RAF, on real and on Gaussian texts.

    Raises:
        InputError: no such encoder or data, or texts too short for any size.
    """
    width = load_encoder(source.encoder).dimension
    grids, notices = [], []
    for part in PRESETS[scale]:
        maps = "/".join(part["map"])
        sizes = [n for n in part["n"] if texts_at_least(source, n, seed=seed, most=1)]
        if lost := [str(n) for n in part["n"] if n not in sizes]:
            notices.append(f"no text has {', '.join(lost)} words: {maps} are measured without them on real texts")
        dimensions = [d for d in part["d"] if d <= width] or [width]
        if len(dimensions) < len(part["d"]):
            notices.append(f"{source.encoder} has {width} coordinates: larger d are measured on Gaussian texts only")
        elif width < min(part["d"]):
            notices.append(f"{source.encoder} has {width} coordinates: real texts under {maps} have d = {width}")
        grid = {**part, "draw": list(range(part["draw"])), "text": {"kind": "gaussian"}}
        grid |= {"n": list(part["n"]), "d": list(part["d"])}
        if len(sizes) > 1:
            grids.append({**grid, "text": source.model_dump(mode="json"), "n": sizes, "d": dimensions})
        grids.append(grid)
    if all(grid["text"]["kind"] == "gaussian" for grid in grids):
        raise InputError(
            f"`texts` (={getattr(source, 'path', None)!r}) has no text of {PRESETS[scale][-1]['n'][1]} words or more, "
            "so S cannot be followed over n; give longer texts"
        )
    return grids, notices


_OF_A_TEXT = ("text_content", "word_choice")
"""Keys that tell given texts apart: they are draws of one series."""


@dataclass(frozen=True)
class SizePoint:
    """The draws at one size: their mean, their standard deviation (of the sample; 0 for one draw), how many.

    `words` are the least, the quartiles and the largest over the searched words of what each attains, means over the
    draws; `upper`, `predicted` and `average` are the means over the draws of the upper bounds, of the predictions, and
    of the average case; None unless every draw has one. `in_range`: whether every prediction is at sizes where it was
    compared with measurements.
    """

    n: int
    mean: float
    standard_deviation: float
    draws: int
    upper: float | None = None
    predicted: float | None = None
    in_range: bool = False
    words: tuple[float, float, float, float] | None = None
    average: float | None = None


@dataclass(frozen=True)
class Series:
    """One curve of S against n: draws that differ in their seeds alone.

    Attributes:
        map: rf, drf4, raf, relu-raf, ...
        text: the kind of the texts.
        d: coordinates of a word.
        points: by size.
        fit: the power law, or None when there are too few points.
        texts: how many distinct texts the draws used.
        searched: the most words searched in a text; `all_words` says whether that was every word.
        rigor: of the upper bounds: "certified", or "with probability 1 - x over the weights, ..." of one cell.
        varied: what tells the series from others of its map: "temperature = 0.5", for each key that varies.
        predicted_of: what the predictions are of: "a typical word" or "the largest searched word"; None without any.
        interval: a 95 % interval of the exponent, bootstrap over texts; None for fewer than five.
    """

    map: str
    text: str
    d: int
    points: tuple[SizePoint, ...]
    fit: PowerLaw | None
    texts: int
    searched: int
    all_words: bool
    rigor: str | None = None
    varied: tuple[str, ...] = ()
    predicted_of: str | None = None
    interval: tuple[float, float] | None = None

    @property
    def trend(self) -> Trend | None:
        """The exponent with its interval, and what that allows to say."""
        return Trend.of(self.fit, self.interval)

    @property
    def theory_exponent(self) -> float | None:
        """The slope of the predictions between the first and the last n that have one: theory at these n, not in the
        limit; None without two."""
        known = [(point.n, point.predicted) for point in self.points if point.predicted]
        if len(known) < 2:
            return None
        (first, low), (last, high) = known[0], known[-1]
        return round(math.log(high / low) / math.log(last / first), 2) + 0.0

    @property
    def bracket_ratio(self) -> float | None:
        """The median over the sizes of mean upper bound / mean attained value; None without bounds."""
        ratios = [point.upper / point.mean for point in self.points if point.upper is not None]
        return median(ratios) if ratios else None

    @property
    def in_range(self) -> bool:
        """True where every prediction is at sizes where it was compared with measurements."""
        return all(point.in_range for point in self.points if point.predicted is not None)


def sensitivity_series(records: Any) -> list[Series]:
    """The series of the finished records: one for each map, kind of text and d, and each value of every other key of
    their specs that varies among the records of a map, seeds and draws aside. Maps in the order they first appear,
    those of one name by their depth.
    """
    by_map = {
        name: group
        for (name,), group in grouped(
            (one for one in as_records(records, "sensitivity", "correlations") if one.done), "map"
        ).items()
    }
    names = list(dict.fromkeys(map(base_name, by_map)))
    order = sorted(by_map, key=lambda name: (names.index(base_name(name)), len(name), name))
    return [one for name in order for one in _series_of_map(by_map[name])]


def _series_of_map(records: Sequence[Record]) -> list[Series]:
    names = list(varying_columns(records, besides=("n", "d", "text", "depth")))

    def varied(record: Record) -> tuple[tuple[str, Any], ...]:
        spec, ignored = spec_columns(record.spec) if names else {}, _OF_A_TEXT if record.text == GIVEN else ()
        return tuple((name, spec[name]) for name in names if name in spec and name not in ignored)

    groups = grouped(records, "text", "d", varied)
    order = sorted(groups, key=lambda key: ([rank(value) for _, value in key[2]], key[1]))
    return [_series(key, groups[key]) for key in order]


def _series(key: tuple[str, int, tuple[tuple[str, Any], ...]], records: Sequence[Record]) -> Series:
    text, d, varied = key
    fit, interval = power_law_and_interval(*zip(*((one.n, one.value, text_of(one)) for one in records), strict=True))
    rigors = [record.rigor for record in records if record.rigor is not None]
    of = [one.predicted_of for one in records if one.predicted is not None]
    return Series(
        *(records[0].map, text, d),
        points=tuple(_point(n, group) for (n,), group in sorted(grouped(records, "n").items())),
        fit=fit,
        texts=len({record.source for record in records}),
        searched=max(record.words or 0 for record in records),
        all_words=all(record.words == record.n for record in records),
        rigor=max(rigors, key=lambda one: one != CERTIFIED, default=None),
        varied=tuple(key_text(name, value) for name, value in varied),
        predicted_of=None if not of else TYPICAL if of[0] == TYPICAL else "the largest searched word",
        interval=interval,
    )


def text_of(record: Any) -> str:
    """What tells the record's text from others, for a bootstrap over texts."""
    return record.columns.get("source") or record.cell


def _point(n: int, records: Sequence[Record]) -> SizePoint:
    values = [record.value for record in records]
    return SizePoint(
        *(n, fmean(values), stdev(values) if len(values) > 1 else 0.0, len(values)),
        upper=_mean([record.upper for record in records]),
        predicted=_mean([record.predicted for record in records]),
        in_range=all(record.predicted_in_range is True for record in records),
        words=_words([record.per_word for record in records]),
        average=_mean([record.average for record in records]),
    )


def _words(per_word: Sequence[tuple[float, ...] | None]) -> tuple[float, float, float, float] | None:
    """The means over the draws of the words' least, quartiles and largest; None unless every draw has them."""
    known = [np.quantile(values, (0, 0.25, 0.75, 1)) for values in per_word if values]
    if len(known) < len(per_word):
        return None
    least, low, high, most = np.mean(known, axis=0).tolist()
    return least, low, high, most


def _mean(values: list[float | None]) -> float | None:
    """None unless every value is there."""
    return None if None in values else fmean(values)  # pyright: ignore[reportArgumentType]


def summarize(records: Sequence[Record]) -> Summary:
    """Exponents, bounds and predictions of each series; sentences about them."""
    series = sensitivity_series([record for record in records if record.text != GIVEN])
    keyed = any(one.varied for one in series)
    at = ("at",) if keyed else ()
    headings = ("map", "texts", *at, "d", "n", "exponent (95 % CI)", "S", "average", "upper/S")
    rows = tuple(_row(one, keyed=keyed) for one in series)
    note = (
        "S: attained at the last n, a lower bound; upper/S: median over n. Average: random Deltas in place of the "
        "worst, at the last n."
    )
    return Summary((Section("Word sensitivity S ~ n^exponent", headings, rows),), note, tuple(claims(series)))


def _row(one: Series, *, keyed: bool) -> tuple[Any, ...]:
    first, last = one.points[0], one.points[-1]
    trend = one.trend
    exponent = None if trend is None else f"{trend.exponent:.2f} ({trend.low:.2f}, {trend.high:.2f})"
    return (
        *(map_title(one.map), one.text, *((", ".join(one.varied),) if keyed else ()), one.d),
        f"{first.n}-{last.n}" if last.n > first.n else str(last.n),
        *(exponent, last.mean, last.average, one.bracket_ratio),
    )


SYNTHETIC = ("orthogonal", "correlated", "gaussian")
"""Kinds of text that no one wrote: real ones come first."""


def text_and_keys(series: Series) -> str:
    """The name of a series' texts, with the keys that tell it from others of its map."""
    return text_title(series.text) + (f" at {', '.join(series.varied)}" if series.varied else "")


def claims(series: Iterable[Series]) -> list[Claim]:
    """Attention beside a fully connected layer, each of them, ReLU against softmax attention, then the other maps."""
    groups: dict[tuple[Any, ...], list[Series]] = {}
    for one in series:
        groups.setdefault((one.map, one.d, one.varied), []).append(one)
    for group in groups.values():
        group.sort(key=lambda one: SYNTHETIC.index(one.text) if one.text in SYNTHETIC else -1)
    ordered = sorted(groups.values(), key=lambda group: -group[0].points[-1].mean)
    flat = [one for group in ordered for one in group]
    main = [group for group in ordered if group[0].map in ("raf", "rf")]
    others = [group for group in ordered if group not in main]
    return [*_contrast(flat), *map(_about, main), *_relu_against_softmax(flat), *map(_about, others)]


def _about(series: Sequence[Series]) -> Claim:
    """One map, on the first kind of text that it was measured on; the others in how it is known."""
    first = series[0]
    point, keys = first.points[-1], f" at {', '.join(first.varied)}" if first.varied else ""
    sentence = (
        f"One word moves {plain_name(first.map)}{keys} by {times(point.mean)} times the size of its output, in "
        f"{_length(first)}"
    )
    trend, theory = first.trend, first.theory_exponent
    if trend is not None:
        sentence += f"; with length it {trend.behaviour}, exponent {trend.exponent:.2f}"
        doubt = "" if first.in_range else ", not compared with measurements at all of these sizes"
        sentence += "" if theory is None else f" (theory at these lengths: {theory:.2f}{doubt})"
    others = "".join(f" On {_elsewhere(one)}." for one in series[1:])
    return Claim(f"{times(point.mean)}×", minus(f"{sentence}."), _known(first) + others, _kinds(first))


def _elsewhere(series: Series) -> str:
    trend = series.trend
    value = f"{_length(series)}, d = {series.d}: {times(series.points[-1].mean)}"
    return value if trend is None else f"{value}, {trend.behaviour}, {trend.text}"


def _length(series: Series) -> str:
    return f"{text_title(series.text)} of {series.points[-1].n} words"


def _known(series: Series) -> str:
    """About the first kind of text; the others are in the tables."""
    point, law = series.points[-1], series.trend
    draws = f"mean of {point.draws} draws" if point.draws > 1 else "one draw"
    words = "every word searched" if series.all_words else f"{series.searched} words of each text searched"
    known = f"On {text_title(series.text)}, d = {series.d}: attained, {draws}, {words}"
    if point.average is not None:
        known += f"; random Deltas move it by {times(point.average)} on average"
    if point.upper is not None:
        over = "" if series.all_words else " over these words"
        sure = "certified" if series.rigor == CERTIFIED else f"each {series.rigor}"
        known += f"; the upper bounds{over} have the mean {times(point.upper)} ({sure})"
    if point.predicted is not None:
        known += f"; predicted for {series.predicted_of}: {times(point.predicted)}"
        known += "" if point.in_range else " (not compared with measurements at such sizes)"
    if law is not None:
        known += f"; from {series.points[0].n} to {point.n} words {law.text}, {law.how}"
    return f"{known}."


def _kinds(series: Series) -> tuple[str, ...]:
    point, law = series.points[-1], series.trend
    there = {
        "attained": True,
        "certified": point.upper is not None and series.rigor == CERTIFIED,
        "predicted": point.predicted is not None,
        "95 % interval": law is not None,
    }
    return tuple(name for name, known in there.items() if known)


def _contrast(series: Sequence[Series]) -> list[Claim]:
    """Softmax attention against one fully connected layer, at the longest length that both have: on the first kind of
    text and d in full, on the others by the factor."""
    plain = [one for one in series if not one.varied]
    dense = {(one.text, one.d): one for one in plain if one.map == "rf"}
    pairs = []
    for attention in plain:
        other = dense.get((attention.text, attention.d)) if attention.map == "raf" else None
        at = {point.n: point for point in attention.points}
        common = [(at[point.n], point) for point in other.points if point.n in at] if other is not None else []
        pairs += [(attention, other, *common[-1])] if common else []
    elsewhere = "".join(
        f" On {text_title(attention.text)} of {more.n} words, d = {attention.d}: {times(more.mean / less.mean)} times."
        for attention, _, more, less in pairs[1:]
    )
    for attention, other, more, less in pairs[:1]:
        sentence = (
            f"One word moves attention {times(more.mean / less.mean)} times as far as a fully connected layer: by "
            f"{times(more.mean)} against {times(less.mean)} times the size of the output, in "
            f"{text_title(attention.text)} of {more.n} words."
        )
        known = f"Both attained, d = {attention.d}"
        kinds = ("attained",)
        if less.upper is not None and other.all_words and more.mean > less.upper:
            sure = "certified" if other.rigor == CERTIFIED else f"each bound holds {other.rigor}"
            known += f"; at least {times(more.mean / less.upper)} times as far, whatever the searches missed ({sure})"
            kinds += ("certified",) if other.rigor == CERTIFIED else ()
        return [Claim(f"{times(more.mean / less.mean)}×", sentence + elsewhere, f"{known}.", kinds)]
    return []


def _relu_against_softmax(series: Sequence[Series]) -> list[Claim]:
    """The difference of the exponents on like texts."""
    softmax = {(one.text, one.d, one.varied): one.fit for one in series if one.map == "raf" and one.fit is not None}
    gaps, largest = [], 0.0
    for one in series:
        other = softmax.get((one.text, one.d, one.varied))
        if one.map != "relu-raf" or one.fit is None or other is None:
            continue
        gap = other.exponent - one.fit.exponent
        error = (other.standard_error**2 + one.fit.standard_error**2) ** 0.5
        reach = student(min(other.freedom, one.fit.freedom)) * error
        how = "no faster" if gap <= reach else f"faster by {gap:.2f} ± {error:.2f} in the exponent"
        gaps.append(f"{how} on {text_and_keys(one)} (d = {one.d})")
        largest = max(largest, gap)
    sentence = f"Against softmax attention, ReLU attention falls {'; '.join(gaps)}."
    return [Claim(f"{largest:.2f}", sentence, "± one standard error of least squares.")] if gaps else []


SENSITIVITY = Experiment(
    name="sensitivity",
    Cell=SensitivityCell,
    measure=measure_sensitivity,
    preset=preset,
    value="word sensitivity S",
    summarize=summarize,
)
