"""The time that is left, by a clock of the test's own."""

import pytest

from wordsens.cli.terminal import Reporter


@pytest.fixture
def left(monkeypatch):
    """A function from stages, (seconds, share of the work, steps), to what is told and what is true
    at each step: (seconds of the stage, told, true)."""
    clock = [1000.0]
    monkeypatch.setattr("wordsens.cli.terminal.time.monotonic", lambda: clock[0])

    def run(*stages):
        reporter = Reporter(1, "of the work", bar=None, plain=False)
        rest, done, seen = sum(seconds for seconds, _, _ in stages), 0.0, []
        for seconds, share, steps in stages:
            for step in range(1, steps + 1):
                clock[0] += seconds / steps
                rest, done = rest - seconds / steps, done + share / steps
                seen.append((seconds * step / steps, reporter.remaining(done), rest))
        return seen

    return run


@pytest.mark.parametrize("steps", [1, 2, 7, 500])
@pytest.mark.parametrize("seconds", [0.5, 90.0, 40_000.0])
def test_at_a_steady_rate_it_is_what_is_left(left, seconds, steps):
    for _, told, true in left((seconds, 1.0, steps)):
        assert told == pytest.approx(true, abs=1e-6 * seconds)


@pytest.mark.parametrize(("slow", "fast"), [(150.0, 120.0), (2400.0, 400.0)])
def test_a_slow_start_is_forgotten(left, slow, fast):
    """A twentieth of the work in the first stage: by the mean rate so far 40 minutes are told where
    one is left."""
    seen = left((slow, 0.05, 50), (fast, 0.95, 400))[50:]
    recent = [(told, true) for since, told, true in seen if since > max(31.0, 0.11 * (slow + fast))]
    assert len(recent) > 50
    for told, true in recent:
        assert told == pytest.approx(true, abs=1e-6 * fast)


def test_a_stage_that_stops_tells_nothing(left):
    assert [told for _, told, _ in left((10.0, 0.5, 1), (200.0, 0.0, 4))][-1] is None
