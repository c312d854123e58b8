"""The typed spec of one generalization measurement: a fit, a further text, a training, an objective."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from wordsens.errors import InputError, require_choice
from wordsens.experiments.texts.documents import fingerprint
from wordsens.experiments.texts.map_cell import MapCell
from wordsens.experiments.texts.source import Embedded
from wordsens.experiments.texts.training import LABEL_KINDS, SENTIMENT, reads_labels
from wordsens.generalization import OBJECTIVE_NAMES
from wordsens.generalization.frontier import DEFAULT_GAMMAS
from wordsens.regression import TRAININGS

GENERALIZATION_SCHEMA = 2
"""Raised when the meaning of a key, or the way a cell is computed, changes: old records are then not reused."""

FRONTIER = "frontier"
_SAMPLE_KEYS = ("sample", "training", "objective", "penalty", "gammas", "together", "search", *MapCell.COUNTS)


class GeneralizationCell(MapCell):
    """One fit, one further text (X, y), one way to learn it, one choice of Delta: one record.

    Attributes:
        map, n, d, text, draw, ...: see MapCell. RF and DRF are sampled on demand: their law is the same, and they fit
            memory at every size.
        n, d: every text is its first n words, the first d coordinates of each, rows rescaled to sqrt(d).
        texts: N, the training texts.
        labels: "sentiment" (the texts' own), "linear" (the sign of a linear function) or "random".
        held_out: test texts, the same for every N; `sample` is one of them, and the accuracy is measured on all.
        sample: which held-out text is learned and then changed.
        word: the word that changes, or "all" for the best of all.
        training: "fine-tuned" or "retrained".
        objective: one of OBJECTIVE_NAMES, or "frontier" for the least error under each limit on gamma.
        penalty: the weight of gamma² in penalized-error.
        gammas: the limits of the frontier.
        together: whether one search looks for all objectives, the frontier among them, of both trainings: cells that
            differ in these alone share it, and each costs a fraction of a search of its own (`one_word_outcomes`).
        ridge: of the fit.
        dtype: of the features; the kernel matrix and all that follows is float64.
    """

    KIND: ClassVar[str | None] = "generalization"
    SCHEMA: ClassVar[int] = GENERALIZATION_SCHEMA
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
            raise InputError(f"`labels` (='sentiment') needs real texts; {self.text.kind} texts take linear or random")
        if self.sample >= self.held_out:
            raise InputError(f"`sample` (={self.sample}) must be less than `held_out` (={self.held_out})")
        if isinstance(self.word, int) and self.word >= self.n:
            raise InputError(f"`word` (={self.word}) must be less than `n` (={self.n})")
        if self.together and self.word == "all":
            raise InputError("`together` (=True) searches one word for all objectives; give `word` an index")
        return self

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    def of_fit(self) -> "GeneralizationCell":
        """The cell with everything usual that the fit does not depend on: cells with equal ones share a fit."""
        usual = {name: GeneralizationCell.model_fields[name].default for name in _SAMPLE_KEYS}
        return self.model_copy(update=usual)

    def of_search(self) -> "GeneralizationCell":
        """Of a search together: the cell with the usual training and objective, equal for cells that share it."""
        usual = {name: GeneralizationCell.model_fields[name].default for name in ("training", "objective")}
        return self.model_copy(update=usual)

    def identity_keys(self) -> dict[str, Any]:
        """The keys that can change the result: as of a MapCell, and nothing that is not looked at."""
        alone = not self.together
        unread = {
            "penalty": alone and self.objective != "penalized-error",
            "gammas": alone and self.objective != FRONTIER,
            "together": alone,
        }
        return {name: value for name, value in super().identity_keys().items() if not unread.get(name)}

    def content_of(self, source: Embedded) -> str:
        return fingerprint(source, labelled=reads_labels(source, self.labels))
