"""Does a model that just learned a text notice one changed word (paper, figure 4)? One fit, one
further text that it learns, one changed word."""

import time
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import pandas as pd
import torch
from pydantic import Field, model_validator

from wordsens.display.view import Finding
from wordsens.errors import InputError, argument, require_choice
from wordsens.generalization import (
    OBJECTIVE_NAMES,
    NewText,
    OneWordFrontier,
    OneWordGeneralization,
    OneWordOutcomes,
)
from wordsens.generalization.min_norm import TRAININGS, MinNormFit, fit_min_norm
from wordsens.generalization.new_text import DEFAULT_GAMMAS
from wordsens.generalization.result import THEOREM, finite_sample_bound
from wordsens.intervals import LEAST, correlation_estimate, median_estimate, share_estimate
from wordsens.maps.base import FeatureMap
from wordsens.maps.dense import DeepRandomFeatures, RandomFeatures
from wordsens.maps.registry import map_title
from wordsens.models.embedding import load_encoder
from wordsens.seeds import derive_seed
from wordsens.sweeps.map_cell import MapCell
from wordsens.sweeps.study import (
    Preset,
    Study,
    Tables,
    changes,
    means,
    require_alike,
    tally,
    text_title,
)
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

FRONTIER = "frontier"

_SAMPLE_KEYS = (
    "sample",
    "count",
    "training",
    "objective",
    "penalty",
    "gammas",
    "together",
    "search",
    *MapCell.COUNTS,
)


