"""The messages between the page and its workers."""

from dataclasses import dataclass
from typing import Any

READY, TOLD, DONE, REFUSED, STOPPED, OUT_OF_TIME, OUT_OF_MEMORY, FAILED, LOST = (
    "ready",
    "told",
    "done",
    "refused",
    "stopped",
    "out of time",
    "out of memory",
    "failed",
    "lost",
)
"""Kinds of answers: the worker can begin; a part; all; the input is wrong; cancelled; two limits; an error of ours; and
the worker is gone."""


@dataclass(frozen=True)
class Task:
    """A task for a worker.

    Attributes:
        number: its own.
        name: of a function of `wordsens.app.tasks.table`.
        arguments: of the function.
        seconds: what it may take.
    """

    number: int
    name: str
    arguments: dict[str, Any]
    seconds: float


@dataclass(frozen=True)
class Cancel:
    """The task of that number is no longer wanted."""

    number: int


@dataclass(frozen=True)
class Answer:
    """An answer to the task of that number: one of the kinds above, and what goes with it."""

    number: int
    kind: str
    value: Any = None

    @property
    def last(self) -> bool:
        """True where nothing follows."""
        return self.kind not in (READY, TOLD)
