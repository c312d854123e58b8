"""A finding: a sentence with its number, and how sure it is."""

from dataclasses import dataclass

from wordsens.experiments.sensitivity import times as times

ATTAINED, CERTIFIED, PREDICTED, INTERVAL = "attained", "certified", "predicted", "95 % interval"
SURETIES = {
    ATTAINED: "Reached by a change that was found. The truth may be larger.",
    CERTIFIED: "Nothing goes beyond it.",
    PREDICTED: "Theory's; it may err either way.",
    INTERVAL: "Made so that 95 of 100 such intervals hold the true number.",
}
"""The ways in which a number can be known."""


@dataclass(frozen=True)
class Finding:
    """One sentence of the report.

    Attributes:
        number: its main number, shown large.
        sentence: complete without the large number.
        known: how the number is known, in a few words.
        surety: the kinds of knowledge that it rests on, of SURETIES.
    """

    number: str
    sentence: str
    known: str
    surety: tuple[str, ...] = (ATTAINED,)


def minus(text: str) -> str:
    """The text with a true minus sign before its numbers."""
    return text.replace("-", "\N{MINUS SIGN}")
