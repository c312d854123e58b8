"""The memory budget of an on-demand matrix's answers."""

from wordsens.errors import BudgetError


class QueryBudget:
    """Counts the bytes that remembered queries and answers take, and refuses those past the limit.

    >>> QueryBudget(limit=100, what="a 4 x 5 matrix").take(200)
    Traceback (most recent call last):
    wordsens.errors.BudgetError: the answers of a 4 x 5 matrix sampled on demand would take 0.00 GiB, over the limit ...
    """

    def __init__(self, limit: int, what: str):
        self.limit = limit
        self.what = what
        self.used = 0

    def take(self, size: int) -> None:
        """Count `size` bytes more; BudgetError, and nothing counted, where they pass the limit."""
        if self.used + size > self.limit:
            raise BudgetError(
                f"the answers of {self.what} sampled on demand would take {(self.used + size) / 2**30:.2f} GiB, over "
                f"the limit of {self.limit / 2**30:.2f} GiB; search fewer words, steps or starts, "
                "raise `gaussian_bytes`, build a fresh map, or use float32"
            )
        self.used += size

    def give_back(self, size: int) -> None:
        """Count `size` bytes less."""
        self.used -= size

    def fork(self) -> "QueryBudget":
        """A budget of its own with as much already used."""
        twin = QueryBudget(self.limit, self.what)
        twin.used = self.used
        return twin
