"""The typed spec of the attention of one pair of texts."""

from typing import Annotated, Any, ClassVar

from pydantic import Field, model_validator

from wordsens.errors import InputError
from wordsens.experiments.grid.cell import Cell
from wordsens.experiments.grid.cell_keys import CPU, Device, ModelName
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
