"""Cells on Dask: the same records, whatever dies on the way."""

import os
import queue
import signal
import time
from types import SimpleNamespace

import pytest
from distributed import KilledWorker
from safetensors import safe_open

from wordsens.errors import InputError, WordsensError
from wordsens.experiments.dry_run.cell import KIND as DRY_RUN
from wordsens.experiments.dry_run.cell import DryRunCell, DryRunRecord
from wordsens.experiments.kinds import kind_named
from wordsens.experiments.run.cluster import LOSSES, DaskExecutor, LostSchedulerError, local_workers, remote_workers
from wordsens.experiments.run.executor import InProcess
from wordsens.experiments.run.runner import run_cells
from wordsens.experiments.run.task import Job, OtherVersionError, Outcome
from wordsens.experiments.sensitivity.record import SensitivityRecord
from wordsens.experiments.sensitivity.spec import SensitivityCell
from wordsens.experiments.store.store import RecordStore

CELLS = [DryRunCell(draw=draw, pause=0.05) for draw in range(24)]
VALUES = {cell.content_hash(): DRY_RUN.attempt(DryRunCell(draw=cell.draw)).value for cell in CELLS}


@pytest.fixture(scope="module")
def cluster():
    """Two workers, what they were said to be told, and their processes."""
    told = []
    executor = local_workers(2, tell=told.append)
    yield SimpleNamespace(executor=executor, told=told, pids=lambda: list(executor._client.run(os.getpid).values()))
    executor.close()


def test_workers_give_the_values_of_one_process_and_failures_are_records(cluster, tmp_path):
    store = RecordStore(tmp_path, DryRunRecord)
    broken = DryRunCell(draw=99, fail=True)
    records = list(run_cells([*CELLS, broken], store, executor=cluster.executor))
    assert {one.cell: one.value for one in records if one.done} == VALUES
    assert [one.error for one in records if not one.done] == [
        "WordsensError: this cell of the dry run was told to fail"
    ]
    assert len({one.process for one in records}) == 2
    assert store.read() == sorted(records, key=lambda one: one.cell)
    assert cluster.executor.described == "2 workers on this machine"


def test_workers_keep_no_profile(cluster):
    """A profile grows for an hour, by about a MiB a second for deep stacks."""
    kept = cluster.executor._client.run(lambda dask_worker: sorted(dask_worker.periodic_callbacks))
    assert all(names and not any("profile" in name for name in names) for names in kept.values())


OF_A_RUN = {"seconds", "peak_memory_mb", "started", "libraries", "fit_seconds"}


@pytest.mark.slow_cases("correlations*", "departures*", "similarity-*")
@pytest.mark.parametrize(
    ("kind", "keys"),
    [
        ("sensitivity", {"map": "rf", "gaussian": "lazy"}),
        ("several-words", {"map": "raf", "count": 2}),
        ("correlations", {"map": "relu-raf"}),
        ("similarity", {"map": "raf", "n": 8, "text": "reviews", "count": 2}),
        ("departures", {"map": "raf", "measures": "error", "labels": "linear", "texts": 4}),
        ("generalization", {"map": "rf", "labels": "linear", "texts": 4, "held_out": 2, "objective": "error"}),
    ],
)
def test_two_workers_give_the_records_of_one_process_bit_by_bit(cluster, kind, keys):
    usual = {"n": 4, "d": 6, "text": "gaussian", "starts": 2, "steps": 4, "generations": 0}
    cells = [kind_named(kind).cell_type.parse({**usual, **keys, "draw": draw}) for draw in range(4)]
    job = Job(kind, threads=1)
    one, two = (dict(executor.outcomes(job, cells)) for executor in (InProcess(), cluster.executor))

    def told(outcome):
        return {name: value for name, value in outcome.record.to_dict().items() if name not in OF_A_RUN}

    assert [told(two[place]) for place in range(4)] == [told(one[place]) for place in range(4)]
    assert all(outcome.record.done for outcome in two.values())


def test_a_killed_worker_loses_no_cell(cluster, tmp_path):
    store = RecordStore(tmp_path, DryRunRecord)
    running = run_cells(CELLS, store, executor=cluster.executor)
    records = [next(running)]
    os.kill(cluster.pids()[0], signal.SIGKILL)
    records += running
    assert {one.cell: one.value for one in records} == VALUES
    assert len(records) == len(CELLS)


def test_an_interrupted_run_leaves_the_workers_free(cluster, tmp_path):
    running = run_cells(
        [DryRunCell(draw=draw, pause=0.2) for draw in range(200)],
        RecordStore(tmp_path, DryRunRecord),
        executor=cluster.executor,
    )
    next(running)
    running.close()
    begin = time.monotonic()
    again = RecordStore(tmp_path / "b", DryRunRecord)
    assert len(list(run_cells(CELLS[:2], again, executor=cluster.executor))) == 2
    assert time.monotonic() - begin < 10


