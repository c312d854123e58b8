"""The only loop: here, on workers, on a scheduler; stopped, killed, resumed."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

import wordsens as ws
from tests.made_records import CELLS
from tests.sweeps.squares import GroupedCell, SquareCell, squares
from wordsens.errors import WordsensError
from wordsens.sweeps import STUDIES
from wordsens.sweeps import run as runner
from wordsens.sweeps.run import run, unfinished
from wordsens.sweeps.store import FILE, Store
from wordsens.sweeps.study import Study
from wordsens.sweeps.sweep import study_named

ROOT = Path(__file__).parents[2]
OF_THE_RUN = (
    "seconds",
    "started",
    "process",
    "threads",
    "fit_seconds",
    "cpu_seconds",
    "together",
)
SPECS = {
    name: f"name: squares\nexperiment: {kind.experiment}\ngrids: [{{draw: {list(range(12))}, "
    f"pause: 0.05}}]\n"
    for name, kind in (("squares", SquareCell), ("grouped", GroupedCell))
}


def results(store):
    """What the cells decide, whoever measured them."""
    records = sorted(store.rows(), key=lambda record: record["cell"])
    return [
        {name: value for name, value in record.items() if name not in OF_THE_RUN}
        for record in records
    ]


def test_cells_are_measured_once_and_failures_again(tmp_path):
    cells = [*squares(3), SquareCell.parse({"fails": True})]
    with Store(tmp_path) as store:
        assert [record["status"] for record in run(cells, store)] == [
            "done",
            "done",
            "done",
            "failed",
        ]
        assert unfinished(cells, store) == cells[3:]
        assert store.rows()[3]["error"] == "ValueError: it was told to"
        assert [record["status"] for record in run(cells, store)] == ["failed"]
        assert len(unfinished(cells, store, witnesses=True)) == 4
        list(run(cells, store, witnesses=True))
        assert store.arrays(cells[2].key())["root"].tolist() == [2]
        assert unfinished(cells, store, witnesses=True) == cells[3:]


@pytest.mark.parametrize("workers", [None, 1])
def test_a_cell_that_calls_sys_exit_fails_alone(tmp_path, workers):
    with Store(tmp_path) as store:
        records = list(
            run([SquareCell.parse({"exits": True}), *squares(2)], store, workers=workers)
        )
    assert sorted(record["error"] or "" for record in records) == ["", "", "SystemExit: no message"]


def test_cells_of_a_group_are_measured_together_and_one_that_fails_alone(tmp_path):
    cells = [GroupedCell.parse({"draw": draw, "fails": draw == 5}) for draw in range(8)]
    with Store(tmp_path) as store:
        records = {record["draw"]: record for record in run(cells, store)}
    assert [records[draw]["error"] for draw in (1, 5)] == [None, "ValueError: it was told to"]
    # 0 to 2; 3; 4 to 6, of which 5 fails, so each by itself; 7.
    together = [draw for draw, record in records.items() if "together" in record]
    assert sorted(together) == [0, 1, 2]
    assert all(
        record["value"] == draw**2 for draw, record in records.items() if record["status"] == "done"
    )


def test_an_interrupt_leaves_what_was_yielded(tmp_path):
    cells = squares(5)
    with Store(tmp_path) as store:
        with closing(run(cells, store)) as records:
            next(records)
            next(records)
        assert unfinished(cells, store) == cells[2:]


def test_another_version_of_the_code_measures_again(tmp_path, monkeypatch):
    with Store(tmp_path) as store:
        list(run(squares(2), store))
        for module in ("spec", "run"):
            monkeypatch.setattr(f"wordsens.sweeps.{module}.code_version", lambda cell: "newer")
        assert len(unfinished(squares(2), store)) == 2
        list(run(squares(1), store))
        assert [record["code"] for record in store.rows()] == ["newer"]


def _with_tuples(value):
    """As a store gives it back: lists as tuples."""
    if isinstance(value, dict):
        return {name: _with_tuples(part) for name, part in value.items()}
    return tuple(map(_with_tuples, value)) if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("name", STUDIES)
def test_every_experiment_goes_to_the_store_to_a_frame_and_back(name, tmp_path):
    cell = study_named(name).Cell.parse(CELLS[name])
    with Store(tmp_path) as store:
        (record,) = run([cell], store)
        assert record["error"] is None
        (stored,) = store.rows()
        assert {name: stored[name] for name in record} == _with_tuples(record)
    frame = ws.read_records(tmp_path)
    assert frame["value"].tolist() == [record["value"]]
    if study_named(name).tables is not None:
        assert r"\begin{tabular}" in ws.summarize(frame).table().to_latex()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_no_finite_number_is_a_failure(value):
    study = Study(name="x", Cell=SquareCell, measure=lambda cell: {"value": value})
    with pytest.raises(WordsensError, match="is no finite number"):
        runner.measured(study, squares(1))


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder with the specs of twelve squares, and the records when nothing disturbs it."""
    folder = tmp_path_factory.mktemp("runs")
    for name, spec in SPECS.items():
        (folder / f"{name}.yaml").write_text(spec)
        ws.run_sweep(folder / f"{name}.yaml", folder / name, ["pause=0.0"])
    return folder


def command(folder, *options, spec="squares", first="", **more):
    environment = {**os.environ, "PYTHONPATH": f"{first}{ROOT}{os.pathsep}{ROOT / 'src'}"}
    words = [
        sys.executable,
        "-m",
        "wordsens",
        "sweep",
        "run",
        str(folder / f"{spec}.yaml"),
        *options,
    ]
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **more
    )


