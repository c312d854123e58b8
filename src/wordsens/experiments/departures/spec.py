"""The typed spec of one measurement under one protocol."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from wordsens.errors import InputError, require_choice
from wordsens.experiments.departures.protocol import DEFINED, PROTOCOLS, SENSITIVITY
from wordsens.experiments.texts.documents import fingerprint
from wordsens.experiments.texts.map_cell import MapCell
from wordsens.experiments.texts.source import Embedded
from wordsens.experiments.texts.training import LABEL_KINDS, SENTIMENT, reads_labels
from wordsens.regression import TRAININGS

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
