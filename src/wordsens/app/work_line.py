"""The line under a form: how far the work is, how long it still takes, and the button that ends
it."""

import time
from collections.abc import Callable
from typing import Any

from nicegui import ui

from wordsens.app.parts import Box, Button, Site, Text
from wordsens.app.worker import (
    DONE,
    FAILED,
    LOST,
    OUT_OF_MEMORY,
    OUT_OF_TIME,
    PART,
    REFUSED,
    STOPPED,
)
from wordsens.errors import WordsensError

_MESSAGES = {
    STOPPED: "Cancelled. The page shows what it showed before.",
    LOST: "The process that measured this came to an end, perhaps for lack of memory. Another has "
    "taken its place: "
    "please start again.",
    OUT_OF_TIME: "This took longer than the {seconds:.0f} seconds that a measurement may take "
    "here. A shorter text "
    "or a quicker search fits.",
    OUT_OF_MEMORY: "This needs more memory than a measurement may take here. A shorter text or "
    "another map fits.",
    FAILED: "Something went wrong ({value}). It was not your input; the server’s log says more.",
}

ESTIMATE_AFTER = 1.0
"""Seconds before a remaining time is told: earlier it is a guess."""


class WorkLine:
    """One visitor's work on one form: one task at a time."""

    def __init__(self, site: Site):
        self._site, self._job = site, None
        self._visitor = ui.context.client.id
        with Box("div", "work"):
            self._bar = Box("progress", max="1", aria_label="Progress")
            self._message = Text("span", "", "message", role="status")
            self._cancel = Button("Cancel", self.cancel, data_cancel="")
        self._show_running(False)
        ui.context.client.on_delete(self._leave)

    def cancel(self) -> None:
        """End the task."""
        if self._job is not None:
            self._site.pool.cancel(self._job)

    def drop(self) -> None:
        """End the task, and say nothing of it."""
        self._leave()
        self._show_running(False)

    def _leave(self) -> None:
        """The visitor is gone, or wants something else."""
        self.cancel()
        self._job = None

    def say(self, message: str, *, problem: bool = False) -> None:
        """A sentence in the place of the progress."""
        self._message.text = message
        self._message.classes(add="problem") if problem else self._message.classes(remove="problem")

    async def run(
        self,
        name: str,
        arguments: dict[str, Any],
        part: Callable[[dict[str, Any]], None] | None = None,
    ) -> Any:
        """The task's answer, or None where there is none: then the line says why. `part` is given
        the parts.

        A task that still runs is ended first.
        """
        self.cancel()
        try:
            job = self._site.pool.submit(name, arguments, self._visitor)
        except WordsensError as error:
            self._job = None
            self._end(str(error), problem=True)
            return None
        self._job, began = job, time.monotonic()
        self._show_running(True)
        before = self._site.pool.place_of(job)
        self.say(f"Waiting: {before} before this one." if before > 1 else "Starting …")
        self._bar.props(remove="value")
        async for kind, value in job.answers():
            if self._job is not job:
                return None
            if kind == PART:
                self._progress(value, began)
                if part is not None:
                    part(value)
            elif kind == DONE:
                self._end(f"Done in {time.monotonic() - began:.1f} s.")
                return value
            elif kind == REFUSED:
                self._end(kind_message(value), problem=True)
            else:
                message = _MESSAGES[kind].format(
                    seconds=self._site.settings.max_seconds, value=value
                )
                self._end(message, problem=kind != STOPPED)
        return None

    def _progress(self, value: dict[str, Any], began: float) -> None:
        if (share := value.get("share")) is None:
            return
        spent = time.monotonic() - began
        self._bar.props["value"] = f"{share:.3f}"
        self._bar.update()
        left = (
            ""
            if spent < ESTIMATE_AFTER or share < 0.05
            else f", about {spent / share * (1 - share):.0f} s left"
        )
        self.say(f"{share:.0%}{left}")

    def _end(self, message: str, *, problem: bool = False) -> None:
        self._job = None
        self._show_running(False)
        self.say(message, problem=problem)

    def _show_running(self, on: bool) -> None:
        self._bar.set_visibility(on)
        self._cancel.set_visibility(on)


def kind_message(error: str) -> str:
    """A library's error for a reader of the page: no backticks, a full stop.

    >>> kind_message("`X` has one word; give a longer text")
    'The text has one word; give a longer text.'
    """
    plain = error.replace("`X`", "the text").replace("`", "").strip()
    return f"{plain[:1].upper()}{plain[1:]}{'' if plain.endswith('.') else '.'}"
