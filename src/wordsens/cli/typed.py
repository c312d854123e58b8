"""The command as it was typed, for the commands that keep it beside their records."""

from contextvars import ContextVar

typed: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
"""The words after `wordsens`; none where no command line runs."""
