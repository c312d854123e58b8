"""The switches between the definition and the protocol of the paper's published experiments, and their combinations."""

from dataclasses import dataclass

from wordsens.errors import InputError
from wordsens.experiments.texts.source import Embedded, TextSource

SENSITIVITY, ERROR = "sensitivity", "error"

NOISE = 0.1
"""Standard deviation of each entry of the noise, as published: ‖Delta‖ may exceed the radius by about a tenth."""

PADDED_BELOW = 240
"""Reviews of fewer tokens were taken, as published."""

DEFINED, PUBLISHED, FIRST_WORD, ALIGNMENT = "defined", "published", "first-word", "alignment"


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """One way to measure S and Err.

    Attributes:
        title: in tables and figures.
        beside: the protocol that it differs from in one switch; "" for the definition.
        of: what it makes a difference to.
        first_word: only word 0 is perturbed, in place of the sup over all words.
        cls: [CLS] is word 0, the same vector in every text.
        noisy: the ball is centred on a noisy copy of the word (S alone).
        padded: short texts, filled with rows of [PAD], which count as words.
        raw: fixed steps of the raw gradient: 300 of dense maps, 50 n of attention.
        alignment: Delta is chosen by the alignment, (F + 1)², in place of the least Err under a limit on gamma.
    """

    title: str
    beside: str = ""
    of: tuple[str, ...] = (SENSITIVITY, ERROR)
    first_word: bool = False
    cls: bool = False
    noisy: bool = False
    padded: bool = False
    raw: bool = False
    alignment: bool = False

    def source(self, text: TextSource) -> TextSource:
        """The source of the texts that are measured in place of these.

        Raises:
            InputError: [CLS] or [PAD] is asked of texts that are not real.
        """
        if not (self.cls or self.padded):
            return text
        if not isinstance(text, Embedded):
            raise InputError(
                f"`protocol` (={self.title!r}) needs real texts; {text.kind} texts have no [CLS] and [PAD]"
            )
        below = PADDED_BELOW if self.padded else text.padded_below
        return text.model_copy(update={"keep_special_tokens": self.cls, "padded_below": below})


PROTOCOLS = {
    DEFINED: Protocol(title="as defined"),
    FIRST_WORD: Protocol(title="word 0 only", beside=DEFINED, first_word=True),
    "cls": Protocol(title="[CLS] as word 0", beside=FIRST_WORD, first_word=True, cls=True),
    "noisy-ball": Protocol(title="noisy ball", beside=FIRST_WORD, of=(SENSITIVITY,), first_word=True, noisy=True),
    "padding": Protocol(title="padding as words", beside=DEFINED, padded=True),
    ALIGNMENT: Protocol(title="alignment objective", beside=DEFINED, of=(ERROR,), alignment=True),
    "raw-gradient": Protocol(title="raw gradient", beside=FIRST_WORD, of=(SENSITIVITY,), first_word=True, raw=True),
    "raw-alignment": Protocol(
        title="raw alignment", beside=ALIGNMENT, of=(ERROR,), first_word=True, alignment=True, raw=True
    ),
    PUBLISHED: Protocol(
        title="as published",
        beside=DEFINED,
        first_word=True,
        cls=True,
        noisy=True,
        padded=True,
        raw=True,
        alignment=True,
    ),
}


def protocols_of(measures: str) -> list[str]:
    """The names of the protocols that make a difference to S, or to Err."""
    return [name for name, one in PROTOCOLS.items() if measures in one.of]
