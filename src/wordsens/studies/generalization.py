"""Does a model that just learned a text notice one changed word? One fit, one further text a cell (paper, figure 4)."""

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field, model_validator

from wordsens.display.content import times
from wordsens.errors import InputError, require_choice
from wordsens.generalization import (
    OBJECTIVE_NAMES,
    NewText,
    OneWordFrontier,
    OneWordGeneralization,
    OneWordOutcomes,
    one_word_frontier,
    one_word_generalization,
    one_word_outcomes,
)
from wordsens.generalization.frontier import DEFAULT_GAMMAS
from wordsens.generalization.one_word import error_of, finite_sample_bound, theorem_conditions
from wordsens.maps.base import FeatureMap
from wordsens.maps.dense import DeepRandomFeatures, RandomFeatures
from wordsens.maps.registry import map_title, plain_name
from wordsens.regression import TRAININGS, MinNormFit, fit_min_norm
from wordsens.seeds import derive_seed
from wordsens.statistics.operating_point import share_interval
from wordsens.studies.sensitivity import SYNTHETIC
from wordsens.sweeps.experiment import (
    Claim,
    Experiment,
    Grids,
    Section,
    Summary,
    grouped,
    require_alike,
    text_title,
)
from wordsens.sweeps.map_cell import MapCell
from wordsens.sweeps.store import Record, as_records
from wordsens.sweeps.texts import (
    LABEL_KINDS,
    SENTIMENT,
    DatasetText,
    Embedded,
    LabelledTexts,
    available,
    fingerprint,
    labelled_texts,
    reads_labels,
)
from wordsens.text import load_encoder

FRONTIER = "frontier"
LIMIT = 0.5
"""The limit on gamma at which tables and sentences compare the maps."""

THEOREM = (2 - LIMIT) ** 2
"""The error that Theorems 4 and 5 leave random features there, in the limit."""

NOTICED = 1.0
"""Err below 1: the model's answer on the changed text has the sign of its new label."""

_SAMPLE_KEYS = ("sample", "training", "objective", "penalty", "gammas", "together", "search", *MapCell.COUNTS)


class GeneralizationCell(MapCell, frozen=True):
    """One fit, one further text (X, y), one way to learn it, one choice of Delta. RF and DRF are sampled on demand.

    Attributes:
        n, d: every text is its first n words, the first d coordinates of each, rows rescaled to sqrt(d).
        texts: N, the training texts.
        labels: "sentiment" (the texts' own), "linear" (the sign of a linear function) or "random".
        held_out: test texts, the same for every N; `sample` is one of them, and the accuracy is measured on all.
        sample: which held-out text is learned and then changed.
        word: the word that changes, or "all" for the best of all.
        training: "fine-tuned" or "retrained".
        objective: one of OBJECTIVE_NAMES, or "frontier" for the least error under each limit on gamma.
        penalty: the weight of gamma² in penalized-error.
        gammas: the limits of the frontier.
        together: whether one search looks for all objectives, the frontier among them, of both trainings: cells that
            differ in these alone share it (`one_word_outcomes`).
        ridge: of the fit.
        dtype: of the features; the kernel matrix and all that follows is float64.
    """

    experiment: ClassVar[str] = "generalization"
    DECIDED: ClassVar[dict[str, Any]] = {"gaussian": "lazy"}

    texts: Annotated[int, Field(ge=1)]
    labels: str = SENTIMENT
    held_out: Annotated[int, Field(ge=1)] = 100
    sample: Annotated[int, Field(ge=0)] = 0
    word: Annotated[int, Field(ge=0)] | Literal["all"] = 0
    training: str = "fine-tuned"
    objective: str = "alignment"
    penalty: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    gammas: Annotated[tuple[float, ...], Field(min_length=1, strict=False)] = DEFAULT_GAMMAS
    together: bool = False
    ridge: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0

    @model_validator(mode="after")
    def _valid(self) -> "GeneralizationCell":
        require_choice("labels", self.labels, LABEL_KINDS)
        require_choice("training", self.training, TRAININGS)
        require_choice("objective", self.objective, (*OBJECTIVE_NAMES, FRONTIER))
        if self.labels == SENTIMENT and not isinstance(self.text, Embedded):
            raise InputError(f"`labels` (='sentiment') needs real texts; {self.text.kind} texts take linear or random")
        if self.sample >= self.held_out:
            raise InputError(f"`sample` (={self.sample}) must be less than `held_out` (={self.held_out})")
        if isinstance(self.word, int) and self.word >= self.n:
            raise InputError(f"`word` (={self.word}) must be less than `n` (={self.n})")
        if self.together and self.word == "all":
            raise InputError("`together` (=True) searches one word for all objectives; give `word` an index")
        return self

    def of_fit(self) -> "GeneralizationCell":
        """The cell with the default of everything that the fit does not depend on: equal ones share a fit."""
        return self._with_defaults(_SAMPLE_KEYS)

    def of_search(self) -> "GeneralizationCell":
        """Of a search together: equal for the cells that share it."""
        return self._with_defaults(("training", "objective"))

    def _with_defaults(self, names: Iterable[str]) -> "GeneralizationCell":
        return self.model_copy(update={name: GeneralizationCell.model_fields[name].default for name in names})

    def spec(self) -> dict[str, Any]:
        unread = {
            "penalty": not self.together and self.objective != "penalized-error",
            "gammas": not self.together and self.objective != FRONTIER,
        }
        return {name: value for name, value in super().spec().items() if not unread.get(name)}

    def content_of(self, source: Embedded) -> str:
        return fingerprint(source, labelled=reads_labels(source, self.labels))


