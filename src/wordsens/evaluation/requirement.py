"""Requirements of a check, such as "negation.auc >= .5": reading them, and whether they are met."""

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from wordsens.errors import InputError, require_choice
from wordsens.evaluation.kinds import KindRow, KindTable

EVERY = "all"
"""In a kind's place: the requirement is one on every kind."""

FIELDS = (
    "auc", "auc_low", "auc_high", "auc_synonym", "median_opposite", "median_same", "threshold", "recall",
    "recall_low", "recall_high", "false_hits", "hits", "indistinct", "pairs",
)  # fmt: skip
_OWN_THRESHOLD = ("false_hits", "hits")
_NOTHING_LEFT = {"recall": 0.0}
"""The value of a field where it is None."""

_SIGNS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_FORM = re.compile(
    r"\s*(?P<kind>\S.*)\.(?P<field>\w+)\s*(?P<sign>>=|<=|>|<)\s*(?P<bound>[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?)\s*",
    re.IGNORECASE | re.ASCII,
)


@dataclass(frozen=True)
class Requirement:
    """A bound on one number of one kind, or of every kind.

    Attributes:
        text: as it was given.
        kind: its name, or EVERY.
        field: one of FIELDS.
        sign: >=, <=, > or <.
        bound: the number.
    """

    text: str
    kind: str
    field: str
    sign: str
    bound: float

    @classmethod
    def read(cls, text: str, fields: Sequence[str] = FIELDS, example: str = "negation.auc >= .5") -> "Requirement":
        """The requirement that the text states, on one of the fields.

        >>> requirement = Requirement.read("negation.auc >= .5")
        >>> requirement.kind, requirement.field, requirement.sign, requirement.bound
        ('negation', 'auc', '>=', 0.5)
        """
        found = _FORM.fullmatch(text) if isinstance(text, str) else None
        if found is None:
            raise InputError(
                f"`requirements` (={text!r}) cannot be read; write it as KIND.FIELD >= NUMBER, such as {example!r}"
            )
        field = require_choice(f"the field of {text!r}", found["field"], fields)
        return cls(text.strip(), found["kind"].strip(), field, found["sign"], float(found["bound"]))

    def require_askable(self, kinds: tuple[str, ...], *, own_threshold: bool) -> None:
        """InputError where there is no such kind, or the field needs a threshold that is not given."""
        if self.kind != EVERY:
            require_choice(f"the kind of {self.text!r}", self.kind, (*kinds, EVERY))
        if self.field in _OWN_THRESHOLD and not own_threshold:
            raise InputError(
                f"the requirement {self.text!r} is on your own threshold; pass threshold=0.92, or what it is"
            )

    def failures(self, table: KindTable) -> list[str]:
        """One sentence for every kind that does not meet it."""
        rows = table if self.kind == EVERY else [table[self.kind]]
        told = []
        for row in rows:
            value = row[self.field]
            number = _NOTHING_LEFT.get(self.field) if value is None else value
            if not self.met(number):
                told.append(f"{row.kind}.{self.field} is {self._told(row)}, required {self.sign} {self.bound:g}")
        return told

    def met(self, number: int | float | None) -> bool:
        """True where the number is within the bound; None never is."""
        return number is not None and _SIGNS[self.sign](number, self.bound)

    def _told(self, row: KindRow) -> str:
        value = row[self.field]
        if value is None:
            return "none (no threshold separates)"
        interval = f" (95 % interval {row.auc_low:.3f} to {row.auc_high:.3f})" if self.field == "auc" else ""
        return f"{value:.4g}{interval}"
