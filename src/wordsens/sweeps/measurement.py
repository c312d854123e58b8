"""S of one text under one map as a cell: what sweeps measure, and what `wordsens measure --out`
keeps."""

from collections.abc import Hashable, Sequence
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Float
from pydantic import Field, model_serializer, model_validator
from torch import Tensor

from wordsens.errors import InputError, require_choice, shown
from wordsens.maps.base import FeatureMap
from wordsens.maps.registry import map_entry
from wordsens.seeds import generator
from wordsens.sensitivity.one_word import TextUnderMap, sensitivities
from wordsens.sensitivity.profile import average_change
from wordsens.sensitivity.result import Sensitivity
from wordsens.sweeps.map_cell import MapCell
from wordsens.sweeps.spec import Strict
from wordsens.sweeps.store import Row, Store, json_text, record_of
from wordsens.sweeps.texts import GivenText, load_text
from wordsens.text.matrix import TextMatrix
from wordsens.theory import predict

# The kind of text of `wordsens measure`.
GIVEN = "given"


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
        if isinstance(value, dict) and len(value) > 1:
            raise InputError(f"`words` (={shown(value)}) has several keys; give sample or indices")
        return value

    @model_serializer
    def _short(self) -> Any:
        if self.sample is not None:
            return {"sample": self.sample}
        return "all" if self.indices is None else {"indices": list(self.indices)}


class SensitivityCell(MapCell, frozen=True):
    """One text, one map.

    Attributes:
        n, d: the text is its first n words, the first d coordinates of each, rows rescaled to
            sqrt(d); of a transformer, its own n rows (special tokens included), whose d coordinates
            are the model's.
        words: "all", {"sample": k} or {"indices": [...]}.
    """

    experiment: ClassVar[str] = "sensitivity"

    words: WordChoice = WordChoice()

    @model_validator(mode="after")
    def _valid(self) -> "SensitivityCell":
        for word in self.words.indices or ():
            if not -self.n <= word < self.n:
                raise InputError(
                    f"`words` has {word}, but the text has n = {self.n} words: 0 to {self.n - 1}"
                )
        return self

    def described(self) -> dict[str, Any]:
        content = self.text.content if isinstance(self.text, GivenText) else None
        return {**super().described(), "content": content, "map_seed": self.seed_of("map")}


def measure_sensitivity(cell: SensitivityCell, *, certificate: bool = True) -> dict[str, Any]:
    """Measure one cell.

    The text, the weights, the searched words and the random starts each have a seed of their own,
    derived from the cell's seed, n, d and draw: maps that differ in nothing else see the same text,
    and no cell depends on another.
    """
    return measure_sensitivities([cell], certificate=certificate)[0]


def alike(cell: SensitivityCell) -> Hashable:
    """The same for cells of attention that differ in the draw or the seed alone, which are searched
    as one problem; other cells would gain nothing by it."""
    if map_entry(cell.map).family != "attention":
        return cell
    return json_text(cell.model_copy(update={"draw": 0, "seed": 0}).spec())


def measure_sensitivities(
    cells: Sequence[SensitivityCell], *, certificate: bool = True
) -> list[dict[str, Any]]:
    """`measure_sensitivity` of cells with one search plan: what it gives for each, to rounding."""
    problems, averages = [], []
    for cell in cells:
        phi = cell.build()
        model = phi if cell.reads_texts_itself else None
        text = load_text(cell.text, cell.n, cell.d, draw=cell.draw, seed=cell.seed, model=model)
        words = _searched_words(cell)
        # Before the search: a matrix that is sampled on demand may forget a word's columns after
        # it, to save memory.
        average = average_change(phi, text, words, cell.radius, seed=cell.seed_of("average"))
        averages.append(average[0])
        problems.append(TextUnderMap(phi, text, words, cell.radius, cell.seed_of("search")))
    results = sensitivities(problems, cells[0].search_plan, certificate=certificate)
    return [
        {
            **columns_of_result(problem.phi, problem.X, result, usual_radius=cell.radius is None),
            "average": average,
            "arrays": {
                "rows": problem.X.rows,
                **{name: getattr(result, name) for name in ("words", "per_word", "perturbations")},
            },
        }
        for cell, problem, result, average in zip(cells, problems, results, averages, strict=True)
    ]


def _searched_words(cell: SensitivityCell) -> list[int] | None:
    indices, sample = cell.words.indices, cell.words.sample
    if sample is None or sample >= cell.n:
        return None if indices is None else list(indices)
    stream = generator(cell.seed, "words", cell.n, cell.d, cell.draw)
    return sorted(torch.randperm(cell.n, generator=stream)[:sample].tolist())


def columns_of_result(
    phi: FeatureMap, text: TextMatrix, result: Sensitivity, *, usual_radius: bool
) -> dict[str, Any]:
    """The columns that a measurement gives; predictions are about the usual radius.

    tokens, whole_words and swapped_for are lists as JSON; searched, per_word and upper_per_word
    have one entry per searched word, in one order.
    """
    whole = text.whole_words
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
        "whole_words": None
        if whole is None
        else json_text([[word.text, list(word.rows)] for word in whole]),
        "words": len(result.words),
        "searched": tuple(result.words.tolist()),
        "per_word": tuple(result.per_word.tolist()),
        "upper_per_word": None
        if result.upper_per_word is None
        else tuple(result.upper_per_word.tolist()),
        "swap": None,
        "swapped_for": None,
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
    """The mean over pairs of different rows of their cosine: (‖sum_i u_i‖² - n) / (n (n - 1)), u_i
    = x_i / ‖x_i‖."""
    n = len(rows)
    summed = torch.nn.functional.normalize(rows.double(), dim=1).sum(dim=0)
    return (float(summed @ summed) - n) / (n * (n - 1))


_TENSORS = (
    "words",
    "per_word",
    "rounding",
    "perturbations",
    "radius",
    "converged",
    "upper_per_word",
    "evaluations_per_word",
)


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

    `swaps`: for each searched word, the relative change by the best real word in its place, and
    that word.
    """
    columns = columns_of_result(phi, text, result, usual_radius=cell.radius is None)
    if swaps is not None:
        columns |= {"swap": swaps[0], "swapped_for": json_text(swaps[1])}
    tensors = {name: getattr(result, name) for name in _TENSORS}
    record = record_of(cell, "done", columns, started=started, seconds=result.seconds)
    store.write(record, {"rows": text.rows, **tensors})


def saved_measurement(
    store: Store, cell: SensitivityCell, phi: FeatureMap, text: TextMatrix
) -> tuple[Sensitivity, Row] | None:
    """The measurement that `save_measurement` wrote, and its record; None where the store does not
    have both."""
    tensors = store.arrays(cell.key())
    if tensors is None or "rounding" not in tensors:  # none, or those of a sweep
        return None
    (record,) = store.rows([cell.key()])
    words = tensors["words"].tolist()
    parts: dict[str, Any] = {name: tensors.get(name) for name in _TENSORS if name != "words"}
    parts |= {name: record[name] for name in ("value", "evaluations", "upper", "rigor")}
    result = Sensitivity(
        **parts,
        groups=tuple((word,) for word in words),
        tokens=tuple(map(text.word, words)),
        search=str(cell.search_plan),
        seconds=record["seconds"],
        seed=cell.seed,
        map_name=record["map"],
        notes=phi.notes,
    )
    return result, record