@dataclass(frozen=True)
class _Fitted:
    """A fit and its texts."""

    fit: MinNormFit
    data: LabelledTexts
    accuracy: float
    seconds: float


def measure_generalization(cell: GeneralizationCell) -> dict[str, Any]:
    """Measure one cell. Cells that share a fit or a text share it in a process."""
    fitted = _fitted(cell.of_fit())
    # Searching every word asks a matrix on demand for more and more of itself: such cells do not share their text.
    new = (_fresh_text if cell.word == "all" else _new_text)(cell.of_fit(), cell.sample)
    columns = _shared(cell, new) if cell.together else _searched(cell, new)
    at_rest = new.outputs(0, torch.zeros_like(new.rows[0]), cell.training)
    return {
        **columns,
        **({"map": new.fit.phi.name} if cell.reads_texts_itself else {}),
        "features": fitted.fit.features.size,
        "source": new.text.source,
        "label": int(new.label),
        "output_before": new.output_before,
        "error_unchanged": error_of(new, at_rest),
        "accuracy": fitted.accuracy,
        "condition": fitted.fit.conditioning.condition,
        "fit_seconds": fitted.seconds,
        "arrays": {"rows": new.rows, **columns["arrays"]},
    }


def _searched(cell: GeneralizationCell, new: NewText) -> dict[str, Any]:
    """What a search for this cell alone finds."""
    common: dict[str, Any] = {"word": cell.word, "training": cell.training, "seed": cell.seed_of("search")}
    common |= {"radius": cell.radius, "search": cell.search_plan}
    if cell.objective == FRONTIER:
        frontier = one_word_frontier(new, gammas=cell.gammas, **common)
        return _of_frontier(new, frontier)
    g = one_word_generalization(new, objective=cell.objective, penalty=cell.penalty, **common)
    return _of_choice(g)


def _shared(cell: GeneralizationCell, new: NewText) -> dict[str, Any]:
    """What the search that this cell shares finds for it."""
    outcomes = _outcomes(cell.of_search())
    if cell.objective == FRONTIER:
        return _of_frontier(new, outcomes.frontier(cell.training))
    return _of_choice(outcomes.of(cell.training, cell.objective))


