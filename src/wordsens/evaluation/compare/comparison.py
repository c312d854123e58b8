"""The result of a comparison."""

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from wordsens.evaluation.compare.compared import Compared
from wordsens.evaluation.compare.difference import Difference
from wordsens.evaluation.compare.findings import findings
from wordsens.evaluation.compare.page import page
from wordsens.results import Look, Result

_COLUMNS = ("part", "name", "count", "first", "second", "difference", "low", "high", "p", "differs")


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Compared, Result):
    """The differences between two models, over pairs and over the user's own texts.

    Attributes:
        first, second: the models' names.
        identities: of their weights, or what stands for them.
        texts: how many were compared, each once.
        apart: the mean distance of a text's two vectors, both at length one; None where they have not one dimension.
        rows: the differences, of which those that `differs` are findings.
        changed: the texts with another first neighbour, the clearest first.
        tolerance: differences up to this do not count.
        failures: a sentence for every requirement that is not met.
        requirements: as they were asked.
        notes: what a reader should know of texts and pairs.
    """

    @property
    def passed(self) -> bool:
        """True where every requirement is met."""
        return not self.failures

    @property
    def differs(self) -> bool:
        """True where any row does."""
        return any(row.differs for row in self.rows)

    @cached_property
    def answer(self) -> tuple[str, ...]:
        """The findings in sentences, the overall answer first."""
        return tuple(findings(self))

    def __getitem__(self, key: str) -> Difference:
        """The row of that part and name, such as "check.negation"."""
        for row in self.rows:
            if row.key == key:
                return row
        raise KeyError(f"{key!r} is not a row of this comparison, such as {self.rows[0].key!r}")

    def look(self) -> Look:
        """A row a difference, those that count first."""
        rows = sorted(self.rows, key=lambda row: not row.differs)
        columns = {name: [getattr(row, name) for row in rows] for name in _COLUMNS}
        failed = tuple(f"FAILED: {failure}" for failure in self.failures)
        return Look(self.answer[0], columns, notes=(*self.answer[1:], *failed, *self.notes))

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, as the JSON document has them."""
        return {
            "first": self.first,
            "second": self.second,
            "identities": list(self.identities),
            "passed": self.passed,
            "failures": list(self.failures),
            "differs": self.differs,
            "answer": list(self.answer),
            "texts": self.texts,
            "apart": self.apart,
            "tolerance": self.tolerance,
            "rows": [{**asdict(row), "differs": row.differs} for row in self.rows],
            "changed": [
                {**asdict(one), "words": [{**asdict(word), "apart": word.apart} for word in one.words]}
                for one in self.changed
            ],
            "notes": list(self.notes),
        }

    def __repr__(self) -> str:
        count = sum(row.differs for row in self.rows)
        return f"<Comparison of {self.first} and {self.second}: {count} of {len(self.rows)} rows differ>"

    def __str__(self) -> str:
        return "\n".join([*self.answer, *(f"FAILED: {failure}" for failure in self.failures)])

    def _repr_html_(self) -> str:
        return page(self, self.answer)
