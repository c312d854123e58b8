"""The summary of an experiment's records, as a table and as sentences: what a terminal and a report both show."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wordsens.statistics.mean import Estimate

Value = str | int | float | bool | Estimate | None


@dataclass(frozen=True)
class Claim:
    """A sentence that its records support: printed only where the interval of its number allows it.

    Attributes:
        number: its main number, in a few letters.
        sentence: complete without it.
        known: how the number is known.
    """

    number: str
    sentence: str
    known: str


@dataclass(frozen=True)
class Section:
    """One table.

    Attributes:
        title: a line above it.
        headings: of the columns; the first is "map".
        rows: of as many values.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True)
class Summary:
    """Tables and sentences.

    Attributes:
        sections: the tables.
        note: what their numbers mean.
        claims: the sentences.
    """

    sections: tuple[Section, ...]
    note: str
    claims: tuple[Claim, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, for `--json`: an estimate is its mean, its standard error and its draws."""
        return {
            "tables": [
                {
                    "title": one.title,
                    "rows": [
                        {
                            name: asdict(value) if isinstance(value, Estimate) else value
                            for name, value in zip(one.headings, row, strict=True)
                        }
                        for row in one.rows
                    ],
                }
                for one in self.sections
            ],
            "note": self.note,
            "claims": [asdict(one) for one in self.claims],
        }


def by_draw(records: Sequence[Any]) -> dict[int, float]:
    """The value of each draw."""
    return {record.draw: record.value for record in records}


def ratio(records: Sequence[Any], beside: Sequence[Any]) -> Estimate | None:
    """The mean over the draws that both have of value / value: of paired draws, whose scatter largely cancels."""
    own, other = by_draw(records), by_draw(beside)
    both = [own[draw] / other[draw] for draw in own if other.get(draw)]
    return Estimate.of(both) if both else None