@pytest.mark.slow
def test_real_cells_and_their_witnesses_are_the_same_bit_for_bit(cluster, tmp_path):
    cells = [
        SensitivityCell.parse({"map": name, "n": 4, "d": 6, "text": "gaussian", "steps": 3, "draw": draw})
        for name in ("raf", "rf")
        for draw in range(2)
    ]
    here, there = RecordStore(tmp_path / "here", SensitivityRecord), RecordStore(tmp_path / "there", SensitivityRecord)
    job = Job("sensitivity", threads=1, witnesses=True)
    list(run_cells(cells, here, job=job))
    list(run_cells(cells, there, job=job, executor=cluster.executor))
    assert [one.value.hex() for one in here.read()] == [one.value.hex() for one in there.read()]
    for one in here.read():
        mine, other = (witnesses(store.folder / "witnesses" / f"{one.cell}.safetensors") for store in (here, there))
        assert mine == other


def witnesses(path):
    """What the file says and the bits of its tensors; the order of a safetensors header's entries is arbitrary."""
    with safe_open(path, framework="numpy") as file:
        return file.metadata(), {name: file.get_tensor(name).tobytes() for name in file.keys()}  # noqa: SIM118


def test_nobody_answers():
    with pytest.raises(InputError, match=r"`scheduler` \(='none.json'\) does not answer"):
        remote_workers("none.json")


@pytest.mark.parametrize("written", ["", "[]", '{"address": 3}'])
def test_a_scheduler_file_that_is_not_one(written, tmp_path):
    (tmp_path / "scheduler.json").write_text(written)
    with pytest.raises(InputError, match="does not answer"):
        remote_workers(str(tmp_path / "scheduler.json"))


class Future:
    """A future that has ended as the test wants."""

    def __init__(self, result=None, error=None, status=None):
        self.status = status or ("error" if error else "finished")
        self._result, self._error = result, error

    def result(self):
        return self._result

    def exception(self):
        return self._error

    def add_done_callback(self, callback):
        callback(self)


class Client:
    """A client whose tasks end as `ends` says; with the workers that it is given."""

    def __init__(self, ends, workers=(("tcp://a", 1),)):
        self.ends, self.workers, self.status, self.sent, self.cancelled = ends, dict(workers), "running", [], []

    def nthreads(self):
        return self.workers

    def submit(self, function, job, payloads, version, pure):
        self.sent.append(payloads)
        return self.ends(payloads)

    def cancel(self, futures, force):
        self.cancelled += futures


def outcomes(client, cells=CELLS[:3]):
    told = []
    found = list(DaskExecutor(client, "a test", tell=told.append).outcomes(Job("dry-run"), cells))
    return found, told


def test_a_cell_that_kills_its_workers_is_given_up():
    def ends(payloads):
        if payloads[0]["draw"] == 1:
            return Future(error=KilledWorker("task", None, 3))
        return Future([Outcome(DRY_RUN.attempt(DryRunCell.parse(one))) for one in payloads])

    client = Client(ends)
    found, _ = outcomes(client)
    failed = [(place, one.record) for place, one in found if not one.record.done]
    assert [place for place, _ in failed] == [1]
    assert "its worker died each time it was run; does it need more memory?" in failed[0][1].error
    assert failed[0][1].cell == CELLS[1].content_hash()
    assert sum(payloads[0]["draw"] == 1 for payloads in client.sent) == LOSSES


@pytest.mark.parametrize(
    ("future", "kind", "message"),
    [
        (Future(error=OtherVersionError("a worker has wordsens 0")), WordsensError, "a worker has wordsens 0"),
        (Future(error=ModuleNotFoundError("No module named 'wordsens'")), WordsensError, "cannot load wordsens"),
        (Future(error=RuntimeError("odd")), WordsensError, r"a worker failed \(RuntimeError: odd\)"),
        (Future(status="cancelled"), LostSchedulerError, r"the scheduler went away \(a test\)"),
    ],
)
def test_what_ends_a_run(future, kind, message):
    with pytest.raises(kind, match=message):
        outcomes(Client(lambda payloads: future))


def test_what_a_user_is_told_of_the_workers():
    client = Client(lambda payloads: Future(["x"]), workers=())
    told = []
    executor = DaskExecutor(client, "a test", tell=told.append)
    executor._look_for_workers()
    executor._look_for_workers()
    client.workers = {"tcp://a": 2, "tcp://b": 1}
    executor._look_for_workers()
    client.workers = {"tcp://b": 1}
    executor._look_for_workers()
    assert told == [
        "no worker at the moment (a test); waiting for one",
        "workers with several threads run one cell at a time; start them with --nthreads 1",
        "1 worker lost; its cells are run again elsewhere",
    ]
    assert executor.slots == 1


def test_few_tasks_are_under_way_at_a_time():
    waiting = queue.SimpleQueue()

    class Late(Future):
        def add_done_callback(self, callback):
            waiting.put(lambda: callback(self))

    client = Client(lambda payloads: Late(["x"] * len(payloads)))
    running = DaskExecutor(client, "a test").outcomes(Job("dry-run"), CELLS)

    waiting_calls = []

    def release():
        while True:
            waiting_calls.append(waiting.get())
            most.append(len(client.sent) - len(done))
            done.append(1)
            waiting_calls[-1]()
            if sum(map(len, client.sent)) == len(CELLS) and len(done) == len(client.sent):
                return

    import threading

    done, most = [], []
    thread = threading.Thread(target=release, daemon=True)
    thread.start()
    assert len(list(running)) == len(CELLS)
    thread.join()
    assert max(most) <= 3
