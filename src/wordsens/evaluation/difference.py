"""One difference between two models: both numbers, the interval, whether it counts, and the requirements on it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wordsens.errors import InputError, require_choice
from wordsens.evaluation.requirement import Requirement
from wordsens.evaluation.texts import ChosenWords

LEVEL = 0.05
"""The chance of at least one false difference in a comparison."""

CHECK, REMOVAL, WORD, RANK, NEIGHBOURS = "check", "removal", "word", "rank", "neighbours"
NEAREST, RECALL = "nearest", "recall"
"""The rows of neighbours."""
FAMILIES = 3
"""Tests that are joint each: the kinds of the check; removals, words and ranks; neighbours."""

ALL_KINDS = "all kinds"
"""The name of the check's row of all kinds as one."""

FIELDS = ("first", "second", "difference", "low", "high", "p", "differs", "count")
"""The fields that a requirement may name."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One number in both models, paired by pair or by text.

    Attributes:
        part: "check" (areas under the curve), "removal" (mean relative change without a word), "word" (the same of one
            word), "rank" (a word's rank in its text) or "neighbours".
        name: of a kind, a category, a word, or "nearest" and "recall".
        count: pairs of a kind, or texts.
        first, second: the numbers; of neighbours, between two calls of one model, and between the models.
        difference, low, high: second - first with its 95 % interval; None with too few texts.
        margin: differences up to this size do not count.
        p: the joint chance, over all rows of the comparison, of such a difference where none is beyond its margin.
        crosses: of a rank, whether one interval lies below 1/2 and the other above: ignored here, reacted to there.
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
    def interval(self) -> str:
        """The difference with its interval, in words."""
        if self.low is None or self.high is None:
            return f"{self.difference:+.3f} (too few texts for an interval)"
        return f"{self.difference:+.3f} (95 %: {self.low:+.3f} to {self.high:+.3f})"

    @property
    def differs(self) -> bool:
        """True where the interval lies beyond the margin, and so does the test of all rows together."""
        if self.low is None or self.high is None or self.p > LEVEL:
            return False
        return self.low > self.margin or self.high < -self.margin

    @property
    def excluded(self) -> bool:
        """True where the interval lies within the margin: there is no difference that counts."""
        return self.low is not None and self.high is not None and -self.margin <= self.low <= self.high <= self.margin

    @property
    def relative(self) -> float:
        """The difference as a share of the first number; infinite where that is 0."""
        return self.difference / self.first if self.first else float("inf")

    def field(self, name: str) -> float | None:
        """The value of one of FIELDS, as a number."""
        value = getattr(self, require_choice("field", name, FIELDS))
        return None if value is None else float(value)


def rows_named(rows: Sequence[Difference], name: str) -> Iterator[Difference]:
    """The rows of that key, of "part.all", or, for "all", every row."""
    for row in rows:
        if name in ("all", row.key, f"{row.part}.all"):
            yield row


_EXAMPLE = "neighbours.nearest.second <= .05"
_PARTS = (CHECK, REMOVAL, WORD, RANK, NEIGHBOURS)


@dataclass(frozen=True)
class Gate:
    """Bounds on the rows of a comparison, such as "check.negation.difference >= -.02" or "all.differs <= 0"."""

    requirements: tuple[Requirement, ...] = ()

    @classmethod
    def read(cls, texts: Sequence[str]) -> "Gate":
        """The requirements that the texts state; InputError for one that cannot be read."""
        listed = [texts] if isinstance(texts, str) else texts
        return cls(tuple(Requirement.read(text, FIELDS, _EXAMPLE) for text in listed))

    def require_askable(self, kinds: Sequence[str], chosen: Sequence[ChosenWords]) -> None:
        """InputError for a row that this comparison cannot have, before a model is loaded."""
        words = {word.lower() for text in chosen for word in text.words}
        for requirement in self.requirements:
            part, _, name = requirement.kind.partition(".")
            if requirement.kind == "all":
                continue
            require_choice(f"the part of {requirement.text!r}", part, (*_PARTS, "all"))
            if not name:
                raise InputError(
                    f"`requirements` (={requirement.text!r}) names no row; write {part}.all, or {_EXAMPLE!r}"
                )
            checked = [*dict.fromkeys(kinds), ALL_KINDS]
            offered = {CHECK: checked, NEIGHBOURS: [NEAREST, RECALL], WORD: words, RANK: words}.get(part)
            if name != "all" and offered is not None and name not in offered:
                near = "a word that is removed" if part in (WORD, RANK) else " or ".join(map(repr, offered))
                raise InputError(f"the requirement {requirement.text!r} is on no row; name {near}, or 'all'")

    def failures(self, rows: Sequence[Difference]) -> list[str]:
        """A sentence for every row that does not meet a requirement, and for every requirement without a row."""
        shown = []
        for requirement in self.requirements:
            named = list(rows_named(rows, requirement.kind))
            if not named:
                shown.append(f"{requirement.text}: there is no such row; it may have too few texts")
            shown += [_told(row, requirement) for row in named if not requirement.met(row.field(requirement.field))]
        return shown

    def cases(self, rows: Sequence[Difference]) -> dict[str, list[str]]:
        """Every requirement with what fails it."""
        return {one.text: Gate((one,)).failures(rows) for one in self.requirements}


def _told(row: Difference, requirement: Requirement) -> str:
    if requirement.field == "differs":
        shown = f"differs by {row.interval}" if row.differs else "does not differ"
        return f"{row.key} {shown}, required {requirement.sign} {requirement.bound:g}"
    value = row.field(requirement.field)
    number = "none (too few texts)" if value is None else f"{value:.4g}"
    interval = ""
    if requirement.field == "difference" and row.low is not None and row.high is not None:
        interval = f" (95 % interval {row.low:.4g} to {row.high:.4g})"
    bound = f"{requirement.sign} {requirement.bound:g}"
    return f"{row.key}.{requirement.field} is {number}{interval}, required {bound}"