def wait_for(folder, count, process=None):
    """Until so many cells are in the database."""
    begin = time.monotonic()
    while time.monotonic() - begin < 60:
        if (folder / FILE).exists():
            with closing(sqlite3.connect(f"file:{folder / FILE}?mode=ro", uri=True)) as connection:
                try:
                    if connection.execute("SELECT COUNT(*) FROM cells").fetchone()[0] >= count:
                        return
                except sqlite3.OperationalError:  # the tables are not there yet
                    pass
        time.sleep(0.01)
    raise AssertionError(f"no {count} cells in a minute: {process and process.communicate()}")


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("workers", [(), pytest.param(("--workers", "2"), marks=pytest.mark.slow)])
def test_a_run_that_is_killed_again_and_again_ends_with_the_same_records(
    here, tmp_path, workers, spec
):
    options = ("--out", str(tmp_path / "out"), "--quiet", *workers)
    for count in (1, 4, 8):
        process = command(here, *options, spec=spec, start_new_session=True)
        wait_for(tmp_path / "out", count, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    process = command(here, *options, spec=spec)
    _, err = process.communicate()
    assert process.returncode == 0, err
    with (
        Store(tmp_path / "out", read_only=True) as store,
        Store(here / spec, read_only=True) as whole,
    ):
        assert store._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert len(store.rows()) == 12
        assert results(store) == results(whole)


STARTING = """import os, pathlib, sys, time
folder = pathlib.Path(__file__).parent
if "--multiprocessing-fork" in sys.orig_argv:
    (folder / f"{os.getpid()}.begun").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
"""
"""A worker that starts waits here, before it has read a line of ours, until it may go on."""


@pytest.mark.parametrize("where", ["starting", "measuring"])
@pytest.mark.parametrize(("sign", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_stop_a_run_and_its_workers_cleanly(here, tmp_path, sign, code, where):
    # A shell without job control has its background commands, this test among them, ignore Ctrl-C.
    usual = {
        "preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        "start_new_session": True,
    }
    if where == "starting":
        (tmp_path / "sitecustomize.py").write_text(STARTING)
    out = tmp_path / "out"
    waits = f"waits={tmp_path}"
    process = command(
        here, waits, "--out", str(out), "--workers", "2", first=f"{tmp_path}{os.pathsep}", **usual
    )
    finished = 4 if where == "measuring" else 0
    wait_for(out, finished, process)
    while len(list(tmp_path.glob("*.begun"))) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    os.killpg(process.pid, sign)  # as a terminal does for Ctrl-C: to the workers too
    (tmp_path / "go").touch()
    said, err = process.communicate(timeout=60)
    assert (process.returncode, said) == (code, ""), err
    with Store(out, read_only=True) as store:
        assert len(store.rows()) == finished
    assert f"interrupted: {finished} of 12 cells are finished in {out}" in err
    assert "run the same command to continue" in err
    assert "Traceback" not in err


@contextmanager
def scheduler(folder, workers):
    """A scheduler on the loopback interface with worker processes of its own; gives its address and
    the workers."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"}
    file = folder / "scheduler.json"
    start = [
        sys.executable,
        "-m",
        "distributed.cli.dask_scheduler",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
    ]
    start += ["--scheduler-file", str(file), "--no-dashboard"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    processes = [subprocess.Popen(start, **quiet)]
    worker = [
        sys.executable,
        "-m",
        "distributed.cli.dask_worker",
        "--scheduler-file",
        str(file),
        "--nthreads",
        "1",
    ]
    worker += [
        "--no-dashboard",
        "--no-nanny",
        "--host",
        "127.0.0.1",
        "--local-directory",
        str(folder),
    ]
    processes += [subprocess.Popen(worker, **quiet) for _ in range(workers)]
    try:
        begin = time.monotonic()
        while not file.exists() and time.monotonic() - begin < 30:
            time.sleep(0.05)
        yield file, processes
    finally:
        for process in reversed(processes):
            process.kill()
            process.wait()


def test_a_scheduler_whose_worker_is_killed_gives_all_cells(here, tmp_path):
    with (
        scheduler(tmp_path, workers=2) as (address, (_, worker, _other)),
        Store(tmp_path / "out") as store,
    ):
        cells = squares(12, pause=0.05)
        for at, record in enumerate(run(cells, store, scheduler=str(address))):
            assert record["status"] == "done", record["error"]
            if at == 2:
                worker.kill()
        with Store(here / "squares", read_only=True) as whole:
            assert results(store) == results(whole)


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_cell_that_kills_its_workers_is_given_up_and_the_others_come(tmp_path, workers):
    kills = [SquareCell.parse({"draw": draw, "kills": True}) for draw in (5, 6)]
    once = SquareCell.parse({"draw": 3, "kills_once": str(tmp_path / "died")})
    with Store(tmp_path) as store:
        records = list(run([kills[0], *squares(2), once, kills[1]], store, workers=workers))
        assert len(records) == len(store.rows()) == 5
    failed = [record for record in records if record["status"] == "failed"]
    assert sorted(record["draw"] for record in failed) == [5, 6]
    assert all("its worker died each time it was run" in record["error"] for record in failed)
    assert sorted(record["value"] for record in records if record["status"] == "done") == [0, 1, 9]


@pytest.mark.parametrize("name", ["generalization", "correlations"])
def test_workers_give_the_records_of_this_process_bit_for_bit(tmp_path, name):
    cells = [study_named(name).Cell.parse({**CELLS[name], "draw": draw}) for draw in (0, 1)]
    with Store(tmp_path / "here") as here, Store(tmp_path / "there") as there:
        assert all(record["status"] == "done" for record in run(cells, here, threads=1))
        assert all(record["status"] == "done" for record in run(cells, there, workers=1, threads=1))
        assert results(here) == results(there)
