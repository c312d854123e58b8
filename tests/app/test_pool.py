"""The order of the page's tasks, and their limits, without processes."""

import asyncio
from concurrent.futures import Future

import pytest

from wordsens.app.pool import Pool
from wordsens.app.settings import AppSettings
from wordsens.errors import BudgetError


class Recorded:
    """Workers that do nothing until they are told to."""

    def __init__(self):
        self.tasks = []

    def submit(self, function, memory, models, name, arguments, *, part):
        self.tasks.append((name, Future(), part))
        return self.tasks[-1][1]

    async def finish(self, place):
        """Let the task in that place be done."""
        self.tasks[place][1].set_result(None)
        await asyncio.sleep(0.01)


def test_brief_tasks_go_first_then_visitors_with_the_fewest_running():
    async def visits():
        workers = Recorded()
        pool = Pool(AppSettings(workers=2, max_waiting=4, max_seconds=0.05), workers)
        prepared = pool.prepare()
        many = [pool.submit(f"first {number}", {}, "first") for number in range(3)]
        pool.submit("second", {}, "second")
        with pytest.raises(BudgetError, match="4 measurements are waiting"):
            pool.submit("fifth", {}, "third")
        pool.submit("brief", {}, "first", brief=True)
        many[1].cancel()
        for place in range(4):
            await workers.finish(place)
        await prepared
        names = [name for name, *_ in workers.tasks]
        assert names == ["ready", "ready", "brief", "second", "first 0", "first 2"]
        # The time of a task begins with its first report, not in the line.
        await asyncio.sleep(0.1)
        assert not many[0].done()
        workers.tasks[4][2](Stopped(), {})
        await asyncio.sleep(0.1)
        assert "longer than the 0 seconds" in str(many[0].exception())

    asyncio.run(visits())


class Stopped:
    """A worker that is told to stop."""

    def stop(self):
        pass
