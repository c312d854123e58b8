"""One cell: from spec to the columns of its record. The values depend on the spec alone, not on what ran before."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.experiments.kinds import CellKind
from wordsens.experiments.sensitivity.record import SensitivityRecord
from wordsens.experiments.sensitivity.spec import SensitivityCell
from wordsens.experiments.texts.documents import load_text
from wordsens.experiments.texts.source import GivenText
from wordsens.maps.contract import FeatureMap
from wordsens.search.plan import SearchPlan
from wordsens.seeds import generator
from wordsens.sensitivity.one_word import word_sensitivity
from wordsens.sensitivity.result import Sensitivity
from wordsens.text.matrix import TextMatrix
from wordsens.theory import predict


def measure_sensitivity(
    cell: SensitivityCell, keep: Callable[[Mapping[str, Tensor]], None] | None = None, *, certificate: bool = True
) -> dict[str, Any]:
    """Measure one cell.

    The text, the weights, the searched words and the random starts each have a seed of their own, derived
    from the cell's seed, n, d and draw: maps that differ in nothing else see the same text, and no cell
    depends on another.

    Args:
        cell: what is measured.
        keep: given the witnesses: `rows` (n, d) of the text, and for each searched word its index (`words`), its
            perturbation (`perturbations`) and what that attains (`per_word`).
        certificate: whether upper bounds are computed.
    """
    phi = cell.build()
    model = phi if cell.reads_texts_itself else None
    text = load_text(cell.text, cell.n, cell.d, draw=cell.draw, seed=cell.seed, model=model)
    result = word_sensitivity(
        phi,
        text,
        words=_searched_words(cell),
        radius=cell.radius,
        seed=cell.seed_of("search"),
        search=cell.search_plan,
        certificate=certificate,
    )
    if keep is not None:
        keep(
            {
                "rows": text.rows,
                "words": result.words,
                "per_word": result.per_word,
                "perturbations": result.perturbations,
            }
        )
    columns = columns_of_result(phi, text, result, usual_radius=cell.radius is None)
    return {**columns, **_of_the_finished(cell.search_plan, result)}


def _of_the_finished(plan: SearchPlan, result: Sensitivity) -> dict[str, float | None]:
    """What is said of the words that were searched to the end: all, but in a race."""
    words = len(result.words)
    representative = result.per_word[plan.representative(words)].double()
    return {
        "median_word": float(representative.quantile(0.5)) if len(representative) else None,
        "converged": min(1.0, float(result.converged.sum()) / plan.searched_to_the_end(words)),
    }


def _searched_words(cell: SensitivityCell) -> list[int] | None:
    if cell.words.indices is not None:
        return list(cell.words.indices)
    if cell.words.sample is None or cell.words.sample >= cell.n:
        return None
    stream = generator(cell.seed, "words", cell.n, cell.d, cell.draw)
    return sorted(torch.randperm(cell.n, generator=stream)[: cell.words.sample].tolist())


def columns_of_result(phi: FeatureMap, text: TextMatrix, result: Sensitivity, *, usual_radius: bool) -> dict[str, Any]:
    """The columns that a measurement gives; predictions are about the usual radius."""
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
        "word": result.word,
        "token": result.tokens[at],
        "value": result.value,
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


def describe_sensitivity(cell: SensitivityCell) -> dict[str, Any]:
    """The columns that the cell alone decides."""
    return {
        **cell.described(),
        "activation": cell.activation if "activation" in cell.used_options else None,
        "content": cell.text.content if isinstance(cell.text, GivenText) else None,
        "map_seed": cell.seed_of("map"),
    }


def json_text(value: Any) -> str:
    """A list as a column of text holds it."""
    return json.dumps(value, ensure_ascii=False)


KIND = CellKind(
    name="sensitivity",
    folder="records",
    cell_type=SensitivityCell,
    record_type=SensitivityRecord,
    measure=measure_sensitivity,
    described=describe_sensitivity,
)
