"""The workers' messages without processes: a context that ticks, and a pool that gives out jobs in fair order."""

import time

import pytest

from wordsens.app import worker
from wordsens.app.worker import Cancel, Task, TaskContext
from wordsens.errors import InputError


class Pipe:
    """A pipe that lies in memory."""

    def __init__(self, *incoming):
        self.incoming, self.sent = list(incoming), []

    def poll(self):
        return bool(self.incoming)

    def recv(self):
        if not self.incoming:
            raise EOFError
        return self.incoming.pop(0)

    def send(self, message):
        self.sent.append(message)


def served(table, *incoming):
    """What a worker answers to these worker."""
    pipe = Pipe(*incoming)
    with pytest.raises(EOFError):
        TaskContext(pipe, table).serve()
    return [(one.number, one.kind, one.value) for one in pipe.sent]


def test_a_task_tells_parts_and_its_answer():
    def task(context, by):
        context.send(by)
        return 2 * by

    assert served({"task": task}, Task(1, "task", {"by": 3}, 9.0)) == [(1, worker.PART, 3), (1, worker.DONE, 6)]


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (InputError("`text` is empty"), (worker.REFUSED, "`text` is empty")),
        (MemoryError(), (worker.OUT_OF_MEMORY, None)),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), (worker.OUT_OF_MEMORY, None)),
        (KeyError("x"), (worker.FAILED, "KeyError")),
    ],
)
def test_an_error_is_an_answer_and_the_worker_goes_on(error, answer, capsys):
    def task(context, fail):
        if fail:
            raise error
        return "fine"

    asked = [Task(at, "task", {"fail": fail}, 9.0) for at, fail in ((1, True), (2, False))]
    assert served({"task": task}, *asked) == [(1, *answer), (2, worker.DONE, "fine")]
    assert ("KeyError" in capsys.readouterr().err) == (answer[0] == worker.FAILED)


def test_a_cancelled_task_ends_at_its_next_tick_and_one_that_takes_too_long_too():
    def long(context):
        while True:
            context.tick()

    assert served({"long": long}, Task(1, "long", {}, 9.0), Cancel(1)) == [(1, worker.STOPPED, None)]
    assert served({"long": long}, Task(1, "long", {}, 0.01)) == [(1, worker.OUT_OF_TIME, 0.01)]


def test_a_brief_task_is_done_between_two_ticks_of_another_and_costs_it_no_time():
    def long(context):
        context.tick()
        return "long"

    def brief(context):
        time.sleep(0.05)
        return "brief"

    asked = Task(1, "long", {}, 0.04), Task(2, "brief", {}, 9.0)
    found = served({"long": long, "brief": brief}, *asked)
    assert found == [(2, worker.DONE, "brief"), (1, worker.DONE, "long")]
