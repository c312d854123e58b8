"""The settings of a tuning."""

from dataclasses import dataclass, field

from wordsens.errors import InputError, require_choice, require_count, require_positive
from wordsens.training.adapter.loss import Weights
from wordsens.training.adapter.parity.plan import ParityPlan

PARITY, LAYERS, LOW_RANK, LINEAR = ADAPTERS = ("parity", "layers", "low-rank", "linear")


@dataclass(frozen=True, kw_only=True)
class TunePlan:
    """The adapter, and how it is trained. What the defaults reach, and where they fall short, is in docs/tune.md.

    Attributes:
        adapter: "parity", a sign that every turning word changes, carried through the model to its embedding; "layers",
            the last layers themselves; "low-rank", W + B A in every matrix of those layers, with A of
            `rank` rows; "linear", one matrix behind the pooling.
        depth: how many of the last layers; without meaning for "linear".
        rank: of "low-rank".
        steps: of AdamW.
        rate: its largest learning rate, after a rise over the first twentieth; it falls to a twentieth in the end.
        made: examples made from frames, and as many again from plain sentences.
        paragraphs: the share of these that stand among 2 to `longest` other sentences.
        longest: see `paragraphs`.
        batch, real, plain: made examples, examples from pairs, and plain sentences in a step.
        kept: plain sentences whose cosines are held, drawn from all.
        loss: the weights of its parts.
        parity: the settings of "parity"; of the others none counts for it.
    """

    adapter: str = PARITY
    depth: int = 3
    rank: int = 16
    steps: int = 220
    rate: float = 4e-4
    made: int = 3000
    paragraphs: float = 0.1
    longest: int = 6
    batch: int = 24
    real: int = 8
    plain: int = 48
    kept: int = 2500
    loss: Weights = field(default_factory=Weights)
    parity: ParityPlan = field(default_factory=ParityPlan)

    def __post_init__(self) -> None:
        require_choice("adapter", self.adapter, ADAPTERS)
        for name in ("depth", "rank", "steps", "made", "batch", "plain", "kept"):
            require_count(name, getattr(self, name))
        require_count("real", self.real, least=0)
        require_count("longest", self.longest, least=2)
        require_positive("rate", self.rate)
        if isinstance(self.paragraphs, bool) or not 0 <= self.paragraphs <= 1:
            raise InputError(f"`paragraphs` (={self.paragraphs!r}) must be a share from 0 to 1")