class GeneralizationCell(MapCell, frozen=True):
    """One fit, one further text (X, y), one way to learn it, one choice of Delta. RF and DRF are
    sampled on demand.

    Attributes:
        n, d: every text is its first n words, the first d coordinates of each, rows rescaled to
            sqrt(d).
        texts: N, the training texts.
        labels: "sentiment" (the texts' own), "linear" (the sign of a linear function) or "random".
        held_out: test texts, the same for every N; `sample` is one of them, and the accuracy is
            measured on all.
        sample: which held-out text is learned and then changed.
        word: the word that changes, or "all" for the best of all.
        count: how many words change at once, each in a ball of its own: `word` and those behind it.
        training: "fine-tuned" or "retrained".
        objective: one of OBJECTIVE_NAMES, or "frontier" for the least error under each limit on
            gamma.
        penalty: the weight of gamma² in penalized-error.
        gammas: the limits of the frontier.
        together: whether one search looks for all objectives, the frontier among them, of both
            trainings: cells that differ in these alone share it (`NewText.outcomes`).
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
    count: Annotated[int, Field(ge=1)] = 1
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
            raise InputError(
                f"`labels` (='sentiment') needs real texts; {self.text.kind} texts take linear or "
                "random"
            )
        if self.sample >= self.held_out:
            raise InputError(
                f"`sample` (={self.sample}) must be less than `held_out` (={self.held_out})"
            )
        if isinstance(self.word, int) and self.word >= self.n:
            raise InputError(f"`word` (={self.word}) must be less than `n` (={self.n})")
        if self.count > 1 and (self.word == "all" or self.word + self.count > self.n):
            raise InputError(
                f"`count` (={self.count}) words from `word` (={self.word!r}) on are not all in a "
                f"text of n = {self.n}; give `word` an index, at most n - count"
            )
        if self.together and self.word == "all":
            raise InputError(
                "`together` (=True) searches one word for all objectives; give `word` an index"
            )
        return self

    @property
    def moved(self) -> Any:
        """The word that changes, or the group."""
        if self.count == 1:
            return self.word
        assert isinstance(self.word, int)
        return range(self.word, self.word + self.count)

    def of_fit(self) -> "GeneralizationCell":
        """The cell with the default of everything that the fit does not depend on: equal ones share
        a fit."""
        return self._with_defaults(_SAMPLE_KEYS)

    def of_search(self) -> "GeneralizationCell":
        """Of a search together: equal for the cells that share it."""
        return self._with_defaults(("training", "objective"))

    def _with_defaults(self, names: Iterable[str]) -> "GeneralizationCell":
        return self.model_copy(
            update={name: GeneralizationCell.model_fields[name].default for name in names}
        )

    def spec(self) -> dict[str, Any]:
        unread = {
            "penalty": not self.together and self.objective != "penalized-error",
            "gammas": not self.together and self.objective != FRONTIER,
        }
        return {name: value for name, value in super().spec().items() if not unread.get(name)}

    def content_of(self, source: Embedded) -> str:
        return fingerprint(source, labelled=reads_labels(source, self.labels))


def measure(cell: GeneralizationCell) -> dict[str, Any]:
    """Measure one cell. Cells that share a fit or a text share it in a process."""
    fit, _, accuracy, seconds = _fitted(cell.of_fit())
    # Searching every word asks a matrix on demand for more and more of itself: such cells do not
    # share their text.
    text_of = new_text.__wrapped__ if cell.word == "all" else new_text
    new = text_of(cell.of_fit(), cell.sample)
    columns = _shared(cell, new) if cell.together else _searched(cell, new)
    at_rest = new.outputs(0, torch.zeros_like(new.rows[0]), cell.training)
    return {
        **columns,
        **({"map": new.fit.phi.name} if cell.reads_texts_itself else {}),
        "features": fit.features.size,
        "source": new.text.source,
        "label": int(new.label),
        "output_before": new.output_before,
        "error_unchanged": at_rest.error,
        "accuracy": accuracy,
        "condition": fit.condition,
        "fit_seconds": seconds,
        "arrays": {"rows": new.rows, **columns["arrays"]},
    }


def _searched(cell: GeneralizationCell, new: NewText) -> dict[str, Any]:
    """What a search for this cell alone finds."""
    common: dict[str, Any] = {
        "word": cell.moved,
        "ball": "each",
        "training": cell.training,
        "seed": cell.seed_of("search"),
        "radius": cell.radius,
        "search": cell.search_plan,
    }
    if cell.objective == FRONTIER:
        return _of_frontier(new, new.frontier(gammas=cell.gammas, **common))
    options = {"objective": cell.objective, "penalty": cell.penalty}
    return _of_choice(new.generalization(**options, **common))


def _shared(cell: GeneralizationCell, new: NewText) -> dict[str, Any]:
    """What the search that this cell shares finds for it."""
    outcomes = _outcomes(cell.of_search())
    if cell.objective == FRONTIER:
        return _of_frontier(new, outcomes.frontiers[cell.training])
    aligned = f"{cell.training}-alignment"
    objective = aligned if cell.objective == "alignment" else cell.objective
    return _of_choice(outcomes.chosen[cell.training][objective])


@lru_cache(maxsize=1)
def _outcomes(cell: GeneralizationCell) -> OneWordOutcomes:
    """The search that neighbouring cells share."""
    return new_text(cell.of_fit(), cell.sample).outcomes(
        cell.moved,
        ball="each",
        gammas=cell.gammas,
        seed=cell.seed_of("search"),
        penalty=cell.penalty,
        radius=cell.radius,
        search=cell.search_plan,
    )


_NO_FRONTIER = dict.fromkeys(("limits", "least_errors", "least_gammas", "least_alignments"), ())


def _of_choice(g: OneWordGeneralization) -> dict[str, Any]:
    word = torch.tensor(g.word)
    return {
        "value": g.error,
        "gamma": g.gamma,
        "alignment": g.alignment,
        "bound": g.bound,
        "word": int(word.flatten()[0]),
        "token": g.token,
        "output_after": g.output_after,
        "conditions_hold": g.conditions["hold"],
        "evaluations": g.evaluations,
        "converged": g.converged,
        **_NO_FRONTIER,
        "arrays": {"word": word, "perturbation": g.perturbation},
    }


def _of_frontier(new: NewText, frontier: OneWordFrontier) -> dict[str, Any]:
    """The numbers at the largest limit, and the lists of all limits."""
    gamma, alignment = float(frontier.attained_gammas[-1]), float(frontier.alignments[-1])
    words = frontier.words[-1]
    members = words.flatten().tolist()
    return {
        "value": float(frontier.errors[-1]),
        "gamma": gamma,
        "alignment": alignment,
        "bound": finite_sample_bound(gamma, alignment, new.surprise),
        "word": members[0],
        "token": " ".join(map(new.text.word, members)),
        "output_after": new.outputs(words, frontier.perturbations[-1], frontier.training).after,
        "conditions_hold": new.conditions(frontier.training, gamma)["hold"],
        "evaluations": frontier.evaluations,
        "converged": None,
        "limits": tuple(frontier.gammas.tolist()),
        "least_errors": tuple(frontier.errors.tolist()),
        "least_gammas": tuple(frontier.attained_gammas.tolist()),
        "least_alignments": tuple(frontier.alignments.tolist()),
        "arrays": {"word": frontier.words, "perturbation": frontier.perturbations},
    }


@lru_cache(maxsize=1)
def _fitted(cell: GeneralizationCell) -> tuple[MinNormFit, LabelledTexts, float, float]:
    """The fit that the cells with this `of_fit` share, its texts, accuracy and seconds. Its queries
    to a random matrix are always the same ones."""
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
    judged = replace(fit, phi=_forked(phi, derive_seed(cell.seed, "accuracy")))
    accuracy = judged.accuracy(data.test[0], data.test[1].tolist())
    if isinstance(phi, RandomFeatures) and cell.word != "all":
        # Set apart and asked once, the word's columns are shared by all the texts that are learned
        # after this fit.
        columns = torch.eye(cell.d, dtype=dtype, device=phi.device)
        phi.layers[0].multiply_block(columns, cell.word * cell.d)
    return fit, data, accuracy, seconds


@lru_cache(maxsize=1)
def new_text(cell: GeneralizationCell, sample: int) -> NewText:
    """One held-out text about to be learned, which neighbouring cells share. A matrix on demand is
    forked: samples do not depend on each other."""
    fit, data, _, _ = _fitted(cell)
    phi = _forked(fit.phi, derive_seed(cell.seed, "sample", sample))
    texts, labels = data.test
    return NewText(replace(fit, phi=phi), texts[sample], float(labels[sample]))


def _forked(phi: FeatureMap, seed: int) -> FeatureMap:
    """The map with the same past, free to be asked other things; the map itself where it is not
    sampled on demand."""
    return phi.fork(seed=seed) if isinstance(phi, DeepRandomFeatures) else phi


# Each map with its number of words, as in the paper: RF at n = 40, RAF at both, ReLU-RAF at 120.
MAPS_AND_WORDS = (("rf", 40), ("raf", 40), ("raf", 120), ("relu-raf", 120))
_LEAST_REVIEWS = 30
# N, d (or the encoder's own where that is smaller), samples of a draw, draws and test texts; the
# search. Full: all objectives of a text in one search, a fifth of the time of one search each.
PRESETS: dict[str, dict[str, Any]] = {
    "quick": {
        "texts": [100, 300],
        "d": 384,
        "sample": 3,
        "draw": 1,
        "held_out": 50,
        "starts": 6,
        "steps": 30,
    },
    "laptop": {"texts": [100, 300, 1000], "d": 384, "sample": 10, "draw": 1, "held_out": 100},
    "full": {
        "texts": [100, 300, 500, 700, 900, 1100, 1300],
        "d": 768,
        "sample": 10,
        "draw": 2,
        "held_out": 200,
        "together": True,
    },
}
# The published protocol's two departures in its texts: [CLS] is word 0, and texts of fewer than 240
# tokens are filled with [PAD], which counts as words.
AS_PUBLISHED = {"keep_special_tokens": True, "padded_below": 240}


def preset(
    scale: str, source: Embedded, seed: int, labels: str | None, *, as_published: bool = False
) -> Preset:
    """Err against gamma for RF, RAF and ReLU-RAF: both trainings, every objective and the frontier.

    Without a dataset: Gaussian texts, whose label is the sign of a linear function, and the shipped
    reviews with their sentiment. With one: those texts. `as_published` adds the alignment objective
    on the published protocol's texts, at the smallest N.

    Raises:
        InputError: no such encoder or data, or too few long texts for any training set.
    """
    size, labels = PRESETS[scale], labels or SENTIMENT
    labelled = reads_labels(source, labels)
    width = load_encoder(source.encoder).dimension
    narrow = f"{source.encoder} has {width} coordinates, fewer than {size['d']}"
    grids, notices = [], [narrow] * (width < size["d"])
    published = source.model_copy(update=AS_PUBLISHED)
    for name, n in MAPS_AND_WORDS:
        have = available(source, n, labelled=labelled)
        keys = {**size, "map": name, "n": n, "labels": labels, "d": min(width, size["d"])}
        if not isinstance(source, DatasetText):
            # A few dozen at most: a third is held out, the others are learned.
            third = max(1, have // 3)
            keys |= {"held_out": third, "sample": min(size["sample"], third)}
            keys["texts"] = [max(_LEAST_REVIEWS - third, have - third)]
        wanted, most = keys["texts"], have - keys["held_out"]
        keys["texts"] = [texts for texts in wanted if texts <= most]
        if lost := ", ".join(str(texts) for texts in wanted if texts > most):
            notices.append(f"{have} texts have {n} words: {name} is measured without N = {lost}")
        if keys["texts"]:
            grids.append(_grid(keys, source, _OBJECTIVES))
        if as_published and keys["texts"]:
            least, few = keys["texts"][0], available(published, n, labelled=labelled)
            keys |= {"texts": [least], "held_out": min(keys["held_out"], few - least)}
            if keys["sample"] <= keys["held_out"]:
                grids.append(_grid(keys, published, ["alignment"]))
            else:
                notices.append(
                    f"only {few} short texts: {name} as published, N = {least}, is left out"
                )
    if not isinstance(source, DatasetText):
        gaussian = ({**size, "map": name, "n": n, "labels": "linear"} for name, n in MAPS_AND_WORDS)
        grids += [_grid(keys, "gaussian", _OBJECTIVES) for keys in gaussian]
    elif not grids:
        raise InputError(
            f"{argument('texts')} (={source.path!r}) has too few texts of {MAPS_AND_WORDS[0][1]} "
            f"words or more for a training set of {size['texts'][0]} and {size['held_out']} held "
            "out; give more texts"
        )
    return grids, notices


# The named alignments are the training's own or the other one's: "alignment" is one of them.
_OBJECTIVES = [*(name for name in OBJECTIVE_NAMES if name != "alignment"), FRONTIER]


def _grid(keys: dict[str, Any], text: Any, objectives: list[str]) -> dict[str, Any]:
    return {
        "text": text.model_dump(mode="json") if isinstance(text, Embedded) else text,
        "dtype": "float32",
        "word": 0,
        **keys,
        "draw": list(range(keys["draw"])),
        "sample": list(range(keys["sample"])),
        "training": list(TRAININGS),
        "objective": objectives,
    }


# The limit on gamma at which tables and sentences compare the maps.
LIMIT = 0.5
# The error that Theorems 4 and 5 leave random features there, in the limit.
LEAST_ERROR = (2 - LIMIT) ** 2
# Err below 1: the model's answer on the changed text has the sign of its new label.
NOTICED = 1.0
SERIES = ["map", "text", "n", "training", "texts"]
# What the searches make small.
_AIMS = {
    "fine-tuned-alignment": "F fine-tuned",
    "retrained-alignment": "F retrained",
    "alignment": "F",
    "error": "Err",
    "penalized-error": "Err and γ²",
}
_SERIES, _OBJECTIVE = "One word changed, the label flipped", "By the objective of the search"
_NOTICED, _BROKEN = f"Err < {NOTICED:g}", f"Err < {LEAST_ERROR:g}"


def split(records: pd.DataFrame) -> tuple[Any, Any]:
    """The records, series by series and by N, without those of the published protocol's texts; and
    these."""
    padded = records["spec"].str.contains(r'"padded_below": *[0-9]')
    whole = records if padded.all() else records[~padded]
    series: Any = whole.groupby(SERIES[:-1], dropna=False, sort=False)
    ordered = pd.concat([part.sort_values("texts", kind="stable") for _, part in series])
    return ordered, records[padded].copy()


def tables(records: pd.DataFrame) -> Tables:
    """One row per series and N; then one per objective."""
    whole, published = split(records)
    require_alike(whole, SERIES, besides=("objective",))
    series = whole.groupby(SERIES, dropna=False, sort=False)
    rows = [part[SERIES].iloc[0].to_dict() | _row(part) for _, part in series]
    # The objective is each training's own alignment.
    aligned = whole["objective"].isin(["alignment"])
    own = whole[aligned | (whole["objective"] == whole["training"] + "-alignment")].copy()
    change = changes(published, own, SERIES).rename(columns={"change": "Err as published"})
    columns = {"Err": "value", "γ": "gamma", "F": "alignment"}
    aimed = whole[whole["objective"] != FRONTIER].replace({"objective": _AIMS})
    by_objective = means(aimed, [*SERIES, "objective"], columns)
    tables = {_SERIES: pd.DataFrame(rows).merge(change, how="left"), _OBJECTIVE: by_objective}
    return {title: frame.rename(columns={"texts": "N"}) for title, frame in tables.items()}


def _row(part: Any) -> dict[str, Any]:
    """The least errors with gamma below LIMIT, their median and the shares below both lines."""
    errors = at_limit(part)
    shares = {
        name: share_estimate(sum(error < line for error in errors), len(errors)) if errors else None
        for name, line in ((_NOTICED, NOTICED), (_BROKEN, LEAST_ERROR))
    }
    return {
        "Err": median_estimate(errors) if errors else None,
        **shares,
        "least F": part["alignment"].min(),
        "accuracy": part["accuracy"].mean(),
        "samples": len(part[["draw", "sample"]].drop_duplicates()),
        # Of errors below their finite-sample bound by more than rounding: should be 0.
        "below bound": int((part["value"] < part["bound"] * (1 - 1e-6) - 1e-6).sum()),
    }


def at_limit(part: Any) -> list[float]:
    """The least error of each frontier with gamma below LIMIT."""
    frontiers = part[part["objective"] == FRONTIER]
    columns = zip(frontiers["limits"], frontiers["least_errors"], strict=True)
    return [errors[limits.index(LIMIT)] for limits, errors in columns if LIMIT in limits]


def findings(records: pd.DataFrame, tables: Tables) -> Iterator[Finding]:
    """Who notices the change, how the error depends on the alignment, and the theorem's bound."""
    whole, _ = split(records)
    rows: Any = tables[_SERIES].dropna(subset="Err")
    if not len(rows):
        return
    searched = tuple(whole.loc[whole["objective"] == FRONTIER, "cell"])
    labels = dict(zip(whole["text"].map(text_title), whole["labels"], strict=True))
    noticed = []
    for (name, text), shares in rows.groupby(["map", "text"], sort=False)[_NOTICED]:
        most = sum(share.value > 0.5 for share in shares)
        noticed.append(f"{map_title(name)} on {text_title(text)} in {most} of {len(shares)}")
    named = ", ".join(f"{label} of {text}" for text, label in labels.items())
    yield Finding(
        "In most samples one word could be changed so that a model that has just learned the "
        f"text notices, and gives the new label: {', '.join(noticed)} settings. γ is below "
        f"{LIMIT:g}: before the update the model hardly distinguished the two texts. Labels: "
        f"{named}.",
        rows=searched,
    )
    if clauses := "; ".join(_correlations(whole)):
        yield Finding(
            "Rank correlation between the error after one changed word and the alignment F of the "
            f"features, over all changed texts: {clauses}.",
            rows=tuple(whole["cell"]),
        )
    compared = []
    for name, shares in rows.groupby("map", sort=False)[_BROKEN]:
        sides = tally(shares, "most samples lie below", "most lie above", none=0.5)
        compared.append(f"For {map_title(name)} {sides}.")
    yield Finding(
        f"With γ below {LIMIT:g}, theory gives fully connected random features an error of at "
        f"least {LEAST_ERROR:.2f}, (2 − {LIMIT:g})², in the limit of wide layers and many words. "
        f"{' '.join(compared)}",
        rows=searched,
    )


