"""The database of a run: records go in and come back, whatever stops it."""

import os
import sqlite3
import stat
from contextlib import closing

import pandas as pd
import pytest
import torch

import wordsens as ws
from tests.sweeps.squares import SquareCell, squares
from wordsens.errors import InputError
from wordsens.sweeps.run import failed, measured
from wordsens.sweeps.store import (
    FILE,
    Store,
    StoreError,
    as_frame,
    read_records,
    write_tables,
    write_whole,
)
from wordsens.sweeps.sweep import study_named


@pytest.fixture
def records():
    return [record for record, _ in measured(study_named(SquareCell.experiment), squares(4))]


def test_records_come_back_as_they_were(tmp_path, records):
    arrays = {"root": torch.tensor([1.5, 2.0])}
    with Store(tmp_path) as store:
        for record in records:
            store.write(record, arrays if record["draw"] == 2 else None)
        assert store.rows() == records
        assert store.rows([records[2]["cell"], "none"]) == [records[2]]
        assert torch.equal(store.arrays(records[2]["cell"])["root"], arrays["root"])
        assert store.arrays(records[1]["cell"]) is None
        assert store.finished(with_arrays=True) == {records[2]["cell"]}


def test_a_finished_cell_is_not_replaced_by_a_failure(tmp_path, records):
    cell = squares(1)[0]
    with Store(tmp_path) as store:
        store.write(failed(cell, "no")[0])
        assert (store.finished(), len(store.rows())) == (set(), 1)
        store.write(records[0])
        store.write(failed(cell, "no")[0])
        assert [(record["status"], record["value"]) for record in store.rows()] == [("done", 0.0)]


def test_two_versions_of_the_code_are_not_mixed(tmp_path, records):
    with Store(tmp_path) as store:
        for record in records[:3]:
            store.write({**record, "code": "older", "cell": f"older {record['draw']}"})
        store.write(records[0])
        assert [record["draw"] for record in store.rows()] == [0]
        assert store.other_versions(SquareCell.experiment, records[0]["code"]) == 3
        assert store.codes() == {SquareCell.experiment: records[0]["code"]}


def test_the_frame_the_tables_and_the_records_say_the_same(tmp_path, records):
    records = [
        {**record, "list": (1, 2), "hole": None if place else 3, "mixed": ("a", 1)[place % 2]}
        for place, record in enumerate(records)
    ]
    with Store(tmp_path) as store:
        for record in records:
            store.write(record)
        write_tables(store.frame(), tmp_path, "squares:OWN")
    frame = ws.read_records(tmp_path)
    assert frame["value"].tolist() == [0.0, 1.0, 4.0, 9.0]
    assert str(frame["hole"].dtype) == "Int64"
    assert frame.drop(columns="hole").to_dict("records") == [
        {name: value for name, value in record.items() if name != "hole"} for record in records
    ]
    plain = pd.read_parquet(tmp_path / "squares-OWN.parquet")
    assert list(plain.columns) == list(frame.columns)
    assert plain["list"].map(list).tolist() == [[1, 2]] * 4
    assert pd.read_csv(tmp_path / "squares-OWN.csv")["value"].tolist() == frame["value"].tolist()
    assert as_frame([]).empty


def test_what_is_no_folder_of_results_is_one_line(tmp_path, records):
    (tmp_path / "file").write_text("")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / FILE).write_bytes(b"no database at all" * 100)
    for place, message in (
        (tmp_path / "file", "cannot be used as a folder for results"),
        (tmp_path / "broken", "cannot be used: file is not a database"),
    ):
        with pytest.raises((InputError, StoreError), match=message) as error:
            Store(place)
        assert "\n" not in str(error.value)
    with pytest.raises(InputError, match=r"holds no results\.sqlite"):
        read_records(tmp_path / "none")
    with pytest.raises(InputError, match="has format 7; this version of wordsens reads format 1"):
        with Store(tmp_path / "later"):
            pass
        with closing(sqlite3.connect(tmp_path / "later" / FILE)) as connection, connection:
            connection.execute("PRAGMA user_version=7")
        Store(tmp_path / "later")


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("content", [b"no database at all" * 100, None])
def test_a_database_that_cannot_be_opened_is_closed_again(
    tmp_path, monkeypatch, content, read_only
):
    """Python 3.13 warns of a connection that is left open, in whatever test it is collected."""
    if content is None:
        with closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
            connection.execute("PRAGMA user_version=7")
    else:
        (tmp_path / FILE).write_bytes(content)
    connect, opened = sqlite3.connect, []
    monkeypatch.setattr(
        sqlite3, "connect", lambda *a, **k: opened.append(connect(*a, **k)) or opened[-1]
    )
    with pytest.raises((InputError, StoreError)):
        Store(tmp_path, read_only=read_only)
    (connection,) = opened
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        connection.execute("SELECT 1")


def test_a_full_disk_is_one_line_and_what_was_written_is_whole(tmp_path, records):
    with Store(tmp_path) as store:
        store.write(records[0])
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count={pages}")
        with pytest.raises(StoreError, match="database or disk is full") as error:
            store.write(records[1], {"large": torch.zeros(100_000)})
        assert "\n" not in str(error.value)
    with Store(tmp_path, read_only=True) as store:
        assert store.rows() == [records[0]]
        assert store._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_can_be_read_and_says_that_it_cannot_be_written(tmp_path, records):
    with Store(tmp_path) as store:
        store.write(records[0])
    (tmp_path / FILE).chmod(stat.S_IREAD)
    tmp_path.chmod(stat.S_IREAD | stat.S_IEXEC)
    try:
        assert len(read_records(tmp_path)) == 1
        with pytest.raises(StoreError, match="readonly database"), Store(tmp_path) as store:
            store.write(records[1])
    finally:
        tmp_path.chmod(stat.S_IRWXU)


def test_commands_are_kept_once_and_without_secrets(tmp_path):
    with Store(tmp_path) as store:
        for _ in range(2):
            store.add_command(["sweep", "--endpoint=https://me:secret@host/v1"])
        (command,) = store.commands()
    assert command["arguments"] == ["sweep", "--endpoint=https://host/v1"]


def test_a_file_is_written_whole_or_not_at_all(tmp_path):
    write_whole(tmp_path / "a", b"one")
    with pytest.raises(StoreError, match="cannot be written to"):
        write_whole(tmp_path / "none" / "a", b"two")
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [("a", b"one")]