@lru_cache(maxsize=1)
def _outcomes(cell: GeneralizationCell) -> OneWordOutcomes:
    """The search that neighbouring cells share."""
    assert isinstance(cell.word, int)
    return one_word_outcomes(
        _new_text(cell.of_fit(), cell.sample),
        word=cell.word,
        gammas=cell.gammas,
        seed=cell.seed_of("search"),
        penalty=cell.penalty,
        radius=cell.radius,
        search=cell.search_plan,
    )


_NO_FRONTIER = dict.fromkeys(("limits", "least_errors", "least_gammas", "least_alignments"), ())


def _of_choice(g: OneWordGeneralization) -> dict[str, Any]:
    return {
        "value": g.error,
        "gamma": g.gamma,
        "alignment": g.alignment,
        "bound": g.bound,
        "word": g.word,
        "token": g.token,
        "output_after": g.output_after,
        "conditions_hold": g.conditions.hold,
        "evaluations": g.evaluations,
        "converged": g.converged,
        **_NO_FRONTIER,
        "arrays": {"word": torch.tensor(g.word), "perturbation": g.perturbation},
    }


def _of_frontier(new: NewText, frontier: OneWordFrontier) -> dict[str, Any]:
    """The numbers at the largest limit, and the lists of all limits."""
    gamma, alignment = float(frontier.attained_gammas[-1]), float(frontier.alignments[-1])
    word = int(frontier.words[-1])
    return {
        "value": float(frontier.errors[-1]),
        "gamma": gamma,
        "alignment": alignment,
        "bound": finite_sample_bound(gamma, alignment, new.surprise),
        "word": word,
        "token": new.text.word(word),
        "output_after": new.outputs(word, frontier.perturbations[-1], frontier.training).after,
        "conditions_hold": theorem_conditions(new, frontier.training, gamma).hold,
        "evaluations": frontier.evaluations,
        "converged": None,
        "limits": tuple(frontier.gammas.tolist()),
        "least_errors": tuple(frontier.errors.tolist()),
        "least_gammas": tuple(frontier.attained_gammas.tolist()),
        "least_alignments": tuple(frontier.alignments.tolist()),
        "arrays": {"word": frontier.words, "perturbation": frontier.perturbations},
    }


@lru_cache(maxsize=1)
def _fitted(cell: GeneralizationCell) -> _Fitted:
    """The fit that the cells with this `of_fit` share. Its queries to a random matrix are always the same ones."""
    begin = time.perf_counter()
    dtype = getattr(torch, cell.dtype)
    phi = cell.build()
    data = labelled_texts(
        cell.text,
        cell.labels,
        (cell.n, cell.d),
        training=cell.texts,
        held_out=cell.held_out,
        draw=cell.draw,
        seed=cell.seed,
        dtype=dtype,
        model=phi if cell.reads_texts_itself else None,
    )
    fit = fit_min_norm(phi, *data.training, ridge=cell.ridge)
    seconds = time.perf_counter() - begin
    accuracy = replace(fit, phi=_forked(phi, derive_seed(cell.seed, "accuracy"))).accuracy(
        data.test[0], data.test[1].tolist()
    )
    if isinstance(phi, RandomFeatures) and cell.word != "all":
        # Set apart and asked once, the word's columns are shared by all the texts that are learned after this fit.
        phi.layers[0].multiply_block(torch.eye(cell.d, dtype=dtype, device=phi.device), cell.word * cell.d)
    return _Fitted(fit, data, accuracy, seconds)


@lru_cache(maxsize=1)
def _new_text(cell: GeneralizationCell, sample: int) -> NewText:
    """The text that neighbouring cells share."""
    return _fresh_text(cell, sample)


def _fresh_text(cell: GeneralizationCell, sample: int) -> NewText:
    """One held-out text about to be learned. A matrix on demand is forked: samples do not depend on each other."""
    fitted = _fitted(cell)
    texts, labels = fitted.data.test
    fit = replace(fitted.fit, phi=_forked(fitted.fit.phi, derive_seed(cell.seed, "sample", sample)))
    return NewText(fit, texts[sample], float(labels[sample]))


