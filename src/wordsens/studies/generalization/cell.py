"""One fit, one further text that it learns, one changed word: the cell of the generalization
study."""

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import torch
from pydantic import Field, model_validator

from wordsens.errors import InputError, require_choice
from wordsens.generalization import (
    OBJECTIVE_NAMES,
    NewText,
    OneWordFrontier,
    OneWordGeneralization,
    OneWordOutcomes,
)
from wordsens.generalization.min_norm import TRAININGS, MinNormFit, fit_min_norm
from wordsens.generalization.new_text import DEFAULT_GAMMAS
from wordsens.generalization.result import finite_sample_bound
from wordsens.maps.base import FeatureMap
from wordsens.maps.dense import DeepRandomFeatures, RandomFeatures
from wordsens.seeds import derive_seed
from wordsens.sweeps.map_cell import MapCell
from wordsens.sweeps.texts import (
    LABEL_KINDS,
    SENTIMENT,
    Embedded,
    LabelledTexts,
    fingerprint,
    labelled_texts,
    reads_labels,
)

FRONTIER = "frontier"

_SAMPLE_KEYS = (
    "sample",
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
        if self.together and self.word == "all":
            raise InputError(
                "`together` (=True) searches one word for all objectives; give `word` an index"
            )
        return self

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
    # Searching every word asks a matrix on demand for more and more of itself: such cells do not
    # share their text.
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
        "error_unchanged": at_rest.error,
        "accuracy": fitted.accuracy,
        "condition": fitted.fit.condition,
        "fit_seconds": fitted.seconds,
        "arrays": {"rows": new.rows, **columns["arrays"]},
    }


def _searched(cell: GeneralizationCell, new: NewText) -> dict[str, Any]:
    """What a search for this cell alone finds."""
    common: dict[str, Any] = {
        "word": cell.word,
        "training": cell.training,
        "seed": cell.seed_of("search"),
    }
    common |= {"radius": cell.radius, "search": cell.search_plan}
    if cell.objective == FRONTIER:
        frontier = new.frontier(gammas=cell.gammas, **common)
        return _of_frontier(new, frontier)
    g = new.generalization(objective=cell.objective, penalty=cell.penalty, **common)
    return _of_choice(g)


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
    assert isinstance(cell.word, int)
    return _new_text(cell.of_fit(), cell.sample).outcomes(
        cell.word,
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
        "conditions_hold": g.conditions["hold"],
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
def _fitted(cell: GeneralizationCell) -> _Fitted:
    """The fit that the cells with this `of_fit` share. Its queries to a random matrix are always
    the same ones."""
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
        # Set apart and asked once, the word's columns are shared by all the texts that are learned
        # after this fit.
        phi.layers[0].multiply_block(
            torch.eye(cell.d, dtype=dtype, device=phi.device), cell.word * cell.d
        )
    return _Fitted(fit, data, accuracy, seconds)


@lru_cache(maxsize=1)
def _new_text(cell: GeneralizationCell, sample: int) -> NewText:
    """The text that neighbouring cells share."""
    return _fresh_text(cell, sample)


def _fresh_text(cell: GeneralizationCell, sample: int) -> NewText:
    """One held-out text about to be learned. A matrix on demand is forked: samples do not depend on
    each other."""
    fitted = _fitted(cell)
    texts, labels = fitted.data.test
    fit = replace(fitted.fit, phi=_forked(fitted.fit.phi, derive_seed(cell.seed, "sample", sample)))
    return NewText(fit, texts[sample], float(labels[sample]))


def _forked(phi: FeatureMap, seed: int) -> FeatureMap:
    """The map with the same past, free to be asked other things; the map itself where it is not
    sampled on demand."""
    return phi.fork(seed=seed) if isinstance(phi, DeepRandomFeatures) else phi
