"""Several words at once: from spec to the columns of a record."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar

import torch
from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor

from wordsens.certificates.contract import Certificate
from wordsens.certificates.dense.bounds import FAILURE_PROBABILITY, dense_group_certificate
from wordsens.errors import InputError
from wordsens.experiments.kinds import CellKind
from wordsens.experiments.several_words.record import SeveralWordsRecord
from wordsens.experiments.several_words.summary import summarise_several_words
from wordsens.experiments.texts.documents import load_text
from wordsens.experiments.texts.map_cell import MapCell
from wordsens.maps.dense.features import DeepRandomFeatures
from wordsens.seeds import generator
from wordsens.sensitivity.groups import group_sensitivity, word_sets


class SeveralWordsCell(MapCell):
    """One text, one map, sets of `count` words whose balls have the radius each.

    Attributes:
        map, n, d, text, draw, ...: see MapCell.
        count: k, how many words move at once.
    """

    KIND: ClassVar[str | None] = "several-words"

    count: Annotated[int, Field(ge=1)]

    @model_validator(mode="after")
    def _words_enough(self) -> "SeveralWordsCell":
        if self.count > self.n:
            raise InputError(f"`count` (={self.count}) must be at most `n` (={self.n}), the words of the text")
        return self


def measure_several_words(
    cell: SeveralWordsCell, keep: Callable[[Mapping[str, Tensor]], None] | None = None
) -> dict[str, Any]:
    """Measure one cell; `keep` is given `rows` (n, d), the `words` (k,) of the best set and their `perturbations`.

    Fully connected features are the same in law for every set, and one random set is searched; of other maps those of
    `word_sets`.
    """
    phi = cell.build()
    model = phi if cell.reads_texts_itself else None
    text = load_text(cell.text, cell.n, cell.d, draw=cell.draw, seed=cell.seed, model=model)
    seed = cell.seed_of("search")
    if isinstance(phi, DeepRandomFeatures):
        stream = generator(cell.seed, "set of words", cell.n, cell.d, cell.draw)
        sets = [tuple(sorted(torch.randperm(cell.n, generator=stream)[: cell.count].tolist()))]
    else:
        sets = word_sets(phi, text, cell.count, cell.radius, seed)
    found = group_sensitivity(phi, text, sets, cell.radius, seed, search=cell.search_plan)
    if keep is not None:
        best = found.groups.index(found.group)
        keep({"rows": text.rows, "words": torch.tensor(found.group), "perturbations": found.perturbations[best]})
    bound = bound_of_every_set(phi, phi.accept(text.rows), cell.count, found.radius)
    return {
        "map": phi.name,
        "source": text.source,
        "label": text.label,
        "group": found.group,
        "sets": len(found.groups),
        "value": found.value,
        "upper": None if bound is None else bound.value,
        "rigor": None if bound is None else bound.rigor,
        "evaluations": found.evaluations,
        "converged": float(found.converged.double().mean()),
    }


def bound_of_every_set(phi: Any, rows: Float[Tensor, "n d"], count: int, radius: float) -> Certificate | None:
    """A bound of the sensitivity to every set of `count` words at once, each in a ball of that radius (ours).

    The bound of one set by the law of the weights depends on the set through the length of its rows alone, and grows
    with it: that of the longest rows, with a failure probability of 1e-9 / C(n, k), is one of all sets with 1e-9. None
    for maps without a bound for groups.
    """
    if not isinstance(phi, DeepRandomFeatures):
        return None
    longest = torch.linalg.vector_norm(rows, dim=1).argsort(descending=True)[:count].unsqueeze(0)
    reach = torch.tensor([radius * math.sqrt(count)], dtype=torch.float64, device=rows.device)
    each = FAILURE_PROBABILITY / math.comb(len(rows), count)
    found = dense_group_certificate(phi, rows, longest, reach, method="gaussian", failure_probability=each)
    return replace(found, failure_probability=FAILURE_PROBABILITY)


def describe_several_words(cell: SeveralWordsCell) -> dict[str, Any]:
    """The columns that the cell alone decides."""
    return {**cell.described(), "count": cell.count}


KIND = CellKind(
    name="several-words",
    folder="several-words-records",
    cell_type=SeveralWordsCell,
    record_type=SeveralWordsRecord,
    measure=measure_several_words,
    described=describe_several_words,
    summarise=summarise_several_words,
)
