"""Measuring cells wherever they are sent: in this process, or on a worker that knows nothing but what it is handed."""

import os
import sys
import threading
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

from wordsens import __version__
from wordsens.errors import WordsensError
from wordsens.experiments.kinds import CellKind, kind_named
from wordsens.experiments.run.provenance import error_line
from wordsens.experiments.store.record import Record
from wordsens.experiments.store.witness import packed_witness


@dataclass(frozen=True)
class Job:
    """The way cells are measured.

    Attributes:
        kind: the name of their kind.
        threads: CPU threads of torch while it runs; None leaves them as they are.
        witnesses: whether their witnesses are kept.
    """

    kind: str
    threads: int | None = None
    witnesses: bool = False

    @property
    def cell_kind(self) -> CellKind:
        """The kind itself."""
        return kind_named(self.kind)


@dataclass(frozen=True)
class Outcome:
    """The outcome of one cell: its record, and the content of its witness file where one was asked for."""

    record: Record
    witness: bytes | None = None


_ONE_AT_A_TIME = threading.Lock()
"""Cells of one process share fits and torch's number of threads: on a worker with several threads they take turns."""


class OtherVersionError(WordsensError):
    """A worker runs another version of wordsens: its values could differ."""


def measure(job: Job, cell: Any) -> Outcome:
    """Measure one cell in this process; a failure becomes a failed record."""
    kind = job.cell_kind
    attempt = kind.attempt
    if job.threads is not None and "torch" in sys.modules:
        torch = sys.modules["torch"]
        if torch.get_num_threads() != job.threads:
            torch.set_num_threads(job.threads)
    if not (job.witnesses and kind.witnesses):
        return Outcome(attempt(cell))
    kept: list[Mapping[str, Any]] = []
    record = attempt(cell, keep=kept.append)
    return Outcome(record, packed_witness(record.cell, kept[-1]) if record.done else None)


def measure_payloads(job: Job, payloads: Sequence[Mapping[str, Any]], version: str) -> list[Outcome | str]:
    """On a worker: measure the cells that the payloads describe. What cannot even be attempted is an error's line.

    Raises:
        OtherVersionError: the payloads come from another version of wordsens.
    """
    if version != __version__:
        raise OtherVersionError(
            f"a worker (process {os.getpid()}) has wordsens {__version__}, but the sweep is run by {version}; "
            "install the same version on both"
        )
    if job.threads is not None:
        # Read by BLAS libraries when they are loaded, which on a fresh worker is still to come.
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ.setdefault(name, str(job.threads))
    with _ONE_AT_A_TIME:
        return [_measured(job, payload) for payload in payloads]


def _measured(job: Job, payload: Mapping[str, Any]) -> Outcome | str:
    try:
        return measure(job, job.cell_kind.cell_type.parse(dict(payload)))
    except Exception as error:
        return error_line(error)


def payload_of(cell: Any) -> dict[str, Any]:
    """The cell as plain data. A path that exists here goes as an absolute one: a worker may run in another folder."""
    data = cell.model_dump(mode="json", exclude_unset=True)
    text = data.get("text")
    if isinstance(text, dict) and isinstance(path := text.get("path"), str) and Path(path).exists():
        data["text"] = {**text, "path": str(Path(path).absolute())}
    return data


def bundles(kind: CellKind, cells: Sequence[Any]) -> Iterator[list[int]]:
    """The places of the cells in order, neighbours that share costly work together: each list is for one worker."""

    def shared(place: int) -> Hashable:
        own = kind.shared_by(cells[place])
        return ("alone", place) if own is None else own

    for _, group in groupby(range(len(cells)), key=shared):
        places = list(group)
        for first in range(0, len(places), kind.most_together):
            yield places[first : first + kind.most_together]
