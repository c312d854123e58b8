"""Workers as SLURM jobs, through dask-jobqueue."""

import logging
import subprocess
import tempfile
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from wordsens.errors import InputError, MissingExtraError
from wordsens.experiments.grid.strict_model import StrictModel
from wordsens.experiments.grid.yaml_text import read_yaml
from wordsens.experiments.run.cluster import DaskExecutor, on_cluster
from wordsens.experiments.run.executor import Tell
from wordsens.files import named_path, small_text


class SlurmSpec(StrictModel):
    """A request to SLURM. One job is one node's share; it holds `processes` workers, each with one cell at a time.

    Attributes:
        jobs: how many jobs to submit. They may start at different times, and end: the sweep goes on with the others.
        memory: of a job, as `16GB`.
        walltime: of a job, as `04:00:00`.
        queue: the partition.
        account: who pays.
        cores: CPUs of a job; each worker gets cores / processes of them for torch.
        processes: workers of a job.
        directives: further #SBATCH lines, as `--gres=gpu:1`.
        prologue: shell lines before the worker starts, as `module load cuda`.
        python: the interpreter on the nodes; None for this one.
        interface: the network interface, as `ib0`.
        local_directory: for Dask's own files.
        log_directory: for the jobs' output.
    """

    jobs: Annotated[int, Field(ge=1)] = 1
    memory: Annotated[str, Field(min_length=1)]
    walltime: Annotated[str, Field(pattern=r"^(\d+-)?\d+(:\d\d){1,2}$")] = "01:00:00"
    queue: str | None = None
    account: str | None = None
    cores: Annotated[int, Field(ge=1)] = 1
    processes: Annotated[int, Field(ge=1)] = 1
    directives: Annotated[tuple[str, ...], Field(strict=False)] = ()
    prologue: Annotated[tuple[str, ...], Field(strict=False)] = ()
    python: str | None = None
    interface: str | None = None
    local_directory: str | None = None
    log_directory: str | None = None

    @property
    def threads(self) -> int:
        """CPU threads of a worker."""
        return max(1, self.cores // self.processes)

    @classmethod
    def load(cls, path: str | Path) -> "SlurmSpec":
        """The spec in a YAML file; InputError with the line where it is none."""
        placed = read_yaml(small_text(named_path("slurm", path, home=False), "slurm"), where=str(path))
        if not isinstance(placed.data, dict):
            raise InputError(f"{path}: a SLURM spec is a mapping with the keys {', '.join(cls.model_fields)}")
        return cls.parse(placed.data, where=placed.at)


def slurm_cluster(spec: SlurmSpec) -> Any:
    """The dask-jobqueue cluster of the spec, with no job submitted yet.

    Raises:
        MissingExtraError: dask-jobqueue is not installed.
    """
    try:
        from dask_jobqueue.slurm import SLURMCluster
    except ImportError as error:
        raise MissingExtraError("dask-jobqueue", "cluster", "a SLURM cluster") from error
    optional: dict[str, Any] = {
        "queue": spec.queue,
        "account": spec.account,
        "python": spec.python,
        "interface": spec.interface,
        "local_directory": spec.local_directory,
        "log_directory": spec.log_directory,
    }
    return SLURMCluster(
        cores=spec.cores,
        processes=spec.processes,
        memory=spec.memory,
        walltime=spec.walltime,
        job_extra_directives=list(spec.directives),
        job_script_prologue=[
            *(f"export {name}={spec.threads}" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")),
            "export DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False",
            *spec.prologue,
        ],
        worker_extra_args=["--nthreads", "1"],
        scheduler_options={"dashboard_address": ":0"},
        **{name: value for name, value in optional.items() if value is not None},
    )


def slurm_workers(spec: SlurmSpec, *, tell: Tell = lambda line: None) -> DaskExecutor:
    """Submit the jobs and run cells on their workers, as they come.

    Raises:
        InputError: there is no SLURM here, or it refuses such a job.
    """
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    cluster = slurm_cluster(spec)
    try:
        _require_accepted(cluster.job_script())
    except InputError:
        cluster.close()
        raise
    cluster.scale(jobs=spec.jobs)
    return on_cluster(cluster, f"{spec.jobs} SLURM {'job' if spec.jobs == 1 else 'jobs'}", tell=tell)


def _require_accepted(script: str) -> None:
    """Refuse a job that SLURM would: dask-jobqueue would wait for it for ever."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "job.sh"
        path.write_text(script, encoding="utf-8")
        try:
            tried = subprocess.run(
                ["sbatch", "--test-only", str(path)], capture_output=True, text=True, timeout=60, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise InputError(f"`slurm`: `sbatch` does not run here ({error}); go where jobs are submitted") from error
    if tried.returncode:
        said = "; ".join(line.strip() for line in tried.stderr.splitlines() if line.strip())
        raise InputError(f"`slurm`: SLURM refuses such a job ({said}); change the file")