def _forked(phi: FeatureMap, seed: int) -> FeatureMap:
    """The map with the same past, free to be asked other things; the map itself where it is not sampled on demand."""
    return phi.fork(seed=seed) if isinstance(phi, DeepRandomFeatures) else phi


MAPS_AND_WORDS = (("rf", 40), ("raf", 40), ("raf", 120), ("relu-raf", 120))
"""Each map with its number of words: RF at n = 40, RAF at both, ReLU-RAF at n = 120, as in the paper."""

_LEAST_REVIEWS = 30

PRESETS: dict[str, dict[str, Any]] = {
    "quick": {"texts": [100, 300], "d": 384, "sample": 3, "draw": 1, "held_out": 50,
              "starts": 6, "steps": 30},
    "laptop": {"texts": [100, 300, 1000], "d": 384, "sample": 10, "draw": 1, "held_out": 100},
    # All objectives of a text in one search: a fifth of the time of one search each.
    "full": {"texts": [100, 300, 500, 700, 900, 1100, 1300], "d": 768, "sample": 10, "draw": 2, "held_out": 200,
             "together": True},
}  # fmt: skip
"""N, d (or the encoder's own where that is smaller), samples of a draw, draws and test texts; the search."""


def preset(scale: str, source: Embedded, seed: int, labels: str | None) -> Grids:
    """Err against gamma for RF, RAF and ReLU-RAF: both trainings, every objective and the frontier.

    Without a dataset: Gaussian texts, whose label is the sign of a linear function, and the shipped reviews with their
    sentiment. With one: those texts.

    Raises:
        InputError: no such encoder or data, or too few long texts for any training set.
    """
    size, labels = PRESETS[scale], labels or SENTIMENT
    shipped = not isinstance(source, DatasetText)
    width = load_encoder(source.encoder).dimension
    notices = [f"{source.encoder} has {width} coordinates, fewer than {size['d']}"] if width < size["d"] else []
    text, labelled = source.model_dump(mode="json"), reads_labels(source, labels)
    grids = []
    for name, n in MAPS_AND_WORDS:
        have = available(source, n, labelled=labelled)
        keys = {**size, "d": min(width, size["d"])}
        if shipped:
            # A few dozen at most: a third is held out, the others are learned.
            third = max(1, have // 3)
            keys |= {"held_out": third, "sample": min(size["sample"], third), "texts": [have - third]}
            if have < _LEAST_REVIEWS:
                notices.append(f"{have} shipped reviews have {n} words, too few: {name} is not measured there")
                continue
        else:
            keys["texts"] = [texts for texts in size["texts"] if texts + size["held_out"] <= have]
            if lost := [str(texts) for texts in size["texts"] if texts not in keys["texts"]]:
                notices.append(f"{have} texts have {n} words: {name} is measured without N = {', '.join(lost)}")
        if keys["texts"]:
            grids.append(_grid(keys, name, n, text, labels))
    if shipped:
        grids += [_grid(size, name, n, {"kind": "gaussian"}, "linear") for name, n in MAPS_AND_WORDS]
    elif not grids:
        raise InputError(
            f"`texts` (={source.path!r}) has too few texts of {MAPS_AND_WORDS[0][1]} words or more for a training set "
            f"of {size['texts'][0]} and {size['held_out']} held out; give more texts"
        )
    return grids, notices


def _grid(size: dict[str, Any], name: str, n: int, text: dict[str, Any], labels: str) -> dict[str, Any]:
    return {
        "map": name,
        "text": text,
        "labels": labels,
        "n": n,
        "dtype": "float32",
        "word": 0,
        **size,
        "draw": list(range(size["draw"])),
        "sample": list(range(size["sample"])),
        "training": list(TRAININGS),
        # The named alignments are the training's own or the other one's: "alignment" is one of them.
        "objective": [name for name in OBJECTIVE_NAMES if name != "alignment"] + [FRONTIER],
    }


@dataclass(frozen=True)
class GeneralizationSeries:
    """The samples of one map, one n, one kind of text, one training and one N, over all draws.

    Attributes:
        text, map, n, training: the series.
        texts: the size of the training set, N.
        samples: how many (fit, text) pairs.
        accuracy: mean held-out accuracy.
        limits: of the frontier.
        least_errors: one a limit, one a sample: [limit][sample].
        least_alignment: the smallest F that any objective reached.
        below_bound: records whose Err is below their finite-sample bound by more than rounding: should be 0.
    """

    text: str
    map: str
    n: int
    training: str
    texts: int
    samples: int
    accuracy: float
    limits: tuple[float, ...]
    least_errors: tuple[tuple[float, ...], ...]
    least_alignment: float
    below_bound: int

    @property
    def errors(self) -> tuple[float, ...]:
        """The least errors with gamma below LIMIT; none where the frontier was not measured there."""
        return self.least_errors[self.limits.index(LIMIT)] if LIMIT in self.limits and self.least_errors else ()

    def median(self) -> float | None:
        """Their median."""
        return statistics.median(self.errors) if self.errors else None

    @property
    def noticed(self) -> float | None:
        """The share of them below NOTICED."""
        return self.hits(NOTICED) / len(self.errors) if self.errors else None

    def hits(self, error: float) -> int:
        """How many of them lie below `error`."""
        return sum(one < error for one in self.errors)


def generalization_series(records: Any) -> list[GeneralizationSeries]:
    """The series of the finished records, in the order they first appear; those that differ in N alone by N.

    Raises:
        InputError: records of one kind of text, map and n differ in more than N, training, objective and seeds.
    """
    done = [record for record in as_records(records, "generalization") if record.done]
    for group in grouped(done, "text", "map", "n").values():
        require_alike(group, besides=("training", "texts", "objective"))
    groups = grouped(done, "text", "map", "n", "training", "texts")
    order = list(grouped(done, "text", "map", "n", "training"))
    return [_series(key, groups[key]) for key in sorted(groups, key=lambda key: (order.index(key[:4]), key[4]))]


def _series(key: tuple[str, str, int, str, int], records: Sequence[Record]) -> GeneralizationSeries:
    frontiers = [record for record in records if record.objective == FRONTIER]
    limits = frontiers[0].limits if frontiers else ()
    same = [record for record in frontiers if record.limits == limits]
    return GeneralizationSeries(
        *key,
        samples=len({(record.draw, record.sample) for record in records}),
        accuracy=statistics.fmean(record.accuracy for record in records),
        limits=limits,
        least_errors=tuple(tuple(record.least_errors[at] for record in same) for at in range(len(limits))),
        least_alignment=min(record.alignment for record in records),
        below_bound=sum(record.value < record.bound * (1 - 1e-6) - 1e-6 for record in records),
    )


def summarize(records: Sequence[Record]) -> Summary:
    """The least errors of each map and training set; a sentence a map, about all of its rows."""
    series = generalization_series(records)
    headings = ("map", "texts", "n", "N", "training", "samples", "accuracy", "least F", "Err", "Err < 1")
    rows = tuple(
        (
            *(map_title(one.map), one.text, one.n, one.texts, one.training, one.samples, one.accuracy),
            *(one.least_alignment, one.median(), one.noticed),
        )
        for one in series
    )
    below = sum(one.below_bound for one in series)
    note = f"N: texts learned. F: feature alignment. Err: the median least error with γ below {LIMIT:g}, attained. " + (
        f"{below} errors lie below their finite-sample bound." if below else "None lies below its finite-sample bound."
    )
    measured = sorted((one for one in series if one.errors), key=lambda one: one.text in SYNTHETIC)
    groups = sorted(grouped(measured, "map").values(), key=lambda group: -min(one.noticed or 0.0 for one in group))
    claims = tuple(map(_about, groups)) + ((_theory(groups),) if groups else ())
    table = Section("One word changed, the label flipped", headings, rows)
    return Summary((table,), note, claims, leading=max(1, len(groups)))


def _about(series: Sequence[GeneralizationSeries]) -> Claim:
    """One map: every kind of text, length, training and N."""
    sentence = (
        f"With {plain_name(series[0].map)}, one word could be changed so that a model that had just learned the text "
        "notices, and gives the new label, "
    )
    parts = [
        f"{' and '.join(map(_shares, grouped(part, 'training').values()))}: {text_title(text)} of {n} words, "
        f"N = {max(one.texts for one in part):,}"
        for (text, n), part in grouped(series, "text", "n").items()
    ]
    medians = [
        ", ".join(f"{times(one.median() or 0.0)} {one.training}" for one in part)
        + (f" ({n} words, N = {texts:,}, {text_title(text)})" if len(parts) > 1 else "")
        for (text, n, texts), part in grouped(series, "text", "n", "texts").items()
    ]
    known = (
        f"Attained with γ below {LIMIT:g}: the model before hardly told the two texts apart. "
        f"N: texts learned; median least errors {'; '.join(medians)}. In brackets: 95 %, exact binomial."
    )
    return Claim(f"{min(one.noticed or 0.0 for one in series):.0%}", f"{sentence}{'; '.join(parts)}.", known)


def _shares(series: Sequence[GeneralizationSeries]) -> str:
    """How often one training notices at the largest N, and between what shares at the others where these differ."""
    *fewer, one = series
    share = f"in {one.hits(NOTICED)} of {len(one.errors)} texts {one.training} ({_interval(one)}"
    if any(other.noticed != one.noticed for other in fewer):
        shares = _from_to([other.noticed or 0.0 for other in fewer], "{:.0%}".format)
        share += f"; {shares} with N = {_from_to([other.texts for other in fewer], '{:,}'.format)}"
    return f"{share})"


def _from_to(values: Sequence[Any], shown: Callable[[Any], str]) -> str:
    low, high = shown(min(values)), shown(max(values))
    return low if low == high else f"{low} to {high}"


def _interval(one: GeneralizationSeries) -> str:
    low, high = share_interval(one.hits(NOTICED), len(one.errors))
    return f"{low:.0%} to {high:.0%}"


def _theory(groups: Sequence[Sequence[GeneralizationSeries]]) -> Claim:
    """What the theorems leave random features, and who keeps or breaks it in most samples, where an interval says
    so.
    """
    obeyed, broken, rows = [], [], [one for group in groups for one in group]
    for one in rows:
        low, high = share_interval(one.hits(THEOREM), len(one.errors))
        name = f"{map_title(one.map)} (n = {one.n}, N = {one.texts:,}, {text_title(one.text)}, {one.training})"
        obeyed += [name] if high < 0.5 else []
        broken += [name] if low > 0.5 else []
    sentence = (
        f"Theory leaves fully connected random features no error below (2 − {LIMIT:g})² = {THEOREM:.2f} there, in the "
        "limit of wide layers and many words: they do not notice the change."
    )
    sentence += f" In most samples this is kept by {'; '.join(obeyed)}." if obeyed else ""
    sentence += f" In most samples it is broken by {'; '.join(broken)}." if broken else ""
    if left := len(rows) - len(obeyed) - len(broken):
        sentence += f" Of {left} of the {len(rows)} rows the samples tell neither."
    return Claim(f"{THEOREM:.2f}", sentence, "Predicted: Theorems 4 and 5, a limit.", ("predicted", "95 % interval"))


GENERALIZATION = Experiment(
    name="generalization",
    Cell=GeneralizationCell,
    measure=measure_generalization,
    preset=preset,
    summarize=summarize,
    together=GeneralizationCell.of_fit,
    most_together=100,  # a fit of 1,300 texts takes as long as a hundred cells
)
