"""Running what is missing of an experiment: progress, notices, and how it says that it was stopped."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wordsens.cli.executor_options import ExecutorRequest, opened
from wordsens.cli.stopping import stopped_by_sigterm
from wordsens.cli.terminal import Reporter, notice, reporting, typed
from wordsens.errors import WordsensError
from wordsens.experiments.grid.cell_keys import CPU
from wordsens.experiments.run.commands import keep_command
from wordsens.experiments.run.runner import run_cells, unfinished
from wordsens.experiments.run.state import RunState
from wordsens.experiments.run.task import Job
from wordsens.experiments.store.record import Record
from wordsens.experiments.store.shard import StoreError
from wordsens.experiments.store.store import RecordStore


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """The way an experiment runs.

    Attributes:
        executor: where they run.
        witnesses: whether their witnesses are kept.
        quiet: no progress, no notices.
    """

    executor: ExecutorRequest = field(default_factory=ExecutorRequest)
    witnesses: bool = False
    quiet: bool = False


def open_store(folder: Any, kind: type[Any], *, read_only: bool = False) -> RecordStore[Any]:
    """The store in the folder; files that cannot be trusted are named on stderr."""
    return RecordStore(folder, kind, on_set_aside=lambda found: notice(f"set aside: {found}"), read_only=read_only)


def require_devices(cells: Sequence[Any], request: RunRequest) -> None:
    """InputError where the cells are computed on this machine, and it lacks a device of theirs."""
    if not request.executor.elsewhere:
        for device in sorted({cell.device for cell in cells} - {CPU}):
            from wordsens.text.encoders import require_device

            require_device(device)


def run_missing(
    cells: Sequence[Any], store: RecordStore[Any], kind: str, request: RunRequest, *, called: str = "cells"
) -> None:
    """Measure the cells that the store has no value for; `called` is what a user calls them. The command is kept in the
    store's folder.

    Raises:
        KeyboardInterrupt: it was stopped; the message says what is kept and how to go on.
        StoreError: a record cannot be written; likewise.
    """
    keep_command(store.folder.parent, typed.get())
    left = unfinished(cells, store, witnesses=request.witnesses)
    kept = len(cells) - len(left)
    if kept and not request.quiet:
        notice(f"{kept} of {len(cells)} {called} are in {store.folder} already")
    if not left:
        return
    job = Job(kind, request.executor.threads, request.witnesses)
    state_now = RunState("", len(left))

    def note(line: str) -> None:
        if not request.quiet:
            notice(line)

    def finished() -> str:
        return f"{kept + state_now.done} of {len(cells)} {called} are finished in {store.folder}"

    try:
        with (
            stopped_by_sigterm(),
            opened(request.executor, note) as executor,
            reporting(len(left), called, quiet=request.quiet) as report,
        ):

            def tell(state: RunState) -> None:
                nonlocal state_now
                state_now = state

            for record in run_cells(left, store, job=job, executor=executor, tell=tell):
                _report(report, record, state_now)
    except KeyboardInterrupt as stop:
        raise type(stop)(f"interrupted: {finished()}; the same command goes on from there") from None
    except StoreError as error:
        raise StoreError(f"{error}: {finished()}; free some space, and the same command goes on from there") from error


def fail_for(failed: Sequence[Record], total: int, *, called: str = "cells") -> None:
    """Raise WordsensError when any cell failed, after everything else is written."""
    if failed:
        raise WordsensError(
            f"{len(failed)} of {total} {called} failed, the first with {failed[0].error}; "
            "the same command tries them again"
        )


def _report(report: Reporter, record: Record, state: RunState) -> None:
    report.update(state.done + state.failed, now=_named(record))


def _named(record: Any) -> str:
    """A few words that tell a record apart, of whatever columns its kind has."""
    if hasattr(record, "n"):
        texts = f"N={record.texts}" if hasattr(record, "texts") else getattr(record, "text", "")
        return f"{getattr(record, 'map', '')} n={record.n} {texts}".strip()
    return f"draw {record.draw}" if hasattr(record, "draw") else getattr(record, "source", record.cell[:8])