def _correlations(whole: Any) -> Iterator[str]:
    """For each map over all changes that were found, and over those with gamma below LIMIT: a large
    gamma makes the error small whatever the alignment. Samples are independent."""
    for name, part in whole.groupby("map", sort=False):
        known = []
        for changed in (part, part[part["gamma"] < LIMIT]):
            samples = changed.groupby(["text", "n", "draw", "sample"])
            pairs = [sample[["alignment", "value"]].to_numpy() for _, sample in samples]
            known.append(correlation_estimate(pairs) if len(pairs) >= LEAST else None)
        everywhere, below = known
        if everywhere is not None:
            near = f" ({below} where γ is below {LIMIT:g})" if below is not None else ""
            yield f"{map_title(name)} {everywhere}{near}"


# Where the axes of the figure of errors end.
_MOST_GAMMA, _MOST_ERROR = 3.0, 6.0


def figures(records: pd.DataFrame) -> dict[str, Any]:
    """For each kind of text: Err against gamma, and the least Err under a limit on gamma, each with
    (2 - gamma)², below which Theorems 4 and 5 leave RF no point in the limit."""
    from wordsens.plotting import lines, points

    whole, _ = split(records)
    panels = whole[["map", "n", "training"]].itertuples(index=False)
    titles = [f"{map_title(name)}, n = {n}, {training}" for name, n, training in panels]
    whole["panel"] = [title.replace("-tuned", "\N{NON-BREAKING HYPHEN}tuned") for title in titles]
    common: dict[str, Any] = {"panel": "panel", "guides": {"(2 − γ)²": THEOREM}}
    drawn = {}
    for text, part in whole.rename(columns={"texts": "N"}).groupby("text", sort=False):
        of_frontier = part["objective"] == FRONTIER
        learned, frontier = part[~of_frontier], part[of_frontier]
        gamma, error = learned["gamma"], learned["value"]
        outside = int(((gamma > _MOST_GAMMA) | (error > _MOST_ERROR)).sum())
        if len(learned):
            marks = learned.assign(
                gamma=gamma.clip(upper=_MOST_GAMMA),
                value=error.clip(upper=_MOST_ERROR),
                about=[f"N = {N}" for N in learned["N"]],
            )
            drawn[f"generalization-error-{text}"] = points(
                marks,
                x="gamma",
                y="value",
                colour="objective",
                about="about",
                labels=_AIMS
                | {"gamma": "γ before the update", "value": "error on the changed text"},
                title=f"Error on the changed text: {text_title(text)}",
                caption="Each mark is a text that the model has just learned, with one word "
                "changed so that its label flips; an error below 1 means that the model notices. "
                "Dotted: RF's least error in theory, in the limit of wide layers and many words. "
                f"Marks beyond γ = {_MOST_GAMMA:g} or an error of {_MOST_ERROR:g}, drawn at the "
                f"edge: {outside}.",
                **common,
            )
        if len(frontier):
            limits = frontier.explode(["limits", "least_errors"])
            errors = limits.groupby(["panel", "N", "limits"], sort=False)["least_errors"]
            drawn[f"generalization-frontier-{text}"] = lines(
                errors.agg(median_estimate).reset_index(),
                x="limits",
                y="least_errors",
                colour="N",
                labels={"limits": "limit on γ", "least_errors": "least error"},
                title=f"Least error under a limit on γ: {text_title(text)}",
                caption="Marks are medians over samples of the least error found with γ below a "
                "limit; smaller errors may exist. Bars, for six samples or more: 95 % "
                "confidence intervals. Dotted: RF's least error in theory, in the limit of "
                "wide layers and many words.",
                **common,
            )
    return drawn


STUDY = Study(
    name="generalization",
    Cell=GeneralizationCell,
    measure=measure,
    preset=preset,
    tables=tables,
    findings=findings,
    figures=figures,
    note=f"N: training texts. F: feature alignment. Err: the median least error found with γ below "
    f"{LIMIT:g}; shares of samples below 1 (noticed) and {LEAST_ERROR:g} (theory): [95 % "
    "confidence interval], exact binomial. Below bound: errors below their finite-sample bound. "
    "Err as published: how much [CLS] as word 0 and padding as words change the error of the "
    "alignment objective.",
    together=GeneralizationCell.of_fit,
    most_together=100,  # a fit of 1,300 texts takes as long as a hundred cells
)
