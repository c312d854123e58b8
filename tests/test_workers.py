"""The pool of processes: parts of an answer, tasks that are stopped, workers that die; and what the
page's worker says of an error."""

import os
import queue
import signal
import time
from contextvars import copy_context

import pytest

from wordsens.app import worker
from wordsens.errors import BudgetError, InputError, argument
from wordsens.workers import StoppedError, WorkerDiedError, WorkerPool, report


def reporting(count, seconds=0.0):
    """Report the numbers up to the count."""
    for number in range(count):
        report(number)
        time.sleep(seconds)
    return "done"


@pytest.fixture(scope="module")
def pool():
    """One worker."""
    with WorkerPool(1) as workers:
        yield workers


def test_parts_come_in_order_before_the_answer(pool):
    parts = []
    future = pool.submit(reporting, 3, part=lambda worker, part: parts.append(part))
    assert future.result() == "done"
    assert parts == [0, 1, 2]
    assert reporting(2) == "done"  # outside a worker nobody listens


def test_a_task_that_is_stopped_ends_at_its_next_report_and_the_next_one_does_not(pool):
    first = pool.submit(reporting, 10_000, 0.01, part=lambda worker, part: worker.stop())
    with pytest.raises(StoppedError):
        first.result(timeout=60)
    workers = queue.Queue()
    future = pool.submit(reporting, 1, part=lambda worker, part: workers.put(worker))
    assert future.result() == "done"
    workers.get().stop()  # the task has ended
    assert pool.submit(reporting, 3).result() == "done"


def test_a_worker_that_dies_is_replaced(pool):
    def kill(worker, part):
        os.kill(worker.process.pid, signal.SIGKILL)

    with pytest.raises(WorkerDiedError):
        pool.submit(reporting, 10_000, 0.01, part=kill).result(timeout=60)
    workers = queue.Queue()
    pool.submit(reporting, 1, part=lambda worker, part: workers.put(worker)).result()
    idle = workers.get()
    kill(idle, None)
    idle.process.join()
    assert pool.submit(reporting, 1).result() == "done"


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (lambda: InputError(f"{argument('X')} is empty"), "The text is empty."),
        (lambda: InputError(f"{argument('max_words', 3)} or less"), "Max words 3 or less."),
        (MemoryError, worker._OUT_OF_MEMORY),
        (lambda: BudgetError("`budget`"), worker._OUT_OF_MEMORY),
        (lambda: RuntimeError("can't allocate memory: you tried"), worker._OUT_OF_MEMORY),
        (lambda: KeyError("x"), worker._FAILED.format(name="KeyError")),
    ],
)
def test_the_page_says_in_plain_words_what_went_wrong(monkeypatch, capsys, error, sentence):
    def task():
        raise error()

    monkeypatch.setattr(worker, "_prepared", lambda memory, models: {"task": task})
    with pytest.raises(InputError) as raised:
        copy_context().run(worker.do, 4096, ["minilm"], "task", {})
    assert str(raised.value) == sentence
    assert ("Traceback" in capsys.readouterr().err) == ("KeyError" in sentence)
