"""The budget of a measurement: evaluations, memory, and the report of how much is spent."""

from dataclasses import dataclass, field

from wordsens.errors import require_count
from wordsens.maps.contract import DEFAULT_MEMORY_BUDGET
from wordsens.search.plan import Search, SearchPlan
from wordsens.search.result import Progress


@dataclass(frozen=True)
class Budget:
    """A limit on what a measurement spends. `search=` takes one wherever a plan alone does not say enough.

    Attributes:
        search: "quick", "normal", "thorough" or a SearchPlan.
        memory_budget: bytes for intermediate results.
        progress: called with (done, in all) as the search goes on.

    Raises:
        InputError: no such plan, or a memory that is not a positive whole number.

    >>> print(Budget("quick", memory_budget=1 << 20).plan)
    quick
    """

    search: Search = "normal"
    memory_budget: int = DEFAULT_MEMORY_BUDGET
    progress: Progress | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        require_count("memory_budget", self.memory_budget)
        SearchPlan.of(self.search)

    @property
    def plan(self) -> SearchPlan:
        """The plan of the search."""
        return SearchPlan.of(self.search)

    @classmethod
    def of(cls, search: "Search | Budget") -> "Budget":
        """The budget itself, or one with that plan and the usual memory."""
        return search if isinstance(search, Budget) else cls(search)
