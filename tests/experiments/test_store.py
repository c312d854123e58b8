"""The store: whole shards only, nothing trusted unread, nothing dropped in silence."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wordsens.errors import InputError
from wordsens.experiments.run.runner import unfinished
from wordsens.experiments.sensitivity.cell import KIND as SENSITIVITY
from wordsens.experiments.sensitivity.record import SensitivityRecord
from wordsens.experiments.sensitivity.spec import SensitivityCell
from wordsens.experiments.store.record import digest_of
from wordsens.experiments.store.store import RecordStore, as_table, read_records, write_aside

CELLS = [
    SensitivityCell.parse({"map": "raf", "n": 3, "d": 4, "text": "gaussian", "steps": 2, "draw": draw})
    for draw in range(3)
]


@pytest.fixture(scope="module")
def records() -> list[SensitivityRecord]:
    return [SENSITIVITY.run(cell) for cell in CELLS]


def filled(folder, records):
    reports = []
    store = RecordStore(folder / "records", SensitivityRecord, on_set_aside=reports.append)
    paths = [store.write(record) for record in records]
    return store, paths, reports


def test_what_is_written_is_read_bit_for_bit(tmp_path, records):
    store, paths, reports = filled(tmp_path, records)
    assert store.read() == sorted(records, key=lambda record: record.cell)
    assert [path.name for path in paths] == [f"{record.cell}.parquet" for record in records]
    assert sorted(path.name for path in store.folder.iterdir()) == sorted(path.name for path in paths)
    assert reports == []


def test_only_the_cells_asked_for(tmp_path, records):
    store, _, _ = filled(tmp_path, records)
    assert store.read([records[1].cell]) == [records[1]]
    assert store.read([]) == []


def test_a_shard_is_an_ordinary_parquet_file(tmp_path, records):
    _, paths, _ = filled(tmp_path, records)
    row = pq.read_table(paths[0]).to_pylist()[0]
    digest = row.pop("digest")
    assert row == json.loads(json.dumps(records[0].to_dict()))
    said = {name: value for name, value in row.items() if value is not None}
    assert digest == hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-20]), "is not a whole Parquet file"),
        (lambda path: path.write_bytes(b""), "is not a whole Parquet file"),
        (lambda path: path.write_bytes(b"\x00garbage" * 400), "is not a whole Parquet file"),
        (lambda path: pq.write_table(pa.table({"a": [1]}), path), "was not written by wordsens"),
    ],
)
def test_a_torn_or_foreign_shard_is_set_aside_and_reported(tmp_path, records, damage, reason):
    store, paths, reports = filled(tmp_path, records)
    damage(paths[0])
    content = paths[0].read_bytes()
    assert store.read() == sorted(records[1:], key=lambda record: record.cell)
    assert len(reports) == 1
    assert reason in str(reports[0])
    assert not paths[0].exists()
    assert reports[0].moved_to.read_bytes() == content
    store.read()
    assert len(reports) == 1


def test_a_flipped_bit_in_a_page_is_noticed(tmp_path, records):
    store, paths, reports = filled(tmp_path, records)
    content = bytearray(paths[0].read_bytes())
    at = content.index(records[0].spec.encode()[:20])
    content[at] ^= 1
    paths[0].write_bytes(bytes(content))
    assert len(store.read()) == 2
    assert len(reports) == 1


def test_a_shard_under_another_name_is_set_aside(tmp_path, records):
    store, paths, reports = filled(tmp_path, records[:1])
    paths[0].rename(store.folder / f"{records[1].cell}.parquet")
    assert store.read() == []
    assert "does not hold the one cell that its name says" in str(reports[0])


@pytest.mark.parametrize(
    ("forge", "reason"),
    [
        (lambda record: replace(record, spec=record.spec.replace('"n":3', '"n":4')), "hash is not that of its spec"),
        (lambda record: replace(record, status="maybe"), "status (='maybe') must be done or failed"),
        (lambda record: replace(record, value=None), "says done, but has no value"),
        (lambda record: replace(record, value=float("nan")), "says done, but its value is nan"),
    ],
)
def test_a_forged_row_is_refused(tmp_path, records, forge, reason):
    path = tmp_path / f"{records[0].cell}.parquet"
    write_aside(path, [forge(records[0])], SensitivityRecord)
    with pytest.raises(InputError) as caught:
        read_records(path, SensitivityRecord)
    assert reason in str(caught.value)


def test_another_schema_version_or_a_missing_column_is_refused(tmp_path, records):
    path = tmp_path / "old.parquet"
    table = as_table(records, SensitivityRecord)
    pq.write_table(table.replace_schema_metadata({"wordsens.schema": "0"}), path)
    with pytest.raises(InputError, match="was written with record schema 0; this version reads record schema 1"):
        read_records(path, SensitivityRecord)
    pq.write_table(table.drop_columns(["value"]).replace_schema_metadata({"wordsens.schema": "1"}), path)
    with pytest.raises(InputError, match="its table has no column 'value'"):
        read_records(path, SensitivityRecord)


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        ("value", float("nan"), "it says done, but its value is nan"),
        ("value", 1.0, "it does not say what was written: its digest differs"),
        ("upper", 0.5, "it does not say what was written: its digest differs"),
        ("token", "other", "it does not say what was written: its digest differs"),
    ],
)
@pytest.mark.parametrize("together", [False, True])
def test_an_edited_record_is_set_aside_and_measured_again(tmp_path, records, column, value, reason, together):
    store, paths, reports = filled(tmp_path, records)
    if together:
        assert store.compact() == 3
        paths = list(store.folder.glob("many-*.parquet"))
    table = pq.read_table(paths[0])
    at = table.column_names.index(column)
    edited = pa.array([value, *table.column(column).to_pylist()[1:]], table.schema.field(at).type)
    pq.write_table(table.set_column(at, table.schema.field(at), edited), paths[0])
    assert len(unfinished(CELLS, store)) == (3 if together else 1)
    assert [reason in str(report) for report in reports] == [True]


def test_a_file_of_a_later_version_stays_trusted_when_it_is_brought_together(tmp_path, records):
    store, paths, reports = filled(tmp_path, records)
    row = {**pq.read_table(paths[0]).to_pylist()[0], "of_later": 2.5}
    table = pq.read_table(paths[0]).append_column("of_later", pa.array([2.5]))
    digests = pa.array([digest_of(row)])
    table = table.set_column(table.column_names.index("digest"), "digest", digests)
    pq.write_table(table, paths[0])
    store.compact()
    assert store.read() == sorted(records, key=lambda record: record.cell)
    assert reports == []


@pytest.mark.parametrize("read_only", [False, True])
def test_a_link_to_nothing_is_told_once_and_passed_over(tmp_path, records, read_only):
    _, paths, reports = filled(tmp_path, records)
    paths[0].unlink()
    paths[0].symlink_to(tmp_path / "none.parquet")
    store = RecordStore(tmp_path / "records", SensitivityRecord, on_set_aside=reports.append, read_only=read_only)
    assert store.read() == sorted(records[1:], key=lambda record: record.cell)
    assert ["is listed but cannot be opened" in str(report) for report in reports] == [True]
    assert paths[0].is_symlink() == read_only


def test_a_folder_with_the_name_of_home(tmp_path, records, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store, _, reports = filled(Path("~"), records)
    assert store.read() == sorted(records, key=lambda record: record.cell)
    assert reports == []
    assert (tmp_path / "~" / "records").is_dir()


def test_many_records_in_one_file(tmp_path, records):
    write_aside(tmp_path / "all.parquet", records, SensitivityRecord)
    assert read_records(tmp_path / "all.parquet", SensitivityRecord) == records
    assert as_table(records, SensitivityRecord).column("value").to_pylist() == [record.value for record in records]


def test_a_failure_gives_way_to_a_value_and_not_the_other_way_round(tmp_path, records):
    broken = SensitivityCell.parse({"map": "raf", "n": 3, "d": 2, "text": "orthogonal"})
    failure = SENSITIVITY.attempt(broken)
    store, _, _ = filled(tmp_path, [failure])
    assert store.read() == [failure]
    healed = replace(failure, status="done", error=None, value=1.0)
    store.write(healed)
    assert store.read() == [healed]
    assert [path.name for path in store.folder.iterdir()] == [f"{failure.cell}.parquet"]
    store.write(failure)
    assert store.read() == [healed]


def test_nothing_is_left_behind_when_writing_fails(tmp_path, records, monkeypatch):
    def full_disk(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_aside(tmp_path / "one.parquet", records, SensitivityRecord)
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / "out").write_text("")
    with pytest.raises(InputError, match=r"`out` \(=.*\) cannot be used as a folder for records"):
        RecordStore(tmp_path / "out", SensitivityRecord)
    with pytest.raises(InputError, match="cannot be used as a folder for records"):
        RecordStore(tmp_path / "out" / "records", SensitivityRecord)
