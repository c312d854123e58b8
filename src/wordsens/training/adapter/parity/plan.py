"""The settings of the adapter "parity"."""

from dataclasses import dataclass

from wordsens.errors import InputError, require_count, require_positive


@dataclass(frozen=True, kw_only=True)
class ParityPlan:
    """The adapter "parity"; see docs/tune.md.

    Attributes:
        waves: coordinates that carry the parity, behind the model's own; an even number.
        share: of the embedding's squared length that they get, in (0, 1). The cosine of two texts becomes
            (1 - share) c + share k, with c the cosine before, and k the kernel, negative where the parities differ.
        sharpness: of the kernel: it falls by exp(-sharpness) where two texts are as far apart as unrelated ones.
        sentences: plain sentences that say how far texts are from each other.
        changes: changes of meaning by rule, half from frames, that say how far those move a text.
    """

    waves: int = 4800
    share: float = 0.46
    sharpness: float = 9.0
    sentences: int = 8000
    changes: int = 8000

    def __post_init__(self) -> None:
        for name in ("waves", "sentences", "changes"):
            require_count(name, getattr(self, name), least=2)
        if self.waves % 2:
            raise InputError(f"`waves` (={self.waves}) must be even: a cosine and a sine of every frequency")
        require_positive("sharpness", self.sharpness)
        if isinstance(self.share, bool) or not 0 < self.share < 1:
            raise InputError(f"`share` (={self.share!r}) must lie between 0 and 1")
