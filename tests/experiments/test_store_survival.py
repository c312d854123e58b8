"""A store that is brought together, shared, filled up, killed and damaged."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from wordsens.experiments.dry_run.cell import KIND as DRY_RUN
from wordsens.experiments.dry_run.cell import DryRunCell, DryRunRecord
from wordsens.experiments.run.runner import run_cells, unfinished
from wordsens.experiments.run.state import RunState, current_run
from wordsens.experiments.run.task import Job
from wordsens.experiments.sensitivity.record import SensitivityRecord
from wordsens.experiments.sensitivity.spec import SensitivityCell
from wordsens.experiments.store import store as store_module
from wordsens.experiments.store.lock import LOCK, BusyStoreError, is_locked
from wordsens.experiments.store.merge import merge_into
from wordsens.experiments.store.shard import StoreError, write_whole
from wordsens.experiments.store.store import RecordStore
from wordsens.experiments.store.witness import packed_witness, read_witness

CELLS = [DryRunCell(draw=draw) for draw in range(12)]
RECORDS = [DRY_RUN.attempt(cell) for cell in CELLS]
EXPECTED = sorted(RECORDS, key=lambda record: record.cell)


def opened(folder, **options):
    reports = []
    return RecordStore(folder, DryRunRecord, on_set_aside=reports.append, **options), reports


def test_files_are_brought_together_when_there_are_many(tmp_path, monkeypatch):
    monkeypatch.setattr(store_module, "COMPACT_AT", 4)
    store, _ = opened(tmp_path)
    for record in RECORDS:
        store.write(record)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert sum(name.startswith("many-") for name in names) == 2
    assert len(names) == 2 + 2
    assert store.read() == EXPECTED
    assert store.read([RECORDS[3].cell]) == [RECORDS[3]]
    assert unfinished(CELLS, store) == []


def test_whenever_bringing_together_is_stopped_nothing_is_lost_or_twice(tmp_path, monkeypatch):
    store, _ = opened(tmp_path)
    for record in RECORDS:
        store.write(record)
    unlink = os.unlink
    left = [3]

    def dies(path, *rest, **named):
        if str(path).endswith(".parquet"):
            left[0] -= 1
            if left[0] < 0:
                raise KeyboardInterrupt
        return unlink(path, *rest, **named)

    monkeypatch.setattr(os, "unlink", dies)
    with pytest.raises(KeyboardInterrupt):
        store.compact()
    monkeypatch.undo()
    assert len(list(tmp_path.glob("*.parquet"))) == 1 + len(RECORDS) - 3
    assert store.read() == EXPECTED
    assert store.compact() == len(RECORDS) - 3
    assert store.read() == EXPECTED


def test_a_failure_brought_together_gives_way_to_a_value(tmp_path):
    store, _ = opened(tmp_path)
    failed = replace(RECORDS[0], status="failed", value=None, error="x")
    store.write(failed)
    store.write(RECORDS[1])
    store.compact()
    assert unfinished(CELLS[:2], store) == [CELLS[0]]
    store.write(RECORDS[0])
    store.compact()
    assert store.read() == sorted(RECORDS[:2], key=lambda record: record.cell)


def test_a_reader_keeps_up_with_a_run_that_brings_files_together(tmp_path, monkeypatch):
    store, _ = opened(tmp_path)
    for record in RECORDS:
        store.write(record)
    reader, reports = opened(tmp_path, read_only=True)
    read, seen = store_module.read_shard, []

    def slow(path, *rest, **named):
        if not seen:
            seen.append(path)
            store.compact()
        return read(path, *rest, **named)

    monkeypatch.setattr(store_module, "read_shard", slow)
    assert reader.read() == EXPECTED
    assert reports == []


def test_a_damaged_file_of_many_is_set_aside_and_its_cells_are_measured_again(tmp_path):
    store, reports = opened(tmp_path)
    for record in RECORDS:
        store.write(record)
    store.compact()
    (many,) = tmp_path.glob("many-*.parquet")
    many.write_bytes(many.read_bytes()[:-100])
    left = unfinished(CELLS, store)
    assert left == CELLS
    assert "is not a whole Parquet file" in str(reports[0])
    list(run_cells(left, store))
    assert {one.cell: one.value for one in store.read()} == {one.cell: one.value for one in RECORDS}


def test_a_shard_of_another_spec_or_kind_is_set_aside_and_measured_again(tmp_path):
    store, reports = opened(tmp_path)
    for record in RECORDS[:3]:
        store.write(record)
    (tmp_path / f"{RECORDS[0].cell}.parquet").write_bytes((tmp_path / f"{RECORDS[1].cell}.parquet").read_bytes())
    sensitivity = SensitivityCell.parse({"map": "raf", "n": 3, "d": 4, "text": "gaussian", "steps": 2})
    other = RecordStore(tmp_path / "other", SensitivityRecord)
    (made,) = run_cells([sensitivity], other)
    (tmp_path / f"{RECORDS[2].cell}.parquet").write_bytes((other.folder / f"{made.cell}.parquet").read_bytes())
    assert unfinished(CELLS[:3], store) == [CELLS[0], CELLS[2]]
    told = " ".join(map(str, reports))
    assert "does not hold the one cell that its name says" in told
    assert "its table has no column" in told


def test_read_only_moves_nothing(tmp_path):
    store, _ = opened(tmp_path)
    store.write(RECORDS[0])
    path = tmp_path / f"{RECORDS[1].cell}.parquet"
    path.write_bytes(b"garbage")
    reader, reports = opened(tmp_path, read_only=True)
    assert reader.read() == RECORDS[:1]
    assert str(reports[0]).endswith("left where it is, not read")
    assert path.read_bytes() == b"garbage"
    missing, _ = opened(tmp_path / "none", read_only=True)
    assert missing.read() == []
    assert not (tmp_path / "none").exists()


def test_the_table_for_pandas(tmp_path):
    store, _ = opened(tmp_path)
    for record in RECORDS:
        store.write(record)
    frame = store.to_pandas()
    assert list(frame["cell"]) == [record.cell for record in EXPECTED]
    assert list(frame["value"]) == [record.value for record in EXPECTED]


HOLD = """
import sys, time
from wordsens.experiments.dry_run.cell import DryRunRecord
from wordsens.experiments.store.store import RecordStore
with RecordStore(sys.argv[1], DryRunRecord).held():
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_run_is_refused_until_the_first_is_gone_however_it_went(tmp_path):
    store, _ = opened(tmp_path)
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "held\n"
        assert is_locked(tmp_path)
        with pytest.raises(BusyStoreError) as caught:
            list(run_cells(CELLS, store))
        assert f"another run is at work on {tmp_path} (process {process.pid} on " in str(caught.value)
        assert store.read() == []
    finally:
        process.kill()
        process.communicate()
    assert is_locked(tmp_path) is False
    assert len(list(run_cells(CELLS, store))) == len(CELLS)


