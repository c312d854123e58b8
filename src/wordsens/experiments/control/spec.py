"""The typed spec of one training under control."""

from typing import Annotated, Any, ClassVar

from pydantic import Field, field_validator, model_validator

from wordsens.errors import InputError, require_choice
from wordsens.experiments.grid.cell import Cell
from wordsens.experiments.grid.cell_keys import CPU, Device
from wordsens.experiments.texts.documents import fingerprint
from wordsens.experiments.texts.source import Embedded, TextSource, spelled_out, text_identity
from wordsens.search.plan import EFFORTS
from wordsens.seeds import derive_seed
from wordsens.training.networks.architecture import DENSE, Architecture

TASKS = ("one-word", "majority", "texts")
HOLD = "hold"
STRENGTHS = {
    HOLD: 1.0,
    "lower": 0.1,
    "raise": 0.1,
    "spectral": 0.01,
    "word-dropout": 0.3,
    "adversarial": 0.5,
    "pairs": 1.0,
}
"""The usual weight of a term, share of blank words, share of the radius: round numbers, not tuned."""

CONTROLS = ("none", *STRENGTHS)


class ControlCell(Cell):
    """One network, one task, one control, one seed.

    Attributes:
        task: one-word, majority, or texts for labelled real ones.
        n, d: of a text.
        layer, layers, hidden, temperature, value, residual, norm, mlp, pooling: see `ws.training.Architecture`.
        control: none; hold, lower or raise (the sensitivity penalty); spectral, word-dropout, adversarial; pairs
            (supervised ones: see `experiments.control.pairs`).
        target: S to hold.
        strength: the weight of the control's term, the share of blank words, the share of the radius; None: STRENGTHS.
        steps, rate: of the training; 0 steps leave the network random.
        training: texts to learn from.
        text: the source of real texts; None for the other tasks.
        texts, words: so many held-out texts have their S measured, over so many random words of each, and the word that
            decides the label, where one does.
        search: what the full search spends on each word.
        by_layer: whether S is also measured behind every layer.
        along: whether the network is also measured along its training.
        draw: 0, 1, ...: another vocabulary, other texts, other weights.
        seed: of the whole experiment.
        device: where it is computed.
    """

    KIND: ClassVar[str | None] = "control"

    task: str
    n: Annotated[int, Field(ge=2)]
    d: Annotated[int, Field(ge=1)]
    layer: str = "softmax"
    layers: Annotated[int, Field(ge=1)] = 1
    hidden: Annotated[int, Field(ge=1)] = 64
    temperature: float = 1.0
    value: bool = True
    residual: bool = False
    norm: bool = False
    mlp: bool = False
    pooling: str = "mean"
    control: str = "none"
    target: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    strength: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    steps: Annotated[int, Field(ge=0)] = 300
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)] = 0.01
    training: Annotated[int, Field(ge=1)] = 4096
    text: Annotated[TextSource, Field(discriminator="kind")] | None = None
    texts: Annotated[int, Field(ge=1)] = 5
    words: Annotated[int, Field(ge=1)] = 6
    search: str = EFFORTS[0]
    by_layer: bool = False
    along: bool = False
    draw: Annotated[int, Field(ge=0)] = 0
    seed: int = 0
    device: Device = CPU

    @field_validator("text", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        return None if value is None else spelled_out(value)

    @model_validator(mode="after")
    def _valid(self) -> "ControlCell":
        require_choice("task", self.task, TASKS)
        require_choice("control", self.control, CONTROLS)
        require_choice("search", self.search, EFFORTS)
        if (self.control == HOLD) != (self.target is not None):
            raise InputError(f"`target` (={self.target}) goes with control 'hold', and `control` is {self.control!r}")
        if (self.task == "texts") != isinstance(self.text, Embedded):
            raise InputError(f"`text` is for the task 'texts', which needs real ones; `task` is {self.task!r}")
        if self.strength is not None and self.control == "none":
            raise InputError(f"`strength` (={self.strength}) is of a control, and `control` is 'none'; drop it")
        if self.along and not self.steps:
            raise InputError("`along` (=True) needs a training, and `steps` is 0; drop it")
        _ = self.architecture
        return self

    @property
    def architecture(self) -> Architecture:
        """The network's architecture."""
        names = ("layer", "layers", "hidden", "temperature", "value", "residual", "norm", "mlp", "pooling")
        return Architecture(**{name: getattr(self, name) for name in names})

    @property
    def used_strength(self) -> float | None:
        """The strength, or the usual one; None without a control."""
        return STRENGTHS.get(self.control) if self.strength is None else self.strength

    def seed_of(self, purpose: str) -> int:
        """A seed of its own for a purpose: cells that differ in their network or control alone share it."""
        return derive_seed(self.seed, "control", purpose, self.task, self.n, self.d, self.draw)

    def identity_keys(self) -> dict[str, Any]:
        """The keys that can change the result: those of attention for attention, and the texts' content."""
        keys = super().identity_keys()
        keys["strength"] = self.used_strength
        if self.layer == DENSE:
            for name in ("temperature", "value", "residual", "norm", "mlp", "pooling"):
                del keys[name]
        if isinstance(self.text, Embedded):
            keys["text"] = text_identity(keys["text"], fingerprint(self.text, labelled=True), own_rows=False)
        else:
            del keys["text"]
        return keys
