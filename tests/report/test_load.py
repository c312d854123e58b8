"""Folders to runs: what is read, what is passed over with a word, and what is refused."""

import pyarrow.parquet as pq
import pytest
from tests.report.conftest import write_records

from wordsens.errors import InputError
from wordsens.experiments.store.shard import SCHEMA_KEY
from wordsens.report.load import load_runs


def with_schema(path, version):
    """The same file, as a version with that record schema would have written it."""
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({SCHEMA_KEY: version}), path, write_page_checksum=True)


def test_every_kind_of_a_folder_is_read(everything):
    (run,) = load_runs([everything])
    assert {part.kind.name: len(part.records) for part in run.parts} == {
        "sensitivity": 36,
        "generalization": 48,
        "audit": 6,
        "attention": 1,
    }
    assert run.unread == ()
    assert run.failed == []


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ("nothing", "does not exist; give the folder that was a command's --out"),
        ("file", "is a file"),
        ("empty", "holds no records; give the folder that was the --out of a measure, paper, audit or sweep"),
        ("inside", "did you mean"),
        ("old", "no record can be read: records/"),
    ],
)
def test_what_is_no_folder_of_records_is_refused_in_one_line(tmp_path, make_record, made, told):
    folder = tmp_path / "out"
    if made == "file":
        folder.write_text("")
    elif made != "nothing":
        folder.mkdir()
    if made in ("inside", "old"):
        write_records(folder, [make_record()])
    if made == "old":
        with_schema(next((folder / "records").glob("*.parquet")), b"0")
    with pytest.raises(InputError) as raised:
        load_runs([folder / "records" if made == "inside" else folder])
    assert told in str(raised.value)
    assert "\n" not in str(raised.value)
