"""The workers' messages without processes: a context that ticks, and what a worker answers."""

import pytest

from wordsens.app.worker import DONE, FAILED, OUT_OF_MEMORY, PART, REFUSED, STOPPED, serve_tasks
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
    """What a worker answers to these messages."""
    pipe = Pipe(*incoming)
    with pytest.raises(EOFError):
        serve_tasks(pipe, table)
    return pipe.sent


def test_a_task_tells_parts_and_its_answer():
    def task(context, by):
        context.send(by)
        return 2 * by

    assert served({"task": task}, ("task", {"by": 3})) == [(PART, 3), (DONE, 6)]


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        (InputError("`text` is empty"), (REFUSED, "`text` is empty")),
        (MemoryError(), (OUT_OF_MEMORY, None)),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"),
            (OUT_OF_MEMORY, None),
        ),
        (KeyError("x"), (FAILED, "KeyError")),
    ],
)
def test_an_error_is_an_answer_and_the_worker_goes_on(error, answer, capsys):
    def task(context, fail):
        if fail:
            raise error
        return "fine"

    assert served({"task": task}, ("task", {"fail": True}), ("task", {"fail": False})) == [
        answer,
        (DONE, "fine"),
    ]
    assert ("KeyError" in capsys.readouterr().err) == (answer[0] == FAILED)


def test_a_task_that_is_no_longer_wanted_ends_at_its_next_tick_and_the_next_one_does_not():
    def long(context, ticks):
        for _ in range(ticks):
            context.tick()
        return "done"

    assert served({"long": long}, ("long", {"ticks": 9}), None) == [(STOPPED, None)]
    assert served({"long": long}, None, ("long", {"ticks": 9})) == [(DONE, "done")]
