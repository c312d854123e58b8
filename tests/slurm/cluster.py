"""A SLURM of one machine, started for a test and ended with it: munged, slurmctld and slurmd under a folder."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")

_CONFIGURATION = """\
ClusterName=wordsens
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CryptoType=crypto/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SchedulerType=sched/builtin
SchedulerParameters=sched_interval=2,batch_sched_delay=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=4000 State=UNKNOWN
PartitionName=test Nodes={host} Default=YES MaxTime=60 State=UP
"""


def missing() -> str:
    """The reason why no SLURM can be started here; empty where one can."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "a SLURM of one's own needs root"
    absent = [name for name in PROGRAMS if shutil.which(name, path=_path()) is None]
    return f"no {', '.join(absent)}: apt-get install slurm-wlm munge" if absent else ""


def _path() -> str:
    return f"{os.environ['PATH']}:/usr/sbin:/sbin"


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Slurm:
    """One machine that calls itself four processors."""

    def __init__(self, folder: Path):
        self.folder, self._processes = folder, {}
        for name in ("state", "spool"):
            (folder / name).mkdir()
        host = socket.gethostname().split(".")[0]
        told = {"host": host, "folder": folder, "controller_port": _free_port(), "node_port": _free_port()}
        (folder / "slurm.conf").write_text(_CONFIGURATION.format(**told), encoding="utf-8")
        (folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n", encoding="utf-8")
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        self.environment = {**os.environ, "PATH": _path(), "SLURM_CONF": str(folder / "slurm.conf")}
        self._start(
            "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={folder}/munge.socket",
            f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed",
        )  # fmt: skip
        self._until(lambda: (folder / "munge.socket").exists(), "munged")
        self.start_controller()
        self._start("slurmd", "-D", "-f", str(folder / "slurm.conf"))
        self._until(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"), "slurmd")

    def start_controller(self) -> None:
        """The controller runs; it finds the jobs of the one before it."""
        self._start("slurmctld", "-D", "-f", str(self.folder / "slurm.conf"))
        self._until(lambda: "UP" in self.ask("scontrol", "ping"), "slurmctld")

    def kill_controller(self) -> None:
        """The controller is gone, without a word to anyone."""
        self._processes["slurmctld"].kill()
        self._processes.pop("slurmctld").wait()

    def ask(self, *words: str) -> str:
        """The output of a SLURM command."""
        asked = subprocess.run(words, env=self.environment, capture_output=True, text=True, timeout=60, check=False)
        return asked.stdout

    def jobs(self, state: str = "all") -> list[str]:
        """The numbers of the jobs that are in a state."""
        return self.ask("squeue", "-h", "-o", "%A", "-t", state).split()

    def close(self) -> None:
        """End every job and every process."""
        self.ask("scancel", "--user=root", "--signal=KILL")
        for name in ("slurmd", "slurmctld", "munged"):
            if process := self._processes.get(name):
                process.terminate()
                try:
                    process.wait(timeout=20)
                except subprocess.TimeoutExpired:
                    process.kill()

    def _start(self, *words: str) -> None:
        with (self.folder / f"{words[0]}.out").open("ab") as out:
            self._processes[words[0]] = subprocess.Popen(words, env=self.environment, stdout=out, stderr=out)

    def _until(self, done, name: str) -> None:
        end = time.monotonic() + 60
        while not done():
            assert time.monotonic() < end, (self.folder / f"{name}.out").read_text(encoding="utf-8")
            assert self._processes[name].poll() is None, (self.folder / f"{name}.out").read_text(encoding="utf-8")
            time.sleep(0.2)
