"""Running cells on Dask: processes of this machine, or the workers of any scheduler. Loads dask when it is used."""

import json
import logging
import queue
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from wordsens import __version__
from wordsens.errors import InputError, MissingExtraError, WordsensError
from wordsens.experiments.run.executor import Executor, Tell
from wordsens.experiments.run.provenance import error_line
from wordsens.experiments.run.task import Job, OtherVersionError, Outcome, bundles, measure_payloads, payload_of

POLL_SECONDS = 1.0
CONNECT_SECONDS = 20.0
LOSSES = 5
"""A cell whose workers died so often is recorded as failed: it is the likely reason."""

_AHEAD = 2

_NO_PROFILE = {"distributed": {"worker": {"profile": {"enabled": False}}}}
"""By default a worker samples its stacks and keeps them for an hour: about a MiB a second, for a page not served."""


_IGNORE_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""A terminal sends SIGINT to every process of the group; ours ends the workers."""


class LostSchedulerError(WordsensError):
    """The scheduler went away."""


class DaskExecutor(Executor):
    """Cells as tasks of a Dask scheduler.

    A few tasks a slot are under way, so that a million cells do not fill the scheduler. A task whose
    worker dies is run again, by the scheduler and after that by us, up to `LOSSES` times; a cell
    that is wrong gives a failed record.

    Args:
        client: connected to the scheduler.
        described: what it is, in words.
        tell: told of workers that were lost, and of the wait for the first.
        closers: called at the end, the last one first.
    """

    def __init__(
        self,
        client: Any,
        described: str,
        *,
        tell: Tell = lambda line: None,
        closers: Sequence[Callable[[], Any]] = (),
    ):
        self._client = client
        self._described = described
        self._tell = tell
        self._closers = list(closers)
        self._workers: dict[str, int] = {}
        self._looked = 0.0
        self._waiting = False

    @property
    def described(self) -> str:
        return self._described

    @property
    def slots(self) -> int:
        return len(self._workers)

    def outcomes(self, job: Job, cells: Sequence[Any]) -> Iterator[tuple[int, Outcome]]:
        to_send = deque(bundles(job.cell_kind, cells))
        losses: dict[int, int] = {}

        under_way: dict[Any, list[int]] = {}
        finished: queue.SimpleQueue[Any] = queue.SimpleQueue()
        try:
            self._look_for_workers()
            while to_send or under_way:
                while to_send and len(under_way) < _AHEAD * max(1, self.slots) + 1:
                    places = to_send.popleft()
                    future = self._client.submit(
                        measure_payloads, job, [payload_of(cells[place]) for place in places], __version__, pure=False
                    )
                    under_way[future] = places
                    future.add_done_callback(finished.put)
                try:
                    future = finished.get(timeout=POLL_SECONDS)
                except queue.Empty:
                    self._look_for_workers()
                    continue
                places = under_way.pop(future)
                found = self._result(future)
                if time.monotonic() - self._looked > POLL_SECONDS:
                    self._look_for_workers()
                if found is None:
                    for place in places:
                        losses[place] = losses.get(place, 0) + 1
                    # One by one, so that a cell that kills its worker takes no other with it.
                    to_send.extendleft([place] for place in reversed(places) if losses[place] < LOSSES)
                    lost = [place for place in places if losses[place] >= LOSSES]
                    found, places = (
                        ["its worker died each time it was run; does it need more memory?"] * len(lost),
                        lost,
                    )
                for place, outcome in zip(places, found, strict=True):
                    if isinstance(outcome, str):
                        outcome = Outcome(job.cell_kind.failed(cells[place], outcome))
                    yield place, outcome
        finally:
            with suppress(Exception):
                self._client.cancel(list(under_way), force=True)

    def close(self) -> None:
        for closer in reversed(self._closers):
            with suppress(Exception):
                closer()
        self._closers.clear()

    def _result(self, future: Any) -> list[Outcome | str] | None:
        """The outcomes that the workers gave; None where they died."""
        from distributed import KilledWorker

        status = future.status
        if status == "finished":
            return future.result()
        if status in ("cancelled", "lost") or self._client.status not in ("running", "connecting"):
            self._gone()
        error = future.exception()
        if isinstance(error, KilledWorker):
            return None
        if isinstance(error, OtherVersionError):
            raise WordsensError(str(error))
        if isinstance(error, ImportError) or "deserializ" in str(error).lower():
            raise WordsensError(f"a worker cannot load wordsens ({error_line(error)}); install the same version there")
        raise WordsensError(f"a worker failed ({error_line(error)})")

    def _look_for_workers(self) -> None:
        """Count the workers, and tell what changed."""
        self._looked = time.monotonic()
        try:
            now: dict[str, int] = self._client.nthreads()
        except Exception:
            self._gone()
        gone = len(set(self._workers) - set(now))
        if gone:
            self._tell(f"{_workers(gone)} lost; {'its' if gone == 1 else 'their'} cells are run again elsewhere")
        if not now and not self._waiting:
            self._tell(f"no worker at the moment ({self._described}); waiting for one")
        if not self._workers and any(threads > 1 for threads in now.values()):
            self._tell("workers with several threads run one cell at a time; start them with --nthreads 1")
        self._waiting = not now
        self._workers = dict(now)

    def _gone(self) -> NoReturn:
        raise LostSchedulerError(f"the scheduler went away ({self._described})") from None


def local_workers(count: int, *, threads: int = 1, tell: Tell = lambda line: None) -> DaskExecutor:
    """So many worker processes on this machine, each with one cell at a time and `threads` CPU threads.

    Raises:
        MissingExtraError: dask is not installed.
    """
    distributed = _distributed()
    import dask.config

    environment = {name: str(threads) for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    cluster = distributed.LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        # Dask's own lines about workers that die; ours say it in one.
        silence_logs=logging.CRITICAL,
        env=environment,
        config=dask.config.merge(dask.config.config, _NO_PROFILE),
        preload=[_IGNORE_CTRL_C],
    )
    client = distributed.Client(cluster)
    return DaskExecutor(client, f"{_workers(count)} on this machine", tell=tell, closers=[cluster.close, client.close])


def remote_workers(address: str, *, tell: Tell = lambda line: None) -> DaskExecutor:
    """The workers of the scheduler at the address, `tcp://host:8786` or a scheduler file's path.

    Raises:
        InputError: nothing answers there.
        MissingExtraError: dask is not installed.
    """
    distributed = _distributed()
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    try:
        # Given the file itself, dask would wait for it for ever.
        reached = _address_in(address) if address.endswith(".json") else address
        client = distributed.Client(reached, timeout=CONNECT_SECONDS)
    except (OSError, ValueError, TimeoutError) as error:
        raise InputError(
            f"`scheduler` (={address!r}) does not answer ({error_line(error)}); start one with: dask scheduler"
        ) from error
    return DaskExecutor(client, f"workers of {address}", tell=tell, closers=[client.close])


def on_cluster(cluster: Any, described: str, *, tell: Tell = lambda line: None) -> DaskExecutor:
    """The workers of a Dask cluster object, which is closed at the end."""
    client = _distributed().Client(cluster)
    return DaskExecutor(client, described, tell=tell, closers=[cluster.close, client.close])


def _address_in(scheduler_file: str) -> str:
    """The address that `dask scheduler --scheduler-file` wrote there. OSError or ValueError when there is none."""
    written = json.loads(Path(scheduler_file).read_text(encoding="utf-8"))
    if not isinstance(written, dict) or not isinstance(written.get("address"), str):
        raise ValueError("the file holds no scheduler's address")
    return written["address"]


def _distributed() -> Any:
    try:
        import distributed
    except ImportError as error:
        raise MissingExtraError("distributed", "cluster", "running cells on workers") from error
    return distributed


def _workers(count: int) -> str:
    return f"{count} worker" if count == 1 else f"{count} workers"
