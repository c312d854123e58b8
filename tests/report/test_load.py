"""Folders to runs: what is read, what is passed over with a word, and what is refused."""

import pytest

from tests.report.conftest import write_records
from wordsens.errors import InputError
from wordsens.report.load import load_runs


def test_every_kind_of_a_folder_is_read(everything):
    (run,) = load_runs([everything])
    assert {part.name: len(part.records) for part in run.parts} == {
        "sensitivity": 37,
        "generalization": 48,
        "attention": 1,
    }
    assert run.unread == ()
    assert run.failed == []


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("nothing", "does not exist; give the folder that was a command's --out"),
        ("file", "is a file"),
        ("empty", "holds no results.sqlite; give the --out of a run"),
        ("inside", "did you mean"),
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
    with pytest.raises(InputError) as raised:
        load_runs([folder / "figures" if made == "inside" else folder])
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)
