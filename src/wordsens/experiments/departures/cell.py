"""One measurement under one protocol: from spec to the columns of its record."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from wordsens.errors import InputError, require_choice
from wordsens.experiments.departures.ascent import raw_ascent, refined
from wordsens.experiments.departures.protocol import DEFINED, NOISE, PROTOCOLS, SENSITIVITY, Protocol
from wordsens.experiments.departures.record import DepartureRecord
from wordsens.experiments.departures.summary import summarise_departures
from wordsens.experiments.kinds import CellKind
from wordsens.experiments.texts.documents import fingerprint, load_text
from wordsens.experiments.texts.map_cell import MapCell
from wordsens.experiments.texts.source import Embedded
from wordsens.experiments.texts.training import LABEL_KINDS, SENTIMENT, Draw, labelled_texts, reads_labels
from wordsens.generalization import NewText, one_word_frontier, one_word_generalization
from wordsens.generalization.loss import loss_for
from wordsens.generalization.result import error_of
from wordsens.maps.arguments import radii
from wordsens.maps.contract import DEFAULT_MEMORY_BUDGET, FeatureMap
from wordsens.maps.dense.features import DeepRandomFeatures
from wordsens.regression import TRAININGS, fit_min_norm
from wordsens.search.ball import Ball
from wordsens.search.witnesses import find_witnesses
from wordsens.seeds import gaussian_on, generator
from wordsens.sensitivity.one_word import attained
from wordsens.text.matrix import TextMatrix

_OF_ERROR = ("texts", "labels", "training", "limit")


class DepartureCell(MapCell):
    """One text, one map, one protocol: S, or Err of a model that has just learned the text.

    Attributes:
        map, n, d, text, draw, ...: see MapCell.
        measures: "sensitivity" or "error".
        protocol: one of PROTOCOLS.
        texts: of an error: N, the training texts.
        labels: of an error: "sentiment" (the texts' own), "linear" or "random".
        training: of an error: "fine-tuned" or "retrained".
        limit: of an error: on gamma, where Delta is not chosen by the alignment.
    """

    KIND: ClassVar[str | None] = "departures"

    measures: Literal["sensitivity", "error"] = SENSITIVITY
    protocol: str = DEFINED
    texts: Annotated[int, Field(ge=1)] = 30
    labels: str = SENTIMENT
    training: str = "fine-tuned"
    limit: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.5

    @model_validator(mode="after")
    def _valid(self) -> "DepartureCell":
        chosen = PROTOCOLS[require_choice("protocol", self.protocol, PROTOCOLS)]
        require_choice("labels", self.labels, LABEL_KINDS)
        require_choice("training", self.training, TRAININGS)
        if self.measures not in chosen.of:
            raise InputError(f"`protocol` (={self.protocol!r}) makes no difference to the {self.measures}; drop it")
        if self.reads_texts_itself:
            raise InputError(
                f"`map` (={self.map!r}) makes rows itself; take a map of the paper: rf, drf, raf, relu-raf"
            )
        chosen.source(self.text)
        return self

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    def of_draw(self) -> "DepartureCell":
        """The cell as defined: equal for the protocols of one map, size and draw, which share the weights."""
        return self.model_copy(update={"protocol": DEFINED})

    def identity_keys(self) -> dict[str, Any]:
        """The keys that can change the result: as of a MapCell, and nothing that is not looked at."""
        left = _OF_ERROR if self.measures == SENSITIVITY else ("limit",) if PROTOCOLS[self.protocol].alignment else ()
        return {name: value for name, value in super().identity_keys().items() if name not in left}

    def content_of(self, source: Embedded) -> str:
        labelled = self.measures != SENSITIVITY and reads_labels(source, self.labels)
        return fingerprint(source, labelled=labelled)


PAD = "[PAD]"

_LEADING = 12
"""Words that climb on from where the search ended, for S alone. In 12 texts of 20 and 80 words a word gained 6e-4 at
most, and the word of S led before; past the first 12 words are 1 to 14 % below S."""


def measure_departure(
    cell: DepartureCell, keep: Callable[[Mapping[str, Tensor]], None] | None = None
) -> dict[str, Any]:
    """Measure S or Err under the cell's protocol; `keep` is given `rows`, the `word` and its `perturbation`.

    Protocols of one map, size and draw share the weights, and the text where they measure the same ones.
    """
    protocol, phi = PROTOCOLS[cell.protocol], _map(cell)
    measured = _sensitivity if cell.measures == SENSITIVITY else _error
    text, word, perturbation, columns = measured(cell, protocol, phi)
    rows = phi.accept(text.rows)
    if keep is not None:
        keep({"rows": rows, "word": torch.tensor(word), "perturbation": perturbation})
    ball = _ball(cell, phi, rows, torch.tensor([word], device=rows.device))
    return {
        "map": phi.name,
        "source": text.source,
        "label": text.label,
        "word": word,
        "token": text.word(word),
        "searched": 1 if protocol.first_word else len(text),
        "padding": sum(token == PAD for token in text.tokens or ()),
        "length": float(torch.linalg.vector_norm(perturbation.double()) / ball.radius[0]),
        **columns,
    }


def _map(cell: DepartureCell) -> FeatureMap:
    """The map of the cell's draw, which no other cell has asked anything."""
    phi = _untouched_map(cell.of_draw())
    return phi.fork() if isinstance(phi, DeepRandomFeatures) else phi


@lru_cache(maxsize=1)
def _untouched_map(cell: DepartureCell) -> FeatureMap:
    """The map that neighbouring cells, the protocols of one draw, have alike."""
    return cell.build()


_Measured = tuple[TextMatrix, int, Float[Tensor, " d"], dict[str, Any]]
"""The text, the word, its Delta, and the columns of what they give."""


def _sensitivity(cell: DepartureCell, protocol: Protocol, phi: FeatureMap) -> _Measured:
    text = load_text(protocol.source(cell.text), cell.n, cell.d, draw=cell.draw, seed=cell.seed)
    rows = phi.accept(text.rows)
    words = torch.arange(1 if protocol.first_word else cell.n, device=rows.device)
    ball, seed = _ball(cell, phi, rows, words), cell.seed_of("search")
    change = phi.word_change(rows, memory_budget=DEFAULT_MEMORY_BUDGET)
    noise = NOISE * gaussian_on(
        *(len(words), cell.d), generator=generator(seed, "noise"), dtype=rows.dtype, device=rows.device
    )
    centre = noise if protocol.noisy else torch.zeros_like(noise)
    if protocol.raw:
        features = phi(rows).numel()

        def gradient(delta: Tensor) -> Tensor:
            """Of the root of the mean square over the features."""
            squared, slope = change.value_and_gradient(delta, words)
            return slope / (2 * (squared * features).sqrt()).unsqueeze(1)

        # At Delta = 0 that root has no gradient: the ascent starts at the noisy copy.
        rate, steps = (100.0, 300) if isinstance(phi, DeepRandomFeatures) else (10.0, 50 * cell.n)
        delta = raw_ascent(gradient, noise, centre, ball, rate=rate, steps=steps)
    else:
        found = find_witnesses(change, words, ball, cell.search_plan, generator=generator(seed, "starts"))
        words = found.squared.topk(min(_LEADING, len(words))).indices.sort().values
        ball, centre = _ball(cell, phi, rows, words), centre[words]
        delta = refined(change, words, found.perturbations[words], centre, ball)
    per_word = attained(phi, rows, words.unsqueeze(1), delta.unsqueeze(1))
    best = int(per_word.argmax())
    return text, int(words[best]), delta[best], {"value": float(per_word[best])}


def _error(cell: DepartureCell, protocol: Protocol, phi: FeatureMap) -> _Measured:
    drawn = Draw(cell.n, cell.d, cell.texts, 1, cell.draw, cell.seed)
    data = labelled_texts(protocol.source(cell.text), cell.labels, drawn, dtype=phi.dtype)
    (text,), labels = data.test
    new = NewText(fit_min_norm(phi, *data.training), text, float(labels[0]))
    word = 0 if protocol.first_word else None
    if protocol.raw:
        at, delta = 0, _raw_alignment(cell, new)
    elif protocol.alignment:
        found = one_word_generalization(
            phi, None, None, new, None, word, cell.training, "alignment", cell.seed_of("search"),
            radius=cell.radius, search=cell.search_plan,
        )  # fmt: skip
        at, delta = found.word, found.perturbation
    else:
        frontier = one_word_frontier(
            phi, None, None, new, None, word, cell.training, (cell.limit,), cell.seed_of("search"),
            radius=cell.radius, search=cell.search_plan,
        )  # fmt: skip
        at, delta = int(frontier.words[-1]), frontier.perturbations[-1]
    outputs = new.outputs(at, delta, cell.training)
    columns = {"value": error_of(new, outputs), "gamma": abs(outputs.shift), "alignment": outputs.alignment}
    return text, at, delta, columns


def _raw_alignment(cell: DepartureCell, new: NewText) -> Float[Tensor, " d"]:
    """Steps down the raw gradient of (F + 1)² from Delta = 0."""
    loss, functionals = loss_for(new, cell.training, "alignment"), new.functionals(cell.training)
    words = torch.zeros(1, dtype=torch.long, device=new.rows.device)
    start = torch.zeros_like(new.rows[:1])

    def gradient(delta: Tensor) -> Tensor:
        return -functionals.values_and_gradient(delta, words, lambda values: loss.loss(values)[1])[1]

    rate, steps = (100.0, 300) if isinstance(new.fit.phi, DeepRandomFeatures) else (1.0, 50 * cell.n)
    ball = _ball(cell, new.fit.phi, new.rows, words)
    return raw_ascent(gradient, start, torch.zeros_like(start), ball, rate=rate, steps=steps)[0]


def _ball(cell: DepartureCell, phi: FeatureMap, rows: Float[Tensor, "n d"], words: Int[Tensor, " w"]) -> Ball:
    return Ball(radii(cell.radius, phi, rows, words))


def describe_departure(cell: DepartureCell) -> dict[str, Any]:
    """The columns that the cell alone decides."""
    return {**cell.described(), "measures": cell.measures, "protocol": cell.protocol}


KIND = CellKind(
    name="departures",
    folder="departures-records",
    cell_type=DepartureCell,
    record_type=DepartureRecord,
    measure=measure_departure,
    described=describe_departure,
    sharing=DepartureCell.of_draw,
    summarise=summarise_departures,
)
