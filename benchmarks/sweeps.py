"""Sweeps that are killed: python -m benchmarks.sweeps [kills] [cost] [many] [--quick] [--set-up NAME].

kills   200 cells, killed with SIGKILL at 20 random moments and resumed each time, in four set-ups; the records are
        compared with those of an undisturbed run.
cost    what the store and the scheduler add to a cell that does nothing, and what a second worker gains.
many    100,000 records: status, reading, exporting.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from benchmarks.reporting import header, table
from wordsens.experiments.dry_run.cell import KIND as DRY_RUN
from wordsens.experiments.dry_run.cell import DryRunCell, DryRunRecord
from wordsens.experiments.run.runner import run_cells
from wordsens.experiments.store.merge import result_columns
from wordsens.experiments.store.shard import as_table, read_shard
from wordsens.experiments.store.store import RecordStore

CELLS, KILLS = 200, 20
SPEC = """\
name: killed
kind: dry-run
grids:
  - draw: {{range: [0, {last}]}}
    work: {work}
    pause: {pause}
"""
ATTENTION = """\
name: attention
common: {{map: raf, text: gaussian, n: {n}, d: 384}}
grids:
  - draw: {{range: [0, {last}]}}
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the parts that were asked for; 1 when a part did not show what it must."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", choices=["kills", "cost", "many", []], default=[])
    parser.add_argument("--quick", action="store_true", help="40 cells and 4 kills; 2,000 records")
    parser.add_argument("--set-up", choices=_SET_UPS, action="append", help="of kills: only this one; again for more")
    given = parser.parse_args(arguments)
    parts = given.parts or ["kills", "cost", "many"]
    print(header("Sweeps that survive"))
    with tempfile.TemporaryDirectory(prefix="wordsens-sweeps-") as folder:
        good = [
            show_kills(Path(folder), given.quick, given.set_up or list(_SET_UPS))
            if part == "kills"
            else _PARTS[part](Path(folder), given.quick)
            for part in parts
        ]
    return 0 if all(good) else 1


def show_kills(folder: Path, quick: bool, set_ups: Sequence[str]) -> bool:
    """Kill and resume in every set-up, and compare."""
    cells, kills = (40, 4) if quick else (CELLS, KILLS)
    spec = folder / "killed.yaml"
    spec.write_text(SPEC.format(last=cells - 1, work=20, pause=0.15))
    undisturbed = folder / "undisturbed"
    _finish(spec, undisturbed, "pause=0.0")
    expected = results(undisturbed)
    rows, good = [], True
    for short in set_ups:
        name, set_up = _SET_UPS[short]
        out = folder / short
        begin = time.perf_counter()
        with set_up(folder) as (options, workers):
            # So that the moments lie all over the run, which would take half a minute.
            told = _killed(spec, out, options, workers, kills, longest=1.0 if quick else 2.0)
        found = results(out)
        same = found == expected
        good = good and same and len(found) == cells and told["parent"] + told["worker"] == kills
        rows.append(
            [
                name,
                str(told["parent"]),
                str(told["worker"]),
                f"{told['done'][0]} to {told['done'][-1]}" if told["done"] else "-",
                str(len(found)),
                "yes" if same else "NO",
                f"{time.perf_counter() - begin:.0f} s",
            ]
        )
    print(
        table(
            f"{cells} cells killed with SIGKILL at {kills} random moments (seed 0)",
            [
                "set-up",
                "parent killed",
                "worker killed",
                "records after a kill",
                "records",
                "bit-identical",
                "wall clock",
            ],
            rows,
        )
    )
    return good


def _killed(
    spec: Path,
    out: Path,
    options: list[str],
    workers: Callable[[int], list[int]],
    kills: int,
    longest: float = 1.0,
) -> dict[str, Any]:
    """Start the sweep, kill the parent or one of its workers at a random moment, again and again, then let it end."""
    moments = random.Random(0)
    told: dict[str, Any] = {"parent": 0, "worker": 0, "done": []}
    process = _start(spec, out, options)
    for kill in range(kills):
        _let_it_work(out, process, moments.uniform(0.0, longest))
        if process.poll() is not None:
            break
        victims = workers(process.pid)
        if kill % 2 and victims:
            _kill(moments.choice(victims))
            told["worker"] += 1
        else:
            _kill(process.pid)
            process.wait()
            if process.stderr is not None:
                process.stderr.close()
            told["parent"] += 1
            process = _start(spec, out, options)
        told["done"].append(_files(out))
    _, said = process.communicate(timeout=600)
    if process.returncode != 0:
        raise SystemExit(f"the last run failed: {said.decode()}")
    return told


def _let_it_work(out: Path, process: "subprocess.Popen[bytes]", seconds: float) -> None:
    """Wait until the run has written something, then a little more; at once when it ended by itself."""
    before, begin = _files(out), time.monotonic()
    while process.poll() is None and _files(out) == before and time.monotonic() - begin < 60:
        time.sleep(0.01)
    if process.poll() is None:
        time.sleep(seconds)


