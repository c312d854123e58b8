"""A sweep on a real SLURM of this machine: a job is cancelled, one ends at its walltime, the controller restarts.

`make test-slurm` installs what is needed where it may and runs it; it takes about three minutes.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.slurm.cluster import Slurm, missing

from wordsens.experiments.dry_run.cell import DryRunRecord
from wordsens.experiments.store.store import RecordStore

CELLS = 60
SWEEP = f"""\
name: on-slurm
kind: dry-run
grids: [{{draw: {{range: [0, {CELLS - 1}]}}, pause: 4.0, work: 10}}]
"""
JOBS = """\
jobs: 3
memory: 500MB
walltime: "00:30:00"
interface: lo
local_directory: {folder}
log_directory: {folder}
"""
VALUES = ("cell", "status", "draw", "seed", "work", "value")


@pytest.fixture
def slurm(tmp_path):
    if reason := missing():
        pytest.skip(reason)
    (tmp_path / "slurm").mkdir()
    made = Slurm(tmp_path / "slurm")
    yield made
    made.close()


def values(folder: Path) -> list[dict]:
    """The measured values, without who measured them and when."""
    found = RecordStore(folder, DryRunRecord).read()
    return sorted(({name: getattr(one, name) for name in VALUES} for one in found), key=json.dumps)


@pytest.mark.slow
@pytest.mark.timeout(500)
def test_a_sweep_outlives_its_jobs_and_the_controller(slurm, tmp_path):
    (tmp_path / "sweep.yaml").write_text(SWEEP, encoding="utf-8")
    (tmp_path / "slurm.yaml").write_text(JOBS.format(folder=tmp_path), encoding="utf-8")
    command = [sys.executable, "-m", "wordsens", "sweep", "run", str(tmp_path / "sweep.yaml"), "--out"]
    subprocess.run([*command, str(tmp_path / "here"), "pause=0.0", "--workers", "1"], check=True, capture_output=True)
    told = tmp_path / "told"
    with told.open("wb") as out:
        run = subprocess.Popen(
            [*command, str(tmp_path / "there"), "--slurm", str(tmp_path / "slurm.yaml")],
            env=slurm.environment,
            stdout=out,
            stderr=out,
        )
    try:
        until(lambda: len(slurm.jobs("running")) == 3, run)
        until(lambda: "cells after" in told.read_text(encoding="utf-8"), run)
        cancelled, ended, kept = slurm.jobs("running")
        slurm.ask("scontrol", "update", f"jobid={ended}", "TimeLimit=1")
        slurm.ask("scancel", cancelled)
        until(lambda: cancelled not in slurm.jobs("running"), run)
        slurm.kill_controller()
        time.sleep(3)
        slurm.start_controller()
        until(lambda: slurm.jobs("running") == [kept], run)
        assert run.wait(timeout=300) == 0, told.read_text(encoding="utf-8")
    finally:
        run.kill()
    said = told.read_text(encoding="utf-8")
    assert said.count("1 worker lost; its cells are run again elsewhere") == 2
    assert "JobState=TIMEOUT" in slurm.ask("scontrol", "show", "job", ended)
    assert values(tmp_path / "there" / "dry-run-records") == values(tmp_path / "here" / "dry-run-records")
    assert len(values(tmp_path / "there" / "dry-run-records")) == CELLS
    until(lambda: not slurm.jobs("running,pending,completing"), None)


def until(done, run: subprocess.Popen | None) -> None:
    """Wait for it, two minutes at most, or for the end of the run."""
    end = time.monotonic() + 150
    while not done():
        assert time.monotonic() < end
        assert run is None or run.poll() is None
        time.sleep(0.5)
