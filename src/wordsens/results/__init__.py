"""The base of results: frozen dataclasses that compare by content, show themselves, and go to files and back."""

from wordsens.results.content import same_content, short_repr
from wordsens.results.files import Saved as Saved
from wordsens.results.shown import ResultTable as ResultTable
from wordsens.results.shown import Shown as Shown


class InMemory(Shown):
    """A frozen dataclass whose instances compare by content and show tensors by their shape.

    Derive with `@dataclass(frozen=True, eq=False, repr=False)`. Fields with `compare=False` do not count; NaN equals
    NaN. Results with tensors are not hashable.
    """

    def __eq__(self, other: object) -> bool:
        return same_content(self, other) if type(other) is type(self) else NotImplemented

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return short_repr(self)


class Result(InMemory, Saved):
    """One that goes to files and back as well: its fields are tensors, numbers, texts, and what is made of them."""
