"""One generalization cell, from spec to record columns. Cells that share a fit or a text share it in a process."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from wordsens.experiments.generalization.record import GeneralizationRecord
from wordsens.experiments.generalization.spec import FRONTIER, GeneralizationCell
from wordsens.experiments.kinds import CellKind
from wordsens.experiments.texts.training import Draw, LabelledTexts, labelled_texts
from wordsens.generalization import (
    NewText,
    OneWordFrontier,
    OneWordGeneralization,
    OneWordOutcomes,
    one_word_frontier,
    one_word_generalization,
    one_word_outcomes,
)
from wordsens.generalization.result import error_of, finite_sample_bound, theorem_conditions
from wordsens.maps.contract import FeatureMap
from wordsens.maps.dense.features import DeepRandomFeatures, RandomFeatures
from wordsens.regression import MinNormFit, fit_min_norm
from wordsens.seeds import derive_seed


@dataclass(frozen=True)
class _Fitted:
    """A fit and its texts."""

    fit: MinNormFit
    data: LabelledTexts
    accuracy: float
    seconds: float


def measure_generalization(
    cell: GeneralizationCell, keep: Callable[[Mapping[str, Tensor]], None] | None = None
) -> dict[str, Any]:
    """Measure one cell.

    Args:
        cell: what is measured.
        keep: given the witnesses: `rows` (n, d) of the text X, the changed `word` and its `perturbation` (d,); of a
            frontier, one of each for every limit.
    """
    fitted = _fitted(cell.of_fit())
    # Searching every word asks a matrix on demand for more and more of itself: such cells do not share their text.
    new = (_fresh_text if cell.word == "all" else _new_text)(cell.of_fit(), cell.sample)
    found, witness = (_shared if cell.together else _searched)(cell, new)
    if keep is not None:
        keep({"rows": new.rows, **witness})
    at_rest = new.outputs(0, torch.zeros_like(new.rows[0]), cell.training)
    return {
        **found,
        **({"map": new.fit.phi.name} if cell.reads_texts_itself else {}),
        "features": fitted.fit.features.size,
        "source": new.text.source,
        "label": int(new.label),
        "output_before": new.output_before,
        "error_unchanged": error_of(new, at_rest),
        "accuracy": fitted.accuracy,
        "condition": fitted.fit.conditioning.condition,
        "fit_seconds": fitted.seconds,
    }


_Found = tuple[dict[str, Any], dict[str, Tensor]]
"""The columns of what was found, and the witness."""


def _searched(cell: GeneralizationCell, new: NewText) -> _Found:
    """What a search for this cell alone finds."""
    word = None if cell.word == "all" else cell.word
    seed = cell.seed_of("search")
    common: dict[str, Any] = {"radius": cell.radius, "search": cell.search_plan}
    phi = new.fit.phi
    if cell.objective == FRONTIER:
        frontier = one_word_frontier(
            phi, None, None, new, None, word, cell.training, cell.gammas, seed, **common
        )  # fmt: skip
        return _of_frontier(new, frontier)
    g = one_word_generalization(
        phi, None, None, new, None, word, cell.training, cell.objective, seed, penalty=cell.penalty, **common
    )
    return _of_choice(g)


def _shared(cell: GeneralizationCell, new: NewText) -> _Found:
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
        cell.word,
        cell.gammas,
        cell.seed_of("search"),
        penalty=cell.penalty,
        radius=cell.radius,
        search=cell.search_plan,
    )


def _of_choice(g: OneWordGeneralization) -> _Found:
    found = {
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
    }
    return found, {"word": torch.tensor(g.word), "perturbation": g.perturbation}


def _of_frontier(new: NewText, frontier: OneWordFrontier) -> _Found:
    gamma, alignment = float(frontier.attained_gammas[-1]), float(frontier.alignments[-1])
    word = int(frontier.words[-1])
    outputs = new.outputs(word, frontier.perturbations[-1], frontier.training)
    found = {
        "value": float(frontier.errors[-1]),
        "gamma": gamma,
        "alignment": alignment,
        "bound": finite_sample_bound(gamma, alignment, new.surprise),
        "word": word,
        "token": new.text.word(word),
        "output_after": outputs.after,
        "conditions_hold": theorem_conditions(new, frontier.training, gamma).hold,
        "evaluations": frontier.evaluations,
        "limits": tuple(frontier.gammas.tolist()),
        "least_errors": tuple(frontier.errors.tolist()),
        "least_gammas": tuple(frontier.attained_gammas.tolist()),
        "least_alignments": tuple(frontier.alignments.tolist()),
    }
    return found, {"word": frontier.words, "perturbation": frontier.perturbations}


@lru_cache(maxsize=1)
def _fitted(cell: GeneralizationCell) -> _Fitted:
    """The fit that the cells with this `of_fit` share. Its queries to a random matrix are always the same ones."""
    begin = time.perf_counter()
    dtype = getattr(torch, cell.dtype)
    phi = cell.build()
    data = labelled_texts(
        cell.text,
        cell.labels,
        Draw(cell.n, cell.d, cell.texts, cell.held_out, cell.draw, cell.seed),
        dtype=dtype,
        model=phi if cell.reads_texts_itself else None,
    )
    texts, labels = data.training
    fit = fit_min_norm(phi, texts, labels, ridge=cell.ridge)
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


def describe_generalization(cell: GeneralizationCell) -> dict[str, Any]:
    """The columns that the cell alone decides."""
    return {**cell.described(), **{name: getattr(cell, name) for name in _COPIED}}


_COPIED = ("texts", "held_out", "labels", "sample", "training", "objective")


KIND = CellKind(
    name="generalization",
    folder="generalization-records",
    cell_type=GeneralizationCell,
    record_type=GeneralizationRecord,
    measure=measure_generalization,
    described=describe_generalization,
    sharing=GeneralizationCell.of_fit,
    most_together=100,  # a fit of 1,300 texts takes as long as a hundred cells
)
