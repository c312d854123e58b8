"""The place where an experiment's cells run: the options that `paper` and `sweep` share. Loads no torch and no dask."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from wordsens.cli.options import AsJson, Quiet, Threads
from wordsens.errors import InputError, require_count

if TYPE_CHECKING:
    from wordsens.experiments.run.executor import Executor

_PANEL = "Where cells run"

Workers = Annotated[
    int | None,
    typer.Option(
        help="So many processes on this machine, one cell each at a time; default: this process.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        help="The workers of a Dask scheduler: tcp://HOST:8786, or its scheduler file.",
        show_default=False,
        rich_help_panel=_PANEL,
    ),
]
Witnesses = Annotated[
    bool,
    typer.Option(
        "--witnesses", help="Keep each cell's perturbations too, one safetensors file a cell.", rich_help_panel="Store"
    ),
]


@dataclass(frozen=True, kw_only=True)
class ExecutorRequest:
    """The place where cells run; neither of the last two: this process.

    Raises:
        InputError: two places are named, or a count is below 1.
    """

    threads: Threads = 1
    workers: Workers = None
    scheduler: Scheduler = None

    def __post_init__(self) -> None:
        require_count("threads", self.threads)
        if self.workers is not None:
            require_count("workers", self.workers)
        given = [name for name in ("workers", "scheduler") if getattr(self, name) is not None]
        if len(given) > 1:
            raise InputError(f"--{given[0]} and --{given[1]} both say where cells run; give one of them")

    @property
    def elsewhere(self) -> bool:
        """True where they may run on other machines, which may have what this one lacks."""
        return self.scheduler is not None


@dataclass(frozen=True, kw_only=True)
class PlaceOptions(ExecutorRequest):
    """The options that commands with cells share; their own are the fields of a subclass."""

    as_json: AsJson = False
    quiet: Quiet = False


@contextmanager
def opened(request: ExecutorRequest, tell: Callable[[str], None]) -> "Iterator[Executor]":
    """The executor that was asked for, closed at the end; `tell` gets what a user should know while it runs."""
    executor = _executor(request, tell)
    try:
        yield executor
    finally:
        executor.close()


def _executor(request: ExecutorRequest, tell: Callable[[str], None]) -> "Executor":
    if request.scheduler is not None:
        from wordsens.experiments.run.cluster import remote_workers

        return remote_workers(request.scheduler, tell=tell)
    from wordsens.experiments.run.executor import InProcess

    if request.workers is None or request.workers == 1:
        return InProcess()
    from wordsens.experiments.run.cluster import local_workers

    return local_workers(request.workers, threads=request.threads, tell=tell)
