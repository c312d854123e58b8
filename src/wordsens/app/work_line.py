"""The line under a form: how far the work is, how long it still takes, and the button that ends
it."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from nicegui import ui

from wordsens.app.parts import Tag, button
from wordsens.app.pool import Job, Pool
from wordsens.errors import WordsensError

# Seconds before a remaining time is shown: earlier it is a guess.
ESTIMATE_AFTER = 1.0


class WorkLine:
    """One visitor's work on one form: one task at a time."""

    def __init__(self, pool: Pool):
        self._pool = pool
        self._job: Job | None = None
        self._visitor = ui.context.client.id
        with Tag("div", classes="work"):
            self._bar = Tag("progress", max="1", aria_label="Progress")
            self._message = Tag("span", "", "message", role="status")
            self._cancel = button(
                "Cancel", lambda: self._job and self._job.cancel(), data_cancel=""
            )
        self._show_running(False)
        ui.context.client.on_delete(self.drop)

    def drop(self) -> None:
        """End the task without a word: the visitor is gone, or wants something else."""
        job, self._job = self._job, None
        if job is not None:
            job.cancel()
        self._show_running(False)
        self.say("")

    def refuse(self, error: BaseException) -> None:
        """Say why there is no answer, in the place of the task."""
        self.drop()
        self.say(str(error), problem=True)

    def say(self, message: str, *, problem: bool = False) -> None:
        """A sentence in the place of the progress."""
        self._message.text = message
        self._message.classes(add="problem") if problem else self._message.classes(remove="problem")

    async def run(
        self,
        name: str,
        arguments: dict[str, Any],
        show: Callable[[dict[str, Any]], None] = lambda part: None,
        *,
        brief: bool = False,
    ) -> Any:
        """The task's answer, which `show` is given like its parts; None where there is none: then
        the line says why. A task that still runs is ended first; a brief one goes before others."""
        self.drop()

        def take(part: dict[str, Any]) -> None:
            if self._job is job:
                self._progress(part.get("share", 0.0))
                show(part)

        try:
            job = self._pool.submit(name, arguments, self._visitor, take, brief=brief)
        except WordsensError as error:
            self.refuse(error)
            return None
        self._job, began = job, time.monotonic()
        self._show_running(True)
        before = self._pool.place_of(job) - 1
        self.say(f"Waiting: {before} before this one." if before > 0 else "Starting …")
        self._bar.props(remove="value")
        await asyncio.wait([job])
        if self._job is not job:
            return None
        self.drop()
        if job.cancelled():
            self.say("Cancelled. The page keeps what it shows.")
        elif (error := job.exception()) is not None:
            self.refuse(error)
        else:
            self.say(f"Done in {time.monotonic() - began:.1f} s.")
            show(job.result())
            return job.result()
        return None

    def _progress(self, share: float) -> None:
        """Show the share that is done, and the time that is left at the speed since the last part
        without a share."""
        if not share:
            self._began = time.monotonic()
            self.say("Measuring …")
            return
        spent = time.monotonic() - self._began
        self._bar.props["value"] = f"{share:.3f}"
        self._bar.update()
        left = ""
        if spent >= ESTIMATE_AFTER and share >= 0.05:
            left = f", about {spent / share * (1 - share):.0f} s left"
        self.say(f"{100 * share:.0f}\u00a0%{left}")

    def _show_running(self, running: bool) -> None:
        self._bar.set_visibility(running)
        self._cancel.set_visibility(running)
