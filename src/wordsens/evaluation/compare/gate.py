"""The requirements of a comparison."""

from collections.abc import Sequence
from dataclasses import dataclass

from wordsens.errors import InputError, require_choice
from wordsens.evaluation.compare.difference import (
    ALL_KINDS,
    CHECK,
    FIELDS,
    NEIGHBOURS,
    RANK,
    REMOVAL,
    WORD,
    Difference,
    rows_named,
)
from wordsens.evaluation.compare.neighbours import NEAREST, RECALL
from wordsens.evaluation.compare.seen import Chosen
from wordsens.evaluation.requirement import Requirement

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

    def require_askable(self, kinds: Sequence[str], chosen: Sequence[Chosen]) -> None:
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
        told = []
        for requirement in self.requirements:
            named = list(rows_named(rows, requirement.kind))
            if not named:
                told.append(f"{requirement.text}: there is no such row; it may have too few texts")
            told += [_told(row, requirement) for row in named if not requirement.met(row.field(requirement.field))]
        return told

    def cases(self, rows: Sequence[Difference]) -> dict[str, list[str]]:
        """Every requirement with what fails it."""
        return {one.text: Gate((one,)).failures(rows) for one in self.requirements}


def _told(row: Difference, requirement: Requirement) -> str:
    if requirement.field == "differs":
        told = f"differs by {row.interval}" if row.differs else "does not differ"
        return f"{row.key} {told}, required {requirement.sign} {requirement.bound:g}"
    value = row.field(requirement.field)
    number = "none (too few texts)" if value is None else f"{value:.4g}"
    interval = ""
    if requirement.field == "difference" and row.low is not None and row.high is not None:
        interval = f" (95 % interval {row.low:.4g} to {row.high:.4g})"
    bound = f"{requirement.sign} {requirement.bound:g}"
    return f"{row.key}.{requirement.field} is {number}{interval}, required {bound}"
