"""A job: a task that a visitor asked for, and its answers as they come."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from wordsens.app.work.messages import Answer, Task


@dataclass(eq=False)
class Job:
    """A task on its way.

    Attributes:
        task: the task.
        visitor: whose it is.
        brief: whether a worker may do it while another task of its runs.
    """

    task: Task
    visitor: str
    brief: bool
    _answers: "asyncio.Queue[Answer]" = field(default_factory=asyncio.Queue)
    cancelled: bool = False
    finished: bool = False

    def take(self, answer: Answer) -> None:
        """Add an answer; what comes after the last is dropped."""
        if not self.finished:
            self.finished = answer.last
            self._answers.put_nowait(answer)

    async def answers(self) -> AsyncIterator[Answer]:
        """The answers, the last one included."""
        while True:
            answer = await self._answers.get()
            yield answer
            if answer.last:
                return
