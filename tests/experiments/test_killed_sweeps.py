"""Sweeps killed with SIGKILL, the parent and its workers, end with the records of an undisturbed run."""

import signal
import subprocess
import sys
from collections import Counter

import pytest

from benchmarks import sweeps
from wordsens.experiments.dry_run.cell import DryRunRecord
from wordsens.experiments.store.store import RecordStore


@pytest.mark.parametrize(
    "set_up",
    [
        sweeps._nothing,
        pytest.param(sweeps._local, marks=pytest.mark.slow),
        pytest.param(sweeps._lone, marks=pytest.mark.slow),
    ],
)
def test_killed_and_resumed(tmp_path, set_up):
    spec = tmp_path / "killed.yaml"
    spec.write_text(sweeps.SPEC.format(last=11, work=1, pause=0.1))
    sweeps._finish(spec, tmp_path / "whole", "pause=0.0")
    with set_up(tmp_path) as (options, workers):
        told = sweeps._killed(spec, tmp_path / "killed", options, workers, kills=2, longest=0.1)
    assert told["parent"] + told["worker"] == 2
    assert told["worker"] == (set_up is not sweeps._nothing)
    found = sweeps.results(tmp_path / "killed")
    assert len(found) == 12
    assert found == sweeps.results(tmp_path / "whole")
    if set_up is sweeps._lone:
        # Whatever was left when one worker died was measured by the other.
        records = RecordStore(tmp_path / "killed" / "dry-run-records", DryRunRecord, read_only=True).read()
        counts = Counter(record.process for record in records)
        assert len(counts) <= 2
        left = len(records) - told["done"][-1]
        assert left > 0
        assert max(counts.values()) >= left


def test_a_process_that_does_not_answer_sigterm_is_killed():
    deaf = subprocess.Popen(
        [sys.executable, "-c", "import signal; signal.signal(15, signal.SIG_IGN); print(); signal.pause()"],
        stdout=subprocess.PIPE,
    )
    with deaf.stdout:
        deaf.stdout.readline()
        sweeps._end([deaf], patience=0.2)
    assert deaf.returncode == -signal.SIGKILL
