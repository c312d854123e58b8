"""SLURM: what is asked of it, and a sweep on jobs of a `sbatch` that runs them here."""

import os
import sys

import pytest

from wordsens.errors import InputError
from wordsens.experiments.dry_run.cell import DryRunCell, DryRunRecord
from wordsens.experiments.run.runner import run_cells
from wordsens.experiments.run.slurm import SlurmSpec, slurm_cluster, slurm_workers
from wordsens.experiments.store.store import RecordStore

SPEC = """\
jobs: 2
memory: 1GB
cores: 4
processes: 2
walltime: 1-00:00:00
queue: short
directives: [--gres=gpu:1]
prologue:
  - module load cuda
"""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("queue", "queu"), "slurm.yaml:6: `key` (='queu') must be one of jobs, memory"),
        (("memory: 1GB", "memory: 1"), "slurm.yaml:2: `memory` (=1) must be a valid string"),
        (("1-00:00:00", "a day"), "slurm.yaml:5: `walltime` (='a day')"),
        (("jobs: 2", "jobs: 0"), "slurm.yaml:1: `jobs` (=0) must be greater"),
        (("memory: 1GB\n", ""), "`memory` is missing"),
        ((SPEC, "[]"), "a SLURM spec is a mapping with the keys jobs, memory"),
    ],
)
def test_mistakes(tmp_path, change, message):
    (tmp_path / "slurm.yaml").write_text(SPEC.replace(*change))
    with pytest.raises(InputError) as caught:
        SlurmSpec.load(tmp_path / "slurm.yaml")
    assert message in str(caught.value)


def test_no_such_file(tmp_path):
    with pytest.raises(InputError, match=r"`slurm` \(=.*\) cannot be read"):
        SlurmSpec.load(tmp_path / "none.yaml")


def test_the_job_script(tmp_path):
    (tmp_path / "slurm.yaml").write_text(SPEC)
    spec = SlurmSpec.load(tmp_path / "slurm.yaml")
    cluster = slurm_cluster(spec)
    try:
        script = cluster.job_script()
    finally:
        cluster.close()
    for line in ("#SBATCH -p short", "#SBATCH --cpus-per-task=4", "#SBATCH -t 1-00:00:00", "#SBATCH --gres=gpu:1"):
        assert line in script
    assert "export OMP_NUM_THREADS=2\n" in script
    assert "export DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False\n" in script
    assert script.index("module load cuda") < script.index("dask_worker")
    assert "--nworkers 2" in script
    assert script.rstrip().endswith("--nthreads 1")


def test_a_sweep_on_jobs(tmp_path, monkeypatch):
    """`sbatch` starts the script in the background; all else is as on a cluster."""
    tools = tmp_path / "bin"
    tools.mkdir()
    runs = f'cp "$1" {tmp_path}/job.sh\nsh {tmp_path}/job.sh > {tmp_path}/log 2>&1 &'
    sbatch = f'#!/bin/sh\n[ "$1" = --test-only ] && exit 0\n{runs}\necho "Submitted batch job $!"\n'
    (tools / "sbatch").write_text(sbatch)
    (tools / "scancel").write_text('#!/bin/sh\nkill "$1"\n')
    for one in tools.iterdir():
        one.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
    told = []
    spec = SlurmSpec(memory="1GB", interface="lo", local_directory=str(tmp_path))
    executor = slurm_workers(spec, tell=told.append)
    try:
        records = list(
            run_cells(
                [DryRunCell(draw=draw) for draw in range(4)],
                RecordStore(tmp_path / "r", DryRunRecord),
                executor=executor,
            )
        )
    finally:
        executor.close()
    assert len(records) == 4
    assert executor.described == "1 SLURM job"
    assert told in ([], ["no worker at the moment (1 SLURM job); waiting for one"])  # it may have come by then


@pytest.mark.parametrize(
    ("sbatch", "message"),
    [
        (None, r"`slurm`: `sbatch` does not run here \(.*\); go where jobs are submitted"),
        (
            "echo 'sbatch: error: invalid partition specified: fast' >&2; exit 1",
            r"refuses such a job \(sbatch: error: in",
        ),
    ],
)
def test_a_job_that_is_refused(tmp_path, monkeypatch, sbatch, message):
    if sbatch:
        (tmp_path / "sbatch").write_text(f"#!/bin/sh\n{sbatch}\n")
        (tmp_path / "sbatch").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin" if sbatch else str(tmp_path))
    with pytest.raises(InputError, match=message):
        slurm_workers(SlurmSpec(memory="1GB", interface="lo", local_directory=str(tmp_path)))
