"""One pair of texts: from spec to the columns of its record. A process loads a model once."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Annotated, Any, ClassVar

from jaxtyping import Float
from pydantic import Field, model_validator
from torch import Tensor

from wordsens.errors import InputError
from wordsens.experiments.attention.record import AttentionRecord
from wordsens.experiments.grid.cell import Cell
from wordsens.experiments.grid.cell_keys import CPU, Device, ModelName
from wordsens.experiments.kinds import CellKind
from wordsens.maps.attention_pair import AttentionPair
from wordsens.maps.attention_words import comparable_pair
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.prompt_pair import PromptPair, prompt_pair
from wordsens.text.model_files import model_digest


class AttentionCell(Cell):
    """A pair of texts and a layer of a model (paper, figure 1).

    Attributes:
        model: "minilm", a folder or a name on the hub; its files' content stands for it in the identity.
        first, second: the texts.
        layer: 1 to L; negative from the last, -1.
        head: 0, 1, ...; None for the mean over the heads.
        prompts: two prompts for a causal language model; None for no answers.
        answers: the answers whose probabilities are taken.
        device: where it is computed; its kind belongs to the identity, its number does not.
    """

    KIND: ClassVar[str | None] = "attention"

    model: ModelName = "minilm"
    first: str
    second: str
    layer: int = 1
    head: Annotated[int, Field(ge=0)] | None = None
    prompts: tuple[str, str] | None = Field(default=None, strict=False)
    answers: tuple[str, ...] | None = Field(default=None, strict=False)
    device: Device = CPU

    @model_validator(mode="after")
    def _both_or_neither(self) -> "AttentionCell":
        if (self.prompts is None) != (self.answers is None):
            raise InputError("`prompts` and `answers` belong together; give both or neither")
        return self

    def identity_keys(self) -> dict[str, Any]:
        return {**super().identity_keys(), "model": model_digest(self.model)}


def measure_attention(cell: AttentionCell, keep: Callable[[Mapping[str, Any]], None] | None) -> dict[str, Any]:
    """The columns of a pair. No witness is kept."""
    if keep is not None:
        keep({})
    pair, answers = pairs_of(cell)
    first, second = pair.weights
    columns = {
        "value": float(moved_attention(pair).mean()),
        "model": pair.model,
        "layer": pair.layer,
        "tokens_first": json.dumps(pair.tokens[0], ensure_ascii=False),
        "tokens_second": json.dumps(pair.tokens[1], ensure_ascii=False),
        "weights_first": tuple(first.flatten().tolist()),
        "weights_second": tuple(second.flatten().tolist()),
        "changed": pair.changed,
    }
    if answers is not None:
        columns["probabilities"] = tuple(answers.probabilities.flatten().tolist())
    return columns


def describe_attention(cell: AttentionCell) -> dict[str, Any]:
    """The columns that the cell alone decides."""
    plain = {name: getattr(cell, name) for name in ("model", "layer", "head", "first", "second")}
    texts = {name: getattr(cell, name) for name in ("prompts", "answers")}
    return plain | {
        name: None if value is None else json.dumps(value, ensure_ascii=False) for name, value in texts.items()
    }


def pairs_of(cell: AttentionCell) -> tuple[AttentionPair, PromptPair | None]:
    """The attention of the pair, and the answers to the prompts where they are asked for.

    Raises:
        InputError: what cannot be compared, or answered.
    """
    pair = comparable_pair(_model(cell.model, cell.device), cell.first, cell.second, layer=cell.layer, head=cell.head)
    if cell.prompts is None or cell.answers is None:
        return pair, None
    speaker = _model(cell.model, cell.device, speaks=True)
    return pair, prompt_pair(speaker, *cell.prompts, answers=cell.answers)


def is_causal(model: str, device: str) -> bool:
    """True where the model reads from left to right, and so can be asked for answers."""
    return _model(model, device).causal


def moved_attention(pair: AttentionPair) -> Float[Tensor, " n"]:
    """For each row j, half the sum over i of |second - first|: the share of its attention that moves, 0 to 1 (ours)."""
    if pair.difference is None:
        raise InputError("the texts have different numbers of tokens; compare them with comparable_pair")
    return pair.difference.abs().sum(dim=1) / 2


@lru_cache(maxsize=2)
def _model(model: str, device: str, *, speaks: bool = False) -> TransformerFeatures:
    if not speaks:
        return TransformerFeatures.from_pretrained(model, attention="eager", device=device)
    return TransformerFeatures.from_pretrained(
        model, attention="eager", device=device, output="probabilities", pool="last"
    )


KIND = CellKind(
    name="attention",
    folder="attention-records",
    cell_type=AttentionCell,
    record_type=AttentionRecord,
    measure=measure_attention,
    described=describe_attention,
    witnesses=False,
)