def _files(out: Path) -> int:
    return len(list(out.glob("dry-run-records/*.parquet")))


def _command(spec: Path, out: Path, options: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "wordsens", "sweep", "run", str(spec), *options, "--out", str(out), "--quiet"]


def _start(spec: Path, out: Path, options: list[str]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(_command(spec, out, options), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def _finish(spec: Path, out: Path, *options: str) -> None:
    subprocess.run(_command(spec, out, options), check=True, stdout=subprocess.DEVNULL)


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def results(out: Path) -> dict[str, tuple[Any, ...]]:
    """What each cell gave, bit for bit, without what only says how it was made. Twice the same cell is an error."""
    store = RecordStore(out / "dry-run-records", DryRunRecord, read_only=True)
    records = store.read()
    rows = sum(read_shard(path, DryRunRecord).num_rows for path in store.folder.glob("*.parquet"))
    if rows != len(records):
        raise SystemExit(f"{rows - len(records)} records stand twice in {out}")
    names = result_columns(DryRunRecord)
    return {record.cell: tuple(_bits(getattr(record, name)) for name in names) for record in records}


def _bits(value: Any) -> Any:
    return value.hex() if isinstance(value, float) else value


@contextmanager
def _nothing(folder: Path) -> Iterator[tuple[list[str], Callable[[int], list[int]]]]:
    yield [], lambda pid: []


@contextmanager
def _local(folder: Path) -> Iterator[tuple[list[str], Callable[[int], list[int]]]]:
    yield (
        ["pause=0.3", "--workers", "2"],
        lambda pid: [child for child in children(pid) if "spawn_main" in _command_line(child)],
    )


@contextmanager
def _lone(folder: Path) -> Iterator[tuple[list[str], Callable[[int], list[int]]]]:
    """A scheduler and two workers, of which one is killed for good: the run goes on with the other."""
    with _remote(folder, replaced=False) as given:
        yield given


@contextmanager
def _remote(folder: Path, *, replaced: bool = True) -> Iterator[tuple[list[str], Callable[[int], list[int]]]]:
    """A scheduler and two workers of their own; a worker that was killed is replaced, as a cluster would, or not."""
    address = folder / f"scheduler-{random.Random().randrange(10**9)}.json"
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
    dask = [sys.executable, "-m", "dask"]
    scheduler = subprocess.Popen(
        [*dask, "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(address), "--no-dashboard"],
        **quiet,
    )
    held: list[subprocess.Popen[Any]] = []

    def worker() -> None:
        arguments = [
            "worker",
            "--scheduler-file",
            str(address),
            "--nthreads",
            "1",
            "--host",
            "127.0.0.1",
            "--no-dashboard",
        ]
        # Without its nanny a worker is one process, which SIGKILL ends at once and nobody starts again.
        held.append(subprocess.Popen([*dask, *arguments, *([] if replaced else ["--no-nanny"])], **quiet))

    def alive(pid: int) -> list[int]:
        if not replaced:
            left = [one.pid for one in held if one.poll() is None]
            return left if len(left) == 2 else []
        for one in [one for one in held if one.poll() is not None]:
            held.remove(one)
            worker()
        return [one.pid for one in held]

    try:
        worker()
        worker()
        while not address.is_file():
            time.sleep(0.05)
        yield ["pause=0.3", "--scheduler", str(address)], alive
        if not replaced and sum(one.poll() is None for one in held) != 1:
            raise SystemExit("one worker was to be left at the end")
    finally:
        _end([*held, scheduler])


def _end(processes: Sequence["subprocess.Popen[Any]"], patience: float = 10.0) -> None:
    """Ask them to stop, then make them: of 21 dask workers told at their start, 3 never ended."""
    for one in processes:
        one.terminate()
    deadline = time.monotonic() + patience
    for one in processes:
        try:
            one.wait(max(deadline - time.monotonic(), 0.0))
        except subprocess.TimeoutExpired:
            one.kill()
            one.wait()


def children(pid: int) -> list[int]:
    """The processes that a process has started, from /proc."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(path.parent.name))
    return found


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def show_cost(folder: Path, quick: bool) -> bool:
    """Overheads of cells that do nothing, and what a second worker gains: of cells alone, and of a whole command."""
    count = 100 if quick else 1000
    idle = [DryRunCell(draw=draw) for draw in range(count)]
    alone, pair = (_run(folder, idle, workers) / count * 1e3 for workers in (0, 2))
    rows = [
        ["in process", str(count), f"{alone:.2f} ms", "15 ms"],
        ["LocalCluster, 2 workers", str(count), f"{pair:.2f} ms", "40 ms"],
    ]
    print(table("A cell that does nothing: store and scheduler", ["set-up", "cells", "a cell", "at most"], rows))
    busy = [DryRunCell(draw=draw, work=500 if not quick else 50) for draw in range(60)]
    spec, cells, n = folder / "attention.yaml", 4 if quick else 16, 10 if quick else 100
    spec.write_text(ATTENTION.format(last=cells - 1, n=n))
    rows, shares = [], []
    whole = f"`sweep run`, {cells} cells of attention, n = {n}, start included"
    for what, times, seconds in (
        ("60 cells that hash, workers up", 1 if quick else 3, lambda workers: _run(folder, busy, workers)),
        (whole, 1, lambda workers: _whole(folder, spec, workers)),
    ):
        # They take turns, so that a busy moment of the machine falls on both.
        rounds = [(seconds(1), seconds(2)) for _ in range(times)]
        one, two = map(min, zip(*rounds, strict=True))
        shares.append(two / one)
        rows.append([what, f"{one:.2f} s", f"{two:.2f} s", f"{two / one:.3f}", ".65"])
    print(
        table(
            "Cells that compute (hashing: the least of three times)",
            ["what", "one worker", "two", "of one's", "at most"],
            rows,
        )
    )
    return quick or (alone <= 15 and pair <= 40 and max(shares) <= 0.65)


def _whole(folder: Path, spec: Path, workers: int) -> float:
    """Seconds of the whole command, into a folder of its own."""
    begin = time.perf_counter()
    _finish(spec, Path(tempfile.mkdtemp(dir=folder)), "--workers", str(workers))
    return time.perf_counter() - begin


def _run(folder: Path, cells: Sequence[DryRunCell], workers: int) -> float:
    """Seconds from the first cell to the last record on disk; the workers are up before."""
    store = RecordStore(Path(tempfile.mkdtemp(dir=folder)), DryRunRecord)
    if workers == 0:
        begin = time.perf_counter()
        list(run_cells(cells, store))
        return time.perf_counter() - begin
    from wordsens.experiments.run.cluster import local_workers

    executor = local_workers(workers)
    try:
        warm = RecordStore(Path(tempfile.mkdtemp(dir=folder)), DryRunRecord)
        list(
            run_cells(
                [DryRunCell(draw=10**6 + draw, pause=0.2) for draw in range(4 * workers)], warm, executor=executor
            )
        )
        begin = time.perf_counter()
        list(run_cells(cells, store, executor=executor))
        return time.perf_counter() - begin
    finally:
        executor.close()


def show_many(folder: Path, quick: bool) -> bool:
    """A store of 100,000 records: most in files of a thousand, as a run leaves them, the last ones alone."""
    count = 2_000 if quick else 100_000
    out = folder / "many"
    spec = folder / "many.yaml"
    spec.write_text(SPEC.format(last=count - 1, work=0, pause=0.0))
    store = RecordStore(out / "dry-run-records", DryRunRecord)
    begin = time.perf_counter()
    loose = count - count % 1000 - 500
    for first in range(0, loose, 1000):
        draws = range(first, min(first + 1000, loose))
        store.add_table(as_table([DRY_RUN.attempt(DryRunCell(draw=draw)) for draw in draws], DryRunRecord))
    for draw in range(loose, count):
        store.write(DRY_RUN.attempt(DryRunCell(draw=draw)))
    shutil.copy(spec, out / "sweep.yaml")
    print(f"\n{count:,} records written in {time.perf_counter() - begin:.0f} s: {_files(out)} files")
    rows, good = [], True
    reading = (
        "import sys; from wordsens.experiments.store.store import RecordStore; "
        "from wordsens.experiments.dry_run.cell import *; "
        f"assert len(RecordStore(sys.argv[1], DryRunRecord, read_only=True).to_pandas()) == {count}"
    )
    cli = [sys.executable, "-m", "wordsens", "sweep"]
    for name, command in (
        ("status", [*cli, "status", str(out)]),
        ("reading (to_pandas)", [sys.executable, "-c", reading, str(out / "dry-run-records")]),
        ("export to CSV", [*cli, "export", str(out), str(folder / "many.csv")]),
        ("export to Parquet", [*cli, "export", str(out), str(folder / "many.parquet")]),
    ):
        seconds, memory = _measured(command)
        good = good and (quick or (seconds < 10 and memory < 1000))
        rows.append([name, f"{seconds:.1f} s", f"{memory:.0f} MB"])
    print(table(f"{count:,} records", ["command", "wall clock (at most 10 s)", "peak memory (at most 1 GB)"], rows))
    return good


def _measured(command: Sequence[str]) -> tuple[float, float]:
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, code, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(code)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed")
    return time.perf_counter() - begin, usage.ru_maxrss * 1024 / 1e6


_SET_UPS: dict[str, tuple[str, Any]] = {
    "process": ("in process", _nothing),
    "local": ("LocalCluster, 2 workers", _local),
    "remote": ("dask scheduler + 2 dask workers", _remote),
    "lone": ("dask scheduler + 2 dask workers, one killed for good", _lone),
}
_PARTS: dict[str, Callable[[Path, bool], bool]] = {"cost": show_cost, "many": show_many}

if __name__ == "__main__":
    sys.exit(main())
