"""The typed spec of one generalization measurement: a fit, a further text, a training, an objective."""

import json
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from wordsens.errors import InputError, require_choice
from wordsens.experiments.grid.device_key import CPU, Device, with_kind_of_device
from wordsens.experiments.grid.strict_model import StrictModel
from wordsens.experiments.grid.sweep import Sweep
from wordsens.experiments.map_choice import MAP_NAMES, MapOptions, options_used_by
from wordsens.experiments.store.identity import hash_identity
from wordsens.experiments.texts.source import DatasetText, ReviewsText, TextSource, spelled_out
from wordsens.experiments.texts.training import LABEL_KINDS, labelled_fingerprint
from wordsens.generalization import OBJECTIVE_NAMES
from wordsens.generalization.frontier import DEFAULT_GAMMAS
from wordsens.regression import TRAININGS

GENERALIZATION_SCHEMA = 2
"""Raised when the meaning of a key, or the way a cell is computed, changes: old records are then not reused."""

FRONTIER = "frontier"
_MAP_OPTIONS = ("width", "activation", "temperature")
_SAMPLE_KEYS = ("sample", "training", "objective", "penalty", "gammas", "starts", "steps", "generations")


class GeneralizationCell(StrictModel):
    """One fit, one further text (X, y), one way to learn it, one choice of Delta: one record.

    Attributes:
        map: rf, raf, relu-raf, ... as for a sensitivity.
        n, d: every text is its first n words, the first d coordinates of each, rows rescaled to sqrt(d).
        texts: N, the training texts.
        text: where texts come from.
        labels: "sentiment" (the texts' own), "linear" (the sign of a linear function) or "random".
        held_out: test texts, the same for every N; `sample` is one of them, and the accuracy is measured on all.
        draw: 0, 1, ...: other texts and other weights.
        sample: which held-out text is learned and then changed.
        word: the word that changes, or "all" for the best of all.
        training: "fine-tuned" or "retrained".
        objective: one of OBJECTIVE_NAMES, or "frontier" for the least error under each limit on gamma.
        penalty: the weight of gamma² in penalized-error.
        gammas: the limits of the frontier.
        radius: of the ball; None for sqrt(d).
        ridge: of the fit.
        seed: of the whole experiment.
        width, activation: rf only. temperature: attention maps only.
        starts, steps, generations: of the search; None for what suits the map.
        dtype: of the features; the kernel matrix and all that follows is float64.
        device: where it is computed; its kind belongs to the identity, its number does not.
    """

    map: str
    n: Annotated[int, Field(ge=2)]
    d: Annotated[int, Field(ge=1)]
    texts: Annotated[int, Field(ge=1)]
    text: Annotated[TextSource, Field(discriminator="kind")]
    labels: str = "sentiment"
    held_out: Annotated[int, Field(ge=1)] = 100
    draw: Annotated[int, Field(ge=0)] = 0
    sample: Annotated[int, Field(ge=0)] = 0
    word: Annotated[int, Field(ge=0)] | Literal["all"] = 0
    training: str = "fine-tuned"
    objective: str = "alignment"
    penalty: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    gammas: Annotated[tuple[float, ...], Field(min_length=1, strict=False)] = DEFAULT_GAMMAS
    radius: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    ridge: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    seed: int = 0
    width: Annotated[int, Field(ge=1)] | None = None
    activation: str = "relu"
    temperature: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 1.0
    starts: Annotated[int, Field(ge=1)] | None = None
    steps: Annotated[int, Field(ge=0)] | None = None
    generations: Annotated[int, Field(ge=0)] | None = None
    dtype: Literal["float64", "float32"] = "float64"
    device: Device = CPU

    _text = field_validator("text", mode="before")(spelled_out)

    @model_validator(mode="after")
    def _valid(self) -> "GeneralizationCell":
        require_choice("map", self.map, [name for name in MAP_NAMES if name != "drf"])
        require_choice("labels", self.labels, LABEL_KINDS)
        require_choice("training", self.training, TRAININGS)
        require_choice("objective", self.objective, (*OBJECTIVE_NAMES, FRONTIER))
        if self.labels == "sentiment" and not isinstance(self.text, ReviewsText | DatasetText):
            raise InputError(f"`labels` (='sentiment') needs real texts; {self.text.kind} texts take linear or random")
        if self.sample >= self.held_out:
            raise InputError(f"`sample` (={self.sample}) must be less than `held_out` (={self.held_out})")
        if isinstance(self.word, int) and self.word >= self.n:
            raise InputError(f"`word` (={self.word}) must be less than `n` (={self.n})")
        used = options_used_by(self.map)
        for name in _MAP_OPTIONS:
            if name in self.model_fields_set and name not in used:
                raise InputError(f"`{name}` is not an option of the map {self.map!r}; drop it")
        return self

    @property
    def map_options(self) -> MapOptions:
        """What `build_map` takes. RF is sampled on demand: its law is the same, and it fits memory at every size."""
        return MapOptions(width=self.width, activation=self.activation, gaussian="lazy", temperature=self.temperature)

    @property
    def search_options(self) -> dict[str, int]:
        """What the search is told, where the cell says anything."""
        names = ("starts", "steps", "generations")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def __hash__(self) -> int:
        return hash(self.model_dump_json())

    def of_fit(self) -> "GeneralizationCell":
        """The cell with everything usual that the fit does not depend on: cells with equal ones share a fit."""
        usual = {name: GeneralizationCell.model_fields[name].default for name in _SAMPLE_KEYS}
        return self.model_copy(update=usual)

    def identity(self) -> str:
        """Canonical JSON of what can change the result: a dataset's content stands for its path."""
        fields = with_kind_of_device(self.model_dump(mode="json"))
        for name in set(_MAP_OPTIONS) - options_used_by(self.map):
            del fields[name]
        if self.objective != "penalized-error":
            del fields["penalty"]
        if self.objective != FRONTIER:
            del fields["gammas"]
        if isinstance(self.text, ReviewsText | DatasetText):
            if isinstance(self.text, DatasetText):
                for name in ("path", "text_column", "split", "limit"):
                    del fields["text"][name]
            fields["text"]["content"] = labelled_fingerprint(self.text)
        kind = {"kind": "generalization", "schema": GENERALIZATION_SCHEMA}
        return json.dumps({**kind, **fields}, sort_keys=True, separators=(",", ":"))

    def content_hash(self) -> str:
        """The cell's name in the store."""
        return hash_identity(self.identity())


class GeneralizationSweep(Sweep):
    """Grids of generalization cells; cells that share a fit stand together."""

    kind: str = "generalization"
