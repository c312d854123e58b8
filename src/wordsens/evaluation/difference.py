"""One difference between two models: both numbers, the interval, whether it counts, and the
requirements on it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from wordsens.errors import InputError, require_choice
from wordsens.evaluation.requirement import EVERY, LEVEL, Requirement, Unmet
from wordsens.evaluation.texts import ChosenWords

CHECK, REMOVAL, WORD, RANK, NEIGHBOURS = "check", "removal", "word", "rank", "neighbours"
NEAREST, RECALL = "nearest", "recall"
"""The rows of neighbours."""
FAMILIES = 3
"""Tests that are joint each: the kinds of the check; removals, words and ranks; neighbours."""

ALL_KINDS = "all kinds"
"""The name of the check's row of all kinds as one."""

FIELDS = ("first", "second", "difference", "low", "high", "p", "differs", "count")
"""The fields that a requirement may name."""

_EXAMPLE = "neighbours.nearest.second <= .05"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One number in both models, paired by pair or by text.

    Attributes:
        part: "check" (areas under the curve), "removal" (mean relative change without a word),
            "word" (the same of one word), "rank" (a word's rank in its text) or "neighbours".
        name: of a kind, a category, a word, or "nearest" and "recall".
        count: pairs of a kind, or texts.
        first, second: the numbers; of neighbours, between two calls of one model, and between the
            models.
        difference, low, high: second - first with its 95 % interval; None with too few texts or
            pairs.
        margin: differences up to this size do not count.
        p: the joint chance, over all rows of the comparison, of such a difference where none is
            beyond its margin.
        crosses: of a rank, whether one interval lies below 1/2 and the other above: ignored here,
            reacted to there.
    """

    part: str
    name: str
    count: int
    first: float
    second: float
    difference: float
    low: float | None
    high: float | None
    margin: float
    p: float
    crosses: bool = False

    @property
    def key(self) -> str:
        """part.name, as requirements have it."""
        return f"{self.part}.{self.name}"

    @property
    def differs(self) -> bool:
        """True where the interval lies beyond the margin, and so does the test of all rows
        together."""
        if self.low is None or self.high is None or self.p > LEVEL:
            return False
        return self.low > self.margin or self.high < -self.margin

    @property
    def excluded(self) -> bool:
        """True where the interval lies within the margin: there is no difference that counts."""
        return (
            self.low is not None
            and self.high is not None
            and -self.margin <= self.low <= self.high <= self.margin
        )

    @property
    def relative(self) -> float:
        """The difference as a share of the first number; infinite where that is 0."""
        return self.difference / self.first if self.first else float("inf")


def with_interval(row: Difference) -> str:
    """The difference with its interval, in words."""
    if row.low is None or row.high is None:
        return f"{row.difference:+.3f} (too few for an interval)"
    return f"{row.difference:+.3f} (95 %: {row.low:+.3f} to {row.high:+.3f})"


def read_requirements(texts: Sequence[str]) -> tuple[Requirement, ...]:
    """Bounds on rows, such as "check.negation.difference >= -.02" or "all.differs <= 0"; InputError
    for a wrong one."""
    requirements = Requirement.read_all(texts, FIELDS, _EXAMPLE)
    for requirement in requirements:
        part, _, name = requirement.kind.partition(".")
        if requirement.kind != EVERY:
            require_choice(
                f"the part of {requirement.text!r}",
                part,
                (CHECK, REMOVAL, WORD, RANK, NEIGHBOURS, EVERY),
            )
            if not name:
                raise InputError(
                    f"`requirements` (={requirement.text!r}) names no row; write {part}.all, or "
                    f"{_EXAMPLE!r}"
                )
    return requirements


def require_rows(
    requirements: Sequence[Requirement], kinds: Sequence[str], chosen: Sequence[ChosenWords]
) -> None:
    """InputError for a requirement on a row that this comparison cannot have."""
    words = {word.lower() for text in chosen for word in text.words}
    offered = {
        CHECK: [*dict.fromkeys(kinds), ALL_KINDS],
        NEIGHBOURS: [NEAREST, RECALL],
        WORD: words,
        RANK: words,
    }
    for requirement in requirements:
        part, _, name = requirement.kind.partition(".")
        if requirement.kind != EVERY and part in offered and name not in (EVERY, *offered[part]):
            near = (
                "a word that is removed"
                if part in (WORD, RANK)
                else " or ".join(map(repr, offered[part]))
            )
            raise InputError(
                f"the requirement {requirement.text!r} is on no row; name {near}, or 'all'"
            )


def unmet(requirements: Sequence[Requirement], rows: Sequence[Difference]) -> Iterator[Unmet]:
    """Every row that does not meet a requirement on it, on its part, or on all; and every
    requirement without a row."""
    for requirement in requirements:
        named = {
            row.key: row
            for row in rows
            if requirement.kind in (EVERY, row.key, f"{row.part}.{EVERY}")
        }
        yield from replace(requirement, kind=EVERY).unmet(
            named,
            detail=lambda row, field: (
                f", difference {with_interval(row)}" if field.startswith("differ") else ""
            ),
            missing="there is no such row; it may have too few texts",
        )
