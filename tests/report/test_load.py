"""Folders to runs: what is read, what is passed over with a word, and what is refused."""

import pytest
from tests.report.conftest import write_records

from wordsens.errors import InputError
from wordsens.report.load import load_runs


def test_every_kind_of_a_folder_is_read(everything):
    (run,) = load_runs([everything])
    assert {part.name: len(part.records) for part in run.parts} == {
        "sensitivity": 36,
        "generalization": 48,
        "audit": 6,
        "attention": 1,
    }
    assert run.unread == ()
    assert run.failed == []


def test_folders_of_one_name_are_told_apart(tmp_path, make_record):
    for name in ("one/out", "two/out"):
        write_records(tmp_path / name, [make_record()])
    runs = load_runs([tmp_path / "one/out", tmp_path / "two/out", tmp_path / "one/out"])
    assert [run.name for run in runs] == ["one/out", "two/out"]


def test_failed_cells_and_other_versions_are_told_not_hidden(tmp_path, make_record):
    failed = make_record(draw=2, status="failed", value=None, error="ValueError: no")
    write_records(tmp_path, [make_record(draw=3, code="another"), make_record(), make_record(draw=1), failed])
    (run,) = load_runs([tmp_path])
    assert run.unread == ("1 sensitivity cells of another version of the code",)
    assert (len(run.records), len(run.failed)) == (3, 1)


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("nothing", "does not exist; give the folder that was a command's --out"),
        ("file", "is a file"),
        ("empty", "holds no results.sqlite; give the --out of a run"),
        ("inside", "did you mean"),
        ("old", "holds results of an earlier version of wordsens, as Parquet files in records"),
    ],
)
def test_what_is_no_folder_of_records_is_refused_in_one_line(tmp_path, make_record, made, told):
    folder = tmp_path / "out"
    if made == "file":
        folder.write_text("")
    elif made != "nothing":
        folder.mkdir()
    if made == "inside":
        write_records(folder, [make_record()])
        (folder / "figures").mkdir()
    if made == "old":
        (folder / "records").mkdir()
        (folder / "records" / "0.parquet").write_bytes(b"")
    with pytest.raises(InputError) as raised:
        load_runs([folder / "figures" if made == "inside" else folder])
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)


def test_no_folder_is_refused():
    with pytest.raises(InputError, match="`folders` names no folder"):
        load_runs([])
