"""Where cells are run: the contract, and the plain way, one after another in this process."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from wordsens.experiments.run.task import Job, Outcome, measure

Tell = Callable[[str], None]
"""Told in one line what a user should know while a sweep runs: a worker was lost, none has come yet."""


class Executor(ABC):
    """Runs cells somewhere and gives their outcomes as they finish."""

    @property
    @abstractmethod
    def described(self) -> str:
        """Where it runs them, in words."""

    @property
    @abstractmethod
    def slots(self) -> int:
        """How many cells it runs at once at the moment."""

    @abstractmethod
    def outcomes(self, job: Job, cells: Sequence[Any]) -> Iterator[tuple[int, Outcome]]:
        """The place of each cell in `cells` and what became of it, in the order in which they finish.

        Closing the iterator stops what still runs. A cell whose workers die is run again on another; one that is
        wrong is not: it gives a failed record.
        """

    def close(self) -> None:
        """Give up what it holds. The base class holds nothing."""
        return


class InProcess(Executor):
    """One cell after another, in this process."""

    @property
    def described(self) -> str:
        return "in this process"

    @property
    def slots(self) -> int:
        return 1

    def outcomes(self, job: Job, cells: Sequence[Any]) -> Iterator[tuple[int, Outcome]]:
        for place, cell in enumerate(cells):
            yield place, measure(job, cell)