def test_without_locks_two_runs_share_a_store(tmp_path, monkeypatch):
    monkeypatch.setattr("wordsens.experiments.store.lock.fcntl", None)
    monkeypatch.setattr(store_module, "COMPACT_AT", 3)
    stores = [opened(tmp_path)[0] for _ in range(2)]
    problems = []

    def work(store):
        try:
            list(run_cells(CELLS * 4, store))
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=work, args=(store,)) for store in stores]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert problems == []
    assert {one.cell: one.value for one in stores[0].read()} == {one.cell: one.value for one in RECORDS}
    assert is_locked(tmp_path) is None


def test_what_a_killed_run_left_half_written_is_cleared_away(tmp_path):
    store, _ = opened(tmp_path)
    (tmp_path / ".x.parquet.1-2.tmp").write_bytes(b"half")
    with store.held():
        assert [path.name for path in tmp_path.iterdir()] == [LOCK]


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 256 KiB; skipped where it may not be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True)
    except FileNotFoundError:
        pytest.skip("no mount here")
    if mounted.returncode != 0:
        pytest.skip("a tmpfs may not be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_stops_the_run_with_everything_whole(small_disk):
    store, reports = opened(small_disk)
    cells = [DryRunCell(draw=draw) for draw in range(400)]
    with pytest.raises(StoreError, match=r"cannot be written to .* \(.*No space left on device"):
        list(run_cells(cells, store))
    assert [path for path in small_disk.iterdir() if path.suffix == ".tmp"] == []
    finished = store.read()
    assert 5 < len(finished) < 400
    assert reports == []
    for path in list(small_disk.glob("*.parquet"))[:5]:
        path.unlink()
    assert len(list(run_cells(unfinished(cells, store)[:2], store))) == 2


@pytest.mark.parametrize("at", ["open", "write", "flush"])
def test_a_disk_that_fills_up_at_any_moment_leaves_nothing_half_written(tmp_path, monkeypatch, at):
    # Where no small disk can be mounted, this stands for it.
    full = OSError(28, "No space left on device")

    def raises(*_, **__):
        raise full

    if at == "flush":
        monkeypatch.setattr(os, "fsync", raises)
    elif at == "open":
        monkeypatch.setattr("pathlib.Path.open", raises)
    with pytest.raises(StoreError, match=r"one.parquet cannot be written to .* \(No space left on device\)"):
        write_whole(tmp_path / "one.parquet", raises if at == "write" else lambda file: file.write(b"x"))
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


RAF = SensitivityCell.parse({"map": "raf", "n": 3, "d": 4, "text": "gaussian", "steps": 2})


def test_witnesses_give_the_value_again_and_a_torn_one_is_measured_again(tmp_path):
    reports = []
    store = RecordStore(tmp_path, SensitivityRecord, on_set_aside=reports.append)
    (record,) = run_cells([RAF], store)
    assert unfinished([RAF], store) == []
    assert unfinished([RAF], store, witnesses=True) == [RAF]
    (again,) = run_cells([RAF], store, job=Job("sensitivity", witnesses=True))
    assert again.value == record.value
    kept = store.witness(record.cell)
    assert float(kept["per_word"].max()) == record.value
    assert kept["rows"].shape == (3, 4)
    assert float(kept["perturbations"].norm(dim=1).max()) <= 2 + 1e-9
    assert unfinished([RAF], store, witnesses=True) == []
    path = tmp_path / "witnesses" / f"{record.cell}.safetensors"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(bytes(content))
    assert unfinished([RAF], store, witnesses=True) == [RAF]
    assert "its digest differs" in str(reports[0])
    path.write_bytes(bytes(content[:40]))
    assert store.witness(record.cell) is None
    assert "is not a whole safetensors file" in str(reports[1])


def test_a_witness_of_another_cell_is_refused(tmp_path):
    (tmp_path / "a.safetensors").write_bytes(packed_witness("b", {}))
    with pytest.raises(ValueError, match="does not hold the witness of the cell"):
        read_witness(tmp_path / "a.safetensors", "a")


def test_merging(tmp_path):
    ours, _ = opened(tmp_path / "ours")
    theirs, _ = opened(tmp_path / "theirs")
    for record in RECORDS[:6]:
        ours.write(record)
    for record in RECORDS[4:]:
        theirs.write(replace(record, seconds=9.0))
    theirs.write(replace(RECORDS[4], value=0.5))
    ours.write(replace(RECORDS[0], cell=RECORDS[0].cell))
    failed = replace(RECORDS[11], status="failed", value=None, error="x")
    ours.write(failed)
    merged = merge_into(ours, opened(tmp_path / "theirs", read_only=True)[0])
    assert (merged.added, merged.known, merged.different) == (6, 2, (RECORDS[4].cell,))
    values = {one.cell: one.value for one in ours.read()}
    assert values == {one.cell: one.value for one in RECORDS}
    assert len(theirs.read()) == 8


def test_merging_brings_witnesses(tmp_path):
    first, second = RecordStore(tmp_path / "a", SensitivityRecord), RecordStore(tmp_path / "b", SensitivityRecord)
    (record,) = run_cells([RAF], first, job=Job("sensitivity", witnesses=True))
    merge_into(second, first)
    assert second.witness(record.cell)["words"].tolist() == [0, 1, 2]


def test_the_state_of_a_run(tmp_path):
    store, _ = opened(tmp_path)
    assert current_run(tmp_path) is None
    running = run_cells([DryRunCell(draw=draw, pause=0.01) for draw in range(3)], store)
    next(running)
    told = current_run(tmp_path)
    assert (told.to_do, told.slots, told.where, told.pid) == (3, 1, "in this process", os.getpid())
    running.close()
    assert current_run(tmp_path) is None
    assert json.loads((tmp_path / ".run.json").read_text())["to_do"] == 3
    (tmp_path / ".run.json").write_text("{torn")
    assert current_run(tmp_path) is None
    RunState("x", 1).save(tmp_path / "nowhere")
